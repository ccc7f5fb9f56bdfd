//! The quality-of-service class of a pod, which the server works out once, on create.

use std::collections::BTreeMap;

use serde_json::Value;

use super::amount;
use crate::builtin::quantity::Quantity;
use crate::value::{has, items, map};

type Amounts = BTreeMap<&'static str, Quantity>;

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub fn class(spec: &Value) -> &'static str {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut guaranteed = true;
    if has(spec, "resources") {
        add(&mut requests, spec, "resources.requests");
        let found = add(&mut limits, spec, "resources.limits");
        if map(spec, "resources.limits").is_some_and(|l| !l.is_empty()) {
            guaranteed = found == 2;
        }
    } else {
        let all = items(spec, "containers")
            .iter()
            .chain(items(spec, "initContainers"));
        for container in all {
            add(&mut requests, container, "resources.requests");
            guaranteed &= add(&mut limits, container, "resources.limits") == 2;
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds what stands at `path` for processor and memory; gives how many of the two are there.
fn add(sums: &mut Amounts, object: &Value, path: &str) -> usize {
    let mut found = 0;
    for name in ["cpu", "memory"] {
        let value = map(object, path).and_then(|m| m.get(name));
        if let Some(value) = value.filter(|v| amount::is_positive(v)) {
            let sum = sums.entry(name).or_insert(Quantity::ZERO);
            *sum = sum.plus(&amount::of(value));
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn classes() {
        let pod = |resources: Value| json!({"containers": [{"resources": resources}]});
        assert_eq!(class(&pod(json!({}))), "BestEffort");
        assert_eq!(class(&pod(json!({"requests": {"cpu": "1"}}))), "Burstable");
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(
            class(&pod(
                json!({"limits": both, "requests": {"cpu": "1000m", "memory": "1024Mi"}})
            )),
            "Guaranteed"
        );
        assert_eq!(
            class(&pod(
                json!({"limits": both, "requests": {"cpu": "500m", "memory": "1Gi"}})
            )),
            "Burstable"
        );
    }
}
