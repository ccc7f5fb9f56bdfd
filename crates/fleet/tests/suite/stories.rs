//! What became of fleets in which something else is wrong as well: clusters that are ill for reasons of their own, versions that
//! turn bad later, writes that the API refuses, values that change in the middle.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use slipway_api::fleet::assemblage::SyncState;
use slipway_fleet::budget::Amount;
use slipway_fleet::decide;
use slipway_fleet::observe::rollout::Asked;
use slipway_fleet::observe::{Cluster, Refused, Revision, Rollout, Strategy, Wanted, World};
use slipway_fleet::order::place;
use slipway_fleet::plan::{self, Decision};

use crate::stage::{all_ready, noon, report, step};

/// A Rollout over ten clusters that are ready with `a`.
fn settled(strategy: Strategy) -> World {
    let wanted = Wanted {
        strategy,
        target: "a".to_owned(),
        max_unready: Amount::Number(1),
        max_unreachable: Amount::Number(1),
        ..Wanted::default()
    };
    let mut world = World {
        rollout: Rollout {
            name: "shop/web".to_owned(),
            wanted: Asked::For(wanted),
            ..Rollout::default()
        },
        ..World::default()
    };
    for at in 0..10 {
        world.clusters.insert(format!("c{at}"), Cluster::default());
    }
    want(&mut world, "a");
    play(&mut world, 40, &[]);
    assert_eq!(with(&world, "a"), 10);
    assert_eq!(world.rollout.status.stable_revision.as_deref(), Some("a"));
    world
}

/// The template is changed; with values, as `template-value`.
fn want(world: &mut World, revision: &str) {
    let template = slipway_bindings::revision::template_of(revision).to_owned();
    if let Asked::For(wanted) = &mut world.rollout.wanted {
        wanted.target.clone_from(&template);
    }
    let stable = world.rollout.status.stable_revision.clone();
    let stable = stable.filter(|stable| *stable != template);
    for cluster in world.clusters.values_mut() {
        cluster.wanted = Revision::Known(revision.to_owned());
        cluster.stable = stable.clone().map(Revision::Known);
    }
}

/// So many plans, between which all clusters but these become ready.
fn play(world: &mut World, plans: usize, ill: &[&str]) -> Vec<Decision> {
    let mut all = Vec::new();
    for _ in 0..plans {
        all.push(step(world, noon()));
        all_ready(world, noon());
        for name in ill {
            report(world, name, SyncState::Failed, noon());
        }
    }
    all
}

/// How many clusters have a revision.
fn with(world: &World, revision: &str) -> usize {
    let entries = world.clusters.values().filter_map(|one| one.entry.as_ref());
    let have = entries.filter(|entry| entry.revision.as_deref() == Some(revision));
    have.count()
}

fn has(world: &World, name: &str, revision: &str) -> bool {
    let entry = world.clusters[name].entry.as_ref();
    entry.is_some_and(|entry| entry.revision.as_deref() == Some(revision))
}

fn reasons(decision: &Decision) -> BTreeSet<&'static str> {
    decision.holds.iter().map(|hold| hold.reason).collect()
}

/// One that is ill is not what everybody waits for: neither in the change that comes, nor in any later one.
#[test]
fn a_cluster_that_is_always_ill_holds_nobody_back() {
    let mut world = settled(Strategy::Incremental);
    report(&mut world, "c3", SyncState::Failed, noon());
    for revision in ["b", "b-2", "b-3", "c", "a"] {
        want(&mut world, revision);
        let plans = play(&mut world, 40, &["c3"]);
        let first = plans
            .iter()
            .find_map(|plan| plan.run.as_ref()?.canary.clone());
        assert_ne!(first.as_deref(), Some("c3"), "{revision}: it goes first");
        assert_eq!(with(&world, revision), 10, "{revision}");
        assert_eq!(world.rollout.status.run, None, "{revision}");
    }
    let told = world
        .rollout
        .status
        .clusters
        .iter()
        .find(|one| one.name == "c3");
    assert_eq!(told.unwrap().state, "Failed");
}

/// A cluster that was away during a change, and is back but not well: it gets what has proved itself, and tries nothing for others.
#[test]
fn who_comes_back_ill_gets_what_proved_itself_and_goes_first_for_nobody() {
    let mut world = settled(Strategy::Incremental);
    world.clusters.get_mut("c3").unwrap().is_reachable = false;
    want(&mut world, "b");
    play(&mut world, 40, &[]);
    assert_eq!((with(&world, "b"), with(&world, "a")), (9, 1));
    assert_eq!(world.rollout.status.run, None);
    world.clusters.get_mut("c3").unwrap().is_reachable = true;
    report(&mut world, "c3", SyncState::Failed, noon());
    play(&mut world, 10, &["c3"]);
    assert_eq!(
        (with(&world, "b"), world.rollout.status.run.clone()),
        (10, None)
    );
    want(&mut world, "b-2");
    play(&mut world, 40, &["c3"]);
    assert_eq!(with(&world, "b-2"), 10);
}

/// It succeeded, and an hour later it is seen that it is bad: by one, by some, by all.
#[test]
fn a_version_that_turns_bad_after_its_success_is_mended_and_rolled_back() {
    let bad = [SyncState::Failed, SyncState::Updating];
    let bad = [1, 2, 5, 10].map(|many| bad.map(|state| (many, state)));
    for (many, state) in bad.into_iter().flatten() {
        for fix in ["b", "a-2"] {
            let mut world = settled(Strategy::Incremental);
            for at in 0..many {
                report(&mut world, &format!("c{at}"), state, noon());
            }
            want(&mut world, fix);
            for _ in 0..60 {
                step(&mut world, noon());
                all_ready(&mut world, noon());
                // Who still has the bad one is not well.
                let bad = (0..many).map(|at| format!("c{at}"));
                for name in bad
                    .filter(|name| has(&world, name, "a"))
                    .collect::<Vec<_>>()
                {
                    report(&mut world, &name, state, noon());
                }
            }
            let holds = decide(&world, noon()).holds;
            let what = format!("{many} are {state:?}, {fix}: {holds:#?}");
            assert_eq!(with(&world, fix), 10, "{what}");
            assert_eq!(world.rollout.status.run, None);
        }
    }
}

/// What does not mend it stops at the first, as any bad version does.
#[test]
fn what_mends_nothing_stops_at_the_first() {
    let mut world = settled(Strategy::Incremental);
    let names: Vec<String> = world.clusters.keys().cloned().collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in &all {
        report(&mut world, name, SyncState::Failed, noon());
    }
    want(&mut world, "b");
    let plans = play(&mut world, 20, &all);
    assert_eq!(with(&world, "b"), 1);
    assert!(reasons(plans.last().unwrap()).contains("CanaryFailed"));
}

fn refuse(world: &mut World, name: &str, retry_at: Timestamp) {
    let refused = Refused {
        message: "conflict".to_owned(),
        retry_at,
    };
    world.clusters.get_mut(name).unwrap().refused = Some(refused);
}

/// Somebody has taken over an entry: whoever it is, first in the order or not, others get the change.
#[test]
fn a_cluster_whose_write_is_refused_takes_nobodys_place() {
    for strategy in [Strategy::Incremental, Strategy::Replace] {
        for name in ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"] {
            let mut world = settled(strategy);
            want(&mut world, "b");
            refuse(&mut world, name, noon() + SignedDuration::from_mins(1));
            let plans = play(&mut world, 40, &[]);
            assert_eq!((with(&world, "b"), with(&world, "a")), (9, 1), "{name}");
            let last = plans.last().unwrap();
            let hold = last.holds.iter().find(|hold| hold.reason == "RefusedByApi");
            assert_eq!(hold.unwrap().cluster.as_deref(), Some(name));
            assert_eq!(last.wake_at, Some(noon() + SignedDuration::from_mins(1)));
            let told = world.rollout.status.clusters.iter();
            let told = told.filter(|one| one.state == "Blocked").count();
            assert_eq!(told, 1);
            // Its time has come.
            refuse(&mut world, name, noon());
            let tried = play(&mut world, 3, &[]);
            let mut moves = tried.iter().flat_map(|plan| &plan.assign);
            assert!(moves.any(|one| one.cluster == name), "{name}: {tried:#?}");
        }
    }
}

/// The API is busy for a moment: a change has not succeeded because of that, nor does another one begin when it goes on.
#[test]
fn a_change_that_is_refused_somewhere_is_not_over_before_it_is_tried_again() {
    for strategy in [Strategy::Incremental, Strategy::Replace] {
        let mut world = settled(strategy);
        let before = world.rollout.status.history.len();
        want(&mut world, "b");
        refuse(&mut world, "c3", noon() + SignedDuration::from_secs(5));
        play(&mut world, 40, &[]);
        assert_eq!((with(&world, "b"), with(&world, "a")), (9, 1));
        assert!(world.rollout.status.run.is_some(), "{strategy:?}");
        assert_eq!(world.rollout.status.history.len(), before);
        refuse(&mut world, "c3", noon());
        play(&mut world, 10, &[]);
        assert_eq!(with(&world, "b"), 10);
        let history = &world.rollout.status.history;
        assert_eq!(history.len(), before + 1, "{history:#?}");
        assert_eq!(history[0].counts.ready, 10);
    }
}

/// Values that nobody has tried yet do not come to many because other values were tried before.
#[test]
fn values_that_change_in_the_middle_are_tried_first() {
    let mut world = settled(Strategy::Incremental);
    if let Asked::For(wanted) = &mut world.rollout.wanted {
        wanted.max_unready = Amount::Number(5);
    }
    want(&mut world, "b-1");
    // The last one is slow, so that the change goes on.
    let mut names: Vec<String> = world.clusters.keys().cloned().collect();
    names.sort_by_key(|name| place("shop/web", name));
    let slow = names.pop().unwrap();
    play(&mut world, 6, &[slow.as_str()]);
    let run = world.rollout.status.run.clone().unwrap();
    assert!(run.canary_passed.is_some() && with(&world, "b-1") > 5);
    want(&mut world, "b-2");
    let mut most = 0;
    for _ in 0..6 {
        step(&mut world, noon());
        most = most.max(with(&world, "b-2"));
    }
    assert_eq!(most, 1, "nobody was ready with it");
    play(&mut world, 40, &[]);
    assert_eq!(with(&world, "b-2"), 10);
}

/// What was told before a restart may be true no more.
#[test]
fn nobody_goes_first_who_has_not_been_looked_at() {
    let mut world = settled(Strategy::Incremental);
    for cluster in world.clusters.values_mut() {
        cluster.is_seen = false;
    }
    want(&mut world, "b");
    let plans = play(&mut world, 5, &[]);
    assert_eq!(with(&world, "b"), 0);
    let last = plans.last().unwrap();
    assert_eq!(reasons(last), BTreeSet::from(["ClusterUnread"]));
    assert_eq!(last.run, None, "who was unready is not known either");
    for cluster in world.clusters.values_mut() {
        cluster.is_seen = true;
    }
    play(&mut world, 40, &[]);
    assert_eq!(with(&world, "b"), 10);
}

/// Nobody has it: that is no success.
#[test]
fn what_nobody_is_ready_with_has_not_succeeded() {
    let mut world = settled(Strategy::Replace);
    for cluster in world.clusters.values_mut() {
        cluster.is_reachable = false;
    }
    want(&mut world, "b");
    play(&mut world, 4, &[]);
    let status = &world.rollout.status;
    assert_eq!(status.stable_revision.as_deref(), Some("a"));
    assert_eq!(status.history[0].outcome, "Abandoned");
    for cluster in world.clusters.values_mut() {
        cluster.is_reachable = true;
    }
    play(&mut world, 4, &[]);
    assert_eq!(world.rollout.status.stable_revision.as_deref(), Some("b"));
}

/// Nine clusters are away for a month; then somebody edits the selector.
#[test]
fn what_a_person_has_to_do_is_told_however_many_clusters_are_away() {
    let mut world = settled(Strategy::Incremental);
    let mut now = noon();
    for at in 0..6 {
        world
            .clusters
            .get_mut(&format!("c{at}"))
            .unwrap()
            .is_reachable = false;
    }
    want(&mut world, "b");
    for _ in 0..5 {
        step(&mut world, now);
    }
    now += SignedDuration::from_hours(24 * 30);
    for at in 6..10 {
        world
            .clusters
            .get_mut(&format!("c{at}"))
            .unwrap()
            .is_selected = false;
    }
    step(&mut world, now);
    let waiting = &world.rollout.status.waiting_for;
    assert_eq!(waiting[0].reason, "MassUnassignment", "{waiting:#?}");
    assert!(waiting[0].unblock.contains("confirm-unassign=4"));
    let away: Vec<_> = waiting
        .iter()
        .filter(|one| one.reason == "Unreachable")
        .collect();
    assert_eq!(away.len(), 1);
    assert!(away[0].message.contains("5 clusters besides"), "{away:#?}");
}

/// Waiting that ends by itself says when.
#[test]
fn a_wait_for_min_ready_seconds_says_when_it_ends() {
    let mut world = settled(Strategy::Incremental);
    if let Asked::For(wanted) = &mut world.rollout.wanted {
        wanted.min_ready_seconds = 60;
    }
    want(&mut world, "b");
    step(&mut world, noon());
    step(&mut world, noon());
    all_ready(&mut world, noon());
    let decision = decide(&world, noon());
    let until = Some(noon() + SignedDuration::from_secs(60));
    assert_eq!(decision.holds[0].until, until, "{:#?}", decision.holds);
    let status = plan::status(&world, &decision, noon());
    assert_eq!(
        status.waiting_for[0].until.as_ref().map(|time| time.0),
        until
    );
}

/// No right to see clusters is not "no clusters".
#[test]
fn who_cannot_see_clusters_is_not_ready_and_leaves_nothing_behind() {
    let mut world = settled(Strategy::Incremental);
    world.is_blind = true;
    for cluster in world.clusters.values_mut() {
        // As observing has it where the cluster itself is not seen.
        cluster.is_selected = false;
        cluster.is_deleting = true;
    }
    step(&mut world, noon());
    assert_eq!(with(&world, "a"), 10);
    let conditions = &world.rollout.status.conditions;
    let ready = conditions.iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!(ready.status, "False", "{ready:?}");
    assert_eq!(world.rollout.status.waiting_for[0].reason, "ClustersHidden");
    world.rollout.is_deleting = true;
    let decision = step(&mut world, noon());
    assert!(!decision.is_released, "something is left");
    assert_eq!(with(&world, "a"), 0);
    assert!(step(&mut world, noon()).is_released);
}

/// A revision that somebody else names in an assemblage is kept, however old it is.
#[test]
fn a_revision_that_somebody_names_is_not_retired() {
    let mut world = settled(Strategy::External);
    if let Asked::For(wanted) = &mut world.rollout.wanted {
        wanted.history_limit = 0;
    }
    for revision in ["x", "y"] {
        world.revisions.insert(revision.to_owned(), noon());
    }
    world.named.insert("x".to_owned());
    assert_eq!(decide(&world, noon()).retire, ["y"]);
}

/// New clusters get the last revision that proved itself; where that is gone, it is said.
#[test]
fn a_new_cluster_whose_revision_is_gone_is_told() {
    let mut world = settled(Strategy::External);
    want(&mut world, "b");
    let new = Cluster {
        wanted: Revision::Known("b".to_owned()),
        ..Cluster::default()
    };
    world.clusters.insert("new".to_owned(), new);
    let decision = decide(&world, noon());
    assert!(decision.assign.is_empty());
    assert_eq!(reasons(&decision), BTreeSet::from(["RevisionGone"]));
}

/// Clusters that have just got what proved itself are on their way, not ill: they do not try the next version before they are ready.
#[test]
fn new_clusters_do_not_try_a_version_before_they_are_ready() {
    let mut world = settled(Strategy::Incremental);
    world.clusters.clear();
    for at in 0..4 {
        world.clusters.insert(format!("n{at}"), Cluster::default());
    }
    want(&mut world, "b");
    for _ in 0..10 {
        step(&mut world, noon());
    }
    assert_eq!((with(&world, "a"), with(&world, "b")), (4, 0));
    play(&mut world, 30, &[]);
    assert_eq!(with(&world, "b"), 4);
}

/// Clusters that join do not stop a change for all others while they come up.
#[test]
fn clusters_that_join_stop_nobody() {
    let mut world = settled(Strategy::Incremental);
    want(&mut world, "b");
    // It has begun, and the first one is not ready yet.
    step(&mut world, noon());
    step(&mut world, noon());
    for at in 0..4 {
        world.clusters.insert(format!("n{at}"), Cluster::default());
    }
    want(&mut world, "b");
    step(&mut world, noon());
    assert_eq!(with(&world, "a"), 9, "it is written down first");
    step(&mut world, noon());
    assert_eq!(with(&world, "a"), 9 + 4);
    let old: Vec<String> = (0..10).map(|at| format!("c{at}")).collect();
    for _ in 0..40 {
        for name in &old {
            report(&mut world, name, SyncState::Succeeded, noon());
        }
        step(&mut world, noon());
    }
    assert_eq!((with(&world, "a"), with(&world, "b")), (4, 10));
}

/// Nor do they stop the next change, which takes the place of the one that they have joined in.
#[test]
fn clusters_that_joined_stop_no_later_change() {
    let mut world = settled(Strategy::Incremental);
    want(&mut world, "b");
    step(&mut world, noon());
    step(&mut world, noon());
    for at in 0..4 {
        world.clusters.insert(format!("n{at}"), Cluster::default());
    }
    want(&mut world, "b");
    step(&mut world, noon());
    step(&mut world, noon());
    want(&mut world, "c");
    let old: Vec<String> = (0..10).map(|at| format!("c{at}")).collect();
    for _ in 0..40 {
        for name in &old {
            report(&mut world, name, SyncState::Succeeded, noon());
        }
        step(&mut world, noon());
    }
    assert_eq!((with(&world, "a"), with(&world, "c")), (4, 10));
}

/// More are unready than may be left for later, though none has failed: they go first, one by one, and all others wait for them.
#[test]
fn too_many_that_are_unready_go_first_and_the_others_wait() {
    let mut world = settled(Strategy::Incremental);
    for name in ["c0", "c1"] {
        report(&mut world, name, SyncState::Updating, noon());
    }
    want(&mut world, "b");
    for _ in 0..6 {
        step(&mut world, noon());
    }
    assert_eq!(with(&world, "b"), 1);
    assert!(has(&world, "c0", "b") || has(&world, "c1", "b"));
    play(&mut world, 40, &[]);
    assert_eq!(with(&world, "b"), 10);
}

/// The clusters in the order in which they are changed.
fn in_order(world: &World) -> Vec<String> {
    let mut names: Vec<String> = world.clusters.keys().cloned().collect();
    names.sort_by_key(|name| place("shop/web", name));
    names
}

/// As [`play`], but one fails as soon as it has this revision.
fn play_while_one_fails(world: &mut World, plans: usize, ill: &str, revision: &str) {
    for _ in 0..plans {
        step(world, noon());
        all_ready(world, noon());
        if has(world, ill, revision) {
            report(world, ill, SyncState::Failed, noon());
        }
    }
}

/// Labels are taken off one cluster after the other: that is many at once, if not for the same plan.
#[test]
fn who_is_deselected_one_after_the_other_is_many_at_once() {
    let mut world = settled(Strategy::Replace);
    let mut now = noon();
    for name in in_order(&world) {
        world.clusters.get_mut(&name).unwrap().is_selected = false;
        for _ in 0..3 {
            step(&mut world, now);
        }
        now += SignedDuration::from_secs(1);
    }
    assert_eq!(with(&world, "a"), 9, "one is usual");
    let waiting = &world.rollout.status.waiting_for;
    assert_eq!(waiting[0].reason, "MassUnassignment", "{waiting:#?}");
    assert!(waiting[0].unblock.contains("confirm-unassign=9"));
    assert_eq!(world.rollout.status.unassigned.len(), 1);
    // Nor are so many forgotten.
    now += SignedDuration::from_hours(24);
    for _ in 0..3 {
        step(&mut world, now);
    }
    assert_eq!(with(&world, "a"), 9);
    world.rollout.confirmed = Some(9);
    for _ in 0..3 {
        step(&mut world, now);
    }
    assert_eq!(with(&world, "a"), 0);
    assert!(
        world.rollout.status.unassigned.is_empty(),
        "a person said so"
    );
}

/// Every other hour one is deselected, as happens.
#[test]
fn who_is_deselected_now_and_then_is_let_go() {
    let mut world = settled(Strategy::Incremental);
    let mut now = noon();
    for name in in_order(&world) {
        world.clusters.get_mut(&name).unwrap().is_selected = false;
        let first = step(&mut world, now);
        assert!(first.unassign.is_empty(), "it is written down first");
        assert_eq!(step(&mut world, now).unassign, [name]);
        now += SignedDuration::from_hours(2);
    }
    // Two within the hour: the second waits for it to be over, and says when that is.
    let mut world = settled(Strategy::Incremental);
    for name in ["c0", "c1"] {
        world.clusters.get_mut(name).unwrap().is_selected = false;
        for _ in 0..3 {
            step(&mut world, now);
        }
    }
    let held = step(&mut world, now);
    let over = now + SignedDuration::from_hours(1);
    assert_eq!(held.wake_at, Some(over));
    assert_eq!(held.holds[0].until, Some(over));
    for _ in 0..3 {
        step(&mut world, over);
    }
    assert_eq!(with(&world, "a"), 8);
}

/// An object that a value comes from is replaced, by whoever deletes it first.
#[test]
fn a_value_that_is_gone_for_a_moment_ends_no_change() {
    let mut world = settled(Strategy::Incremental);
    if let Asked::For(wanted) = &mut world.rollout.wanted {
        wanted.max_unready = Amount::Number(2);
    }
    want(&mut world, "b");
    step(&mut world, noon());
    step(&mut world, noon());
    all_ready(&mut world, noon());
    for _ in 0..3 {
        step(&mut world, noon());
    }
    assert_eq!(with(&world, "b"), 3, "one was first, two are on their way");
    for cluster in world.clusters.values_mut() {
        cluster.wanted = Revision::Blocked {
            reason: "BindingUnresolved".to_owned(),
            message: "the ConfigMap is not there".to_owned(),
        };
    }
    for _ in 0..5 {
        step(&mut world, noon());
    }
    let status = &world.rollout.status;
    assert!(status.run.is_some(), "{:#?}", status.history);
    assert_eq!(status.stable_revision.as_deref(), Some("a"));
    // Even when those on their way have come: nobody knows what any cluster should have.
    all_ready(&mut world, noon());
    for _ in 0..5 {
        step(&mut world, noon());
    }
    assert!(world.rollout.status.run.is_some());
    want(&mut world, "b");
    for _ in 0..5 {
        step(&mut world, noon());
    }
    assert_eq!(with(&world, "b"), 5, "two more are on their way");
    play(&mut world, 20, &[]);
    assert_eq!(with(&world, "b"), 10);
    assert_eq!(world.rollout.status.history[0].outcome, "Succeeded");
}

/// A cluster has come and does not come up; then a value of all is changed to something that nobody has tried.
#[test]
fn a_new_cluster_that_does_not_come_up_lets_no_value_pass_untried() {
    let mut world = settled(Strategy::Incremental);
    if let Asked::For(wanted) = &mut world.rollout.wanted {
        wanted.max_unready = Amount::Number(5);
    }
    world.clusters.insert("new".to_owned(), Cluster::default());
    want(&mut world, "a");
    for _ in 0..4 {
        step(&mut world, noon());
    }
    assert_eq!(with(&world, "a"), 11);
    want(&mut world, "a-2");
    for _ in 0..6 {
        step(&mut world, noon());
    }
    assert_eq!(with(&world, "a-2"), 1);
    play(&mut world, 40, &[]);
    assert_eq!(with(&world, "a-2"), 11);
}

/// One falls ill when many have the version already: neither the way back nor the next version waits for it.
#[test]
fn who_falls_ill_in_the_middle_is_not_what_all_wait_for() {
    for ill in 1..10 {
        let mut world = settled(Strategy::Incremental);
        let ill = in_order(&world).swap_remove(ill);
        want(&mut world, "b");
        play_while_one_fails(&mut world, 30, &ill, "b");
        assert!(world.rollout.status.run.is_some(), "the budget is full");
        for revision in ["a", "c"] {
            want(&mut world, revision);
            play(&mut world, 40, &[ill.as_str()]);
            let holds = decide(&world, noon()).holds;
            let what = format!("{ill} is ill, {revision}: {holds:#?}");
            assert_eq!(with(&world, revision), 10, "{what}");
            assert_eq!(world.rollout.status.run, None, "{what}");
        }
    }
}

/// What is wrong is a value, and there is no room for one more that is unready: whoever is already gets the fix first.
#[test]
fn a_value_that_is_mended_arrives_where_the_budget_is_full() {
    let mut world = settled(Strategy::Incremental);
    let ill = in_order(&world).swap_remove(1);
    want(&mut world, "b-1");
    play_while_one_fails(&mut world, 8, &ill, "b-1");
    assert!(has(&world, &ill, "b-1") && with(&world, "b-1") == 2);
    want(&mut world, "b-2");
    step(&mut world, noon());
    step(&mut world, noon());
    assert_eq!(with(&world, "b-2"), 1, "one is tried with");
    play(&mut world, 40, &[]);
    assert_eq!(with(&world, "b-2"), 10);
}
