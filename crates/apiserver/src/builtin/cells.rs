//! Cells that many tables share: names, ages, counts, labels, lists cut short.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::resource::Context;
use crate::selector::LabelSelector;
use crate::table;
use crate::value;

/// The object's name.
pub fn name(object: &Value) -> Value {
    value::text(object, "metadata.name").into()
}

/// The time since `metadata.creationTimestamp`.
pub fn age(object: &Value, cx: &Context<'_>) -> Value {
    since(object, "metadata.creationTimestamp", cx).into()
}

/// The time since the timestamp at `path`; `<unknown>` if there is none.
pub fn since(object: &Value, path: &str, cx: &Context<'_>) -> String {
    match value::text(object, path).parse::<Timestamp>() {
        Ok(then) => table::age(then, cx.now),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// The text at `path`, or `otherwise` where there is none.
pub fn text_or(object: &Value, path: &str, otherwise: &str) -> Value {
    match value::text(object, path) {
        "" => otherwise.into(),
        text => text.into(),
    }
}

/// How many entries the map or list at `path` has.
pub fn count(object: &Value, path: &str) -> i64 {
    let entries = match value::at(object, path) {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(items)) => items.len(),
        _ => 0,
    };
    i64::try_from(entries).unwrap_or(i64::MAX)
}

/// A map of labels as `a=b,c=d`; `<none>` if empty.
pub fn labels(object: &Value, path: &str) -> String {
    let pairs: Vec<String> = value::map(object, path)
        .into_iter()
        .flatten()
        .map(|(key, label)| format!("{key}={}", label.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() {
        "<none>".to_owned()
    } else {
        pairs.join(",")
    }
}

/// A `metav1.LabelSelector` as text: `a=b,c in (d,e)`; `<none>` if empty.
pub fn selector(object: &Value, path: &str) -> String {
    match LabelSelector::from_object(value::at(object, path)) {
        Ok(selector) if selector.requirements().is_empty() => "<none>".to_owned(),
        Ok(selector) => selector.to_string(),
        Err(_) => "<error>".to_owned(),
    }
}

/// The texts in the list at `path`.
pub fn strings<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a str> {
    value::items(object, path).iter().filter_map(Value::as_str)
}

/// At most three of `all`, and how many more there are.
pub fn first_three(all: &[String]) -> String {
    let shown: Vec<&str> = all.iter().take(3).map(String::as_str).collect();
    let shown = shown.join(",");
    if all.len() > 3 {
        format!("{shown} + {} more...", all.len() - 3)
    } else {
        shown
    }
}

/// The addresses of a load balancer's status, sorted. The server always answers as for `-o wide`,
/// so that nothing is cut.
pub fn load_balancer(object: &Value) -> String {
    let mut addresses = BTreeSet::new();
    for ingress in value::items(object, "status.loadBalancer.ingress") {
        let (ip, host) = (value::text(ingress, "ip"), value::text(ingress, "hostname"));
        if !ip.is_empty() {
            addresses.insert(ip);
        } else if !host.is_empty() {
            addresses.insert(host);
        }
    }
    Vec::from_iter(addresses).join(",")
}

/// The names and the images of the containers of the pod spec at `path`, each joined by commas.
pub fn containers(object: &Value, path: &str) -> (String, String) {
    let all = value::items(object, &format!("{path}.containers"));
    let joined = |field: &str| {
        let texts: Vec<&str> = all.iter().map(|c| value::text(c, field)).collect();
        texts.join(",")
    };
    (joined("name"), joined("image"))
}
