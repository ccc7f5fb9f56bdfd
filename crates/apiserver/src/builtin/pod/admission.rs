//! What the admission plugins that are always on do to pods: default tolerations and priority.

use serde_json::{Value, json};

use crate::value::{copy, has, integer, items, put, put_default, slot, text};

/// Adds the two tolerations that keep a pod on a failing node for five minutes.
pub(super) fn tolerate(pod: &mut Value) {
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerated = items(pod, "spec.tolerations").iter().any(|t| {
            (text(t, "key") == key || text(t, "key").is_empty())
                && matches!(text(t, "effect"), "NoExecute" | "")
        });
        if tolerated {
            continue;
        }
        let toleration = json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
        match slot(pod, "spec.tolerations") {
            Some(Value::Array(list)) => list.push(toleration),
            Some(other) => *other = json!([toleration]),
            None => {}
        }
    }
}

/// Sets priority and preemption policy where nothing set them: from the two system classes, else the default.
pub(super) fn prioritise(pod: &mut Value) {
    let value = match text(pod, "spec.priorityClassName") {
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        _ => 0,
    };
    put_default(pod, "spec.priority", value);
    put_default(pod, "spec.preemptionPolicy", "PreemptLowerPriority");
}

/// Sets priority and preemption policy of a new pod from its class, to be called before the strategy prepares it.
/// `class` is the `PriorityClass` the pod names, or else the one that is the global default, if any.
///
/// The error is why the pod is refused, for a 403.
pub fn set_priority(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let named = text(pod, "spec.priorityClassName").to_owned();
    if !named.is_empty() && class.is_none() {
        return Err(format!("no PriorityClass with name {named} was found"));
    }
    let value = class.and_then(|c| integer(c, "value")).unwrap_or(0);
    let policy = class
        .map(|c| text(c, "preemptionPolicy"))
        .filter(|p| !p.is_empty())
        .unwrap_or("PreemptLowerPriority");
    if let Some(class) = class.filter(|_| named.is_empty()) {
        put(pod, "spec.priorityClassName", text(class, "metadata.name"));
    }
    if let Some(given) = integer(pod, "spec.priority").filter(|p| *p != value) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        ));
    }
    put(pod, "spec.priority", value);
    let given = text(pod, "spec.preemptionPolicy");
    if !given.is_empty() && given != policy {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        ));
    }
    put(pod, "spec.preemptionPolicy", policy);
    Ok(())
}

/// Puts back what an update left out and only admission can set.
pub(super) fn keep(pod: &mut Value, old: &Value) {
    for field in ["spec.priority", "spec.preemptionPolicy"] {
        if !has(pod, field) {
            copy(pod, old, field);
        }
    }
}
