//! A story of one Rollout: what happens to its clusters, to the API, to the operator and to what people want, and what is made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use slipway_api::fleet::assemblage::SyncState;
use slipway_bindings::revision::template_of;
use slipway_fleet::budget::Amount;
use slipway_fleet::decide;
use slipway_fleet::observe::rollout::Asked;
use slipway_fleet::observe::{Cluster, Entry, Refused, Revision, Rollout, Strategy, Wanted, World};
use slipway_fleet::plan::{self, Decision};
use slipway_fleet::reasons::Reason;

use crate::stage::{noon, report, write};

/// What happens between two plans.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Ready(usize),
    Failed(usize),
    Lost(usize),
    Back(usize),
    Template(usize),
    Value(usize),
    Selected(usize, bool),
    Paused(bool),
    /// What a cluster's bindings refer to has not been read (again), or is not there.
    Blocked(usize, Reason),
    Resolved(usize),
    /// The API does not let us write a cluster's assignments, or does again.
    Refusing(usize, bool),
    /// So many seconds pass.
    Later(u64),
    /// A cluster is to be deleted, is not there any more, comes (back) without a control plane, and has one.
    Deleting(usize),
    Gone(usize),
    Comes(usize),
    Initialized(usize),
    /// Somebody deletes the assemblage of a cluster, with all that is assigned there.
    Stripped(usize),
    /// The operator starts again, so that no cluster has been looked at; one is.
    Restarted,
    Seen(usize),
    /// Of the next plan only the status is written, or only the first so many assignments are, and no status.
    OnlyStatus,
    OnlyWrites(usize),
    /// A person allows so many clusters to lose their assignment.
    Confirmed(usize),
    Nothing,
}

pub(crate) const CLUSTERS: usize = 6;
/// After how long what the API refused is tried again.
const RETRY: Duration = Duration::from_mins(1);

pub(crate) fn event() -> impl proptest::strategy::Strategy<Value = Event> {
    let one = || 0..CLUSTERS;
    let reasons = prop_oneof![Just(Reason::BindingUnread), Just(Reason::BindingUnresolved)];
    let clusters = prop_oneof![
        12 => one().prop_map(Event::Ready),
        4 => one().prop_map(Event::Failed),
        2 => one().prop_map(Event::Lost),
        4 => one().prop_map(Event::Back),
        1 => one().prop_map(Event::Deleting),
        1 => one().prop_map(Event::Gone),
        2 => one().prop_map(Event::Comes),
        3 => one().prop_map(Event::Initialized),
        1 => one().prop_map(Event::Stripped),
    ];
    let people = prop_oneof![
        4 => (0..3_usize).prop_map(Event::Template),
        4 => one().prop_map(Event::Value),
        4 => (one(), any::<bool>()).prop_map(|(at, is)| Event::Selected(at, is)),
        2 => any::<bool>().prop_map(Event::Paused),
        1 => (1..3_usize).prop_map(Event::Confirmed),
    ];
    let others = prop_oneof![
        2 => (one(), reasons).prop_map(|(at, why)| Event::Blocked(at, why)),
        3 => one().prop_map(Event::Resolved),
        1 => one().prop_map(|at| Event::Refusing(at, true)),
        2 => one().prop_map(|at| Event::Refusing(at, false)),
        1 => Just(Event::Restarted),
        4 => one().prop_map(Event::Seen),
        1 => Just(Event::OnlyStatus),
        1 => (0..3_usize).prop_map(Event::OnlyWrites),
        3 => prop_oneof![Just(20_u64), Just(70), Just(4_000)].prop_map(Event::Later),
    ];
    prop_oneof![
        12 => clusters,
        6 => people,
        5 => others,
        4 => Just(Event::Nothing),
    ]
}

/// How a Rollout goes about its changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) strategy: Strategy,
    pub(crate) budget: usize,
    pub(crate) min_ready: u32,
}

/// Any of these strategies, at any pace.
pub(crate) fn pace(
    strategies: impl proptest::strategy::Strategy<Value = Strategy>,
) -> impl proptest::strategy::Strategy<Value = Pace> {
    let min_ready = prop_oneof![2 => Just(0_u32), 1 => Just(60)];
    let parts = (strategies, 1..4_usize, min_ready);
    parts.prop_map(|(strategy, budget, min_ready)| Pace {
        strategy,
        budget,
        min_ready,
    })
}

/// A Rollout over some clusters, one of which has an assignment of somebody else, and what became of it.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) world: World,
    pub(crate) now: Timestamp,
    values: [usize; CLUSTERS],
    /// The clusters whose values cannot be told, and why.
    blocked: BTreeMap<usize, Reason>,
    /// The clusters whose assignments the API refuses to have written.
    refusing: BTreeSet<String>,
    /// How much of the next plan is carried out, where that is not all.
    part: Option<Event>,
    /// The revisions that some cluster has been ready with.
    pub(crate) proved: BTreeSet<String>,
    /// When clusters that are selected no more lost their assignment without a person's word.
    pub(crate) lost: BTreeMap<String, Timestamp>,
}

pub(crate) fn name(at: usize) -> String {
    format!("c{at}")
}

impl Story {
    pub(crate) fn new(pace: Pace) -> Self {
        let wanted = Wanted {
            strategy: pace.strategy,
            target: "t0".to_owned(),
            max_unready: Amount::Number(pace.budget),
            max_unreachable: Amount::Number(2),
            min_ready_seconds: pace.min_ready,
            ..Wanted::default()
        };
        let rollout = Rollout {
            name: "shop/web".to_owned(),
            wanted: Asked::For(wanted),
            ..Rollout::default()
        };
        let mut world = World {
            rollout,
            ..World::default()
        };
        for at in 0..CLUSTERS {
            world.clusters.insert(name(at), Cluster::default());
        }
        let foreign = Entry {
            is_ours: false,
            revision: Some("theirs".to_owned()),
            status: None,
        };
        world.clusters.get_mut("c5").unwrap().entry = Some(foreign);
        let mut story = Self {
            world,
            now: noon(),
            values: [0; CLUSTERS],
            blocked: BTreeMap::new(),
            refusing: BTreeSet::new(),
            part: None,
            proved: BTreeSet::new(),
            lost: BTreeMap::new(),
        };
        story.refresh();
        story
    }

    pub(crate) fn wanted(&mut self) -> &mut Wanted {
        match &mut self.world.rollout.wanted {
            Asked::For(wanted) => wanted,
            Asked::Invalid(problem) => panic!("{problem}"),
        }
    }

    /// What observing would make of it.
    fn refresh(&mut self) {
        let target = self.wanted().target.clone();
        let stable = self.world.rollout.status.stable_revision.clone();
        for (at, value) in self.values.into_iter().enumerate() {
            let blocked = self.blocked.get(&at);
            let of = |template: &str| match blocked {
                None => Revision::Known(format!("{template}-{value}")),
                Some(reason) => Revision::Blocked {
                    reason: reason.as_str().to_owned(),
                    message: "a value is missing".to_owned(),
                },
            };
            if let Some(cluster) = self.world.clusters.get_mut(&name(at)) {
                cluster.wanted = of(&target);
                cluster.stable = stable.as_deref().filter(|stable| *stable != target).map(of);
            }
        }
        let is_selected = |name: &String| is_selected(self.world.clusters.get(name));
        self.lost.retain(|name, _| !is_selected(name));
    }

    /// Lets something happen.
    pub(crate) fn play(&mut self, event: &Event) {
        match *event {
            Event::Template(number) => self.wanted().target = format!("t{number}"),
            Event::Value(at) => self.values[at] += 1,
            Event::Paused(is) => self.wanted().is_paused = is,
            Event::Blocked(at, reason) => {
                self.blocked.insert(at, reason);
            }
            Event::Resolved(at) => {
                self.blocked.remove(&at);
            }
            Event::Later(seconds) => self.wait(Duration::from_secs(seconds)),
            Event::Gone(at) => {
                self.world.clusters.remove(&name(at));
            }
            Event::Comes(at) => {
                let new = Cluster {
                    is_initialized: false,
                    is_reachable: false,
                    ..Cluster::default()
                };
                self.world.clusters.entry(name(at)).or_insert(new);
            }
            Event::Restarted => {
                for cluster in self.world.clusters.values_mut() {
                    cluster.is_seen = false;
                }
            }
            Event::OnlyStatus | Event::OnlyWrites(_) => self.part = Some(event.clone()),
            Event::Confirmed(most) => self.world.rollout.confirmed = Some(most),
            Event::Nothing => {}
            Event::Ready(at)
            | Event::Failed(at)
            | Event::Lost(at)
            | Event::Back(at)
            | Event::Selected(at, _)
            | Event::Refusing(at, _)
            | Event::Deleting(at)
            | Event::Initialized(at)
            | Event::Stripped(at)
            | Event::Seen(at) => self.play_at(&name(at), event),
        }
        self.note();
        self.refresh();
    }

    /// Lets something happen to one cluster, if it is there.
    fn play_at(&mut self, name: &str, event: &Event) {
        let now = self.now;
        let Some(cluster) = self.world.clusters.get_mut(name) else {
            return;
        };
        match *event {
            Event::Ready(_) if cluster.is_reachable => {
                report(&mut self.world, name, SyncState::Succeeded, now);
            }
            Event::Failed(_) => report(&mut self.world, name, SyncState::Failed, now),
            Event::Lost(_) => cluster.is_reachable = false,
            Event::Back(_) => cluster.is_reachable = cluster.is_initialized,
            Event::Selected(_, is) => cluster.is_selected = is,
            Event::Refusing(_, true) => {
                cluster.refused = Some(refused(now));
                self.refusing.insert(name.to_owned());
            }
            Event::Refusing(..) => {
                self.refusing.remove(name);
            }
            Event::Deleting(_) => cluster.is_deleting = true,
            Event::Initialized(_) => {
                cluster.is_initialized = true;
                cluster.is_reachable = true;
            }
            Event::Stripped(_) => {
                cluster.is_initialized = false;
                cluster.entry = None;
            }
            Event::Seen(_) => cluster.is_seen = true,
            _ => {}
        }
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now = self.now.checked_add(time).unwrap();
    }

    fn note(&mut self) {
        for cluster in self.world.clusters.values() {
            let entry = cluster.entry.as_ref().filter(|entry| entry.is_ready());
            let revision = entry.and_then(|entry| entry.revision.as_deref());
            self.proved
                .extend(revision.map(|revision| template_of(revision).to_owned()));
        }
    }

    /// Plans and carries it out, as far as it can be; the decision.
    pub(crate) fn step(&mut self) -> Decision {
        let decision = decide(&self.world, self.now);
        self.carry_out(&decision);
        decision
    }

    /// Carries a decision out, as far as it can be.
    pub(crate) fn carry_out(&mut self, decision: &Decision) {
        let is_written = |name: &String| !self.refusing.contains(name);
        let assign = decision.assign.iter();
        let unassign = decision.unassign.iter();
        let mut done = Decision {
            assign: assign
                .filter(|one| is_written(&one.cluster))
                .cloned()
                .collect(),
            unassign: unassign.filter(|one| is_written(one)).cloned().collect(),
            ..decision.clone()
        };
        let status = plan::status(&self.world, decision, self.now);
        match self.part.take() {
            None => {
                self.tried(decision, &done);
                write(&mut self.world, &done, self.now);
                self.world.rollout.status = status;
            }
            Some(Event::OnlyWrites(many)) => {
                done.assign.truncate(many);
                self.tried(&done, &done);
                write(&mut self.world, &done, self.now);
            }
            Some(_) => self.world.rollout.status = status,
        }
        self.note();
        self.refresh();
    }

    /// What is known after these attempts, of which those were successful.
    fn tried(&mut self, decision: &Decision, done: &Decision) {
        for name in touched(decision) {
            let cluster = self.world.clusters.get_mut(name).unwrap();
            let is_refused = self.refusing.contains(name);
            cluster.refused = is_refused.then(|| refused(self.now));
        }
        if self.world.rollout.confirmed.is_none() {
            let lost = done.unassign.iter().map(|name| (name.clone(), self.now));
            self.lost.extend(lost);
        }
    }

    /// Nobody disturbs it any more: all that is there is looked at, and the API takes what it is given.
    pub(crate) fn leave_alone(&mut self) {
        self.part = None;
        for at in 0..CLUSTERS {
            self.play(&Event::Seen(at));
            self.play(&Event::Refusing(at, false));
        }
    }

    /// Every cluster is there, can be reached and is selected, its values are known, and nobody disturbs it any more.
    pub(crate) fn mend_all(&mut self) {
        self.wanted().is_paused = false;
        for at in 0..CLUSTERS {
            let found = self.world.clusters.get(&name(at));
            if found.is_some_and(|cluster| cluster.is_deleting) {
                self.play(&Event::Gone(at));
            }
            self.play(&Event::Comes(at));
            self.play(&Event::Initialized(at));
            self.play(&Event::Selected(at, true));
            self.play(&Event::Resolved(at));
        }
        self.leave_alone();
    }
}

/// Whether a Rollout is for a cluster.
pub(crate) fn is_selected(cluster: Option<&Cluster>) -> bool {
    cluster.is_some_and(|cluster| cluster.is_selected && !cluster.is_deleting)
}

/// The clusters whose assignments are written.
pub(crate) fn touched(decision: &Decision) -> impl Iterator<Item = &String> {
    let moved = decision.assign.iter().map(|one| &one.cluster);
    moved.chain(&decision.unassign)
}

fn refused(now: Timestamp) -> Refused {
    Refused {
        message: "the API refused it".to_owned(),
        retry_at: now.checked_add(RETRY).unwrap(),
    }
}
