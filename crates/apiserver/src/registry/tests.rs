//! What clusters share, and until when.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::*;

/// A cluster's definition of ships, established. `uid` is the cluster's own, `authority` that of its conversion webhook.
fn definition(uid: &str, version: u64, authority: &str, description: &str) -> Arc<Stored> {
    let names =
        json!({"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"});
    let object = json!({
        "metadata": {"name": "ships.example.com", "uid": uid},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": authority}}},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "description": description,
                "properties": {"spec": {"type": "object", "properties": {"sails": {"type": "integer"}}}},
            }}}],
        },
        "status": {
            "acceptedNames": names,
            "conditions": [{"type": "Established", "status": "True"}],
        },
    });
    Arc::new(Stored::encode(&object, version, &[]))
}

fn cluster(definition: Arc<Stored>) -> Registry {
    Registry::default().with_definitions(&[definition])
}

fn ships(registry: &Registry) -> &Arc<Resource> {
    registry.find("example.com", "ships").unwrap()
}

fn root(registry: &Registry) -> *const crate::schema::Node {
    ships(registry).version("v1").unwrap().schema.view().node
}

#[test]
fn clusters_with_one_definition_have_one_resource() {
    let said = "one".repeat(1_000);
    let one = cluster(definition("a", 7, "ca", &said));
    let other = cluster(definition("b", 9, "ca", &said));
    assert!(Arc::ptr_eq(ships(&one), ships(&other)));
    // As with a short definition, whose text is not kept apart.
    let one = cluster(definition("a", 7, "ca", "short"));
    let other = cluster(definition("b", 9, "ca", "short"));
    assert!(Arc::ptr_eq(ships(&one), ships(&other)));
}

#[test]
fn definitions_that_differ_elsewhere_have_one_schema() {
    let one = cluster(definition("a", 7, "one authority", "elsewhere"));
    let other = cluster(definition("b", 7, "another authority", "elsewhere"));
    assert!(!Arc::ptr_eq(ships(&one), ships(&other)));
    assert_eq!(root(&one), root(&other));
    let changed = cluster(definition("c", 7, "one authority", "a changed schema"));
    assert_ne!(root(&one), root(&changed));
}

#[test]
fn nothing_is_left_of_a_definition_when_its_last_cluster_goes() {
    let said = "last".repeat(1_000);
    let one = cluster(definition("a", 7, "ca", &said));
    let other = cluster(definition("b", 9, "ca", &said));
    let resource = Arc::downgrade(ships(&one));
    drop(one);
    assert!(resource.upgrade().is_some(), "the other cluster has it");
    drop(other);
    assert!(resource.upgrade().is_none());
}

#[test]
fn a_changed_definition_changes_one_cluster_only() {
    let before = definition("a", 7, "ca", "before");
    let one = cluster(before.clone());
    let other = cluster(before);
    let changed = one.with_definitions(&[definition("a", 8, "ca", "after")]);
    assert!(Arc::ptr_eq(ships(&one), ships(&other)));
    assert!(!Arc::ptr_eq(ships(&changed), ships(&other)));
    let source = |registry: &Registry| {
        let version = ships(registry).version("v1").unwrap();
        version.schema.source().unwrap().to_owned()
    };
    assert!(source(&changed).contains("after"));
    assert!(source(&other).contains("before"));
}
