#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::resource::{Context, Strategy};

const NOW: Context<'static> = Context {
    version: "v1",
    now: Timestamp::UNIX_EPOCH,
    user: None,
};

fn judged(rules: &Rules, mut object: Value) -> Vec<String> {
    Strategy::default(rules, &mut object, &NOW);
    let errors = Strategy::validate(rules, &object, &NOW);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn an_ingress_leads_somewhere() {
    assert_eq!(
        judged(&ingress::RULES, json!({"spec": {}})),
        ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]
    );
    let backend = json!({"service": {"name": "s", "port": {}}});
    let rule =
        json!({"http": {"paths": [{"path": "x//y", "pathType": "Exact", "backend": backend}]}});
    let path = "spec.rules[0].http.paths[0]";
    assert_eq!(
        judged(&ingress::RULES, json!({"spec": {"rules": [rule]}})),
        [
            format!("{path}.path: Invalid value: \"x//y\": must be an absolute path"),
            format!("{path}.path: Invalid value: \"x//y\": must not contain '//'"),
            format!("{path}.backend: Required value: port name or number is required"),
        ]
    );
}

#[test]
fn an_ingress_class_names_its_controller() {
    assert_eq!(
        judged(
            &ingressclass::RULES,
            json!({"spec": {"controller": "x", "parameters": {"kind": "K", "name": "n", "scope": "Namespace"}}})
        ),
        [
            "spec.controller: Invalid value: \"x\": must be a domain-prefixed path (such as \"acme.io/foo\")",
            "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
        ]
    );
}

#[test]
fn exceptions_lie_within_their_network() {
    let peer = json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16", "10.1.0.0/16"]}});
    assert_eq!(
        judged(
            &networkpolicy::RULES,
            json!({"spec": {"ingress": [{"from": [peer, {}]}]}})
        ),
        [
            "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
            "spec.ingress[0].from[1]: Required value: must specify a peer",
        ]
    );
    let mut policy = json!({"spec": {"egress": [{"ports": [{"port": 80}]}]}});
    Strategy::default(&networkpolicy::RULES, &mut policy, &NOW);
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(policy["spec"]["egress"][0]["ports"][0]["protocol"], "TCP");
}
