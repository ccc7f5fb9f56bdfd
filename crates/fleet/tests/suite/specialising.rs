//! A template, specialised to a cluster: what is assigned, and what reaches the manifests.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_api::fleet::rollout::TemplateSpec;
use slipway_bindings::revision::template_of;
use slipway_bindings::{Found, Given, Known, Read, Reference};
use slipway_fleet::specialise::{
    Assigned, Assigning, Specialised, Template, assignment, substitutions,
};

fn template(bindings: Value, sync: Value) -> TemplateSpec {
    let mut whole = json!({"source": {"git": {"url": "https://example.com/app.git", "version": {"tag": "v1"}}}});
    whole
        .as_object_mut()
        .unwrap()
        .extend(sync.as_object().unwrap().clone());
    serde_json::from_value(json!({"controlPlaneBindings": bindings, "sync": whole})).unwrap()
}

fn assigned(template: &TemplateSpec, cluster: &str, known: &Known) -> Specialised<Assigned> {
    let given = Given::cluster("fleet", cluster, &BTreeMap::new(), &BTreeMap::new());
    let assigning = Assigning {
        by: "Rollout/web",
        name: "web",
        cluster,
    };
    assignment(assigning, &Template::of(template), &given, known)
}

fn done<T: std::fmt::Debug>(specialised: Specialised<T>) -> T {
    match specialised {
        Specialised::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

fn object(kind: &str, name: &str, rest: Value) -> (Reference, Read) {
    let reference = Reference::Object {
        api_version: None,
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    let mut whole = json!({"apiVersion": "v1", "kind": kind, "metadata": {"uid": name, "resourceVersion": "1"}});
    whole
        .as_object_mut()
        .unwrap()
        .extend(rest.as_object().unwrap().clone());
    (reference, Read::Found(Found::new(whole)))
}

/// What has been read is looked at while the rest is read: two objects whose lists came at different moments were once read in turn
/// for ever, which the suite on real clusters found.
#[test]
fn what_has_been_read_is_looked_at_while_the_rest_is_read() {
    let reference =
        |kind: &str, name: &str| json!({"kind": kind, "name": name, "fieldPath": "/data/of"});
    let template = template(
        json!([
            {"name": "A", "objectFieldRef": reference("ConfigMap", "one")},
            {"name": "B", "objectFieldRef": reference("Secret", "two")},
        ]),
        json!({}),
    );
    let of = |rest: &str| json!({"data": {"of": rest}});
    let (one, two) = (
        object("ConfigMap", "one", of("x")),
        object("Secret", "two", of("eA==")),
    );
    let all = [one.0.clone(), two.0.clone()].into();
    for (read, other) in [(one.clone(), &two.0), (two.clone(), &one.0)] {
        let unread = assigned(&template, "berlin", &Known::from([read]));
        let Specialised::Unread { needs, references } = unread else {
            panic!("{unread:?}");
        };
        assert_eq!((needs, &references), ([other.clone()].into(), &all));
    }
    assert_eq!(
        done(assigned(&template, "berlin", &Known::from([one, two]))).references,
        all
    );
}

/// The values of the control plane are literals, those of the workload cluster stay as they are, and nothing else is added.
#[test]
fn an_assignment_has_exactly_its_bindings() {
    let template = template(
        json!([{"name": "cluster.name", "value": "$(CLUSTER_NAME)"}]),
        json!({"bindings": [{"name": "app.name", "value": "$(cluster.name)"}]}),
    );
    let one = done(assigned(&template, "berlin", &Known::new()));
    let bindings = serde_json::to_value(&one.sync.bindings).unwrap();
    let expected = json!([{"name": "cluster.name", "value": "berlin"}, {"name": "app.name", "value": "$(cluster.name)"}]);
    assert_eq!(bindings, expected);
    assert_eq!(one.sync.assigned_by.as_deref(), Some("Rollout/web"));
    assert_eq!(one.secret, None);
    // Another cluster is another revision of the same template.
    let other = done(assigned(&template, "paris", &Known::new()));
    let (one, other) = (one.sync.revision.unwrap(), other.sync.revision.unwrap());
    assert_ne!(one, other);
    assert_eq!(template_of(&one), template_of(&other));
}

/// The earlier implementation let a `BootstrapModule`'s substitutions mention the cluster's name without binding it.
#[test]
fn what_is_given_may_be_substituted_without_being_bound() {
    let kustomize = |text: &str| json!({"package": {"kustomize": {"substitute": {"NAME": text}}}});
    let named = template(json!([]), kustomize("in $(CLUSTER_NAME)"));
    let one = done(assigned(&named, "berlin", &Known::new()));
    let bindings = serde_json::to_value(&one.sync.bindings).unwrap();
    assert_eq!(
        bindings,
        json!([{"name": "CLUSTER_NAME", "value": "berlin"}])
    );
    let values = done(substitutions(&one.sync, &Known::new())).public;
    assert_eq!(values["NAME"], "in berlin");
    // A name that nobody gives is told as before, and one that is escaped is no mention.
    let unknown = template(json!([]), kustomize("$(CLUSTER)"));
    let one = done(assigned(&unknown, "berlin", &Known::new()));
    let blocked = substitutions(&one.sync, &Known::new());
    let is_unknown =
        matches!(&blocked, Specialised::Blocked { reason, .. } if *reason == "UnknownName");
    assert!(is_unknown, "{blocked:?}");
    let escaped = template(json!([]), kustomize("$$(CLUSTER_NAME)"));
    let one = done(assigned(&escaped, "berlin", &Known::new()));
    assert!(one.sync.bindings.is_empty());
}

#[test]
fn a_changed_value_is_another_revision() {
    let template = template(
        json!([{"name": "IP", "objectFieldRef": {"kind": "ConfigMap", "name": "ip-$(CLUSTER_NAME)", "path": "/data/ip"}}]),
        json!({}),
    );
    let unread = assigned(&template, "berlin", &Known::new());
    let Specialised::Unread { needs, .. } = unread else {
        panic!("{unread:?}");
    };
    assert_eq!(
        needs.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["ConfigMap ip-berlin"]
    );
    let with = |ip: &str| {
        let known = Known::from([object(
            "ConfigMap",
            "ip-berlin",
            json!({"data": {"ip": ip}}),
        )]);
        done(assigned(&template, "berlin", &known))
            .sync
            .revision
            .unwrap()
    };
    assert_ne!(with("10.0.0.1"), with("10.0.0.2"));
    assert_eq!(with("10.0.0.1"), with("10.0.0.1"));
    let reference = needs.into_iter().next().unwrap();
    let blocked = assigned(
        &template,
        "berlin",
        &Known::from([(reference, Read::Missing)]),
    );
    let Specialised::Blocked {
        reason, message, ..
    } = blocked
    else {
        panic!("{blocked:?}");
    };
    assert_eq!(reason, "BindingUnresolved");
    assert!(
        message.contains("binding IP: ConfigMap ip-berlin is not there"),
        "{message}"
    );
}

#[test]
fn a_name_that_is_bound_on_both_sides_is_told() {
    let template = template(
        json!([{"name": "A", "value": "a"}]),
        json!({"bindings": [{"name": "A", "value": "b"}]}),
    );
    let told = assigned(&template, "berlin", &Known::new());
    assert!(
        matches!(
            told,
            Specialised::Blocked {
                reason: "InvalidBinding",
                ..
            }
        ),
        "{told:?}"
    );
}

/// The four ways of the design to specialise: a property of the cluster, literals for somebody else's configuration, a field
/// of the workload cluster, and a value from another module.
#[test]
fn values_of_every_origin_reach_the_manifests() {
    let template = template(
        json!([
            {"name": "HOST", "objectFieldRef": {"kind": "Cluster", "name": "$(CLUSTER_NAME)", "fieldPath": "/spec/host"}},
            {"name": "REPLICAS", "value": 3},
            {"name": "TRICKY", "objectFieldRef": {"kind": "ConfigMap", "name": "m", "path": "/data/tricky"}},
        ]),
        json!({
            "bindings": [
                {"name": "LOCAL", "objectFieldRef": {"kind": "ConfigMap", "name": "local", "path": "/data/zone"}},
                {"name": "IP", "moduleFieldRef": {"module": "net", "kind": "Service", "name": "gate", "fieldPath": "/spec/ip"}},
            ],
            "package": {"kustomize": {"path": "deploy", "substitute": [
                {"name": "HOST"}, {"REPLICAS": "$(REPLICAS)"}, {"name": "ADDR", "value": "$(IP):$(LOCAL)"}, {"T": "$(TRICKY)"},
            ]}},
        }),
    );
    let known = Known::from([
        object("Cluster", "berlin", json!({"spec": {"host": "api.berlin"}})),
        object(
            "ConfigMap",
            "m",
            json!({"data": {"tricky": "$(HOST) $$ ${X}"}}),
        ),
    ]);
    let assigned = done(assigned(&template, "berlin", &known));
    let module = Reference::Module {
        module: "net".to_owned(),
        kind: "Service".to_owned(),
        name: "gate".to_owned(),
    };
    let there = Known::from([
        object("ConfigMap", "local", json!({"data": {"zone": "eu-1"}})),
        (
            module,
            Read::Found(Found::new(json!({"spec": {"ip": "10.0.0.7"}}))),
        ),
    ]);
    let all = done(substitutions(&assigned.sync, &there));
    let expected = [
        ("ADDR", "10.0.0.7:eu-1"),
        ("HOST", "api.berlin"),
        ("REPLICAS", "3"),
        ("T", "$(HOST) $$ ${X}"),
    ];
    let expected: BTreeMap<String, String> =
        expected.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
    assert_eq!(all.public, expected);
    assert!(all.secret.is_empty());
}

#[test]
fn secrets_travel_in_secrets_only() {
    let template = template(
        json!([{"name": "PASS", "objectFieldRef": {"kind": "Secret", "name": "s", "path": "/data/pass"}}]),
        json!({"package": {"kustomize": {"substitute": {"URL": "pg://app:$(PASS)@db", "PLAIN": "x"}}}}),
    );
    let known = Known::from([object(
        "Secret",
        "s",
        json!({"data": {"pass": "aHVudGVyMg=="}}),
    )]);
    let assigned = done(assigned(&template, "berlin", &known));
    let text = format!(
        "{assigned:?} {}",
        serde_json::to_string(&assigned.sync).unwrap()
    );
    assert!(
        !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
        "{text}"
    );
    let (name, data) = assigned.secret.unwrap();
    assert_eq!(data["PASS"].reveal(), "hunter2");
    assert!(name.starts_with("berlin-web-values-"), "{name}");
    // In the cluster: read there, and secret there.
    let copied = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"uid": "c", "resourceVersion": "2"}, "data": {"PASS": "aHVudGVyMg=="},
    });
    let reference = Reference::Object {
        api_version: Some("v1".to_owned()),
        kind: "Secret".to_owned(),
        name,
    };
    let there = Known::from([(reference, Read::Found(Found::new(copied)))]);
    let all = done(substitutions(&assigned.sync, &there));
    assert_eq!(
        all.public,
        BTreeMap::from([("PLAIN".to_owned(), "x".to_owned())])
    );
    assert_eq!(all.secret["URL"].reveal(), "pg://app:hunter2@db");
}

/// A label of the cluster beside a secret value: another label is another revision.
#[test]
fn what_is_given_beside_a_secret_is_part_of_the_revision() {
    let template = template(
        json!([
            {"name": "PASS", "objectFieldRef": {"kind": "Secret", "name": "s", "path": "/data/pass"}},
            {"name": "URL", "value": "$(PASS)@$(CLUSTER_LABEL[region])"},
        ]),
        json!({}),
    );
    let known = Known::from([object(
        "Secret",
        "s",
        json!({"data": {"pass": "aHVudGVyMg=="}}),
    )]);
    let revision = |region: &str| {
        let labels = BTreeMap::from([("region".to_owned(), region.to_owned())]);
        let given = Given::cluster("fleet", "berlin", &labels, &BTreeMap::new());
        let assigning = Assigning {
            by: "Rollout/web",
            name: "web",
            cluster: "berlin",
        };
        let template = Template::of(&template);
        done(assignment(assigning, &template, &given, &known))
            .sync
            .revision
    };
    assert_eq!(revision("eu"), revision("eu"));
    assert_ne!(revision("eu"), revision("us"));
}
