//! Laws over random stories: clusters become ready, fail, are lost, deleted and come back, what they need is not there or refused, and
//! people change their minds.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use slipway_fleet::decide;
use slipway_fleet::observe::Strategy;
use slipway_kernel::condition::READY;

use crate::laws::check;
use crate::stage::all_ready;
use crate::story::{Event, Pace, Story, event, is_selected, pace};

fn strategies() -> impl proptest::strategy::Strategy<Value = Strategy> {
    prop_oneof![
        4 => Just(Strategy::Incremental),
        1 => Just(Strategy::Replace),
        1 => Just(Strategy::External),
    ]
}

/// Plays a story, and looks that every plan keeps the laws.
fn tell(pace: Pace, events: &[Event]) -> Story {
    let mut story = Story::new(pace);
    for event in events {
        story.play(event);
        let decision = decide(&story.world, story.now);
        check(&story, &decision);
        story.carry_out(&decision);
    }
    story
}

/// So many at a time.
fn by(budget: usize) -> Pace {
    Pace {
        strategy: Strategy::Incremental,
        budget,
        min_ready: 0,
    }
}

/// Lets a story go on by itself, until nothing is done any more and nothing is waited for that time brings. In between, nothing would
/// be done before the time that it asked to be woken at.
fn rests(story: &mut Story) {
    for _ in 0..60 {
        let before = story.world.clone();
        let decision = story.step();
        if !decision.is_idle() || before != story.world {
            continue;
        }
        let Some(at) = decision.wake_at else {
            rested(story);
            return;
        };
        assert!(at > story.now, "it is woken in vain: {decision:#?}");
        let just_before = at.checked_sub(Duration::from_secs(1)).unwrap();
        if just_before > story.now {
            nothing_at(story, just_before);
        }
        story.now = at;
    }
    let decision = decide(&story.world, story.now);
    panic!("it never rests: {decision:#?}");
}

/// What holds when it has come to rest: it stays so, and it says what it waits for, if it does.
fn rested(story: &Story) {
    let day = Duration::from_hours(24);
    nothing_at(story, story.now.checked_add(day).unwrap());
    let status = &story.world.rollout.status;
    let ready = status.conditions.iter().find(|one| one.type_ == READY);
    let is_ready = ready.is_some_and(|ready| ready.status == "True");
    assert!(
        is_ready || !status.waiting_for.is_empty(),
        "it waits for nobody knows what: {status:#?}"
    );
}

fn nothing_at(story: &Story, at: Timestamp) {
    let later = decide(&story.world, at);
    assert!(later.is_idle(), "nobody woke it for this: {later:#?}");
    let status = &story.world.rollout.status;
    assert_eq!(later.run, status.run, "nobody woke it for this");
    assert_eq!(later.stable, status.stable_revision);
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
    let story = tell(by(1), &events);
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
    let story = tell(by(2), &events);
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
    let mut story = tell(by(2), &events);
    let run = story.world.rollout.status.run.clone().unwrap();
    assert_eq!(run.canary.as_deref(), Some("c2"));
    let before = story.world.clone();
    story.step();
    assert_eq!(before, story.world, "it waits for that one");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_story_breaks_a_law(
        pace in pace(strategies()),
        events in prop::collection::vec(event(), 1..60),
    ) {
        tell(pace, &events);
    }

    /// When people and clusters leave it alone, it comes to rest, and then writes nothing.
    #[test]
    fn every_story_comes_to_rest(
        pace in pace(strategies()),
        events in prop::collection::vec(event(), 1..40),
    ) {
        let mut story = Story::new(pace);
        for event in &events {
            story.play(event);
            story.step();
        }
        story.leave_alone();
        rests(&mut story);
    }

    /// When every cluster can be reached and becomes ready, every change arrives.
    #[test]
    fn every_change_arrives(
        pace in pace(prop_oneof![Just(Strategy::Incremental), Just(Strategy::Replace)]),
        events in prop::collection::vec(event(), 0..50),
    ) {
        let mut story = Story::new(pace);
        for event in &events {
            story.play(event);
            story.step();
        }
        story.mend_all();
        for _ in 0..60 {
            all_ready(&mut story.world, story.now);
            story.step();
            story.wait(Duration::from_secs(61));
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
        let mut story = Story::new(by(3));
        for event in &events {
            story.play(event);
            story.step();
        }
        story.leave_alone();
        story.step();
        let status = &story.world.rollout.status;
        let counts = status.counts.unwrap();
        let selected = story.world.clusters.values().filter(|cluster| is_selected(Some(*cluster))).count();
        prop_assert_eq!(counts.total, i64::try_from(selected).unwrap());
        for part in [counts.updated, counts.ready, counts.unready, counts.failed, counts.skipped, counts.blocked] {
            prop_assert!((0..=counts.total).contains(&part), "{:?}", counts);
        }
        prop_assert!(counts.ready <= counts.updated);
        prop_assert!(status.history.len() <= 10);
    }
}
