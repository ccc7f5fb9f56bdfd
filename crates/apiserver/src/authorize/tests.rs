#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::json;

use super::*;

fn role(namespace: &str, name: &str, rules: &Value) -> Value {
    let mut role = json!({"metadata": {"name": name}, "rules": rules});
    if !namespace.is_empty() {
        value::put(&mut role, "metadata.namespace", namespace);
    }
    role
}

fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: &Value) -> Value {
    let mut binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": role.0, "name": role.1},
        "subjects": subjects,
    });
    if !namespace.is_empty() {
        value::put(&mut binding, "metadata.namespace", namespace);
    }
    binding
}

fn alice() -> User {
    User::new("alice", &["dev", "system:authenticated"])
}

/// Alice may read pods in `x` and write roles there; everyone in `dev` may read `/metrics` and scale anything.
fn policy() -> Policy {
    let reader = role(
        "x",
        "r1",
        &json!([
            {"verbs": ["create", "update"], "apiGroups": [GROUP], "resources": ["roles", "rolebindings"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]},
        ]),
    );
    let scaler = role(
        "",
        "scaler",
        &json!([
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/healthz/*"]},
        ]),
    );
    let own = binding(
        "x",
        "rb1",
        ("Role", "r1"),
        &json!([{"kind": "Group", "name": "dev"}, {"kind": "User", "name": "alice"}]),
    );
    let robots = binding(
        "x",
        "rb2",
        ("Role", "r1"),
        &json!([{"kind": "ServiceAccount", "name": "robot"}]),
    );
    let all = binding(
        "",
        "crb",
        ("ClusterRole", "scaler"),
        &json!([{"kind": "Group", "name": "dev"}]),
    );
    Policy::build([&reader], [&own, &robots], [&scaler], [&all])
}

#[test]
fn reasons_name_binding_role_and_subject() {
    let (policy, alice) = (policy(), alice());
    let mut asked = Attributes::resource(&alice, "get", "", "pods");
    asked.namespace = "x";
    let decision = policy.decide(&asked);
    assert_eq!(
        decision.reason,
        "RBAC: allowed by RoleBinding \"rb1/x\" of Role \"r1\" to Group \"dev\""
    );
    let rule = decision.rule.unwrap();
    assert_eq!((&*rule.role, rule.index), ("Role x/r1", 1));
    let robot = User::service_account("x", "robot", "");
    let decision = policy.decide(&Attributes {
        user: &robot,
        ..asked
    });
    assert_eq!(
        decision.reason,
        "RBAC: allowed by RoleBinding \"rb2/x\" of Role \"r1\" to ServiceAccount \"robot/x\""
    );
    let path = Attributes::path(&alice, "get", "/healthz/ping");
    assert_eq!(
        policy.decide(&path).reason,
        "RBAC: allowed by ClusterRoleBinding \"crb\" of ClusterRole \"scaler\" to Group \"dev\""
    );
}

#[test]
fn subresources_and_names() {
    let (policy, alice) = (policy(), alice());
    let may = |verb, group, resource, subresource, namespace, name| {
        let asked = Attributes {
            subresource,
            namespace,
            name,
            ..Attributes::resource(&alice, verb, group, resource)
        };
        policy.decide(&asked).allowed
    };
    assert!(may("update", "apps", "deployments", "scale", "y", "d"));
    assert!(!may("update", "apps", "deployments", "", "y", "d"));
    assert!(!may("get", "", "pods", "log", "x", "p"));
    assert!(!may("get", "", "pods", "", "y", "p"));
    assert!(!may("get", "", "pods", "", "", ""));
    assert!(may("get", "", "secrets", "", "x", "s"));
    assert!(!may("get", "", "secrets", "", "x", "t"));
}

#[test]
fn texts_of_refusals() {
    let alice = User::new("alice", &[]);
    let mut asked = Attributes::resource(&alice, "list", "", "pods");
    let text = |asked: &Attributes<'_>| forbidden(asked, "").message;
    assert_eq!(
        text(&asked),
        "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" at the cluster scope"
    );
    asked.namespace = "x";
    asked.name = "foo";
    asked.verb = "create";
    asked.subresource = "eviction";
    assert_eq!(
        text(&asked),
        "pods \"foo\" is forbidden: User \"alice\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"x\""
    );
    let path = Attributes::path(&alice, "get", "/metrics");
    let refusal = forbidden(&path, "");
    assert_eq!(
        refusal.message,
        "forbidden: User \"alice\" cannot get path \"/metrics\""
    );
    assert_eq!(
        serde_json::to_value(&refusal).unwrap()["details"],
        json!({})
    );
}

#[test]
fn masters_and_missing_roles() {
    let subjects = json!([{"kind": "User", "name": "alice"}]);
    let one = binding("x", "a", ("Role", "missing"), &subjects);
    let two = binding("x", "b", ("ClusterRole", "missing"), &subjects);
    let policy = Policy::build([], [&one, &two], [], []);
    let alice = alice();
    let mut asked = Attributes::resource(&alice, "list", "", "pods");
    asked.namespace = "x";
    let decision = policy.decide(&asked);
    assert_eq!(
        decision.reason,
        "RBAC: [role.rbac.authorization.k8s.io \"missing\" not found, clusterrole.rbac.authorization.k8s.io \"missing\" not found]"
    );
    let admin = User::new("root", &[MASTERS]);
    let decision = policy.decide(&Attributes {
        user: &admin,
        ..asked
    });
    assert!(decision.allowed && decision.reason.is_empty() && decision.rule.is_none());
}

#[test]
fn granting_more_than_one_has() {
    let (policy, alice) = (policy(), alice());
    let object = role(
        "x",
        "r2",
        &json!([
            {"verbs": ["get", "list", "watch"], "apiGroups": ["", "apps"], "resources": ["pods", "pods/log"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s", "b"]},
            {"verbs": ["update"], "apiGroups": ["apps"], "resources": ["deployments/scale"]},
            {"verbs": ["delete"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["b"]},
        ]),
    );
    let grant = Grant {
        user: &alice,
        resource: "roles",
        namespace: "x",
        request_name: "",
        object: &object,
        old: None,
    };
    let refusal = confirm_no_escalation(&policy, &grant).unwrap_err();
    assert_eq!(
        refusal.message,
        "roles.rbac.authorization.k8s.io \"r2\" is forbidden: user \"alice\" (groups=[\"dev\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n\
         {APIGroups:[\"\"], Resources:[\"pods/log\"], Verbs:[\"get\" \"list\" \"watch\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"b\"], Verbs:[\"get\" \"delete\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\" \"watch\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"pods/log\"], Verbs:[\"get\" \"list\" \"watch\"]}"
    );
    let admin = User::new("root", &[MASTERS]);
    let by_admin = Grant {
        user: &admin,
        ..grant
    };
    assert!(confirm_no_escalation(&policy, &by_admin).is_ok());
    let unchanged = Grant {
        old: Some(&object),
        ..grant
    };
    assert!(confirm_no_escalation(&policy, &unchanged).is_ok());
}

#[test]
fn binding_needs_what_the_role_gives() {
    let (policy, alice) = (policy(), alice());
    let subjects = json!([{"kind": "User", "name": "bob"}]);
    let refuse = |role| {
        let object = binding("x", "new", role, &subjects);
        confirm_no_escalation(
            &policy,
            &Grant {
                user: &alice,
                resource: "rolebindings",
                namespace: "x",
                request_name: "",
                object: &object,
                old: None,
            },
        )
    };
    assert!(refuse(("Role", "r1")).is_ok());
    let missing = refuse(("ClusterRole", "nope")).unwrap_err();
    assert_eq!(
        missing.message,
        "rolebindings.rbac.authorization.k8s.io \"nope\" not found"
    );
    let stranger = User::new("eve", &[]);
    let object = binding("x", "new", ("Role", "r1"), &subjects);
    let grant = Grant {
        user: &stranger,
        resource: "rolebindings",
        namespace: "x",
        request_name: "",
        object: &object,
        old: None,
    };
    assert_eq!(
        confirm_no_escalation(&policy, &grant).unwrap_err().code,
        403
    );
}

#[test]
fn the_audit_counts_and_remembers() {
    let (policy, alice, audit) = (policy(), alice(), Audit::default());
    let mut asked = Attributes::resource(&alice, "get", "", "pods");
    asked.namespace = "x";
    audit.note(&asked, &policy.decide(&asked));
    audit.note(&asked, &policy.decide(&asked));
    asked.verb = "delete";
    audit.note(&asked, &policy.decide(&asked));
    assert_eq!(audit.uses("Role x/r1", 1), 2);
    assert_eq!(audit.uses("Role x/r1", 0), 0);
    let denied = audit.denied();
    assert_eq!(denied.len(), 1);
    assert_eq!(denied[0].what.verb, "delete");
}

#[test]
fn access_reviews() {
    let (policy, alice) = (policy(), alice());
    let body = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "x"}}});
    let review = self_subject_access_review(body, &alice, &policy).unwrap();
    assert_eq!(
        review["status"],
        json!({"allowed": true, "reason": "RBAC: allowed by RoleBinding \"rb1/x\" of Role \"r1\" to Group \"dev\""})
    );
    let body = json!({"spec": {"user": "eve", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}});
    let review = subject_access_review(body, &policy).unwrap();
    assert_eq!(review["status"], json!({"allowed": false}));
    let body = json!({"spec": {"user": "eve", "resourceAttributes": {"verb": "get", "labelSelector": {"rawSelector": "a in ("}}}});
    let review = subject_access_review(body, &policy).unwrap();
    assert_eq!(
        review["status"]["evaluationError"],
        "spec.resourceAttributes.labelSelector ignored due to parse error"
    );
    let body = json!({"metadata": {"namespace": "x"}, "spec": {"groups": ["dev"], "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "x"}}});
    let review = local_subject_access_review(body, "x", &policy).unwrap();
    assert_eq!(review["status"]["allowed"], true);
}

#[test]
fn what_reviews_refuse() {
    let (policy, alice) = (policy(), alice());
    let message = |outcome: Outcome<Value>| outcome.unwrap_err().message;
    assert_eq!(
        message(self_subject_access_review(
            json!({"spec": {}}),
            &alice,
            &policy
        )),
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
    );
    let both = json!({
        "metadata": {"name": "x", "managedFields": []},
        "spec": {"resourceAttributes": {}, "nonResourceAttributes": {"path": "/x"}},
    });
    assert_eq!(
        message(self_subject_access_review(both, &alice, &policy)),
        ".authorization.k8s.io \"\" is invalid: [spec.nonResourceAttributes: Invalid value: {\"Path\":\"/x\",\"Verb\":\"\"}: cannot be specified in combination with resourceAttributes, metadata: Invalid value: {\"name\":\"x\",\"managedFields\":[]}: must be empty]"
    );
    let nobody = json!({"spec": {"resourceAttributes": {"verb": "get"}}});
    assert_eq!(
        message(subject_access_review(nobody, &policy)),
        ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": at least one of user or group must be specified"
    );
    let elsewhere = json!({"spec": {"user": "a", "resourceAttributes": {"verb": "get"}}});
    assert_eq!(
        message(local_subject_access_review(elsewhere, "default", &policy)),
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid value: \"\": must match metadata.namespace"
    );
}

#[test]
fn rules_review() {
    let (policy, alice) = (policy(), alice());
    let refusal = self_subject_rules_review(&json!({"spec": {}}), &alice, &policy).unwrap_err();
    assert_eq!(refusal.message, "no namespace on request");
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": "x"}});
    let review = self_subject_rules_review(&body, &alice, &policy).unwrap();
    assert_eq!(review["spec"], json!({}));
    assert_eq!(
        review["status"]["resourceRules"].as_array().unwrap().len(),
        4
    );
    assert_eq!(
        review["status"]["nonResourceRules"],
        json!([{"verbs": ["get"], "nonResourceURLs": ["/metrics", "/healthz/*"]}])
    );
}
