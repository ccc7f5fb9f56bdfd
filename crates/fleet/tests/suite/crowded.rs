//! Clusters that have more than anybody gave them: who administers one chooses what its API shows, and all others wait for each plan.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use slipway_fleet::remote::{Leaf, decide, decide_writes};

use crate::remoting::{plain, remember, world};
use crate::stage::noon;

/// As many syncs as fit into an object, each a name.
fn crowd() -> Value {
    let syncs: Vec<Value> = (0..20_000)
        .map(|n| json!({"name": format!("s{n}")}))
        .collect();
    json!(syncs)
}

#[test]
fn a_cluster_with_thousands_of_syncs_takes_no_longer_than_there_are_syncs() {
    let assigned: Vec<_> = (0..1_000)
        .map(|n| plain(&format!("own-{n}"), "v1"))
        .collect();
    let mut world = world(&assigned);
    remember(&mut world);
    let written = Leaf::of(&decide(&world, noon()).apply.unwrap().body).written;
    let by = |writer: &str| {
        json!({
            "metadata": {"annotations": {"fleet.squaremo.dev/written-by": writer, "fleet.squaremo.dev/written": written}},
            "spec": {"syncs": crowd()},
        })
    };
    for writer in ["somebody else", "one"] {
        world.leaf = Some(Leaf::of(&by(writer)));
        let began = Instant::now();
        let decision = decide(&world, noon());
        decide_writes(&world);
        let took = began.elapsed();
        assert!(decision.apply.is_some(), "by {writer}");
        assert!(took < Duration::from_secs(2), "by {writer}: {took:?}");
    }
}
