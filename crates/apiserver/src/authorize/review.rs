//! The access reviews: may I, may they, what may I.

use serde_json::{Map, Value, json};

use super::{Attributes, Decision, Policy, Step, aggregate_texts, missing_role};
use crate::authenticate::{MASTERS, User};
use crate::field::{self, Fault, FieldError, FieldErrors};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::{Outcome, Status};
use crate::value;

const GROUP: &str = "authorization.k8s.io";

/// Answers a `SelfSubjectAccessReview`: `body` with its status.
pub fn self_subject_access_review(mut body: Value, user: &User, policy: &Policy) -> Outcome<Value> {
    let mut errors = attribute_errors(&body);
    errors.extend(selector_errors(&body));
    errors.extend(metadata_errors(&body, &[], "must be empty"));
    refuse(&errors)?;
    let decision = ask(&body, user, policy);
    let status = answer(&body, &decision);
    value::put(&mut body, "status", status);
    Ok(body)
}

/// Answers a `SubjectAccessReview`: `body` with its status.
pub fn subject_access_review(mut body: Value, policy: &Policy) -> Outcome<Value> {
    let mut errors = subject_errors(&body);
    errors.extend(metadata_errors(&body, &[], "must be empty"));
    refuse(&errors)?;
    let decision = ask(&body, &subject(&body), policy);
    let status = answer(&body, &decision);
    value::put(&mut body, "status", status);
    Ok(body)
}

/// Answers a `LocalSubjectAccessReview` in `namespace`: `body` with its status.
pub fn local_subject_access_review(
    mut body: Value,
    namespace: &str,
    policy: &Policy,
) -> Outcome<Value> {
    let mut errors = subject_errors(&body);
    let rest = "must be empty except for namespace";
    errors.extend(metadata_errors(&body, &["namespace"], rest));
    // The request's namespace fills in for a missing one only in the metadata.
    let own = match value::text(&body, "metadata.namespace") {
        "" => namespace,
        own => own,
    }
    .to_owned();
    let path = "spec.resourceAttributes.namespace";
    let asked = value::text(&body, path);
    if value::has(&body, "spec.resourceAttributes") && asked != own {
        let why = "must match metadata.namespace";
        errors.push(FieldError::invalid_str(path, asked, why));
    }
    if let Some(attributes) = non_resource(&body) {
        let path = "spec.nonResourceAttributes";
        let why = "disallowed on this kind of request";
        errors.push(FieldError::invalid(path, &attributes, why));
    }
    refuse(&errors)?;
    let decision = ask(&body, &subject(&body), policy);
    value::put(&mut body, "metadata.namespace", own);
    let status = answer(&body, &decision);
    value::put(&mut body, "status", status);
    Ok(body)
}

/// Answers a `SelfSubjectRulesReview` in the API version of `body`.
pub fn self_subject_rules_review(body: &Value, user: &User, policy: &Policy) -> Outcome<Value> {
    let namespace = value::text(body, "spec.namespace");
    if namespace.is_empty() {
        return Err(Box::new(Status::bad_request("no namespace on request")));
    }
    let (mut resources, mut paths, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for step in policy.steps(user, namespace) {
        match step {
            Step::Rule { rule, .. } => {
                resources.extend(rule.resource_rule());
                paths.extend(rule.path_rule());
            }
            Step::Missing { kind, name } => missing.push(missing_role(kind, name)),
        }
    }
    // A real cluster binds this group to `cluster-admin`; a bare one shows the same.
    if resources.is_empty() && user.belongs_to(MASTERS) {
        resources.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        paths.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    let mut status = json!({
        "resourceRules": resources,
        "nonResourceRules": paths,
        "incomplete": false,
    });
    if !missing.is_empty() {
        value::put(&mut status, "evaluationError", aggregate_texts(&missing));
    }
    Ok(json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": value::text(body, "apiVersion"),
        "metadata": {},
        "spec": {},
        "status": status,
    }))
}

fn ask(body: &Value, user: &User, policy: &Policy) -> Decision {
    let at = |part: &str, field: &str| value::text(body, &format!("spec.{part}.{field}"));
    if value::has(body, "spec.resourceAttributes") {
        let text = |field: &str| at("resourceAttributes", field);
        policy.decide(&Attributes {
            user,
            verb: text("verb"),
            group: text("group"),
            version: text("version"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
            path: None,
        })
    } else {
        let text = |field: &str| at("nonResourceAttributes", field);
        policy.decide(&Attributes::path(user, text("verb"), text("path")))
    }
}

fn answer(body: &Value, decision: &Decision) -> Value {
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        value::put(&mut status, "reason", decision.reason.clone());
    }
    // RBAC does not look at selectors, but the real server reads them.
    let raw = |part: &str| {
        let path = format!("spec.resourceAttributes.{part}.rawSelector");
        value::text(body, &path)
    };
    let mut errors = Vec::new();
    if FieldSelector::parse(raw("fieldSelector")).is_err() {
        errors.push("spec.resourceAttributes.fieldSelector ignored due to parse error");
    }
    if LabelSelector::parse(raw("labelSelector")).is_err() {
        errors.push("spec.resourceAttributes.labelSelector ignored due to parse error");
    }
    if !errors.is_empty() {
        value::put(&mut status, "evaluationError", errors.join("; "));
    }
    status
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn subject(body: &Value) -> User {
    let groups = value::at(body, "spec.groups").map(texts);
    let extra = value::map(body, "spec.extra").into_iter().flatten();
    User {
        name: value::text(body, "spec.user").to_owned(),
        uid: value::text(body, "spec.uid").to_owned(),
        groups: groups.unwrap_or_default(),
        extra: extra.map(|(k, v)| (k.clone(), texts(v))).collect(),
    }
}

fn refuse(errors: &[FieldError]) -> Outcome<()> {
    if errors.is_empty() {
        return Ok(());
    }
    // The real server has lost the kind when it writes this.
    Err(Box::new(field::invalid(GROUP, "", "", errors)))
}

/// The attributes as the internal Go type shows them.
fn non_resource(body: &Value) -> Option<Value> {
    value::has(body, "spec.nonResourceAttributes").then(|| {
        let text = |field: &str| value::text(body, &format!("spec.nonResourceAttributes.{field}"));
        json!({"Path": text("path"), "Verb": text("verb")})
    })
}

fn attribute_errors(body: &Value) -> FieldErrors {
    let resource = value::has(body, "spec.resourceAttributes");
    match (resource, non_resource(body)) {
        (true, Some(attributes)) => {
            let path = "spec.nonResourceAttributes";
            let why = "cannot be specified in combination with resourceAttributes";
            vec![FieldError::invalid(path, &attributes, why)]
        }
        (false, None) => {
            let path = "spec.resourceAttributes";
            let why =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![FieldError::invalid(path, &Value::Null, why)]
        }
        _ => Vec::new(),
    }
}

fn subject_errors(body: &Value) -> FieldErrors {
    let mut errors = attribute_errors(body);
    let user = value::text(body, "spec.user");
    if user.is_empty() && value::items(body, "spec.groups").is_empty() {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid_str("spec.user", "", why));
    }
    errors.extend(selector_errors(body));
    errors
}

fn selector_errors(body: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    for part in ["fieldSelector", "labelSelector"] {
        let path = format!("spec.resourceAttributes.{part}");
        if !value::has(body, &path) {
            continue;
        }
        let raw = value::text(body, &format!("{path}.rawSelector"));
        let requirements = value::items(body, &format!("{path}.requirements"));
        if !raw.is_empty() && !requirements.is_empty() {
            let why = "may not specified at the same time as requirements";
            let at = format!("{path}.rawSelector");
            errors.push(FieldError::invalid_str(at, raw, why));
        }
        if raw.is_empty() && requirements.is_empty() {
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            let at = format!("{path}.requirements");
            errors.push(FieldError::required(at, why));
        }
        for (index, requirement) in requirements.iter().enumerate() {
            let at = format!("{path}.requirements[{index}].values");
            let empty = value::items(requirement, "values").is_empty();
            match value::text(requirement, "operator") {
                "In" | "NotIn" if empty => {
                    let why = "must be specified when `operator` is 'In' or 'NotIn'";
                    errors.push(FieldError::required(at, why));
                }
                "Exists" | "DoesNotExist" if !empty => {
                    let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    errors.push(FieldError::forbidden(at, why));
                }
                _ => {}
            }
        }
    }
    errors
}

fn metadata_errors(body: &Value, allowed: &[&str], why: &str) -> FieldErrors {
    let empty = Map::new();
    let metadata = value::map(body, "metadata").unwrap_or(&empty);
    let surplus = metadata.iter().any(|(field, content)| {
        field != "managedFields" && !allowed.contains(&field.as_str()) && !content.is_null()
    });
    if !surplus {
        return Vec::new();
    }
    vec![FieldError {
        fault: Fault::Invalid,
        path: "metadata".to_owned(),
        shown: show_metadata(metadata),
        detail: why.to_owned(),
    }]
}

/// Metadata in the order of the Go struct, in which the real server shows it.
fn show_metadata(metadata: &Map<String, Value>) -> String {
    const ORDER: [&str; 14] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
    ];
    let place = |field: &str| ORDER.iter().position(|o| *o == field);
    let mut fields: Vec<(&String, &Value)> = metadata.iter().collect();
    fields.sort_by_key(|(field, _)| place(field).unwrap_or(ORDER.len()));
    let shown: Vec<String> = fields
        .iter()
        .map(|(field, content)| format!("{}:{content}", json!(field)))
        .collect();
    format!("{{{}}}", shown.join(","))
}
