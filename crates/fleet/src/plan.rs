//! What is to be done about one Rollout: a function of its world and the time.
//!
//! ```text
//! World ─► survey (where each cluster stands) ─┬─ incremental ─┐
//!                                              ├─ replace ─────┼─► Decision ─► report (the status)
//!                                              ├─ external ────┤          └─► render (what is written)
//!                                              └─ unassign ────┘
//! ```
//!
//! What must survive a crash is in the Rollout's status before anything rests on it: that a change has begun, which clusters
//! were unready then, and which one goes first. So the plan in which one of these changes moves no cluster of an incremental
//! rollout; the next one does. In the same way it is told who is about to lose the configuration before anybody loses it.

mod external;
mod incremental;
mod replace;
mod report;
mod revisions;
mod run;
pub mod survey;
mod unassign;

use jiff::Timestamp;
use serde::Serialize;
use slipway_api::fleet::rollout::status::{PastRun, Run, Unassigned};

use crate::observe::rollout::Asked;
use crate::observe::{Strategy, Wanted, World};
use crate::reasons::Reason;
use survey::Survey;

pub use report::{blockers, status};

/// What is to be done, and why not more.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The assignments to be written, in the order of their writing: one write each.
    pub assign: Vec<Assignment>,
    /// The clusters that lose their assignment.
    pub unassign: Vec<String>,
    /// The clusters that have lost, or are about to lose, their assignment lately and without a person's word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unassigned: Vec<Unassigned>,
    /// The revision whose module has to be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub make: Option<String>,
    /// The revisions whose modules nobody needs any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retire: Vec<String>,
    /// Whether a person's word has been followed, and is to be taken away.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub word_is_followed: bool,
    /// How many clusters a person's word is still good for, where that is fewer than it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word_left: Option<usize>,
    /// Whether the Rollout is being deleted and nothing is left of it: its finalizer can go.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_released: bool,
    /// The change that is going on, as it is to be remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The last revision that proved itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<String>,
    /// The clusters that came lately, and are on their way with what has proved itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<String>,
    /// The changes that end with this plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<PastRun>,
    /// Why not more is done.
    pub holds: Vec<Hold>,
    /// When to look again although nothing has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<Timestamp>,
    /// Whether the next plan moves a cluster of which this one only writes down that it counts again.
    #[serde(skip)]
    pub is_awaited: bool,
}

/// A cluster that gets a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    /// The cluster.
    pub cluster: String,
    /// The revision of the assignment: of the template and of the cluster's values.
    pub revision: String,
    /// What it is.
    pub kind: Move,
}

/// What an assignment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Move {
    /// The cluster had none.
    First,
    /// It takes the place of another revision.
    Switch,
}

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// A word that programs can match on.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The cluster that is waited for; none where it is the Rollout itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// When it ends by itself, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Who or what can end it.
    pub unblock: String,
}

impl Hold {
    fn new(reason: Reason, message: impl Into<String>, unblock: &str) -> Self {
        Self {
            reason: reason.as_str(),
            message: message.into(),
            cluster: None,
            until: None,
            unblock: unblock.to_owned(),
        }
    }

    fn until(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }

    fn at(self, cluster: &str) -> Self {
        Self {
            cluster: Some(cluster.to_owned()),
            ..self
        }
    }
}

impl Decision {
    /// What has been so far: nothing changes it but what is decided.
    fn as_before(world: &World) -> Self {
        let status = &world.rollout.status;
        Self {
            run: status.run.clone(),
            stable: status.stable_revision.clone(),
            unassigned: status.unassigned.clone(),
            joined: status.joined.clone(),
            ..Self::default()
        }
    }

    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }

    /// Whether a cluster is about to lose its assignment, or to get its first one, which has to be written down first.
    fn tells_first(&self, world: &World) -> bool {
        let known = &world.rollout.status.joined;
        let comes = self.joined.iter().any(|name| !known.contains(name));
        comes
            || self.unassigned.iter().any(|one| {
                let cluster = world.clusters.get(&one.name);
                let entry = cluster.and_then(|cluster| cluster.entry.as_ref());
                entry.is_some_and(|entry| entry.is_ours)
            })
    }

    /// Whether the next plan does something that it can do only when this one has written its status. Who is left out of a list without
    /// that has time: hundreds may come up one after the other, and each of these statuses names all clusters.
    pub fn is_news(&self, world: &World) -> bool {
        let known = &world.rollout.status;
        let other = |run: &Run| Run {
            skipped: Vec::new(),
            ..run.clone()
        };
        let comes = self.joined.iter().any(|one| !known.joined.contains(one));
        let goes = |one: &Unassigned| !known.unassigned.iter().any(|known| known.name == one.name);
        self.is_awaited
            || self.run.as_ref().map(other) != known.run.as_ref().map(other)
            || comes
            || self.unassigned.iter().any(goes)
    }

    /// Whether anything of it is to be written besides the status.
    pub fn is_idle(&self) -> bool {
        let Self {
            assign,
            unassign,
            make,
            retire,
            ..
        } = self;
        assign.is_empty()
            && unassign.is_empty()
            && make.is_none()
            && retire.is_empty()
            && !self.word_is_followed
            && self.word_left.is_none()
            && !self.is_released
    }
}

/// Decides about a Rollout.
pub fn decide(world: &World, now: Timestamp) -> Decision {
    let mut decision = Decision::as_before(world);
    if world.is_blind {
        let message =
            "not all clusters can be seen: what is not seen gets, changes and loses nothing";
        let unblock = "whoever grants the right to list and watch Clusters and Secrets";
        let hold = Hold::new(Reason::ClustersHidden, message, unblock);
        decision.holds.push(hold);
    }
    if world.rollout.is_deleting {
        unassign::all(world, &mut decision);
        return decision;
    }
    let wanted = match &world.rollout.wanted {
        Asked::For(wanted) => wanted,
        Asked::Invalid(problem) => {
            let hold = Hold::new(
                Reason::InvalidRollout,
                problem.clone(),
                "whoever mends the spec",
            );
            decision.holds.push(hold);
            return decision;
        }
    };
    let survey = Survey::of(world, wanted, now);
    if wanted.is_paused {
        let message = "paused: no cluster gets, changes or loses anything";
        let hold = Hold::new(Reason::Paused, message, "whoever sets paused to false");
        decision.holds.push(hold);
    } else {
        decision.joined = survey.joined();
        act(world, wanted, &survey, &mut decision, now);
        revisions::decide(world, wanted, &mut decision);
    }
    if decision.holds.is_empty() {
        decision.holds.extend(survey.awaited(wanted.strategy));
    }
    let next = [survey.next_to_settle(), survey.next_retry()];
    for at in next.into_iter().flatten() {
        decision.wake(at);
    }
    decision
}

fn act(
    world: &World,
    wanted: &Wanted,
    survey: &Survey<'_>,
    decision: &mut Decision,
    now: Timestamp,
) {
    match wanted.strategy {
        Strategy::Replace => replace::decide(world, wanted, survey, decision, now),
        Strategy::Incremental => incremental::decide(world, wanted, survey, decision, now),
        Strategy::External => external::decide(wanted, survey, decision),
    }
    if decision.run.is_none() && survey.is_settled() {
        decision.stable = Some(wanted.target.clone());
    }
    unassign::deselected(world, survey, decision, now);
    let held = survey.all().filter_map(survey::Seen::hold);
    decision.holds.extend(held);
}
