//! What a capability is: a pure planner with declared interests ([`Controller`]), and one value with all that the program
//! has to know of it ([`Capability`]).

mod profile;
pub mod show;

pub use profile::{Capability, Names, OpenRole, PeoplesRole, Profile, Registration};

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::action::Target;
use crate::admission::Count;
use crate::fact::Facts;
use crate::identity::{ClusterId, Key, Kind};
use crate::interest::{Interest, Where};
use crate::member::Member;
use crate::plan::Plan;
use crate::store::Stores;

/// How a new leader makes sure that the old one no longer acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// It changes every object that the old one could still act on ([`Controller::objects_to_bump`]), so that the old one's
    /// preconditions fail. Where it may not, it waits.
    BumpVersions,
    /// It waits until every request of the old one must have ended.
    WaitOut,
}

/// What a key shares with others: plans of one lane are carried out one after the other, and nothing else of it is done while the
/// outcome of a write is not known. Whatever is counted against one budget belongs into one lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Lane {
    /// All keys of the controller in the key's cluster are one.
    #[default]
    Cluster,
    /// All keys of the controller in the key's cluster that say the same.
    Group(String),
    /// The key alone.
    Key,
}

/// A number to be shown at `/metrics`, computed when asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// The metric's name, with its unit.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// Labels.
    pub labels: BTreeMap<&'static str, String>,
    /// The value.
    pub value: f64,
}

/// How the passes over a controller's keys are shown at `/metrics`: as one series for each key, under these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconcileMetricNames {
    /// The label with the name of a key.
    pub label: &'static str,
    /// Counts them.
    pub total: &'static str,
    /// Counts those that failed.
    pub failed: &'static str,
    /// How long they took, in seconds.
    pub duration: &'static str,
    /// When the last one succeeded, in seconds since 1970.
    pub last_success: &'static str,
}

/// How bad it is that something is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is waited for every time.
    Expected,
    /// Somebody should know.
    Warning,
    /// The pass has failed, and a person has to do something.
    Error,
}

/// An object that a watch or a list has brought, or its end.
#[derive(Debug, Clone, Copy)]
pub struct WatchEvent<'a> {
    /// Its kind.
    pub kind: &'a Kind,
    /// The object, whole.
    pub object: &'a Value,
    /// Whether it is its end.
    pub is_deletion: bool,
    /// Whether it was not known yet.
    pub is_new: bool,
}

/// One planner: observes a world, answers with a plan. Both are total and pure.
pub trait Controller: Send + Sync + 'static {
    /// Names it in keys, metrics, logs and events.
    fn name(&self) -> &'static str;
    /// What it wants to see.
    fn interests(&self) -> Vec<Interest>;
    /// What it wants to see of a cluster besides, as far as that is known only at run time: kinds, names and selectors that objects
    /// speak of. Asked for again when objects of that cluster change, or those at home that mean it. Nothing waits for these
    /// to be listed: whoever needs one looks whether its store is synced.
    fn interests_in(&self, _stores: &Stores, _cluster: &ClusterId) -> Vec<Interest> {
        Vec::new()
    }
    /// All clusters besides home that it works on. Asked for when home has been listed, and with every heartbeat; what changes
    /// in between is what interests say that objects mean ([`Interest::meaning`]).
    fn members(&self, _stores: &Stores) -> Vec<Member> {
        Vec::new()
    }
    /// One of its members, if it is one. Whoever has many answers this without looking at all of them.
    fn member(&self, stores: &Stores, cluster: &ClusterId) -> Option<Member> {
        let mut all = self.members(stores).into_iter();
        all.find(|member| member.cluster == *cluster)
    }
    /// Which work it is that what is known of a member has changed ([`crate::MemberState`]), at home or there.
    fn member_keys(&self, _stores: &Stores, _cluster: &ClusterId) -> Vec<Key> {
        Vec::new()
    }
    /// The member of which the plan of a key at home tells: what that one's API refused, and which kinds
    /// may not be seen there, is among the facts of the plan.
    fn tells_of(&self, _stores: &Stores, _key: &Key) -> Option<ClusterId> {
        None
    }
    /// Of which clusters it wants to know the kinds that they serve.
    fn discovers(&self) -> Option<Where> {
        None
    }
    /// What a key shares with others. Of one key always the same.
    fn lane(&self, _key: &Key) -> Lane {
        Lane::Cluster
    }
    /// The Lease that its replicas and predecessors share.
    fn lease(&self) -> &'static str;
    /// How a new leader fences the old one.
    fn fence(&self) -> Fence;
    /// Work there is when everything has been listed, whatever objects there are.
    fn keys(&self, stores: &Stores) -> Vec<Key>;
    /// The same of one cluster. Whoever has many clusters answers this without looking at all of them.
    fn keys_in(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Key> {
        let mut all = self.keys(stores);
        all.retain(|key| key.cluster == *cluster);
        all
    }
    /// Gathers the world of a key and decides; no plan if there is nothing to plan for.
    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan>;
    /// Numbers about objects, computed when they are asked for.
    fn gauges(&self, stores: &Stores, now: Timestamp) -> Vec<Gauge>;
    /// How its passes are shown; not by key if there are none.
    fn passes(&self) -> Option<ReconcileMetricNames> {
        None
    }
    /// What the names of the metrics of requests begin with, if dashboards look for other names than ours.
    fn request_prefix(&self) -> Option<&'static str> {
        None
    }
    /// How bad a blocker of this reason is.
    fn severity(&self, _reason: &str) -> Severity {
        Severity::Expected
    }
    /// What is counted when an object arrives.
    fn metric_for(&self, _arrival: &WatchEvent<'_>) -> Option<Count> {
        None
    }
    /// With [`Fence::BumpVersions`]: all that a former leader may be about to change or delete for this key.
    fn objects_to_bump(&self, _stores: &Stores, _key: &Key) -> Vec<Target> {
        Vec::new()
    }
}
