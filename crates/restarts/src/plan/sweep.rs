//! One look at every workload: which policy decides, what the table says, what stands in the way, what limits leave.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use slipway_api::flipper::{MAX_LISTED, WorkloadKind};

use super::active::{Active, Finder};
use super::gates::{Due, Held, offset, refused};
use crate::due::{self, Decision, Written};
use crate::observe::{Item, Workload, World};
use crate::reasons::Reason;
use crate::render;
use crate::rollout::{self, Rollout, Slot};
use crate::settings::Settings;

/// What is to become of a workload about which there is something to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is stamped.
    Stamp {
        /// Because its stamp is no time.
        repair: bool,
    },
    /// It is restarted.
    Restart {
        /// Since when it is due.
        due: Timestamp,
        /// When it will be due again.
        next: Option<Timestamp>,
    },
    /// It is held back.
    Held(Held),
}

/// A workload about which there is something to say.
#[derive(Debug)]
pub struct Case<'w> {
    /// Its kind.
    pub kind: WorkloadKind,
    /// The workload.
    pub item: &'w Item<Workload>,
    /// The place of the policy that decides.
    pub place: usize,
    /// What is to become of it.
    pub outcome: Outcome,
    takes_a_place: bool,
}

/// What a policy came to.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Workloads that it decides about.
    pub matched: usize,
    /// The first of them, by their places in the world.
    pub listed: Vec<usize>,
    /// Workloads that are due and wait.
    pub pending: usize,
    /// Workloads that are rolling.
    pub in_progress: usize,
    /// Workloads that are left alone.
    pub skipped: usize,
    /// First stamps that are still to be written.
    pub unstamped: usize,
    /// The last restart.
    pub last: Option<Timestamp>,
    /// The next one, as far as that is known.
    pub next: Option<Timestamp>,
    /// Workloads held back, by reason.
    pub reasons: BTreeMap<Reason, usize>,
    /// The policies that come before it for some workload.
    pub overruled_by: BTreeSet<usize>,
    slots: usize,
}

impl Tally {
    fn expect(&mut self, next: Option<Timestamp>) {
        self.next = match (self.next, next) {
            (Some(known), Some(next)) => Some(known.min(next)),
            (known, next) => known.or(next),
        };
    }

    fn hold(&mut self, reason: Reason) {
        *self.reasons.entry(reason).or_default() += 1;
        if reason.is_a_skip() {
            self.skipped += 1;
        } else if !reason.is_a_remark() {
            self.pending += 1;
        }
    }
}

/// What a look at every workload gave.
#[derive(Debug, Default)]
pub struct Sweep<'w> {
    /// Workloads about which there is something to say, by kind, namespace and name.
    pub cases: Vec<Case<'w>>,
    /// The cases that are restarted, the longest overdue first.
    pub restarts: Vec<usize>,
    /// What each policy came to.
    pub tallies: Vec<Tally>,
    /// When to look again.
    pub wake_at: Option<Timestamp>,
    slots: usize,
}

impl<'w> Sweep<'w> {
    /// Looks at every workload of the world.
    pub fn over(
        settings: &Settings,
        world: &'w World,
        active: &[Active<'w>],
        now: Timestamp,
    ) -> Self {
        let mut sweep = Self {
            tallies: vec![Tally::default(); active.len()],
            ..Self::default()
        };
        let mut finder = Finder::new(settings, active);
        for (at, (kind, item)) in world.workloads.iter().enumerate() {
            let found = finder.find(*kind, item);
            let Some((winner, losers)) = found.split_first() else {
                continue;
            };
            for loser in losers {
                if let Some(tally) = sweep.tallies.get_mut(*loser) {
                    tally.overruled_by.insert(*winner);
                }
            }
            let Some(policy) = active.get(*winner) else {
                continue;
            };
            if let Some(tally) = sweep.tallies.get_mut(*winner)
                && tally.listed.len() < MAX_LISTED
            {
                tally.listed.push(at);
            }
            sweep.look(world, policy, *winner, *kind, item, now);
        }
        sweep.limit(settings, active);
        sweep
    }

    fn wake(&mut self, at: Option<Timestamp>, now: Timestamp) {
        // What is past comes by itself: by an event, or with the step that is planned now.
        if let Some(at) = at.filter(|at| *at > now) {
            self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
        }
    }

    fn look(
        &mut self,
        world: &World,
        active: &Active<'w>,
        place: usize,
        kind: WorkloadKind,
        item: &'w Item<Workload>,
        now: Timestamp,
    ) {
        let workload = item.body();
        let rollout = rollout::assess(kind, workload, item.meta().generation, now);
        let takes_a_place = match rollout::slot(rollout, workload, now) {
            Slot::Taken(end) => {
                self.wake(end, now);
                true
            }
            Slot::Free => false,
        };
        let mut seen = Tally::default();
        let (outcome, wake) = if workload.is_deleting {
            (Some(held(Reason::Deleting, now)), None)
        } else if workload.is_opted_out {
            (Some(held(Reason::OptedOut, now)), None)
        } else if active.invalid.is_some() {
            (Some(held(Reason::PolicyInvalid, now)), None)
        } else {
            judge(world, active, kind, item, rollout, now, &mut seen)
        };
        self.wake(wake, now);
        self.wake(due::reads_otherwise_at(workload.past(), now), now);
        self.slots += usize::from(takes_a_place);
        let Some(tally) = self.tallies.get_mut(place) else {
            return;
        };
        tally.matched += 1;
        tally.slots += usize::from(takes_a_place);
        tally.in_progress += usize::from(rollout == Rollout::Rolling);
        // As it is written, also by a clock that is ahead of ours: else the status would change with time alone.
        tally.last = tally.last.max(rollout::restarted(workload));
        tally.expect(seen.next);
        match &outcome {
            Some(Outcome::Held(held)) => tally.hold(held.reason),
            Some(Outcome::Stamp { .. }) => tally.unstamped += 1,
            _ => {}
        }
        if let Some(outcome) = outcome {
            self.cases.push(Case {
                kind,
                item,
                place,
                outcome,
                takes_a_place,
            });
        }
    }

    /// Lets as many restarts begin as may roll at once, the longest overdue first; the others wait.
    fn limit(&mut self, settings: &Settings, active: &[Active<'_>]) {
        let mut due: Vec<(Timestamp, usize, Option<Timestamp>)> = self
            .cases
            .iter()
            .enumerate()
            .filter_map(|(at, case)| match case.outcome {
                Outcome::Restart { due, next } => Some((due, at, next)),
                _ => None,
            })
            .collect();
        due.sort_unstable();
        for (since, at, next) in due {
            let Some(case) = self.cases.get_mut(at) else {
                continue;
            };
            let Some(tally) = self.tallies.get_mut(case.place) else {
                continue;
            };
            let most = active
                .get(case.place)
                .and_then(|active| active.policy.max_concurrent);
            let is_full = most.is_some_and(|most| tally.slots >= most)
                || settings
                    .max_concurrent
                    .is_some_and(|most| self.slots >= most);
            if is_full && !case.takes_a_place {
                tally.hold(Reason::MaxConcurrent);
                case.outcome = held(Reason::MaxConcurrent, since);
                continue;
            }
            if !case.takes_a_place {
                tally.slots += 1;
                self.slots += 1;
            }
            tally.expect(next);
            self.restarts.push(at);
        }
    }
}

fn held(reason: Reason, since: Timestamp) -> Outcome {
    Outcome::Held(Held {
        reason,
        since,
        until: None,
        by: None,
    })
}

/// What is to become of a workload, and when to look at it again.
fn judge<'w>(
    world: &World,
    active: &Active<'w>,
    kind: WorkloadKind,
    item: &'w Item<Workload>,
    rollout: Rollout,
    now: Timestamp,
    seen: &mut Tally,
) -> (Option<Outcome>, Option<Timestamp>) {
    let workload = item.body();
    let cadence = active.cadence_of(workload);
    let turn =
        |due: Option<Timestamp>| due::later(due?, offset(&item.meta().uid, active.policy.jitter));
    match due::decide(workload.past(), &cadence, now) {
        Decision::Stamp { .. } if active.policy.suspended => (None, None),
        Decision::Stamp { .. } if active.policy.dry_run => {
            // What would not be restarted either way is not told of as if it would.
            let due = Due {
                kind,
                item,
                active,
                rollout,
                since: now,
            };
            let shut = due.by_wish().map(|(reason, _, by)| {
                Outcome::Held(Held {
                    reason,
                    since: now,
                    until: None,
                    by,
                })
            });
            let never = || held(Reason::NeverRestarted, now);
            (Some(shut.unwrap_or_else(never)), None)
        }
        Decision::Stamp { repair } => {
            if let Some(refusal) = refused(world, kind, item, now) {
                let held = Held {
                    reason: Reason::RefusedByApi,
                    since: refusal.since,
                    until: Some(refusal.retry_at),
                    by: Some(refusal.reason.clone()),
                };
                return (Some(Outcome::Held(held)), Some(refusal.retry_at));
            }
            seen.expect(turn(cadence.after(due::second(now))));
            (Some(Outcome::Stamp { repair }), None)
        }
        Decision::Future { due } => {
            seen.expect(turn(due));
            (ahead(workload, due, now), cadence.after(now))
        }
        Decision::Wait { due } => {
            seen.expect(turn(due));
            (unstamped(workload, due), turn(due))
        }
        Decision::Restart { due } => {
            let gate = Due {
                kind,
                item,
                active,
                rollout,
                since: due,
            };
            if let Some(held) = gate.gate(world, now) {
                let until = held.until;
                if !held.reason.is_a_skip() && held.reason != Reason::Suspended {
                    seen.expect(until);
                }
                return (Some(Outcome::Held(held)), until);
            }
            let next = turn(cadence.after(due::second(now)));
            (Some(Outcome::Restart { due, next }), None)
        }
    }
}

/// How far a stamp may lie in the future before that is told: clocks differ a little, and that is no news.
const SKEW: Duration = Duration::from_mins(5);

/// Says so if the stamp is another time's: the workload is waited with for as long as that is ahead.
fn ahead(workload: &Workload, due: Option<Timestamp>, now: Timestamp) -> Option<Outcome> {
    let stamp = workload.stamp.at()?;
    (due::later(now, SKEW)? < stamp).then(|| {
        Outcome::Held(Held {
            reason: Reason::StampInFuture,
            since: now,
            until: due,
            by: Some(render::stamp_of(stamp)),
        })
    })
}

/// Says so if our stamp is gone although we restarted the workload.
fn unstamped(workload: &Workload, due: Option<Timestamp>) -> Option<Outcome> {
    let since = workload.template.at()?;
    (workload.stamp == Written::Missing).then_some(Outcome::Held(Held {
        reason: Reason::StampRemoved,
        since,
        until: due,
        by: None,
    }))
}
