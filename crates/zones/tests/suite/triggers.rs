//! Which groups a change is work for.

use serde_json::json;
use slipway_kernel::store::Meta;
use slipway_kernel::{ClusterId, Controller};

use crate::objects::*;

/// The groups that a change of an object of this kind and name is work for.
fn woken(kind: &str, namespace: &str, name: &str) -> Vec<String> {
    let mut gateway = zone("store-gateway");
    gateway["metadata"]["labels"]["rollout-group"] = json!("gateway");
    let stage = stage(&[zone("ingester-zone-a"), zone("ingester-zone-b"), gateway]);
    let meta = Meta {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Meta::default()
    };
    let interests = Controller::interests(&stage.planner);
    let interest = interests.iter().find(|i| i.kind.kind == kind).unwrap();
    let keys = (interest.triggers)(&ClusterId::local(), &meta, &stage.stores());
    keys.into_iter().map(|key| key.name).collect()
}

#[test]
fn a_pod_is_work_for_its_own_group_also_when_it_is_gone() {
    assert_eq!(woken("Pod", NS, "ingester-zone-b-1"), ["ingester"]);
    assert_eq!(woken("Pod", NS, "ingester-zone-b-99"), ["ingester"]);
    assert_eq!(woken("Pod", NS, "store-gateway-0"), ["gateway"]);
}

#[test]
fn a_pod_of_nobody_or_of_another_namespace_is_no_work() {
    for (namespace, name) in [
        (NS, "web-5d4f-x2x"),
        (NS, "ingester-zone-b"),
        ("other", "ingester-zone-b-1"),
    ] {
        assert!(
            woken("Pod", namespace, name).is_empty(),
            "{namespace}/{name}"
        );
    }
}

/// D11: a set that is deleted or that has left its group is work for the groups of its namespace.
#[test]
fn defect_11_a_set_is_work_for_all_groups_of_its_namespace_also_when_it_is_gone() {
    for name in ["ingester-zone-a", "gone"] {
        assert_eq!(woken("StatefulSet", NS, name), ["gateway", "ingester"]);
    }
    assert!(woken("StatefulSet", "other", "gone").is_empty());
}
