#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]
use jiff::Timestamp;
use serde_json::{Value, json};

use super::service::allocate::{self, Used};
use super::*;
use crate::resource::{Context, Part, Strategy};

const NOW: Context<'static> = Context {
    version: "v1",
    now: Timestamp::UNIX_EPOCH,
    user: None,
};

fn created(rules: &Rules, mut object: Value) -> Value {
    Strategy::default(rules, &mut object, &NOW);
    Strategy::prepare_create(rules, &mut object, &NOW);
    object
}

fn judged(rules: &Rules, object: Value) -> Vec<String> {
    let object = created(rules, object);
    texts(&Strategy::validate(rules, &object, &NOW))
}

fn updated(rules: &Rules, old: Value, mut new: Value) -> Vec<String> {
    let old = created(rules, old);
    Strategy::default(rules, &mut new, &NOW);
    Strategy::prepare_update(rules, Part::Main, &mut new, &old, &NOW);
    texts(&Strategy::validate_update(
        rules,
        Part::Main,
        &new,
        &old,
        &NOW,
    ))
}

fn texts(errors: &crate::field::FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn new_service(mut object: Value) -> Value {
    Strategy::default(&service::RULES, &mut object, &NOW);
    assert_eq!(allocate::on_create(&mut object, &Used::default(), 0), []);
    Strategy::prepare_create(&service::RULES, &mut object, &NOW);
    object
}

#[test]
fn a_namespace_knows_its_name_and_holds_itself() {
    let namespace = created(&namespace::RULES, json!({"metadata": {"name": "a"}}));
    assert_eq!(
        namespace["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "a"
    );
    assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(namespace["status"]["phase"], "Active");
    assert_eq!(
        judged(&namespace::RULES, json!({"spec": {"finalizers": ["foo"]}})),
        [
            "spec.finalizers: Invalid value: \"foo\": name is neither a standard finalizer name nor is it fully qualified"
        ]
    );
}

#[test]
fn an_immutable_config_map_stays() {
    let old = json!({"immutable": true, "data": {"a": "x"}});
    let why = "field is immutable when `immutable` is set";
    assert_eq!(
        updated(&configmap::RULES, old, json!({"data": {"a": "y"}})),
        [
            format!("immutable: Forbidden: {why}"),
            format!("data: Forbidden: {why}")
        ]
    );
}

#[test]
fn secrets_hold_what_their_type_needs() {
    let secret = created(
        &secret::RULES,
        json!({"stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
    );
    assert_eq!(
        secret,
        json!({"data": {"a": "Yg==", "c": "ZA=="}, "type": "Opaque"})
    );
    assert_eq!(
        judged(&secret::RULES, json!({"type": "kubernetes.io/tls"})),
        [
            "data[tls.crt]: Required value",
            "data[tls.key]: Required value"
        ]
    );
    let docker =
        json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "YWJj"}});
    assert_eq!(
        judged(&secret::RULES, docker),
        [
            "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'a' looking for beginning of value"
        ]
    );
    assert_eq!(
        updated(&secret::RULES, json!({}), json!({"type": "x"})),
        ["type: Invalid value: \"x\": field is immutable"]
    );
}

#[test]
fn services_are_filled_in() {
    let service = new_service(json!({"spec": {"ports": [{"port": 80}]}}));
    assert_eq!(
        service["spec"],
        json!({
            "clusterIP": "10.0.1.0", "clusterIPs": ["10.0.1.0"], "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "sessionAffinity": "None", "type": "ClusterIP"
        })
    );
    let headless = new_service(json!({"spec": {"clusterIP": "None"}}));
    assert_eq!(headless["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(headless["spec"]["ipFamilyPolicy"], "RequireDualStack");
    let balanced = json!({"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}});
    let balanced = new_service(balanced);
    assert_eq!(balanced["spec"]["ports"][0]["nodePort"], 30000);
    assert_eq!(balanced["spec"]["healthCheckNodePort"], 30001);
}

#[test]
fn addresses_and_ports_are_handed_out_once() {
    let mut used = Used::default();
    used.add(&json!({"spec": {"clusterIPs": ["10.0.0.1"], "ports": [{"nodePort": 30123}]}}));
    let refused = |spec: Value| {
        let mut object = json!({"spec": spec});
        Strategy::default(&service::RULES, &mut object, &NOW);
        texts(&allocate::on_create(&mut object, &used, 3))
    };
    assert_eq!(
        refused(json!({"clusterIP": "10.0.0.1"})),
        [
            "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: failed to allocate IP 10.0.0.1: provided IP is already allocated"
        ]
    );
    assert_eq!(
        refused(json!({"clusterIP": "10.9.9.9"})),
        [
            "spec.clusterIPs: Invalid value: [\"10.9.9.9\"]: failed to allocate IP 10.9.9.9: the provided network does not match the current range"
        ]
    );
    assert_eq!(
        refused(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30123}]})),
        ["spec.ports[0].nodePort: Invalid value: 30123: provided port is already allocated"]
    );
    assert_eq!(
        refused(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]})),
        [
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"
        ]
    );
}

#[test]
fn cluster_ips_stay_and_node_ports_follow_the_type() {
    let old = new_service(json!({"spec": {"type": "NodePort", "ports": [{"port": 80}]}}));
    let change = |mut new: Value| {
        Strategy::default(&service::RULES, &mut new, &NOW);
        assert_eq!(allocate::on_update(&mut new, &old, &Used::default(), 9), []);
        Strategy::prepare_update(&service::RULES, Part::Main, &mut new, &old, &NOW);
        let errors = Strategy::validate_update(&service::RULES, Part::Main, &new, &old, &NOW);
        (new, texts(&errors))
    };
    let (kept, errors) = change(json!({"spec": {"type": "NodePort", "ports": [{"port": 80}]}}));
    assert_eq!((kept["spec"] == old["spec"], errors.len()), (true, 0));
    // A client that writes back what it read, with another type.
    let mut plain = old.clone();
    plain["spec"]["type"] = "ClusterIP".into();
    let (plain, errors) = change(plain);
    assert_eq!(errors, [""; 0]);
    assert_eq!(
        plain["spec"]["ports"],
        json!([{"port": 80, "protocol": "TCP", "targetPort": 80}])
    );
    assert_eq!(plain["spec"]["clusterIP"], old["spec"]["clusterIP"]);
    assert!(plain["spec"].get("externalTrafficPolicy").is_none());
    let (_, errors) = change(json!({"spec": {"clusterIP": "10.0.3.3", "ports": [{"port": 80}]}}));
    assert_eq!(
        errors,
        ["spec.clusterIPs[0]: Invalid value: [\"10.0.3.3\"]: may not change once set"]
    );
}

#[test]
fn service_tables_show_ports_and_addresses() {
    let service = new_service(
        json!({"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}),
    );
    assert_eq!(
        service::RULES.cells(&service, &NOW),
        [
            json!("a"),
            json!("NodePort"),
            json!("10.0.1.0"),
            json!("<none>"),
            json!("80:30000/TCP"),
            json!("<unknown>"),
            json!("<none>")
        ]
    );
}

#[test]
fn a_claim_shows_what_may_not_change() {
    let claim = |mode: &str| json!({"spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}});
    let errors = updated(
        &claim::RULES,
        claim("ReadWriteOnce"),
        claim("ReadWriteMany"),
    );
    assert_eq!(
        errors,
        [
            "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n\
             @@ -1,6 +1,6 @@\n {\n  \"AccessModes\": [\n-  \"ReadWriteOnce\"\n+  \"ReadWriteMany\"\n  ],\n  \"Selector\": null,\n  \"Resources\": {\n"
        ]
    );
    assert_eq!(
        judged(&claim::RULES, json!({"spec": {}})),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value"
        ]
    );
}

#[test]
fn nodes_have_unique_taints_and_keep_their_network() {
    let taint = json!({"key": "k", "effect": "NoSchedule"});
    assert_eq!(
        judged(&node::RULES, json!({"spec": {"taints": [taint, taint]}})),
        [
            "metadata.taints[1]: Duplicate value: {\"Key\":\"k\",\"Value\":\"\",\"Effect\":\"NoSchedule\",\"TimeAdded\":null}: taints must be unique by key and effect pair"
        ]
    );
    let node = |cidr: &str| json!({"spec": {"podCIDR": cidr}});
    assert_eq!(
        updated(&node::RULES, node("10.1.0.0/24"), node("10.2.0.0/24")),
        ["spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid"]
    );
}

#[test]
fn limits_of_containers_default_to_each_other() {
    let range = created(
        &limitrange::RULES,
        json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"memory": "2"}}]}}),
    );
    assert_eq!(
        range["spec"]["limits"][0]["defaultRequest"],
        json!({"cpu": "1", "memory": "2"})
    );
    assert_eq!(range["spec"]["limits"][0]["default"], json!({"cpu": "1"}));
}

#[test]
fn every_resource_fills_its_table() {
    for resource in resources() {
        let columns = resource.strategy.columns("v1").len();
        let cells = resource.strategy.cells(&json!({}), &NOW).len();
        assert_eq!(columns, cells, "{}", resource.names.kind);
    }
}
