//! Resource quantities as workload rules use them: compared, summed and rounded.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::builtin::quantity::Quantity;
use crate::value::{at_mut, items, map, text};

/// The amount; what is no quantity counts as nothing.
pub(crate) fn of(value: &Value) -> Quantity {
    Quantity::from_value(value).unwrap_or(Quantity::ZERO)
}

/// Whether the amount is below nothing.
pub(crate) fn is_negative(value: &Value) -> bool {
    of(value).sign() == Ordering::Less
}

/// Whether the amount is above nothing.
pub(crate) fn is_positive(value: &Value) -> bool {
    of(value).sign() == Ordering::Greater
}

/// The amount as messages show it.
pub(crate) fn shown(value: &Value) -> String {
    of(value).to_string()
}

/// Whether the amount is a whole number.
pub(crate) fn is_whole(value: &Value) -> bool {
    of(value).is_whole()
}

/// Rounds amounts finer than a thousandth up to it, as the real server does on reading.
pub(crate) fn round_up_list(object: &mut Value, path: &str) {
    let list = at_mut(object, path).and_then(Value::as_object_mut);
    for value in list.into_iter().flat_map(|list| list.values_mut()) {
        let amount = of(value);
        let rounded = amount.in_millis();
        if rounded != amount {
            *value = Value::String(rounded.to_string());
        }
    }
}

/// What the containers of a pod request together: sums, or the largest init container where that is more.
pub(crate) fn container_requests(spec: &Value) -> BTreeMap<String, Quantity> {
    let mut sums = Sums::default();
    for container in items(spec, "containers") {
        sums.add(container);
    }
    let mut sidecars = Sums::default();
    let mut peaks: BTreeMap<String, Quantity> = BTreeMap::new();
    for container in items(spec, "initContainers") {
        if text(container, "restartPolicy") == "Always" {
            sums.add(container);
            sidecars.add(container);
            continue;
        }
        for (name, value) in map(container, "resources.requests").into_iter().flatten() {
            let with_sidecars = of(value).plus(&sidecars.get(name));
            let peak = peaks.entry(name.clone()).or_insert(Quantity::ZERO);
            if with_sidecars > *peak {
                *peak = with_sidecars;
            }
        }
    }
    for (name, peak) in peaks {
        if peak > sums.get(&name) {
            sums.0.insert(name, peak);
        }
    }
    sums.0
}

#[derive(Debug, Default)]
struct Sums(BTreeMap<String, Quantity>);

impl Sums {
    fn get(&self, name: &str) -> Quantity {
        self.0.get(name).cloned().unwrap_or(Quantity::ZERO)
    }

    fn add(&mut self, container: &Value) {
        for (name, value) in map(container, "resources.requests").into_iter().flatten() {
            let sum = self.get(name).plus(&of(value));
            self.0.insert(name.clone(), sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_take_the_larger_of_running_and_starting() {
        let request = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut starting = request("3");
        let spec =
            json!({"containers": [request("500m"), request("1")], "initContainers": [starting]});
        assert_eq!(
            container_requests(&spec)
                .get("cpu")
                .map(ToString::to_string),
            Some("3".to_owned())
        );
        starting = request("1");
        let spec =
            json!({"containers": [request("500m"), request("1")], "initContainers": [starting]});
        assert_eq!(
            container_requests(&spec)
                .get("cpu")
                .map(ToString::to_string),
            Some("1500m".to_owned())
        );
    }
}
