//! Clusters whose agent does not look at what they are to have.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use slipway_api::fleet::assemblage::{SyncState, SyncStatus};
use slipway_api::fleet::sync::NamedSync;
use slipway_fleet::remote::{Decision, Leaf, World, decide};

use crate::stage::noon;

fn sync(tag: &str) -> NamedSync {
    let whole = json!({
        "name": "web", "revision": tag,
        "source": {"git": {"url": "https://example.com/a.git", "version": {"tag": tag}}},
    });
    serde_json::from_value(whole).unwrap()
}

fn step(world: &mut World, now: Timestamp) -> Decision {
    let decision = decide(world, now);
    if let Some(applied) = &decision.apply {
        world.leaf = Some(Leaf {
            generation: 1,
            ..Leaf::of(&applied.body)
        });
    }
    world.before.syncs.clone_from(&decision.syncs);
    decision
}

/// Nobody who waits for a cluster waits for ever without a word.
#[test]
fn an_agent_that_does_not_look_is_told_of_after_a_minute() {
    let at = |seconds: i64| noon() + SignedDuration::from_secs(seconds);
    let mut world = World {
        namespace: "fleet".to_owned(),
        name: "berlin".to_owned(),
        uid: "one".to_owned(),
        hub: "hub".to_owned(),
        syncs: vec![(sync("v1").into(), None)],
        is_reachable: true,
        reached: Some(at(-3600)),
        ..World::default()
    };
    for seconds in [0, 1, 30] {
        let told = step(&mut world, at(seconds));
        assert_eq!(told.syncs[0].reason.as_deref(), Some("Waiting"));
        assert!(told.syncs[0].message.is_some());
        assert_eq!(told.look_at, Some(at(60)), "{seconds}");
    }
    let silent = step(&mut world, at(60));
    assert_eq!(silent.syncs[0].reason.as_deref(), Some("AgentSilent"));
    assert_eq!(silent.look_at, None);
    assert_eq!(step(&mut world, at(90)).syncs, silent.syncs, "it rests");
    // It was not reached in between: the agent has a minute again.
    world.reached = Some(at(100));
    let back = step(&mut world, at(101));
    assert_eq!(back.syncs[0].reason.as_deref(), Some("Waiting"));
    assert_eq!(back.look_at, Some(at(160)));
    // It looks.
    let leaf = world.leaf.as_mut().unwrap();
    leaf.status.observed_generation = Some(leaf.generation);
    leaf.status.syncs.push(SyncStatus {
        name: "web".to_owned(),
        observed_revision: Some("v1".to_owned()),
        state: SyncState::Succeeded,
        ..SyncStatus::default()
    });
    let told = step(&mut world, at(102));
    assert_eq!(told.syncs[0].state, SyncState::Succeeded);
    assert_eq!(
        (told.syncs[0].reason.as_deref(), told.look_at),
        (None, None)
    );
}

/// The agent of a cluster may be newer than its hub: what it says of one sync is no word that the hub knows.
#[test]
fn a_sync_in_a_state_of_a_later_version_silences_no_other() {
    let syncs = ["later", "well"].map(|name| NamedSync {
        name: name.to_owned(),
        ..sync("v1")
    });
    let mut world = World {
        namespace: "fleet".to_owned(),
        name: "berlin".to_owned(),
        uid: "one".to_owned(),
        hub: "hub".to_owned(),
        syncs: syncs.iter().map(|sync| (sync.into(), None)).collect(),
        is_reachable: true,
        ..World::default()
    };
    step(&mut world, noon());
    let mut there = step(&mut world, noon()).apply.unwrap().body;
    there["status"] = json!({"syncs": [
        {"name": "later", "observedRevision": "v1", "state": "suspended", "reason": "Asked"},
        {"name": "well", "observedRevision": "v1", "state": "succeeded"},
    ]});
    world.leaf = Some(Leaf::of(&there));
    let told = step(&mut world, noon()).syncs;
    assert_eq!(told[0].state, SyncState::Updating);
    assert_eq!(told[0].reason.as_deref(), Some("Asked"));
    assert_eq!(told[1].state, SyncState::Succeeded);
}
