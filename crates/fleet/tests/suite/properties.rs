//! Laws over random stories: clusters become ready, fail, are lost and come back, and people change their minds.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use slipway_api::fleet::assemblage::SyncState;
use slipway_bindings::revision::template_of;
use slipway_fleet::budget::Amount;
use slipway_fleet::decide;
use slipway_fleet::observe::rollout::Asked;
use slipway_fleet::observe::{Cluster, Entry, Revision, Rollout, Strategy, Wanted, World};
use slipway_fleet::plan::{Assignment, Decision, Move};

use crate::stage::{all_ready, carry_out, noon, report, step};

/// What happens between two plans.
#[derive(Debug, Clone)]
enum Event {
    Ready(usize),
    Failed(usize),
    Lost(usize),
    Back(usize),
    Template(usize),
    Value(usize),
    Selected(usize, bool),
    Paused(bool),
    Nothing,
}

const CLUSTERS: usize = 6;

fn event() -> impl proptest::strategy::Strategy<Value = Event> {
    let one = 0..CLUSTERS;
    prop_oneof![
        6 => one.clone().prop_map(Event::Ready),
        2 => one.clone().prop_map(Event::Failed),
        1 => one.clone().prop_map(Event::Lost),
        2 => one.clone().prop_map(Event::Back),
        1 => (0..3_usize).prop_map(Event::Template),
        1 => one.clone().prop_map(Event::Value),
        1 => (one, any::<bool>()).prop_map(|(at, is)| Event::Selected(at, is)),
        1 => any::<bool>().prop_map(Event::Paused),
        4 => Just(Event::Nothing),
    ]
}

/// A Rollout over some clusters, one of which has an assignment of somebody else, and what became of it.
struct Story {
    world: World,
    values: [usize; CLUSTERS],
    /// The revisions that some cluster has been ready with.
    proved: BTreeSet<String>,
}

fn name(at: usize) -> String {
    format!("c{at}")
}

impl Story {
    fn new(strategy: Strategy, max_unready: Amount) -> Self {
        let wanted = Wanted {
            strategy,
            target: "t0".to_owned(),
            max_unready,
            max_unreachable: Amount::Number(2),
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
            values: [0; CLUSTERS],
            proved: BTreeSet::new(),
        };
        story.refresh();
        story
    }

    fn wanted(&mut self) -> &mut Wanted {
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
            let of = |template: &str| Revision::Known(format!("{template}-{value}"));
            let cluster = self.world.clusters.get_mut(&name(at)).unwrap();
            cluster.wanted = of(&target);
            cluster.stable = stable.as_deref().filter(|stable| *stable != target).map(of);
        }
    }

    fn play(&mut self, event: &Event) {
        let now = noon();
        match *event {
            Event::Ready(at) => {
                let is_reachable = self.world.clusters[&name(at)].is_reachable;
                if is_reachable {
                    report(&mut self.world, &name(at), SyncState::Succeeded, now);
                }
            }
            Event::Failed(at) => report(&mut self.world, &name(at), SyncState::Failed, now),
            Event::Lost(at) => self.world.clusters.get_mut(&name(at)).unwrap().is_reachable = false,
            Event::Back(at) => self.world.clusters.get_mut(&name(at)).unwrap().is_reachable = true,
            Event::Template(number) => self.wanted().target = format!("t{number}"),
            Event::Value(at) => self.values[at] += 1,
            Event::Selected(at, is) => {
                self.world.clusters.get_mut(&name(at)).unwrap().is_selected = is;
            }
            Event::Paused(is) => self.wanted().is_paused = is,
            Event::Nothing => {}
        }
        self.note();
        self.refresh();
    }

    fn note(&mut self) {
        for cluster in self.world.clusters.values() {
            let entry = cluster.entry.as_ref().filter(|entry| entry.is_ready());
            let revision = entry.and_then(|entry| entry.revision.as_deref());
            self.proved
                .extend(revision.map(|revision| template_of(revision).to_owned()));
        }
    }
}

/// What holds for every plan.
fn check(story: &Story, decision: &Decision) {
    let world = &story.world;
    let Asked::For(wanted) = &world.rollout.wanted else {
        return;
    };
    let mut touched = BTreeSet::new();
    let moved = decision.assign.iter().map(|one| &one.cluster);
    for cluster in moved.chain(&decision.unassign) {
        assert!(touched.insert(cluster), "{cluster} is written twice");
        let entry = world.clusters[cluster].entry.as_ref();
        assert!(
            entry.is_none_or(|entry| entry.is_ours),
            "{cluster} is somebody else's"
        );
    }
    for one in &decision.assign {
        let cluster = &world.clusters[&one.cluster];
        assert!(cluster.is_selected, "{one:?} is not selected");
        let before = cluster
            .entry
            .as_ref()
            .and_then(|entry| entry.revision.as_ref());
        assert_ne!(before, Some(&one.revision), "nothing changes");
        assert_eq!(one.kind == Move::Switch, before.is_some());
    }
    if wanted.is_paused {
        assert!(decision.is_idle(), "{decision:#?}");
    }
    match wanted.strategy {
        Strategy::Incremental => incremental(story, wanted, decision),
        Strategy::External => assert!(decision.assign.iter().all(|one| one.kind == Move::First)),
        Strategy::Replace => {}
    }
}

fn incremental(story: &Story, wanted: &Wanted, decision: &Decision) {
    let world = &story.world;
    let run = world.rollout.status.run.as_ref();
    let has_joined = |name: &String| {
        let entry = world.clusters[name].entry.as_ref();
        let is_ready = entry.is_none_or(Entry::is_ready);
        !is_ready && world.rollout.status.joined.contains(name)
    };
    let is_skipped =
        |name: &String| has_joined(name) || run.is_some_and(|run| run.skipped.contains(name));
    let ready = |cluster: &Cluster| {
        cluster.is_reachable && cluster.entry.as_ref().is_none_or(Entry::is_ready)
    };
    let selected = || {
        world
            .clusters
            .iter()
            .filter(|(_, cluster)| cluster.is_selected)
    };
    let ours = |cluster: &Cluster| cluster.entry.as_ref().is_some_and(|entry| entry.is_ours);
    let unready = selected()
        .filter(|(name, c)| ours(c) && !ready(c) && !is_skipped(name))
        .count();
    let is_target = |revision: &str| template_of(revision) == wanted.target;
    let newly = decision
        .assign
        .iter()
        .filter(|one| is_target(&one.revision) && ready(&world.clusters[&one.cluster]));
    // Those that come while the target has proved itself before are assigned at once.
    let is_served = world.rollout.status.stable_revision.as_deref() == Some(&wanted.target)
        && run.is_some_and(|run| run.canary_passed.is_none());
    let newly = newly
        .filter(|one| one.kind == Move::Switch || !is_served)
        .count();
    let allowed = wanted.max_unready.of(selected().count());
    assert!(
        newly == 0 || unready + newly <= allowed,
        "{unready} are unready, {newly} move, {allowed} may be: {decision:#?}"
    );
    for one in &decision.assign {
        assert!(
            world.clusters[&one.cluster].is_reachable,
            "{one:?} cannot be reached"
        );
        if is_skipped(&one.cluster) {
            left_for_later(world, one);
        }
    }
    // Until some cluster has been ready with it, no second one gets it.
    let had = |name: &String| {
        let entry = world.clusters[name].entry.as_ref();
        let revision = entry.and_then(|entry| entry.revision.as_deref());
        revision.is_some_and(is_target)
    };
    let mut gets = decision
        .assign
        .iter()
        .filter(|one| is_target(&one.revision));
    let moves = gets.any(|one| !had(&one.cluster));
    if moves && !story.proved.contains(&wanted.target) {
        let have = world.clusters.iter().filter(|(name, cluster)| {
            let entry = cluster
                .entry
                .as_ref()
                .and_then(|entry| entry.revision.as_deref());
            let later = decision.assign.iter().find(|one| one.cluster == **name);
            later
                .map(|one| one.revision.as_str())
                .or(entry)
                .is_some_and(is_target)
        });
        let have: Vec<&String> = have.map(|(name, _)| name).collect();
        let selected: Vec<&&String> = have
            .iter()
            .filter(|name| world.clusters[**name].is_selected)
            .collect();
        assert!(
            selected.len() <= 1,
            "{have:?} have {} and none was ready with it",
            wanted.target
        );
    }
}

/// Who is left for later stays so until it is back. But who can be reached and is not ready with an earlier revision of this Rollout is
/// reached by what may mend it (R25: "when it is ready again" may be never), and only when somebody was ready with that, or nobody
/// else is there to try it. It is broken already, so that it costs nobody anything. Not so who joined, and is on its way.
fn left_for_later(world: &World, one: &Assignment) {
    let cluster = &world.clusters[&one.cluster];
    assert!(
        cluster
            .entry
            .as_ref()
            .is_some_and(|entry| !entry.is_ready()),
        "{one:?} is left for later, and is well"
    );
    let status = &world.rollout.status;
    let run = status.run.as_ref().unwrap();
    let has_failed = cluster.entry.as_ref().is_some_and(Entry::has_failed);
    assert!(
        has_failed || !status.joined.contains(&one.cluster),
        "{one:?} has joined, and is on its way"
    );
    let canary = run.canary.as_ref();
    let has_passed = run.canary_passed.is_some()
        || canary.is_some_and(|name| {
            let cluster = &world.clusters[name];
            let entry = cluster.entry.as_ref();
            let revision = entry.and_then(|entry| entry.revision.as_deref());
            let is_target = revision.is_some_and(|it| template_of(it) == run.revision);
            is_target && cluster.is_reachable && entry.is_some_and(Entry::is_ready)
        });
    assert!(
        has_passed || canary == Some(&one.cluster),
        "{one:?} is left for later, and nobody was ready with it: {run:?}"
    );
}

fn strategies() -> impl proptest::strategy::Strategy<Value = Strategy> {
    prop_oneof![
        4 => Just(Strategy::Incremental),
        1 => Just(Strategy::Replace),
        1 => Just(Strategy::External),
    ]
}

/// Plays a story, and looks that every plan keeps the laws.
fn tell(strategy: Strategy, budget: usize, events: &[Event]) -> Story {
    let mut story = Story::new(strategy, Amount::Number(budget));
    for event in events {
        story.play(event);
        let decision = decide(&story.world, noon());
        check(&story, &decision);
        carry_out(&mut story.world, &decision, noon());
        story.note();
        story.refresh();
    }
    story
}

/// Found by `no_story_breaks_a_law`: who has the change already and goes first is lost when that begins, and comes back well.
#[test]
fn who_comes_back_to_go_first_is_written_down_before_it_moves() {
    let mut events = vec![
        Event::Ready(0),
        Event::Ready(0),
        Event::Ready(1),
        Event::Value(1),
        Event::Lost(1),
        Event::Template(1),
        Event::Nothing,
        Event::Template(0),
        Event::Ready(4),
        Event::Back(1),
    ];
    events.extend(vec![Event::Nothing; 2]);
    let story = tell(Strategy::Incremental, 1, &events);
    let entry = story.world.clusters["c1"].entry.as_ref().unwrap();
    assert_eq!(entry.revision.as_deref(), Some("t0-1"), "it moves then");
}

/// Found by `no_story_breaks_a_law`: who goes first is not selected for a moment, and another one was to go first meanwhile.
#[test]
fn who_has_the_change_already_goes_first_again_when_it_is_selected_again() {
    let mut events = vec![
        Event::Ready(0),
        Event::Ready(0),
        Event::Selected(1, false),
        Event::Selected(1, true),
    ];
    events.extend(vec![Event::Nothing; 2]);
    let story = tell(Strategy::Incremental, 2, &events);
    let run = story.world.rollout.status.run.as_ref().unwrap();
    assert_eq!(run.canary.as_deref(), Some("c1"));
}

/// Found by `every_story_comes_to_rest`: without room for the one that has the change with values of before, another one was to go
/// first, and then that one again, in turns for ever. Somebody else has the change with the values of now.
#[test]
fn who_has_the_change_as_it_is_now_goes_first_where_there_is_no_room() {
    let mut events = vec![
        Event::Ready(0),
        Event::Ready(0),
        Event::Ready(1),
        Event::Value(1),
        Event::Template(1),
        Event::Ready(3),
        Event::Template(0),
    ];
    events.extend(vec![Event::Nothing; 2]);
    let mut story = tell(Strategy::Incremental, 2, &events);
    let run = story.world.rollout.status.run.clone().unwrap();
    assert_eq!(run.canary.as_deref(), Some("c2"));
    let before = story.world.clone();
    step(&mut story.world, noon());
    assert_eq!(before, story.world, "it waits for that one");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_story_breaks_a_law(
        strategy in strategies(),
        budget in 1..4_usize,
        events in prop::collection::vec(event(), 1..60),
    ) {
        tell(strategy, budget, &events);
    }

    /// When people and clusters leave it alone, it comes to rest, and then writes nothing.
    #[test]
    fn every_story_comes_to_rest(
        strategy in strategies(),
        budget in 1..4_usize,
        events in prop::collection::vec(event(), 1..30),
    ) {
        let mut story = Story::new(strategy, Amount::Number(budget));
        for event in &events {
            story.play(event);
            step(&mut story.world, noon());
            story.refresh();
        }
        for _ in 0..6 {
            step(&mut story.world, noon());
            story.refresh();
        }
        let before = story.world.clone();
        let again = step(&mut story.world, noon());
        prop_assert!(again.is_idle(), "{:#?}", again);
        prop_assert_eq!(before, story.world);
    }

    /// When every cluster can be reached and becomes ready, every change arrives.
    #[test]
    fn every_change_arrives(
        strategy in prop_oneof![Just(Strategy::Incremental), Just(Strategy::Replace)],
        budget in 1..4_usize,
        events in prop::collection::vec(event(), 0..40),
    ) {
        let mut story = Story::new(strategy, Amount::Number(budget));
        for event in &events {
            story.play(event);
            step(&mut story.world, noon());
            story.refresh();
        }
        story.wanted().is_paused = false;
        for at in 0..CLUSTERS {
            story.play(&Event::Back(at));
            story.play(&Event::Selected(at, true));
        }
        for _ in 0..60 {
            all_ready(&mut story.world, noon());
            story.refresh();
            step(&mut story.world, noon());
        }
        let target = story.wanted().target.clone();
        for (name, cluster) in &story.world.clusters {
            let entry = cluster.entry.as_ref().unwrap();
            if entry.is_ours {
                prop_assert_eq!(entry.revision.as_deref(), cluster.wanted.known(), "{}", name);
            } else {
                prop_assert_eq!(entry.revision.as_deref(), Some("theirs"));
            }
        }
        let status = &story.world.rollout.status;
        prop_assert!(status.run.is_none(), "{:#?}", status.run);
        prop_assert_eq!(status.stable_revision.as_ref(), Some(&target));
    }

    #[test]
    fn the_status_counts_every_cluster_once(
        events in prop::collection::vec(event(), 1..40),
    ) {
        let mut story = Story::new(Strategy::Incremental, Amount::Percent(50));
        for event in &events {
            story.play(event);
            step(&mut story.world, noon());
            story.refresh();
        }
        let status = &story.world.rollout.status;
        let counts = status.counts.unwrap();
        let selected = story.world.clusters.values().filter(|cluster| cluster.is_selected).count();
        prop_assert_eq!(counts.total, i64::try_from(selected).unwrap());
        for part in [counts.updated, counts.ready, counts.unready, counts.failed, counts.skipped, counts.blocked] {
            prop_assert!((0..=counts.total).contains(&part), "{:?}", counts);
        }
        prop_assert!(counts.ready <= counts.updated);
        prop_assert!(status.history.len() <= 10);
    }
}
