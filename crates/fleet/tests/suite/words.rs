//! A person's word is good once.

use slipway_fleet::decide;
use slipway_fleet::observe::rollout::Asked;
use slipway_fleet::observe::{Cluster, Entry, Revision, Rollout, Strategy, Wanted, World};

use crate::stage::{all_ready, noon, step};

/// A Rollout that replaces, over ten clusters that have `a`.
fn settled() -> World {
    let wanted = Wanted {
        strategy: Strategy::Replace,
        target: "a".to_owned(),
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
        let cluster = Cluster {
            wanted: Revision::Known("a".to_owned()),
            entry: Some(entry()),
            ..Cluster::default()
        };
        world.clusters.insert(format!("c{at}"), cluster);
    }
    all_ready(&mut world, noon());
    step(&mut world, noon());
    world
}

fn entry() -> Entry {
    Entry {
        is_ours: true,
        revision: Some("a".to_owned()),
        status: None,
    }
}

fn deselect(world: &mut World, names: &[&str]) {
    for name in names {
        world.clusters.get_mut(*name).unwrap().is_selected = false;
    }
}

/// One of those that may go cannot: the word is for that one then, and for nobody who comes in the place of the others.
#[test]
fn what_is_left_of_a_word_is_for_who_is_left() {
    let mut world = settled();
    deselect(&mut world, &["c0", "c1", "c2", "c3"]);
    world.rollout.confirmed = Some(4);
    let decision = step(&mut world, noon());
    assert_eq!(decision.unassign.len(), 4);
    // The API refuses one.
    world.clusters.get_mut("c0").unwrap().entry = Some(entry());
    let decision = step(&mut world, noon());
    assert_eq!(
        (decision.unassign, decision.word_left),
        (vec!["c0".to_owned()], Some(1))
    );
    world.clusters.get_mut("c0").unwrap().entry = Some(entry());
    deselect(&mut world, &["c4", "c5", "c6"]);
    for _ in 0..3 {
        let decision = decide(&world, noon());
        assert_eq!(decision.holds[0].reason, "MassUnassignment");
        assert!(decision.unassign.is_empty(), "{:?}", decision.unassign);
        step(&mut world, noon());
    }
    // A person says so, also for more than there are.
    world.rollout.confirmed = Some(7);
    let decision = step(&mut world, noon());
    assert_eq!((decision.unassign.len(), decision.word_left), (4, Some(4)));
    assert!(step(&mut world, noon()).word_is_followed);
    assert_eq!(world.rollout.confirmed, None);
}
