//! Values that would never come to rest.

use serde_json::{Value, json};
use slipway_bindings::evaluate::Place;
use slipway_bindings::{Found, Known, Read, Reference, evaluate};

use crate::objects::{bindings, cluster};

fn outcome(
    place: Place<'_>,
    version: Option<&str>,
    kind: &str,
    path: &str,
) -> Result<String, String> {
    let object = json!({
        "metadata": {
            "name": "x", "generation": 3, "resourceVersion": "9", "uid": "u",
            "labels": {"a": "label"}, "annotations": {"fleet.squaremo.dev/applied-spec": "hash", "note": "mine"},
        },
        "spec": {"syncs": [{"revision": "r"}], "interval": "10m"},
        "status": {"stableRevision": "s", "counts": {"ready": 1}, "lastAppliedRevision": "v1"},
    });
    let reference = Reference::Object {
        api_version: version.map(str::to_owned),
        kind: kind.to_owned(),
        name: "x".to_owned(),
    };
    let known = Known::from([(reference, Read::Found(Found::new(object)))]);
    let mut field = json!({"kind": kind, "name": "x", "fieldPath": path});
    if let Some(version) = version {
        field["apiVersion"] = version.into();
    }
    // That something takes its place would hide it.
    let all: Value = json!([{"name": "V", "objectFieldRef": field, "default": "instead"}]);
    let all = bindings(all);
    let evaluation = evaluate(&all, place, &known);
    match evaluation.values() {
        Ok(values) => Ok(values["V"].shown().unwrap().to_owned()),
        Err(failure) => {
            let failure = failure.unwrap();
            assert_eq!(failure.why.reason(), "InvalidBinding");
            Err(failure.to_string())
        }
    }
}

#[test]
fn what_an_assignment_changes_is_no_value_of_it() {
    let given = cluster();
    let fleet = Some("fleet.squaremo.dev/v1alpha1");
    let flux = Some("kustomize.toolkit.fluxcd.io/v1");
    for (version, kind, path) in [
        (fleet, "RemoteAssemblage", "/metadata/generation"),
        (None, "RemoteAssemblage", "/metadata/resourceVersion"),
        (fleet, "RemoteAssemblage", "/spec/syncs/0/revision"),
        (fleet, "RemoteAssemblage", "/status/counts"),
        (fleet, "Assemblage", "/spec"),
        (fleet, "Rollout", "/status/counts/ready"),
        (fleet, "Rollout", ""),
        (None, "Module", "/metadata"),
        (flux, "Kustomization", "/metadata/resourceVersion"),
        (flux, "Kustomization", "/metadata/annotations"),
        (
            None,
            "Kustomization",
            "/metadata/annotations/fleet.squaremo.dev~1applied-spec",
        ),
    ] {
        let told = outcome(Place::ControlPlane(&given), version, kind, path).unwrap_err();
        assert!(told.contains("changes with what is assigned"), "{told}");
        if !path.starts_with("/spec") {
            let told = outcome(Place::Workload, version, kind, path).unwrap_err();
            assert!(told.contains("binding V"), "{told}");
        }
    }
}

#[test]
fn what_stays_is_a_value_as_any() {
    let given = cluster();
    let fleet = Some("fleet.squaremo.dev/v1alpha1");
    for (version, kind, path, expected) in [
        (fleet, "RemoteAssemblage", "/metadata/labels/a", "label"),
        (fleet, "Rollout", "/status/stableRevision", "s"),
        (fleet, "Rollout", "/spec/interval", "10m"),
        (None, "Kustomization", "/metadata/annotations/note", "mine"),
        (None, "Kustomization", "/status/lastAppliedRevision", "v1"),
        (Some("v1"), "ConfigMap", "/metadata/resourceVersion", "9"),
        // Of the same name, and somebody else's.
        (
            Some("other.example.com/v1"),
            "Rollout",
            "/metadata/generation",
            "3",
        ),
    ] {
        let found = outcome(Place::ControlPlane(&given), version, kind, path);
        assert_eq!(found.as_deref(), Ok(expected), "{kind} {path}");
    }
    // In its own cluster an assemblage is what was assigned, and nothing there changes it.
    let path = "/spec/syncs/0/revision";
    let found = outcome(Place::Workload, fleet, "Assemblage", path);
    assert_eq!(found.as_deref(), Ok("r"));
}
