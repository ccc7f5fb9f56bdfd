//! What a cluster does not take, or what becomes of it there, is told of who waits for it, and keeps no other waiting.

use serde_json::{Value, json};
use slipway_api::fleet::assemblage::SyncState;
use slipway_api::fleet::sync::NamedSync;
use slipway_fleet::remote::{Leaf, decide};

use crate::remoting::{plain, remember, report, set, states, step, world};
use crate::stage::noon;

/// A sync whose values are in this Secret.
fn with(name: &str, secret: &str) -> NamedSync {
    NamedSync {
        bindings: serde_json::from_value(json!([
            {"name": "P", "objectFieldRef": {"apiVersion": "v1", "kind": "Secret", "name": secret, "fieldPath": "/data/P"}},
        ]))
        .unwrap(),
        ..plain(name, secret)
    }
}

/// A quota, or a policy, is against the Secret of one sync.
#[test]
fn a_secret_that_a_cluster_does_not_take_stops_only_who_needs_it() {
    let mut world = world(&[with("a", "s1"), plain("b", "v1")]);
    world.secrets.extend(["s1".to_owned(), "s2".to_owned()]);
    step(&mut world);
    step(&mut world);
    assert_eq!(
        world.leaf.as_ref().unwrap().syncs,
        [with("a", "s1"), plain("b", "v1")]
    );
    set(
        &mut world,
        &[with("a", "s2"), plain("b", "v2"), with("c", "s2")],
    );
    world
        .refused_secrets
        .insert("s2".to_owned(), "exceeded quota".to_owned());
    for is_new in [true, false] {
        remember(&mut world);
        let decision = decide(&world, noon());
        assert_eq!(decision.copy, ["s2"], "it is tried again in its time");
        let told = states(&decision);
        assert_eq!(
            (told["a"], told["b"], told["c"]),
            (SyncState::Blocked, SyncState::Updating, SyncState::Blocked)
        );
        assert_eq!(decision.syncs[0].message.as_deref(), Some("exceeded quota"));
        assert_eq!(decision.apply.is_some(), is_new, "once");
        let Some(applied) = decision.apply else {
            continue;
        };
        let leaf = world.leaf.take().unwrap();
        world.leaf = Some(Leaf {
            status: leaf.status,
            generation: leaf.generation + 1,
            ..Leaf::of(&applied.body)
        });
        assert_eq!(
            world.leaf.as_ref().unwrap().syncs,
            [with("a", "s1"), plain("b", "v2")]
        );
        world.before.syncs = decision.syncs;
    }
    // It is taken after all.
    world.refused_secrets.clear();
    step(&mut world);
    step(&mut world);
    assert_eq!(
        world.leaf.as_ref().unwrap().syncs,
        [with("a", "s2"), plain("b", "v2"), with("c", "s2")]
    );
}

/// Somebody deletes the Assemblage in the cluster, and what it applied goes: nothing that it said before is true any more.
#[test]
fn an_assemblage_that_is_going_in_its_cluster_is_not_ready() {
    let mut world = world(&[plain("a", "v1")]);
    step(&mut world);
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Succeeded);
    let ready = step(&mut world);
    assert_eq!(states(&ready)["a"], SyncState::Succeeded);
    world.leaf.as_mut().unwrap().is_going = true;
    for _ in 0..2 {
        let going = step(&mut world);
        assert_eq!(states(&going)["a"], SyncState::Updating);
        assert_eq!(going.syncs[0].reason.as_deref(), Some("Deleting"));
    }
    // What it was is known no better while the cluster cannot be reached.
    world.is_reachable = false;
    assert_eq!(states(&step(&mut world))["a"], SyncState::Updating);
    let seen = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    assert!(Leaf::of(&seen).is_going && !Leaf::of(&json!({})).is_going);
}

/// Whoever may write the status there may write anything, and each who assigns something there tells it again.
#[test]
fn what_a_cluster_tells_is_not_without_end() {
    let mut world = world(&[plain("a", "v1")]);
    step(&mut world);
    let leaf = world.leaf.take().unwrap();
    let told = json!({
        "name": "a", "state": "failed", "observedRevision": "v1",
        "reason": "x".repeat(1_000_000), "message": "y".repeat(1_000_000),
    });
    let forged: Value = json!({"status": {"syncs": [told]}});
    world.leaf = Some(Leaf {
        status: Leaf::of(&forged).status,
        ..leaf
    });
    let decision = step(&mut world);
    assert_eq!(states(&decision)["a"], SyncState::Failed);
    let length = |text: &Option<String>| text.as_ref().unwrap().chars().count();
    assert!(length(&decision.syncs[0].reason) <= 65);
    assert!(length(&decision.syncs[0].message) <= 513);
}
