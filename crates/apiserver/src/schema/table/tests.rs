#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use serde_json::{Map, Value};

use super::*;
use crate::schema::{Field, ListKind, Presence, View};

fn walk<'a>(schema: &'a Schema, path: &str) -> (&'a Field, View<'a>) {
    let mut found: Option<(&Field, View<'_>)> = None;
    for step in path.split('.') {
        let here = found.map_or(schema.view(), |(_, v)| v.items().unwrap_or(v));
        found = here.field(step);
    }
    found.unwrap()
}

#[test]
fn knows_list_kinds_merge_keys_and_defaults() {
    let pod = kind("", "v1", "Pod");
    let (field, view) = walk(&pod, "spec.containers.ports");
    assert_eq!(field.patch.merge_key.as_ref(), "containerPort");
    assert!(field.patch.merge);
    assert_eq!(
        view.node.list,
        ListKind::Map(["containerPort".into(), "protocol".into()].into())
    );
    let (field, view) = walk(&pod, "spec.containers.ports.protocol");
    assert_eq!(field.default, Some(Value::from("TCP")));
    assert_eq!(field.presence, Presence::OmitZero);
    assert_eq!(&*view.node.go_type, "v1.Protocol");
    assert_eq!(
        view.id,
        walk(&kind("", "v1", "Service"), "spec.ports.protocol").1.id
    );
}

#[test]
fn knows_how_go_holds_fields() {
    let deployment = kind("apps", "v1", "Deployment");
    assert_eq!(
        walk(&deployment, "spec.replicas").0.presence,
        Presence::Optional
    );
    let (strategy, _) = walk(&deployment, "spec.strategy");
    assert_eq!(strategy.presence, Presence::Always);
    assert_eq!(strategy.default, Some(Value::Object(Map::new())));
    assert!(strategy.patch.retain_keys);
    assert_eq!(
        walk(&kind("", "v1", "Secret"), "type").0.presence,
        Presence::OmitZero
    );
    assert_eq!(
        walk(&deployment, "spec.selector").0.default,
        Some(Value::Null)
    );
    let volume = walk(&deployment, "spec.template.spec.volumes")
        .1
        .items()
        .unwrap();
    assert_eq!(&*volume.node.embedded_in["emptyDir"], "VolumeSource");
    let resources = walk(
        &deployment,
        "spec.template.spec.containers.resources.limits",
    )
    .1;
    assert_eq!(&*resources.node.go_type, "v1.ResourceList");
}

#[test]
fn one_field_may_be_granular_where_its_type_is_atomic() {
    let volume = kind("", "v1", "PersistentVolume");
    assert!(!walk(&volume, "spec.claimRef").1.node.atomic);
    let reference = named("io.k8s.api.core.v1.ObjectReference").unwrap();
    assert!(reference.view().node.atomic);
}

#[test]
fn has_the_kinds_that_requests_need() {
    for name in [
        "meta.v1.DeleteOptions",
        "meta.v1.Status",
        "meta.v1.ObjectMeta",
    ] {
        assert!(
            named(&format!("io.k8s.apimachinery.pkg.apis.{name}")).is_some(),
            "{name}"
        );
    }
    for (group, version, name) in [
        ("autoscaling", "v1", "Scale"),
        ("policy", "v1", "Eviction"),
        ("authentication.k8s.io", "v1", "TokenRequest"),
        ("", "v1", "Binding"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        ("events.k8s.io", "v1", "Event"),
    ] {
        assert!(
            kind(group, version, name)
                .view()
                .field("metadata")
                .is_some(),
            "{name}"
        );
    }
    assert!(kind("x", "v1", "Y").view().node.preserve_unknown);
}
