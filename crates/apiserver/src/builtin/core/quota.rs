//! Resource quotas: stored and judged, not enforced.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::builtin::cells;
use crate::builtin::checks::{child, invalid_texts};
use crate::builtin::names;
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value;

/// The rules of resource quotas.
pub const RULES: Rules = Rules {
    status: true,
    validate: |object, _| validate(object),
    validate_update,
    warnings,
    columns: &[
        ("Name", "string", 0),
        ("Request", "string", 0),
        ("Limit", "string", 0),
        ("Age", "string", 0),
    ],
    cells,
    ..PLAIN
};

const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const MEASURED: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}

fn is_quota_resource(name: &str) -> bool {
    COUNTED.contains(&name) || MEASURED.contains(&name) || is_huge_page(name)
}

/// The name of a resource anywhere: one that Kubernetes knows, or a qualified one.
pub(super) fn resource_name(path: &str, name: &str) -> FieldErrors {
    let errors = invalid_texts(path, name, names::label_key(name));
    if errors.is_empty() && !name.contains('/') && !is_quota_resource(name) && name != "storage" {
        let detail = "must be a standard resource type or fully qualified";
        return vec![FieldError::invalid_str(path, name, detail)];
    }
    errors
}

fn quota_name(path: &str, name: &str) -> FieldErrors {
    let mut errors = resource_name(path, name);
    if !name.contains('/') && !is_quota_resource(name) {
        let detail = "must be a standard resource for quota";
        errors.push(FieldError::invalid_str(path, name, detail));
    }
    errors
}

/// An amount of `name`: not negative, and whole where the resource is counted.
pub(super) fn quantity_value(path: &str, name: &str, quantity: &Value) -> FieldErrors {
    let Ok(amount) = Quantity::from_value(quantity) else {
        return Vec::new();
    };
    let shown: Value = amount.to_string().into();
    let mut errors = Vec::new();
    if amount.sign().is_lt() {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, &shown, detail));
    }
    let extended =
        name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.");
    if (COUNTED.contains(&name) || extended) && !amount.is_whole() {
        errors.push(FieldError::invalid(path, &shown, "must be an integer"));
    }
    errors
}

fn amounts(object: &Value, path: &str) -> FieldErrors {
    let mut errors = Vec::new();
    for (name, quantity) in value::map(object, path).into_iter().flatten() {
        let at = format!("{path}[{name}]");
        errors.extend(quota_name(&at, name));
        errors.extend(quantity_value(&at, name, quantity));
    }
    errors
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = amounts(object, "spec.hard");
    errors.extend(scopes(object));
    errors.extend(scope_selector(object));
    errors
}

/// Whether a quota with this scope can count this resource.
fn fits(scope: &str, resource: &str) -> bool {
    let computed = [
        "cpu",
        "memory",
        "limits.cpu",
        "limits.memory",
        "requests.cpu",
        "requests.memory",
    ];
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            ["persistentvolumeclaims", "requests.storage"].contains(&resource)
        }
        _ if SCOPES.contains(&scope) => resource == "pods" || computed.contains(&resource),
        _ => true,
    }
}

fn misfits<'a>(object: &'a Value, scope: &'a str) -> impl Iterator<Item = &'a String> {
    value::map(object, "spec.hard")
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .filter(move |name| is_quota_resource(name) && !fits(scope, name))
}

fn conflicts(scopes: &BTreeSet<&str>) -> usize {
    [
        ("BestEffort", "NotBestEffort"),
        ("Terminating", "NotTerminating"),
    ]
    .iter()
    .filter(|(a, b)| scopes.contains(a) && scopes.contains(b))
    .count()
}

fn scopes(object: &Value) -> FieldErrors {
    let path = "spec.scopes";
    let shown = value::at(object, path).unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    let all: BTreeSet<&str> = cells::strings(object, path).collect();
    for scope in cells::strings(object, path) {
        if !SCOPES.contains(&scope) {
            errors.push(FieldError::invalid(path, shown, "unsupported scope"));
        }
        for _ in misfits(object, scope) {
            let detail = "unsupported scope applied to resource";
            errors.push(FieldError::invalid(path, shown, detail));
        }
    }
    let clash = FieldError::invalid(path, shown, "conflicting scopes");
    errors.extend(vec![clash; conflicts(&all)]);
    errors
}

fn scope_selector(object: &Value) -> FieldErrors {
    let path = "spec.scopeSelector.matchExpressions";
    let mut errors = Vec::new();
    for requirement in value::items(object, path) {
        let (scope, operator) = (
            value::text(requirement, "scopeName"),
            value::text(requirement, "operator"),
        );
        if !SCOPES.contains(&scope) {
            let path = child(path, "scopeName");
            errors.push(FieldError::invalid_str(path, scope, "unsupported scope"));
        }
        let plain = !["PriorityClass", "VolumeAttributesClass"].contains(&scope);
        if plain && SCOPES.contains(&scope) && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            let path = child(path, "operator");
            errors.push(FieldError::invalid_str(path, operator, detail));
        }
        let values = value::items(requirement, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(child(path, "values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                let path = child(path, "values");
                errors.push(FieldError::invalid(path, &values.to_vec().into(), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => (),
            other => {
                let path = child(path, "operator");
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid_typed(path, other, detail));
            }
        }
    }
    errors
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    if part == Part::Status {
        let mut errors = amounts(object, "status.hard");
        errors.extend(amounts(object, "status.used"));
        return errors;
    }
    let mut errors = validate(object);
    let path = "spec.scopes";
    let scopes = |o| cells::strings(o, path).collect::<BTreeSet<&str>>();
    if scopes(object) != scopes(old) {
        let shown = value::at(object, path).unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(path, shown, "field is immutable"));
    }
    errors
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let amount = |name: &str| {
        let hard = value::map(object, "spec.hard")?;
        Quantity::from_value(hard.get(name)?).ok()
    };
    let mut out = Vec::new();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut request_name = format!("requests.{resource}");
        let mut request = amount(&request_name);
        if request.is_none() && ["cpu", "memory"].contains(&resource) {
            request = amount(resource);
            resource.clone_into(&mut request_name);
        }
        let limit_name = format!("limits.{resource}");
        if let (Some(request), Some(limit)) = (request, amount(&limit_name))
            && request > limit
        {
            out.push(format!(
                "ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})"
            ));
        }
    }
    out
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in value::map(object, "status.hard").into_iter().flatten() {
        let used = value::map(object, "status.used").and_then(|used| used.get(name));
        let show = |q: Option<&Value>| match q.map(Quantity::from_value) {
            Some(Ok(amount)) => amount.to_string(),
            _ => "0".to_owned(),
        };
        let text = format!("{name}: {}/{}", show(used), show(Some(hard)));
        if name.starts_with("limits.") {
            limits.push(text);
        } else {
            requests.push(text);
        }
    }
    vec![
        cells::name(object),
        requests.join(", ").into(),
        limits.join(", ").into(),
        cells::age(object, cx),
    ]
}
