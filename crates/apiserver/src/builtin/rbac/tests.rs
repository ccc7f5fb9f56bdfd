#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use super::*;
use serde_json::json;

fn texts(errors: &FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_need_verbs_groups_and_resources() {
    let role =
        json!({"rules": [{}, {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["a"]}]});
    assert_eq!(
        texts(&policy_rules(&role, true)),
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
            "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both regular resources and non-resource URLs",
        ]
    );
}

#[test]
fn bindings_are_filled_in_and_judged() {
    let mut object = json!({"roleRef": {"kind": "X"}, "subjects": [
        {"kind": "User"}, {"kind": "Foo", "name": "x"}, {"kind": "ServiceAccount", "name": "a", "apiGroup": "g"}
    ]});
    default_binding(&mut object);
    assert_eq!(object["subjects"][0]["apiGroup"], GROUP);
    assert_eq!(
        texts(&binding(&object, true)),
        [
            "roleRef.kind: Unsupported value: \"X\": supported values: \"Role\", \"ClusterRole\"",
            "roleRef.name: Required value",
            "subjects[0].name: Required value",
            "subjects[1].kind: Unsupported value: \"Foo\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
            "subjects[2].apiGroup: Unsupported value: \"g\": supported values: \"\"",
        ]
    );
}

#[test]
fn the_role_of_a_binding_stays() {
    let make = |kind: &str| json!({"roleRef": {"apiGroup": GROUP, "kind": kind, "name": "x"}});
    assert_eq!(
        texts(&binding_update(&make("ClusterRole"), &make("Role"), true)),
        [
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\",\"Name\":\"x\"}: cannot change roleRef"
        ]
    );
}
