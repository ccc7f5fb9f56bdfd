//! What G8 does not compare is what the closing table says, and nothing else.
//!
//! In each history are many objects, of which each is another one in the end than without faults, in one field. Whatever the table does
//! not name must be objected to: who hides something from the comparison beside the table is found here.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use slipway_sim::history::Object;

use super::made::{Made, object};
use crate::registry::{self, Registry};
use crate::scenarios::wiring;

/// Fields of objects of others.
const FIELDS: &[&str] = &[
    "addressType",
    "availableReplicas",
    "collisionCount",
    "containers",
    "currentReplicas",
    "data",
    "disruptionsAllowed",
    "env",
    "externalName",
    "finalizers",
    "image",
    "labels",
    "loadBalancer",
    "maxUnavailable",
    "minReadySeconds",
    "nodePort",
    "ownerReferences",
    "parentRefs",
    "partition",
    "paused",
    "phase",
    "ports",
    "progressDeadlineSeconds",
    "readyReplicas",
    "reason",
    "replicas",
    "restartCount",
    "selector",
    "state",
    "template",
    "unavailableReplicas",
    "updatedReplicas",
    "volumeClaimTemplates",
    "weight",
];

/// Resources of others.
const RESOURCES: &[&str] = &[
    "/configmaps",
    "/endpoints",
    "/events",
    "/namespaces",
    "/nodes",
    "/pods",
    "/secrets",
    "/serviceaccounts",
    "/services",
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "apiextensions.k8s.io/customresourcedefinitions",
    "apps/controllerrevisions",
    "apps/daemonsets",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "autoscaling/horizontalpodautoscalers",
    "coordination.k8s.io/leases",
    "discovery.k8s.io/endpointslices",
    "events.k8s.io/events",
    "gateway.networking.k8s.io/httproutes",
    "kustomize.toolkit.fluxcd.io/kustomizations",
    "policy/poddisruptionbudgets",
    "rbac.authorization.k8s.io/roles",
    "source.toolkit.fluxcd.io/gitrepositories",
];

/// Where fields are looked for.
const PLACES: &[&str] = &[
    "spec",
    "status",
    "data",
    "metadata",
    "metadata.labels",
    "metadata.annotations",
    "spec.template.metadata.annotations",
];

fn definitions() -> Vec<Value> {
    registry::definitions(&Registry::default().profiles()).unwrap()
}

/// What the table names after one of these beginnings, without what it is of and why.
fn told(beginnings: &[&str]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for line in wiring().oracles.masks() {
        // A capability's own begin with its name.
        let place = usize::from(line.starts_with("in "));
        let what = line.split(": ").nth(place).unwrap_or_default();
        let names = beginnings.iter().find_map(|one| what.strip_prefix(one));
        let names = names.and_then(|names| names.split(" of ").next());
        all.extend(
            names
                .into_iter()
                .flat_map(|names| names.split(", "))
                .map(str::to_owned),
        );
    }
    all
}

/// The names of all fields in a definition.
fn gather(definition: &Value, into: &mut BTreeSet<String>) {
    match definition {
        Value::Object(parts) => {
            for (name, part) in parts {
                let fields = part.as_object().filter(|_| name == "properties");
                into.extend(fields.into_iter().flat_map(|fields| fields.keys().cloned()));
                gather(part, into);
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| gather(part, into)),
        _ => {}
    }
}

/// All fields of our own kinds, and some of others.
fn fields() -> BTreeSet<String> {
    let mut all: BTreeSet<String> = FIELDS.iter().map(|name| (*name).to_owned()).collect();
    for definition in definitions() {
        gather(&definition, &mut all);
    }
    all
}

/// An object with a text in a field at a place.
fn holding(place: &str, field: &str, text: &str) -> Value {
    let inner = json!({field: text});
    place
        .rsplit('.')
        .fold(inner, |inner, name| json!({name: inner}))
}

/// The objects to whose ends G8 objects: they are as `make` says without faults, and otherwise in the run.
fn objected(objects: &[Object], make: impl Fn(&Object, bool) -> Value) -> Vec<String> {
    let made = |is_other: bool| {
        let mut made = Made::new();
        for object in objects {
            made.put(object.clone(), make(object, is_other), None);
        }
        made.pass(3_600);
        made
    };
    let wanted = made(false);
    let mut found = made(true);
    found.scenario.oracles = vec!["G8".to_owned()];
    found.reference = Some(Box::new(wanted.history));
    let objections = found.objections().into_iter();
    let differing = objections.filter_map(|(_, text)| {
        let (object, _) = text.split_once(" differs: ")?;
        Some(object.to_owned())
    });
    differing.collect()
}

#[test]
fn a_field_that_the_table_does_not_name_is_compared() {
    let told = told(&[
        "fields ",
        "times ",
        "the order of ",
        "hashes ",
        "where something was held up ",
    ]);
    let fields = fields();
    assert!(fields.len() > 150, "{}", fields.len());
    let named = fields.intersection(&told).count();
    assert!(named * 4 < fields.len(), "{named} of {}", fields.len());
    for resource in ["apps/deployments", "flagger.app/canaries", "/configmaps"] {
        let objects: Vec<Object> = fields.iter().map(|name| object(resource, name)).collect();
        for place in PLACES {
            let seen = objected(&objects, |(_, _, name), is_other| {
                holding(place, name, if is_other { "b" } else { "a" })
            });
            for field in fields.difference(&told) {
                let key = format!("{resource} shop/{field}");
                assert!(
                    seen.contains(&key),
                    "{place}.{field} of {resource} is hidden, and the table does not say so"
                );
            }
        }
    }
}

#[test]
fn a_field_that_the_table_names_for_all_objects_is_not_compared() {
    let masks = wiring().oracles.masks();
    let general = masks.iter().filter_map(|line| line.strip_prefix("fields "));
    let general = general.filter_map(|line| line.split_once(": "));
    let general = general.filter(|(names, _)| !names.contains(" of "));
    let fields: Vec<&str> = general.flat_map(|(names, _)| names.split(", ")).collect();
    assert!(fields.contains(&"uid"), "{fields:?}");
    // A name of an object has no slash.
    let objects: Vec<Object> = (0..fields.len())
        .map(|number| object("/configmaps", &format!("n{number}")))
        .collect();
    let seen = objected(&objects, |(_, _, name), is_other| {
        let number: usize = name[1..].parse().unwrap();
        holding("status", fields[number], if is_other { "b" } else { "a" })
    });
    assert!(seen.is_empty(), "{seen:?} of {fields:?}");
}

#[test]
fn a_resource_that_the_table_does_not_name_is_compared() {
    let told = told(&["all of "]);
    let own = definitions();
    let own = own.iter().map(|definition| {
        let of = |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap();
        format!("{}/{}", of("/spec/group"), of("/spec/names/plural"))
    });
    let others = RESOURCES.iter().map(|name| (*name).to_owned());
    let resources: BTreeSet<String> = own.chain(others).collect();
    assert!(told.is_subset(&resources), "{told:?}");
    let objects: Vec<Object> = resources.iter().map(|name| object(name, "one")).collect();
    let seen = objected(&objects, |_, is_other| {
        let replicas = if is_other { 2 } else { 1 };
        json!({"spec": {"replicas": replicas}})
    });
    // What is counted by owner has no name in what is said of it.
    let seen: BTreeSet<&str> = seen
        .iter()
        .filter_map(|key| key.split(' ').next())
        .collect();
    for resource in &resources {
        let is_seen = seen.contains(resource.as_str());
        assert_eq!(is_seen, !told.contains(resource), "{resource}");
    }
}

#[test]
fn a_map_that_the_table_does_not_name_is_compared() {
    let told = told(&["ConfigMaps that begin with "]);
    let names: Vec<String> = told.iter().map(|name| format!("{name}one")).collect();
    let others = ["slipway-zones", "slipway", "conf"];
    let all = names.iter().map(String::as_str).chain(others);
    let objects: Vec<Object> = all.map(|name| object("/configmaps", name)).collect();
    let seen = objected(&objects, |_, is_other| {
        holding("data", "text", if is_other { "b" } else { "a" })
    });
    let expected: BTreeSet<String> = others.map(|name| format!("/configmaps shop/{name}")).into();
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);
    assert!(!told.is_empty());
}
