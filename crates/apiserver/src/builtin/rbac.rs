//! The `rbac.authorization.k8s.io` kinds. Whether somebody may grant what a role holds is [`crate::authorize`]'s
//! business.

use std::sync::Arc;

use serde_json::Value;

use super::cells;
use super::checks::{self, child, each, invalid_texts};
use super::describe::resource;
use super::names;
use super::rules::{CREATED_AT, PLAIN, Rules};
use crate::field::{Fault, FieldError, FieldErrors, quote};
use crate::resource::{Context, Derived, Resource};
use crate::selector::LabelSelector;
use crate::value;

const GROUP: &str = "rbac.authorization.k8s.io";

const ROLE: Rules = Rules {
    validate: |object, _| policy_rules(object, true),
    validate_update: |_, object, _, _| policy_rules(object, true),
    name: names::path_segment,
    derived: Derived::Policy,
    create_on_update: true,
    ..CREATED_AT
};

const CLUSTER_ROLE: Rules = Rules {
    validate: |object, _| cluster_role(object),
    validate_update: |_, object, _, _| cluster_role(object),
    ..ROLE
};

const ROLE_BINDING: Rules = Rules {
    default: default_binding,
    validate: |object, _| binding(object, true),
    validate_update: |_, object, old, _| binding_update(object, old, true),
    name: names::path_segment,
    derived: Derived::Policy,
    create_on_update: true,
    columns: &[
        ("Name", "string", 0),
        ("Role", "string", 0),
        ("Age", "string", 0),
        ("Users", "string", 1),
        ("Groups", "string", 1),
        ("ServiceAccounts", "string", 1),
    ],
    cells: binding_cells,
    ..PLAIN
};

const CLUSTER_ROLE_BINDING: Rules = Rules {
    validate: |object, _| binding(object, false),
    validate_update: |_, object, old, _| binding_update(object, old, false),
    ..ROLE_BINDING
};

fn policy_rules(object: &Value, namespaced: bool) -> FieldErrors {
    let mut errors = Vec::new();
    for (at, rule) in each(object, "", "rules") {
        let is_empty = |list: &str| value::items(rule, list).is_empty();
        let mut require = |list: &str, detail: &str| {
            if is_empty(list) {
                errors.push(FieldError::required(child(&at, list), detail));
            }
        };
        require("verbs", "verbs must contain at least one value");
        if is_empty("nonResourceURLs") {
            require(
                "apiGroups",
                "resource rules must supply at least one api group",
            );
            require(
                "resources",
                "resource rules must supply at least one resource",
            );
            continue;
        }
        let urls = value::at(rule, "nonResourceURLs").unwrap_or(&Value::Null);
        let mut refuse = |detail: &str| {
            let path = child(&at, "nonResourceURLs");
            errors.push(FieldError::invalid(path, urls, detail));
        };
        if namespaced {
            refuse("namespaced rules cannot apply to non-resource URLs");
        }
        if ["apiGroups", "resources", "resourceNames"]
            .into_iter()
            .any(|list| !is_empty(list))
        {
            refuse("rules cannot apply to both regular resources and non-resource URLs");
        }
    }
    errors
}

fn cluster_role(object: &Value) -> FieldErrors {
    let mut errors = policy_rules(object, false);
    if !value::has(object, "aggregationRule") {
        return errors;
    }
    let path = "aggregationRule.clusterRoleSelectors";
    if value::items(object, path).is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(path, detail));
    }
    for (at, selector) in each(object, "", path) {
        errors.extend(checks::label_selector(&at, Some(selector)));
        if LabelSelector::from_object(Some(selector)).is_err() {
            let detail = "invalid label selector.";
            errors.push(FieldError::invalid(at, &Value::Null, detail));
        }
    }
    errors
}

fn default_binding(object: &mut Value) {
    if value::text(object, "roleRef.apiGroup").is_empty() {
        value::put(object, "roleRef.apiGroup", GROUP);
    }
    for subject in value::items_mut(object, "subjects") {
        let people = ["User", "Group"].contains(&value::text(subject, "kind"));
        if people && value::text(subject, "apiGroup").is_empty() {
            value::put(subject, "apiGroup", GROUP);
        }
    }
}

fn binding(object: &Value, namespaced: bool) -> FieldErrors {
    let mut errors = Vec::new();
    let refer = |field: &str| value::text(object, &format!("roleRef.{field}"));
    let unsupported = |path: &str, text: &str, supported: &[&str]| {
        FieldError::not_supported_text(path, &text.into(), supported)
    };
    if refer("apiGroup") != GROUP {
        errors.push(unsupported("roleRef.apiGroup", refer("apiGroup"), &[GROUP]));
    }
    let kinds: &[&str] = if namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.contains(&refer("kind")) {
        errors.push(unsupported("roleRef.kind", refer("kind"), kinds));
    }
    let name = refer("name");
    if name.is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    } else {
        let wrong = names::path_segment(name, false);
        errors.extend(invalid_texts("roleRef.name", name, wrong));
    }
    for (at, subject) in each(object, "", "subjects") {
        errors.extend(validate_subject(&at, subject, namespaced));
    }
    errors
}

fn validate_subject(at: &str, subject: &Value, namespaced: bool) -> FieldErrors {
    let mut errors = Vec::new();
    let name = value::text(subject, "name");
    let group = value::text(subject, "apiGroup");
    if name.is_empty() {
        errors.push(FieldError::required(child(at, "name"), ""));
    }
    let wrong_group = |wanted: &str| {
        FieldError::not_supported_text(child(at, "apiGroup"), &group.into(), &[wanted])
    };
    match value::text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let wrong = names::subdomain(name);
                errors.extend(invalid_texts(&child(at, "name"), name, wrong));
            }
            if !group.is_empty() {
                errors.push(wrong_group(""));
            }
            if !namespaced && value::text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(child(at, "namespace"), ""));
            }
        }
        "User" | "Group" if group != GROUP => errors.push(wrong_group(GROUP)),
        "User" | "Group" => (),
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            let path = child(at, "kind");
            errors.push(FieldError::not_supported_text(path, &other.into(), &kinds));
        }
    }
    errors
}

fn binding_update(object: &Value, old: &Value, namespaced: bool) -> FieldErrors {
    let mut errors = binding(object, namespaced);
    let fields = ["apiGroup", "kind", "name"].map(|field| format!("roleRef.{field}"));
    if fields
        .iter()
        .any(|path| value::text(object, path) != value::text(old, path))
    {
        let [group, kind, name] = fields.map(|path| quote(value::text(object, &path)));
        errors.push(FieldError {
            fault: Fault::Invalid,
            path: "roleRef".to_owned(),
            shown: format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}"),
            detail: "cannot change roleRef".to_owned(),
        });
    }
    errors
}

fn binding_cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let of_kind = |kind: &str| {
        let names: Vec<String> = value::items(object, "subjects")
            .iter()
            .filter(|s| value::text(s, "kind") == kind)
            .map(|s| match kind {
                "ServiceAccount" => {
                    format!("{}/{}", value::text(s, "namespace"), value::text(s, "name"))
                }
                _ => value::text(s, "name").to_owned(),
            })
            .collect();
        Value::from(names.join(", "))
    };
    let role = format!(
        "{}/{}",
        value::text(object, "roleRef.kind"),
        value::text(object, "roleRef.name")
    );
    vec![
        cells::name(object),
        role.into(),
        cells::age(object, cx),
        of_kind("User"),
        of_kind("Group"),
        of_kind("ServiceAccount"),
    ]
}

/// The rules of an aggregated cluster role: those of the roles among `all` that it selects, by name, each once. A
/// controller keeps them current in a real cluster.
pub fn aggregate(role: &Value, all: &[Value]) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    let own = value::text(role, "metadata.name");
    for selector in value::items(role, "aggregationRule.clusterRoleSelectors") {
        let Ok(selector) = LabelSelector::from_object(Some(selector)) else {
            continue;
        };
        let mut chosen: Vec<&Value> = all
            .iter()
            .filter(|other| value::text(other, "metadata.name") != own)
            .filter(|other| selector.matches_object(other))
            .collect();
        chosen.sort_by_key(|other| value::text(other, "metadata.name"));
        for rule in chosen
            .into_iter()
            .flat_map(|other| value::items(other, "rules"))
        {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let kind = |kind: &str, plural: &str, rules: Rules| {
        resource(GROUP, "v1", kind, plural, Arc::new(rules))
    };
    vec![
        kind(
            "ClusterRoleBinding",
            "clusterrolebindings",
            CLUSTER_ROLE_BINDING,
        )
        .cluster_scoped()
        .build(),
        kind("ClusterRole", "clusterroles", CLUSTER_ROLE)
            .cluster_scoped()
            .build(),
        kind("RoleBinding", "rolebindings", ROLE_BINDING).build(),
        kind("Role", "roles", ROLE).build(),
    ]
}

#[cfg(test)]
mod tests;
