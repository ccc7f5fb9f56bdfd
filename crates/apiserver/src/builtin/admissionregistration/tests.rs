#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use jiff::Timestamp;
use serde_json::{Value, json};

use super::webhook::{MUTATING, VALIDATING};
use crate::resource::{Context, Part, Strategy};

const NOW: Context<'static> = Context {
    version: "v1",
    now: Timestamp::UNIX_EPOCH,
    user: None,
};

fn judge(mut object: Value) -> Vec<String> {
    Strategy::default(&VALIDATING, &mut object, &NOW);
    let errors = Strategy::validate(&VALIDATING, &object, &NOW);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn fills_in_a_hook() {
    let mut object = json!({"webhooks": [{"clientConfig": {"service": {}}, "rules": [{}]}]});
    Strategy::default(&MUTATING, &mut object, &NOW);
    let hook = &object["webhooks"][0];
    assert_eq!(hook["failurePolicy"], "Fail");
    assert_eq!(hook["timeoutSeconds"], 10);
    assert_eq!(hook["objectSelector"], json!({}));
    assert_eq!(hook["reinvocationPolicy"], "Never");
    assert_eq!(hook["clientConfig"]["service"]["port"], 443);
    assert_eq!(hook["rules"][0]["scope"], "*");
}

#[test]
fn judges_rules_and_clients_in_the_servers_order() {
    let errors = judge(json!({"webhooks": [
        {"name": "a", "rules": [
            {"operations": ["*", "CREATE"], "apiGroups": ["*", "x"], "resources": ["*", "pods", "pods/*", "pods/x"]},
            {"operations": ["FOO"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "X"},
        ], "clientConfig": {}, "timeoutSeconds": 40, "failurePolicy": "X", "matchPolicy": "Y"},
        {"name": "a.b.c", "clientConfig": {"url": "http://u:p@h/x?y=1#f"}, "sideEffects": "Some",
         "admissionReviewVersions": ["v2", "v2"]},
        {"name": "a.b.c", "clientConfig": {"service": {"name": "", "namespace": "", "path": "x//y"}},
         "sideEffects": "None", "admissionReviewVersions": ["v1"]},
    ]}));
    assert_eq!(
        errors,
        [
            "webhooks[0].name: Invalid value: \"a\": should be a domain with at least three segments separated by dots",
            "webhooks[0].rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
            "webhooks[0].rules[0].apiGroups: Invalid value: [\"*\",\"x\"]: if '*' is present, must not specify other API groups",
            "webhooks[0].rules[0].apiVersions: Required value",
            "webhooks[0].rules[0].resources[3]: Invalid value: \"pods/x\": if 'pods/*' is present, must not specify pods/x",
            "webhooks[0].rules[0].resources: Invalid value: [\"*\",\"pods\",\"pods/*\",\"pods/x\"]: if '*' is present, must not specify other resources without subresources",
            "webhooks[0].rules[1].operations[0]: Unsupported value: \"FOO\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
            "webhooks[0].rules[1].scope: Unsupported value: \"X\": supported values: \"*\", \"Cluster\", \"Namespaced\"",
            "webhooks[0].failurePolicy: Unsupported value: \"X\": supported values: \"Fail\", \"Ignore\"",
            "webhooks[0].matchPolicy: Unsupported value: \"Y\": supported values: \"Equivalent\", \"Exact\"",
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
            "webhooks[0].timeoutSeconds: Invalid value: 40: the timeout value must be between 1 and 30 seconds",
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            "webhooks[1].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            "webhooks[1].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            "webhooks[1].clientConfig.url: Invalid value: \"u:p\": user information is not permitted in the URL",
            "webhooks[1].clientConfig.url: Invalid value: \"f\": fragments are not permitted in the URL",
            "webhooks[1].clientConfig.url: Invalid value: \"y=1\": query parameters are not permitted in the URL",
            "webhooks[1].admissionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
            "webhooks[1].admissionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1, v1beta1",
            "webhooks[2].clientConfig.service.name: Required value",
            "webhooks[2].clientConfig.service.namespace: Required value",
            "webhooks[2].clientConfig.service.path: Invalid value: \"x//y\": must start with a '/'",
            "webhooks[2].clientConfig.service.path: Invalid value: \"x//y\": segment[0] may not be empty",
            "webhooks[2].clientConfig.service.path: Invalid value: \"x//y\": segment[1] may not be empty",
            "webhooks[2].name: Duplicate value: \"a.b.c\"",
        ]
    );
}

#[test]
fn conditions_are_compiled() {
    let errors = judge(json!({"webhooks": [{
        "name": "a.b.c", "clientConfig": {"url": "https://h"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [
            {"name": "", "expression": ""},
            {"name": "bad", "expression": "1 +"},
            {"name": "ok", "expression": "object.metadata.name == 'x'"},
            {"name": "ok", "expression": "1"},
        ]
    }]}));
    let conditions = "webhooks[0].matchConditions";
    assert_eq!(
        errors[0],
        format!("{conditions}[0].expression: Required value")
    );
    assert_eq!(errors[1], format!("{conditions}[0].name: Required value"));
    let broken = format!(
        "{conditions}[1].expression: Invalid value: \"1 +\": compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>'"
    );
    assert!(errors[2].starts_with(&broken), "{}", errors[2]);
    assert_eq!(
        errors[3..],
        [
            format!(
                "{conditions}[3].expression: Invalid value: \"1\": must evaluate to bool but got int"
            ),
            format!("{conditions}[3].name: Duplicate value: \"ok\""),
        ]
    );
}

#[test]
fn old_configurations_keep_their_weaknesses() {
    let hook = |name: &str| {
        json!({"webhooks": [{"name": name, "clientConfig": {"url": "https://h"}, "sideEffects": "Some",
               "admissionReviewVersions": ["v9"]}]})
    };
    let errors = Strategy::validate_update(
        &VALIDATING,
        Part::Main,
        &hook("a.b.d"),
        &hook("a.b.c"),
        &NOW,
    );
    assert!(errors.is_empty(), "{errors:?}");
}
