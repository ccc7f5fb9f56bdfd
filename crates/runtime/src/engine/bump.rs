//! Changes every object that a former leader could still act on, so that its preconditions fail.
//!
//! Each one is changed at the version that it was listed at; whatever has changed since is read and changed again, so
//! that in the end nothing that the former leader may have seen is still the newest version. What it did before is in
//! the answers, and so in the stores before the first plan.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use slipway_api::names;
use slipway_api::purpose::runtime as purpose;
use slipway_kernel::action::Target;
use slipway_kernel::identity::{ClusterId, ObjectRef};
use slipway_kernel::store::Meta;

use crate::clusters::Clusters;
use crate::request::{ApiRequest, Outcome};
use crate::settings::Backoff;
use crate::state::{Phase, Shared, State};

/// How often one object is tried.
const ATTEMPTS: u32 = 8;
/// Between attempts without an answer.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    most: Duration::from_secs(2),
};

/// Between attempts, whatever the server asks for: a former leader is waited for in less.
const LONGEST: Duration = Duration::from_secs(10);

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bumped {
    /// The former leader cannot act on any of them.
    All,
    /// It may still act on one, because we may not change it.
    Forbidden(ObjectRef, String),
    /// It may still act on one.
    Failed(ObjectRef),
    /// This replica is not the leader any more, or not by its clock, until it has renewed.
    Lost,
    /// What was listed is not what is there now: it may act on something that nobody knows of.
    Outlived,
}

/// Which histories of versions something rests on, each of another cluster. What was listed before one of them ended is not what
/// there is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Basis(BTreeMap<ClusterId, u64>);

impl Basis {
    /// Those that there are now. One of a cluster that is not worked on has ended.
    pub(super) fn now<'a>(state: &State, all: impl IntoIterator<Item = &'a ClusterId>) -> Self {
        let all = all.into_iter();
        Self(
            all.map(|of| (of.clone(), state.history(of).unwrap_or_default()))
                .collect(),
        )
    }

    fn is_over(&self, state: &State) -> bool {
        let mut all = self.0.iter();
        all.any(|(cluster, history)| state.history(cluster) != Some(*history))
    }
}

/// Objects that are to be changed.
pub(super) struct Bump {
    pub(super) shared: Arc<Shared>,
    pub(super) clusters: Clusters,
    /// Where they are.
    pub(super) cluster: ClusterId,
    pub(super) lease: &'static str,
    pub(super) epoch: i64,
    /// What they were listed in.
    pub(super) basis: Basis,
    /// With the controller that they are for.
    pub(super) targets: Vec<(&'static str, Target)>,
}

impl Bump {
    pub(super) async fn run(self) -> Bumped {
        // As many at once as the cluster has slots for.
        let mut all = FuturesUnordered::new();
        for (controller, target) in &self.targets {
            all.push(self.one(controller, target));
        }
        while let Some(bumped) = all.next().await {
            if bumped != Bumped::All {
                return bumped;
            }
        }
        drop(all);
        if self.is_outlived() {
            return Bumped::Outlived;
        }
        Bumped::All
    }

    async fn one(&self, controller: &'static str, target: &Target) -> Bumped {
        let object = target.object();
        let timeout = self.shared.settings.request_timeout;
        let Some(cluster) = self.clusters.get(&object.cluster) else {
            return Bumped::Outlived;
        };
        let Ok(_slot) = cluster.slots.acquire().await else {
            return Bumped::Lost;
        };
        let mut target = target.clone();
        for attempt in 1..=ATTEMPTS {
            if !self.is_leading() {
                return Bumped::Lost;
            }
            if self.is_outlived() {
                return Bumped::Outlived;
            }
            let wanted = self.wanted(controller, &target);
            let outcome = wanted.send(&cluster.client, timeout).await;
            let (kind, ended) = (object.kind.kind.as_ref(), outcome.as_str());
            let metrics = &self.shared.metrics;
            metrics.acted(controller, ("patch", kind, purpose::FENCE), ended);
            if self.is_outlived() {
                return Bumped::Outlived;
            }
            let wait = match outcome {
                Outcome::Done(value) => {
                    self.shared
                        .lock()
                        .wrote(object, names::FIELD_MANAGER, &value);
                    return Bumped::All;
                }
                Outcome::Absent(_) => return self.gone(&target),
                Outcome::Refused(refused) if refused.is_forbidden() => {
                    return Bumped::Forbidden(object.clone(), refused.message);
                }
                Outcome::Refused(_) => return Bumped::Failed(object.clone()),
                Outcome::Conflict => None,
                Outcome::Busy(after) | Outcome::Unknown(_, after) => {
                    let wait = after.unwrap_or_else(|| BACKOFF.after(attempt));
                    Some(wait.min(LONGEST))
                }
            };
            if let Some(wait) = wait {
                self.shared.environment.sleep(wait).await;
            }
            let read = ApiRequest::get(object).send(&cluster.client, timeout).await;
            if self.is_outlived() {
                return Bumped::Outlived;
            }
            match read {
                Outcome::Absent(_) => return self.gone(&target),
                Outcome::Done(value) => match self.seen(&target, &value) {
                    Some(newer) => target = newer,
                    None => return Bumped::All,
                },
                _ => {}
            }
        }
        Bumped::Failed(object.clone())
    }

    /// Whether a restore of the API's storage was noticed since the lists: then what the former leader could act on is to be
    /// listed again.
    fn is_outlived(&self) -> bool {
        self.basis.is_over(&self.shared.lock())
    }

    /// Whether this replica still has the lease. Home may be fenced before a member is.
    fn is_leading(&self) -> bool {
        let is_in = |phase| self.shared.is_in(phase, self.lease) == Some(self.epoch);
        is_in(Phase::Fencing) || (!self.cluster.is_local() && is_in(Phase::Acting))
    }

    fn wanted(&self, controller: &str, target: &Target) -> ApiRequest {
        let epoch = self.epoch;
        let body = json!({"metadata": {"annotations": {names::FENCE: epoch.to_string()}}});
        let replica = &self.shared.settings.replica;
        let purpose = purpose::FENCE;
        let context = format!(
            "controller={controller};replica={replica};epoch={epoch};purpose={purpose};basis="
        );
        ApiRequest::patch(target, "", body).traced(context)
    }

    fn gone(&self, target: &Target) -> Bumped {
        let mut state = self.shared.lock();
        state.overlay_absence(target.object(), target.uid());
        Bumped::All
    }

    /// Takes in what an object is now; gives what is left to be bumped.
    fn seen(&self, target: &Target, value: &Value) -> Option<Target> {
        let object = target.object();
        let meta = Meta::of(value);
        let fence = value.pointer("/metadata/annotations");
        let fence = fence.and_then(|all| all.get(names::FENCE)?.as_str());
        let mut state = self.shared.lock();
        if fence == Some(&self.epoch.to_string()) {
            state.wrote(object, names::FIELD_MANAGER, value);
            return None;
        }
        state.overlay(object, value);
        // Another object of this name is not what the former leader knows.
        (meta.uid == target.uid()).then(|| Target::seen(object.clone(), &meta))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use jiff::Timestamp;

    use super::*;
    use crate::environment::Environment;
    use crate::settings::Settings;

    /// A member was removed and has come back, or another cluster has taken its place: that there was nothing to be bumped says
    /// nothing about what is there now.
    #[test]
    fn what_was_listed_of_another_history_fences_nothing() {
        let environment = Environment::virtual_from(Timestamp::UNIX_EPOCH, 1);
        let shared = Arc::new(Shared::new(environment, Settings::default()));
        let bump = |cluster: ClusterId, history: u64| Bump {
            shared: shared.clone(),
            clusters: Clusters::default(),
            basis: Basis([(cluster.clone(), history)].into()),
            cluster,
            lease: "toy",
            epoch: 1,
            targets: Vec::new(),
        };
        let ended = |bump: Bump| bump.run().now_or_never();
        let home = ClusterId::local;
        let history = shared.lock().history(&home()).unwrap_or_default();
        assert_eq!(ended(bump(home(), history)), Some(Bumped::All));
        assert_eq!(ended(bump(home(), history + 1)), Some(Bumped::Outlived));
        let gone = ClusterId::remote("gone");
        assert_eq!(ended(bump(gone, history)), Some(Bumped::Outlived));
    }

    /// What was to be bumped in a member was read from home's lists as well: after a restore at home they are of before.
    #[test]
    fn a_restore_of_any_cluster_that_lists_are_of_ends_what_rests_on_them() {
        let mut state = State::default();
        let (home, member) = (ClusterId::local(), ClusterId::remote("north"));
        let known = crate::state::ClusterState::of_member(None);
        state.members.insert(member.clone(), known);
        for cluster in [&home, &member] {
            let basis = Basis::now(&state, [&home, &member]);
            assert!(!basis.is_over(&state));
            state.begin_history(cluster);
            assert!(basis.is_over(&state), "{cluster}");
        }
    }
}
