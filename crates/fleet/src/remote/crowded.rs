//! Clusters that have more than anybody gave them: who administers one chooses what its API shows, and all others wait for each plan.

#![allow(clippy::unwrap_used, reason = "tests")]

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::fleet::assemblage::SyncStatus;
use slipway_api::fleet::sync::NamedSync;

use super::{Leaf, World, decide, decide_writes};
use crate::observe::spelled::{Spelled, looks};

/// A cluster that is assigned so many syncs, all of which are remembered.
fn assigned(count: usize) -> World {
    let names = (0..count).map(|n| format!("own-{n}"));
    let own: Vec<NamedSync> = names
        .map(|name| NamedSync {
            name,
            revision: Some("v1".to_owned()),
            ..NamedSync::default()
        })
        .collect();
    let mut world = World {
        namespace: "fleet".to_owned(),
        name: "berlin".to_owned(),
        uid: "one".to_owned(),
        hub: "hub".to_owned(),
        syncs: own.iter().map(|sync| (Spelled::of(sync), None)).collect(),
        is_reachable: true,
        ..World::default()
    };
    let remembered = own.into_iter().map(|sync| SyncStatus {
        name: sync.name,
        ..SyncStatus::default()
    });
    world.before.syncs = remembered.collect();
    world
}

/// How often a sync is looked at while it is decided about a cluster that has so many, and is assigned a tenth as many others.
fn looks_at(count: usize, writer: &str) -> usize {
    let now = Timestamp::UNIX_EPOCH;
    let mut world = assigned(count / 10);
    let written = Leaf::of(&decide(&world, now).apply.unwrap().body).written;
    let crowd: Vec<Value> = (0..count)
        .map(|n| json!({"name": format!("s{n}")}))
        .collect();
    world.leaf = Some(Leaf::of(&json!({
        "metadata": {"annotations": {"fleet.squaremo.dev/written-by": writer, "fleet.squaremo.dev/written": written}},
        "spec": {"syncs": crowd},
    })));
    let before = looks::all();
    let decision = decide(&world, now);
    decide_writes(&world);
    assert!(decision.apply.is_some(), "by {writer}");
    looks::all() - before
}

/// Sorting four times as many takes less than five times as many looks, and looking at all for each takes sixteen times as many.
#[test]
fn a_cluster_with_thousands_of_syncs_is_looked_at_no_more_often_than_they_are_sorted() {
    for writer in ["somebody else", "one"] {
        let (few, many) = (looks_at(2_000, writer), looks_at(8_000, writer));
        assert!(few >= 2_000, "by {writer}: {few}");
        assert!(many < 6 * few, "by {writer}: {few}, {many}");
    }
}
