//! Clusters that come while a change waits, and what a change that waits says.

use slipway_api::fleet::assemblage::SyncState;
use slipway_api::fleet::rollout::status::RolloutStatus;
use slipway_fleet::budget::Amount;
use slipway_fleet::decide;
use slipway_fleet::observe::rollout::Asked;
use slipway_fleet::observe::{Cluster, EntryStatus, Revision, Rollout, Wanted, World};
use slipway_fleet::plan;

use crate::stage::{all_ready, noon, report, step, write};

fn play(world: &mut World, plans: usize) {
    for _ in 0..plans {
        step(world, noon());
        all_ready(world, noon());
    }
}

/// Five clusters that are ready with `a`, and are to have `b`.
fn changing() -> World {
    let wanted = Wanted {
        target: "a".to_owned(),
        max_unready: Amount::Number(1),
        max_unreachable: Amount::Number(1),
        ..Wanted::default()
    };
    let mut world = World {
        rollout: Rollout {
            name: "shop/web".to_owned(),
            wanted: Asked::For(wanted.clone()),
            ..Rollout::default()
        },
        ..World::default()
    };
    let clusters = (0..5).map(|at| {
        let cluster = Cluster {
            wanted: Revision::Known("a".to_owned()),
            ..Cluster::default()
        };
        (format!("c{at}"), cluster)
    });
    world.clusters.extend(clusters);
    play(&mut world, 30);
    assert_eq!(world.rollout.status.stable_revision.as_deref(), Some("a"));
    world.rollout.wanted = Asked::For(Wanted {
        target: "b".to_owned(),
        ..wanted
    });
    for cluster in world.clusters.values_mut() {
        cluster.wanted = Revision::Known("b".to_owned());
        cluster.stable = Some(Revision::Known("a".to_owned()));
    }
    world
}

fn revision<'a>(world: &'a World, name: &str) -> Option<&'a str> {
    world.clusters[name].entry.as_ref()?.revision.as_deref()
}

/// An operator that starts again has reached nobody yet who has nothing: the change that had begun is not over because of that.
#[test]
fn a_change_that_nobody_has_yet_outlasts_a_time_in_which_nobody_is_reached() {
    let mut world = changing();
    world.rollout.status = RolloutStatus::default();
    for cluster in world.clusters.values_mut() {
        cluster.entry = None;
        cluster.stable = None;
    }
    // It is written down who goes first, and nothing has been assigned.
    let decision = decide(&world, noon());
    world.rollout.status = plan::status(&world, &decision, noon());
    let begun = world.rollout.status.run.clone().unwrap();
    let reach = |world: &mut World, is: bool| {
        for cluster in world.clusters.values_mut() {
            cluster.is_reachable = is;
        }
    };
    reach(&mut world, false);
    step(&mut world, noon());
    step(&mut world, noon());
    assert!(world.rollout.status.history.is_empty());
    assert!(world.rollout.status.run.is_some());
    reach(&mut world, true);
    play(&mut world, 30);
    let outcomes = world.rollout.status.history.iter();
    let outcomes: Vec<_> = outcomes
        .map(|past| (&past.started, &*past.outcome))
        .collect();
    assert_eq!(outcomes, [(&begun.started, "Succeeded")]);
}

/// A change waits for those that are away, for days. An empty cluster waits for nobody.
#[test]
fn who_comes_while_too_many_are_away_gets_what_has_proved_itself() {
    let mut world = changing();
    for name in ["c1", "c2"] {
        let cluster = world.clusters.get_mut(name).unwrap();
        cluster.is_reachable = false;
        cluster.away = Some("it does not answer".to_owned());
    }
    play(&mut world, 5);
    let holds = decide(&world, noon()).holds;
    assert!(holds.iter().any(|hold| hold.reason == "TooManyUnreachable"));
    let away = holds.iter().find(|hold| hold.reason == "Unreachable");
    assert!(away.unwrap().message.contains("(it does not answer)"));
    let new = Cluster {
        wanted: Revision::Known("b".to_owned()),
        stable: Some(Revision::Known("a".to_owned())),
        ..Cluster::default()
    };
    world.clusters.insert("new".to_owned(), new);
    play(&mut world, 5);
    assert_eq!(revision(&world, "new"), Some("a"));
    for name in ["c0", "c3", "c4"] {
        assert_eq!(revision(&world, name), Some("a"), "the change waits");
    }
    for name in ["c1", "c2"] {
        world.clusters.get_mut(name).unwrap().is_reachable = true;
    }
    play(&mut world, 40);
    assert!(
        world
            .clusters
            .keys()
            .all(|name| revision(&world, name) == Some("b"))
    );
}

/// What the first cluster says of itself is what everybody waits for.
#[test]
fn a_change_that_waits_for_the_first_says_what_that_one_says() {
    let mut world = changing();
    let name = loop {
        if let Some(one) = step(&mut world, noon()).assign.first() {
            break one.cluster.clone();
        }
    };
    let mut say = |observed: &str, reason: &str, message: &str| {
        let entry = world.clusters.get_mut(&name).unwrap().entry.as_mut();
        entry.unwrap().status = Some(EntryStatus {
            observed: Some(observed.to_owned()),
            state: SyncState::Updating,
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            ..EntryStatus::default()
        });
        let hold = decide(&world, noon()).holds.remove(0);
        (hold.reason, hold.message)
    };
    let (reason, message) = say("b", "SourceNotReady", "the source is fetched");
    assert_eq!(reason, "CanaryPending");
    assert!(message.ends_with("yet: the source is fetched"), "{message}");
    let (reason, message) = say("b", "AgentSilent", "see whether it runs");
    assert_eq!(reason, "AgentSilent");
    assert!(message.ends_with("see whether it runs"), "{message}");
    let (_, message) = say("a", "Applied", "of what was before");
    assert!(message.ends_with("yet"), "{message}");
}

/// A process that has just begun has not read what bindings refer to. A change that is on its way stays so, with who goes first.
#[test]
fn a_change_is_not_over_while_it_is_not_known_what_is_wanted() {
    let mut world = changing();
    step(&mut world, noon());
    let run = world.rollout.status.run.clone();
    assert!(run.is_some());
    let known: Vec<Revision> = world
        .clusters
        .values()
        .map(|one| one.wanted.clone())
        .collect();
    for cluster in world.clusters.values_mut() {
        cluster.wanted = Revision::Blocked {
            reason: "BindingUnread".to_owned(),
            message: "what its bindings refer to has not been read yet".to_owned(),
        };
    }
    let decision = step(&mut world, noon());
    assert!(decision.assign.is_empty() && decision.ended.is_empty());
    assert_eq!(world.rollout.status.run, run);
    for (cluster, known) in world.clusters.values_mut().zip(known) {
        cluster.wanted = known;
    }
    play(&mut world, 30);
    assert_eq!(world.rollout.status.stable_revision.as_deref(), Some("b"));
}

/// Statuses are written at most every few seconds, and a process may die before it has written one.
#[test]
fn who_comes_is_remembered_before_it_gets_anything() {
    let mut world = changing();
    for name in ["c1", "c2"] {
        world.clusters.get_mut(name).unwrap().is_reachable = false;
    }
    play(&mut world, 5);
    let new = Cluster {
        wanted: Revision::Known("b".to_owned()),
        stable: Some(Revision::Known("a".to_owned())),
        ..Cluster::default()
    };
    world.clusters.insert("new".to_owned(), new);
    let told = decide(&world, noon());
    assert!(told.is_idle(), "{told:#?}");
    assert_eq!(told.joined, ["new"]);
    world.rollout.status = plan::status(&world, &told, noon());
    let first = decide(&world, noon());
    assert_eq!(first.assign[0].cluster, "new");
    // What is written besides is lost.
    write(&mut world, &first, noon());
    for name in ["c1", "c2"] {
        world.clusters.get_mut(name).unwrap().is_reachable = true;
    }
    for _ in 0..3 {
        step(&mut world, noon());
    }
    let run = world.rollout.status.run.as_ref().unwrap();
    assert_ne!(run.canary.as_deref(), Some("new"));
    assert_eq!(revision(&world, "new"), Some("a"), "it is on its way");
    let canary = run.canary.clone().unwrap();
    assert_eq!(revision(&world, &canary), Some("b"), "it does not count");
}

/// Who came counts from when it is ready. Until that is written down it would not count with the change either, and one more than may
/// be would be unready.
#[test]
fn who_came_and_is_ready_counts_before_it_moves() {
    let mut world = changing();
    if let Asked::For(wanted) = &mut world.rollout.wanted {
        wanted.max_unready = Amount::Number(2);
    }
    step(&mut world, noon());
    let new = Cluster {
        wanted: Revision::Known("b".to_owned()),
        stable: Some(Revision::Known("a".to_owned())),
        ..Cluster::default()
    };
    world.clusters.insert("new".to_owned(), new);
    step(&mut world, noon());
    step(&mut world, noon());
    assert_eq!(revision(&world, "new"), Some("a"));
    assert_eq!(world.rollout.status.joined, ["new"]);
    // The first cluster is ready with the change, and the newcomer with what it got. Statuses wait for their turn.
    all_ready(&mut world, noon());
    for _ in 0..3 {
        let decision = decide(&world, noon());
        write(&mut world, &decision, noon());
    }
    let with = |world: &World, name: &str| revision(world, name) == Some("b");
    let moved = world.clusters.keys().filter(|name| with(&world, name));
    assert_eq!(moved.count(), 3, "the first one, and two that are unready");
    assert!(!with(&world, "new"), "that it counts is not written down");
    for _ in 0..5 {
        all_ready(&mut world, noon());
        let decision = decide(&world, noon());
        write(&mut world, &decision, noon());
    }
    let last = decide(&world, noon());
    assert!(last.is_idle() && last.is_news(&world), "it is waited for");
    play(&mut world, 30);
    assert!(world.clusters.keys().all(|name| with(&world, name)));
}

/// Each status names all clusters, and nobody moves because one of them has come up: hundreds that do so one after the other are not
/// told of one by one, and nothing that a person says meanwhile waits for that.
#[test]
fn clusters_that_come_up_while_a_change_waits_are_no_news() {
    let mut world = changing();
    let first = loop {
        if let Some(one) = step(&mut world, noon()).assign.first() {
            break one.cluster.clone();
        }
    };
    report(&mut world, &first, SyncState::Failed, noon());
    step(&mut world, noon());
    let names: Vec<String> = (0..30).map(|n| format!("new-{n:02}")).collect();
    for name in &names {
        let new = Cluster {
            wanted: Revision::Known("b".to_owned()),
            stable: Some(Revision::Known("a".to_owned())),
            ..Cluster::default()
        };
        world.clusters.insert(name.clone(), new);
    }
    let told = decide(&world, noon());
    assert!(told.is_idle() && told.is_news(&world));
    step(&mut world, noon());
    assert_eq!(step(&mut world, noon()).assign.len(), names.len());
    for name in &names {
        report(&mut world, name, SyncState::Succeeded, noon());
        let decision = decide(&world, noon());
        assert!(!decision.joined.contains(name) && decision.is_idle());
        assert!(!decision.is_news(&world), "{name}");
        world.rollout.status = plan::status(&world, &decision, noon());
    }
    // The change is mended, and all of them get it.
    report(&mut world, &first, SyncState::Succeeded, noon());
    play(&mut world, 60);
    let with = |name: &String| revision(&world, name) == Some("b");
    assert!(world.clusters.keys().all(with));
}

/// Definitions are older than the operator: what would have to be remembered is not, and that is said.
#[test]
fn who_comes_where_that_is_not_kept_waits_and_is_told_why() {
    let mut world = changing();
    world.forgets_who_came = true;
    step(&mut world, noon());
    let new = Cluster {
        wanted: Revision::Known("b".to_owned()),
        stable: Some(Revision::Known("a".to_owned())),
        ..Cluster::default()
    };
    world.clusters.insert("new".to_owned(), new);
    step(&mut world, noon());
    let waits = decide(&world, noon());
    assert!(!waits.is_news(&world) && waits.joined.is_empty());
    let mut holds = waits.holds.iter();
    let told = holds.find(|hold| hold.reason == "DefinitionTooOld");
    assert_eq!(told.unwrap().cluster.as_deref(), Some("new"));
    play(&mut world, 30);
    assert_eq!(revision(&world, "new"), Some("b"));
}
