//! What stands in the way of a restart that is due.

use std::time::Duration;

use jiff::Timestamp;
use slipway_api::flipper::WorkloadKind;
use slipway_kernel::claim::Claim;
use slipway_kernel::fact::Refusal;
use slipway_kernel::window::Hours;

use super::active::Active;
use crate::due::{Written, later};
use crate::observe::{Item, Workload, World, reference};
use crate::reasons::Reason;
use crate::rollout::Rollout;

/// Why a workload is held back, and until when if that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Why.
    pub reason: Reason,
    /// Since when: since it has been due.
    pub since: Timestamp,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// Who or what, where the reason alone does not say.
    pub by: Option<String>,
}

impl Held {
    /// The time by which a second wait for the same reason is told from the first.
    pub fn occasion(&self) -> Timestamp {
        match self.reason {
            // Nobody knows since when.
            Reason::StampInFuture => self.until.unwrap_or(self.since),
            _ => self.since,
        }
    }
}

/// A workload that is due.
#[derive(Debug, Clone, Copy)]
pub struct Due<'a, 'w> {
    /// Its kind.
    pub kind: WorkloadKind,
    /// The workload.
    pub item: &'w Item<Workload>,
    /// The policy that decides about it.
    pub active: &'a Active<'w>,
    /// How far its rollout is.
    pub rollout: Rollout,
    /// Since when it is due.
    pub since: Timestamp,
}

/// A gate: until when, and by whom.
pub(super) type Shut = (Reason, Option<Timestamp>, Option<String>);

impl Due<'_, '_> {
    /// The first thing that stands in the way, if there is one. What holds for longest is asked first.
    pub fn gate(&self, world: &World, now: Timestamp) -> Option<Held> {
        let (reason, until, by) = self
            .by_wish()
            .or_else(|| self.by_time(now))
            .or_else(|| self.by_others(now))
            .or_else(|| self.by_rollout())
            .or_else(|| self.by_budget(world))
            .or_else(|| self.by_refusal(world, now))
            .or_else(|| {
                let dry_run = self.active.policy.dry_run;
                dry_run.then_some((Reason::DryRun, None, None))
            })?;
        Some(Held {
            reason,
            since: self.since,
            until,
            by,
        })
    }

    /// Somebody said so, or there is nothing to be restarted.
    pub(super) fn by_wish(&self) -> Option<Shut> {
        let workload = self.item.body();
        let reason = if self.active.policy.suspended {
            Reason::Suspended
        } else if workload.is_empty(self.kind) {
            Reason::ZeroReplicas
        } else if workload.is_paused {
            Reason::Paused
        } else if workload.on_delete {
            Reason::OnDeleteStrategy
        } else if workload.partition > 0 {
            let ordinal = workload.partition.to_string();
            return Some((Reason::Partition, None, Some(ordinal)));
        } else {
            return None;
        };
        Some((reason, None, None))
    }

    fn by_time(&self, now: Timestamp) -> Option<Shut> {
        match &self.item.body().not_before {
            Written::At(at) if now < *at => return Some((Reason::Snoozed, Some(*at), None)),
            Written::Unreadable(text) => {
                return Some((Reason::Snoozed, None, Some(text.clone())));
            }
            _ => {}
        }
        let turn = later(
            self.since,
            offset(&self.item.meta().uid, self.active.policy.jitter),
        );
        if turn.is_none_or(|turn| now < turn) {
            return Some((Reason::Jitter, turn, None));
        }
        match self.active.hours {
            Hours::Open => None,
            Hours::Excluded(until) => Some((Reason::ExcludedDate, until, None)),
            Hours::Closed(until) => Some((Reason::OutsideWindow, until, None)),
        }
    }

    fn by_others(&self, now: Timestamp) -> Option<Shut> {
        let claim = Claim::read(self.item.body().claim.as_deref()?, now)?;
        (claim.holder != crate::NAME).then_some((
            Reason::ClaimedByOther,
            Some(claim.until),
            Some(claim.holder),
        ))
    }

    fn by_rollout(&self) -> Option<Shut> {
        if self.active.policy.ignores_rollouts {
            return None;
        }
        let reason = match self.rollout {
            Rollout::Failed => Reason::RolloutFailed,
            Rollout::Rolling => Reason::RolloutInProgress,
            Rollout::Unavailable => Reason::Unavailable,
            Rollout::Unknown | Rollout::Complete => return None,
        };
        let status = &self.item.body().status;
        let (updated, available) = match self.kind {
            WorkloadKind::Deployment => (status.updated, status.available),
            WorkloadKind::StatefulSet => (status.updated, status.ready),
            WorkloadKind::DaemonSet => (status.updated_scheduled, status.number_available),
        };
        let desired = self.item.body().desired(self.kind);
        let progress = format!("{updated} of {desired} updated, {available} available");
        Some((reason, None, Some(progress)))
    }

    fn by_budget(&self, world: &World) -> Option<Shut> {
        if !self.active.policy.respects_budgets {
            return None;
        }
        let namespace = &self.item.meta().namespace;
        if world.without_budgets.contains(namespace) {
            return Some((Reason::DisruptionBudget, None, None));
        }
        let spent = world
            .budgets
            .get(namespace)?
            .iter()
            .find(|budget| budget.body().forbids(&self.item.body().pod_labels))?;
        let name = spent.meta().name.clone();
        Some((Reason::DisruptionBudget, None, Some(name)))
    }

    fn by_refusal(&self, world: &World, now: Timestamp) -> Option<Shut> {
        let refusal = refused(world, self.kind, self.item, now)?;
        let why = refusal.reason.clone();
        Some((Reason::RefusedByApi, Some(refusal.retry_at), Some(why)))
    }
}

/// The refusal because of which the workload is not written to for now.
pub fn refused<'w>(
    world: &'w World,
    kind: WorkloadKind,
    item: &Item<Workload>,
    now: Timestamp,
) -> Option<&'w Refusal> {
    if world.refusals.is_empty() {
        return None;
    }
    let refusal = world.refusals.get(&reference(&world.cluster, kind, item))?;
    (now < refusal.retry_at).then_some(refusal)
}

/// A workload's place within the jitter, in whole seconds where there are any: the same for ever, for the same uid.
pub fn offset(uid: &str, jitter: Duration) -> Duration {
    if jitter.is_zero() {
        return Duration::ZERO;
    }
    // FNV-1a, then a finaliser so that uids that differ in one digit do not end up side by side.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in uid.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    let whole = jitter.as_secs();
    if whole > 0 {
        Duration::from_secs(hash % whole)
    } else {
        let nanos = u64::from(jitter.subsec_nanos()).max(1);
        Duration::from_nanos(hash % nanos)
    }
}
