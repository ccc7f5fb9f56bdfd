//! Many Canaries in one namespace: what a change is, and what a plan looks at, does not grow with how many there are.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_canary::stage::Stage;
use slipway_canary::{Canaries, Settings};
use slipway_kernel::{ClusterId, Controller, Facts, Key};

use crate::cluster::workload;

/// All that there is of a Canary that is initialised.
fn all_of(name: &str) -> Vec<Value> {
    let workloads = [name.to_owned(), format!("{name}-primary")];
    let services = ["", "-primary", "-canary"].map(|end| format!("{name}{end}"));
    let canary = json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "Canary",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "provider": "kubernetes",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "service": {"port": 80},
            "analysis": {"interval": "10s", "threshold": 2, "iterations": 2},
        },
    });
    let workloads = workloads.iter().map(|name| workload(name, "web:1"));
    let services = services.iter().map(|name| {
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "shop"}, "spec": {"ports": [{"port": 80}]}})
    });
    workloads.chain(services).chain([canary]).collect()
}

fn crowd(count: usize) -> Stage {
    let now = Timestamp::from_second(1_000_000).unwrap();
    let mut stage = Stage::new(Canaries::new(Settings::default()), now);
    let all = (0..count).flat_map(|one| all_of(&format!("app-{one}")));
    all.for_each(|object| stage.put(object));
    stage
}

/// How many pieces of work a change of one object is at most, by kind; and how many objects there are of each.
fn work_of_a_change(count: usize) -> BTreeMap<String, (usize, usize)> {
    let (stores, home) = (crowd(count).stores(), ClusterId::local());
    let interests = Canaries::default().interests().into_iter();
    let of_each = interests.map(|interest| {
        let of_kind = stores.of_kind(&home, &interest.kind);
        let objects = of_kind.flat_map(|(_, store)| store.objects());
        let work = objects.map(|seen| (interest.triggers)(&home, &seen.meta, &stores).len());
        let work: Vec<usize> = work.collect();
        let most = work.iter().max().copied().unwrap_or_default();
        (interest.kind.kind.to_string(), (most, work.len()))
    });
    of_each.collect()
}

#[test]
fn a_change_is_work_for_its_own_canary_however_many_there_are() {
    for count in [2, 30] {
        let expected = [("Canary", 1), ("Deployment", 2), ("Service", 3)];
        let expected = expected.map(|(kind, each)| (kind.to_owned(), (1, each * count)));
        assert_eq!(work_of_a_change(count), expected.into());
    }
}

#[test]
fn a_plan_looks_at_its_own_objects_however_many_there_are() {
    let key = Key {
        cluster: ClusterId::local(),
        controller: slipway_canary::NAME,
        namespace: "shop".to_owned(),
        name: "app-1".to_owned(),
    };
    for count in [2, 30] {
        let stores = crowd(count).stores();
        let world = Canaries::default().observe(&stores, &Facts::default(), &key);
        assert_eq!(world.unwrap().objects.0.len(), 5, "of {count} Canaries");
    }
}
