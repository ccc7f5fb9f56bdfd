//! What bindings mean, as tables.

use serde_json::{Value, json};
use slipway_bindings::evaluate::{Outcome, Place};
use slipway_bindings::failure::Why;
use slipway_bindings::given::CLUSTER_NAME;
use slipway_bindings::known::Version;
use slipway_bindings::{Known, evaluate, export};

use crate::objects::{bindings, cluster, known, reference, value, values};

fn literal(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

fn field(name: &str, kind: &str, of: &str, path: &str) -> Value {
    json!({"name": name, "objectFieldRef": {"kind": kind, "name": of, "fieldPath": path}})
}

/// The table of mentions, through the evaluator: a name that is not bound is an error.
#[test]
fn mentions_in_values() {
    for (text, expected) in [
        ("$(X)", Ok("v")),
        ("$$(X)", Ok("$(X)")),
        ("$$$(X)", Ok("$v")),
        ("$$$$(X)", Ok("$$(X)")),
        ("$X ${X}", Ok("$X ${X}")),
        ("100$", Ok("100$")),
        ("$$", Ok("$")),
        ("$(X", Ok("$(X")),
        ("x$(", Ok("x$(")),
        ("$é", Ok("$é")),
        ("$()", Err("")),
        ("$(a b)", Err("a b")),
        ("$(A$(X))", Err("A$(X")),
        ("$(UNDEF)", Err("UNDEF")),
    ] {
        let told = value(json!([literal("X", "v"), literal("A", text)]));
        let expected = expected
            .map(str::to_owned)
            .map_err(|name| format!("binding {name}: {}", Why::Unknown));
        assert_eq!(told, expected, "{text}");
    }
}

#[test]
fn values_of_every_kind() {
    for (binding, expected) in [
        (json!({"name": "A", "value": 3030}), "3030"),
        (literal("A", "$(CLUSTER_NAME)"), "berlin"),
        (literal("A", "$(CLUSTER_NAMESPACE)"), "fleet"),
        (literal("A", "$(CLUSTER_LABEL[zone])"), "eu-1"),
        // What is given is a value, and is not looked through either.
        (literal("A", "$(CLUSTER_ANNOTATION[owner])"), "$(ops)"),
        (field("A", "ConfigMap", "m", "/data/host"), "db"),
        (field("A", "Secret", "s", "/data/pass"), "hunter2"),
        (
            field("A", "Cluster", "$(CLUSTER_NAME)", "/spec/port"),
            "6443",
        ),
        (field("A", "Cluster", "berlin", "/spec/ratio"), "1.5"),
        (field("A", "Cluster", "berlin", "/spec/on"), "true"),
        (
            field("A", "Cluster", "berlin", "/spec/list"),
            r#"[1,{"a":"x","b":1}]"#,
        ),
        (field("A", "Cluster", "berlin", "/spec/list/1/a"), "x"),
        // A value is no text to be expanded.
        (
            field("A", "ConfigMap", "m", "/data/tricky"),
            "$(CLUSTER_NAME) $$ ${X}",
        ),
        (
            json!({"name": "A", "objectFieldRef": {"kind": "ConfigMap", "name": "m", "path": "/data/host"}}),
            "db",
        ),
    ] {
        assert_eq!(
            value(json!([binding.clone()])),
            Ok(expected.to_owned()),
            "{binding}"
        );
    }
}

/// Names in names: the object is known only when another one has been read.
#[test]
fn names_of_objects_may_come_out_of_objects() {
    let all = bindings(json!([
        field("A", "ConfigMap", "$(WHICH)", "/data/$(KEY)"),
        field("WHICH", "ConfigMap", "m", "/data/which"),
        literal("KEY", "host"),
    ]));
    let (given, mut so_far, world) = (cluster(), Known::new(), known());
    let mut rounds = 0;
    let values = loop {
        let evaluation = evaluate(&all, Place::ControlPlane(&given), &so_far);
        if evaluation.needs().is_empty() {
            break evaluation.values().unwrap();
        }
        assert_eq!(evaluation.values(), Err(None));
        for need in evaluation.needs().clone() {
            so_far.insert(need.clone(), world[&need].clone());
        }
        rounds += 1;
    };
    assert_eq!((values["A"].reveal(), rounds), ("db", 1));
    assert_eq!(
        so_far.into_keys().collect::<Vec<_>>(),
        [reference("ConfigMap", "m")]
    );
}

#[test]
fn what_fails_is_told_by_the_name_that_is_to_be_mended() {
    let object = |kind: &str, of: &str, path: &str| json!([field("A", kind, of, path)]);
    for (all, told) in [
        (
            json!([literal("A", "$(B)"), literal("B", "$(C)")]),
            "binding C: there is no such name",
        ),
        (
            json!([literal("A", "$(A)")]),
            "binding A: A mention each other in a circle",
        ),
        (
            json!([
                literal("A", "$(C)"),
                literal("B", "$(C)"),
                literal("C", "$(B)")
            ]),
            "binding C: B, C mention each other",
        ),
        (
            json!([
                field("A", "ConfigMap", "$(B)", "/data/x"),
                field("B", "ConfigMap", "m", "$(A)")
            ]),
            "binding A: A, B mention",
        ),
        (
            json!([literal("A", "a"), literal("A", "b")]),
            "binding A: it is bound twice",
        ),
        (json!([{"name": "A"}]), "binding A: set exactly one of"),
        (
            json!([{"name": "A", "value": "a", "objectFieldRef": {"kind": "a", "name": "b", "path": ""}}]),
            "binding A: set exactly",
        ),
        (
            json!([literal("A", "x"), literal(CLUSTER_NAME, "other")]),
            "binding CLUSTER_NAME: this name is given",
        ),
        (
            json!([literal("A", "x"), literal("CLUSTER_LABEL[a]", "b")]),
            "binding CLUSTER_LABEL[a]: this name is given",
        ),
        (
            json!([literal("A", "$(CLUSTER_LABEL[none])")]),
            "binding CLUSTER_LABEL[none]: there is no such name",
        ),
        (
            object("ConfigMap", "gone", "/data/x"),
            "binding A: ConfigMap gone is not there",
        ),
        (
            object("ConfigMap", "hidden", "/data/x"),
            "binding A: ConfigMap hidden may not be read",
        ),
        (
            object("ConfigMap", "m", "/data/x"),
            "binding A: /data/x of ConfigMap m: there is no x",
        ),
        (
            object("ConfigMap", "m", ".data.x"),
            "binding A: \".data.x\" is no JSON pointer",
        ),
        (
            object("Cluster", "berlin", "/spec/none"),
            "binding A: /spec/none of Cluster berlin is null",
        ),
        (
            object("Cluster", "berlin", "/spec/list/2"),
            "2 is no element of the list",
        ),
        (
            object("Cluster", "berlin", "/spec/port/x"),
            "x is asked of what has no fields",
        ),
        (
            object("Secret", "s", "/data/odd"),
            "binding A: /data/odd of Secret s is no text",
        ),
        (
            object("Secret", "s", "/data/wrong"),
            "binding A: /data/wrong of Secret s is no text",
        ),
        (
            object("Gadget", "g", "/spec"),
            "binding A: there is no kind of Gadget g",
        ),
        (
            object("Ingress", "i", "/spec"),
            "say which by apiVersion: a/v1, b/v1",
        ),
        (
            json!([{"name": "A", "objectFieldRef": {"kind": "ConfigMap", "name": "m"}}]),
            "binding A: set fieldPath",
        ),
        (
            json!([{"name": "A", "moduleFieldRef": {"module": "net", "kind": "Service", "name": "gate", "fieldPath": "/spec"}}]),
            "move it into sync.bindings",
        ),
    ] {
        let got = value(all.clone()).unwrap_err();
        assert!(got.contains(told), "{all}: {got}");
    }
}

#[test]
fn optional_bindings_go_on_without_what_is_not_there() {
    let optional = |path: &str, of: &str, more: Value| {
        let mut binding = field("A", "ConfigMap", of, path);
        binding
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        value(json!([binding]))
    };
    let yes = || json!({"optional": true});
    assert_eq!(optional("/data/x", "gone", yes()), Ok(String::new()));
    assert_eq!(optional("/data/x", "m", yes()), Ok(String::new()));
    assert_eq!(
        optional("/data/x", "m", json!({"default": "d$(x)"})),
        Ok("d$(x)".to_owned())
    );
    assert_eq!(
        optional("/data/x", "m", json!({"optional": true, "default": 7})),
        Ok("7".to_owned())
    );
    assert_eq!(
        optional("/data/host", "m", json!({"default": "d"})),
        Ok("db".to_owned())
    );
    // What may not be seen may be there.
    assert!(optional("/data/x", "hidden", yes()).is_err());
    assert!(optional("data", "m", yes()).is_err());
    let nothing = json!({"name": "A", "optional": true, "objectFieldRef": {"kind": "Cluster", "name": "berlin", "path": "/spec/none"}});
    assert_eq!(value(json!([nothing])), Ok(String::new()));
    assert!(optional("/data/x", "m", json!({"optional": false})).is_err());
}

/// A value is exported as a literal, and comes out of it there as it went in.
#[test]
fn what_is_exported_is_expanded_exactly_once() {
    let tricky = field("A", "ConfigMap", "m", "/data/tricky");
    let all = values(json!([
        tricky,
        literal("B", "$$(A)"),
        literal(CLUSTER_NAME, "$(CLUSTER_NAME)")
    ]))
    .unwrap();
    let made = export(&all, "none");
    let names: Vec<&str> = made
        .bindings
        .iter()
        .map(|binding| binding.name.as_str())
        .collect();
    assert_eq!(names, ["A", "B", "CLUSTER_NAME"]);
    assert!(made.secret.is_empty());
    let nothing = Known::new();
    let there = evaluate(&made.bindings, Place::Workload, &nothing);
    assert_eq!(there.values().unwrap(), all);
    assert_eq!(all["B"].reveal(), "$(A)");
}

/// The bindings of a sync are evaluated with those of the control plane, and stay as they are on the way.
#[test]
fn bindings_of_the_workload_cluster_see_those_of_the_control_plane() {
    let exported = values(json!([literal("cluster.name", "$(CLUSTER_NAME)")])).unwrap();
    let mut all = export(&exported, "none").bindings;
    all.extend(bindings(json!([
        literal("app.name", "app-$(cluster.name)"),
        {"name": "ip", "moduleFieldRef": {"module": "net", "kind": "Service", "name": "gate", "fieldPath": "/spec/clusterIP"}},
    ])));
    let known = known();
    let there = evaluate(&all, Place::Workload, &known);
    let values = there.values().unwrap();
    assert_eq!(values["app.name"].reveal(), "app-berlin");
    assert_eq!(values["ip"].reveal(), "10.0.0.7");
    let Outcome::Value(text) = there.expand("ADDR", "$(app.name)@$(ip)") else {
        panic!("{:?}", there.expand("ADDR", "$(app.name)@$(ip)"));
    };
    assert_eq!(text.reveal(), "app-berlin@10.0.0.7");
    // There is nothing given there that was not exported.
    let Outcome::Failed(failure) = there.expand("ADDR", "$(CLUSTER_NAME)") else {
        panic!("CLUSTER_NAME was exported");
    };
    assert_eq!(failure.name, "CLUSTER_NAME");
}

#[test]
fn versions_are_known_by_kind_where_none_is_given() {
    assert_eq!(reference("ConfigMap", "a").version(), Version::Is("v1"));
    assert_eq!(reference("Secret", "a").version(), Version::Is("v1"));
    assert_eq!(reference("Cluster", "a").version(), Version::ClusterApi);
    assert_eq!(reference("Gadget", "a").version(), Version::Discovered);
}

/// Names that mention each other twice grow by doubling: that ends with a message, not with the memory.
#[test]
fn values_that_double_end() {
    let mut all = vec![literal("A", "$(N99)$(N99)")];
    all.push(literal("N0", "xxxxxxxx"));
    for n in 1..100 {
        let before = n - 1;
        all.push(literal(
            &format!("N{n}"),
            &format!("$(N{before})$(N{before})"),
        ));
    }
    let told = value(Value::Array(all)).unwrap_err();
    assert!(told.contains("is longer than 65536 bytes"), "{told}");
}

#[test]
fn more_bindings_than_there_may_be_are_told() {
    let all: Vec<Value> = (0..129).map(|n| literal(&format!("N{n}"), "x")).collect();
    let told = values(Value::Array(all)).unwrap_err();
    assert_eq!(told.why, Why::TooMany);
}
