//! Resource quantities as workload rules use them: compared, summed and rounded.
//!
//! Amounts are counted in billionths, which holds every quantity the API accepts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::value::{at_mut, items, map, text};

const UNIT: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;

/// The amount in billionths; absent or unreadable counts as nothing.
pub(crate) fn of(value: &Value) -> i128 {
    match value {
        Value::String(text) => parse(text).unwrap_or(0),
        Value::Number(number) => parse(&number.to_string()).unwrap_or(0),
        _ => 0,
    }
}

/// The amount as messages show it.
pub(crate) fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether the amount is a whole number.
pub(crate) fn is_whole(value: &Value) -> bool {
    of(value) % UNIT == 0
}

fn parse(text: &str) -> Option<i128> {
    let number_end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '+' || c == '-'))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(number_end)?;
    let negative = number.starts_with('-');
    let digits = number.trim_start_matches(['+', '-']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut value: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    value = value.checked_mul(UNIT)?;
    let mut place = UNIT;
    for digit in fraction.chars().take(9) {
        place /= 10;
        value = value.checked_add(i128::from(digit.to_digit(10)?) * place)?;
    }
    let scaled = scale(value, suffix)?;
    Some(if negative { -scaled } else { scaled })
}

fn scale(value: i128, suffix: &str) -> Option<i128> {
    let power = |base: i128, exponent: u32| base.checked_pow(exponent);
    let factor = match suffix {
        "n" => return Some(value / UNIT),
        "u" => return Some(value / MILLI),
        "m" => return Some(value / 1000),
        "" => 1,
        "k" => 1000,
        "M" => power(1000, 2)?,
        "G" => power(1000, 3)?,
        "T" => power(1000, 4)?,
        "P" => power(1000, 5)?,
        "E" => power(1000, 6)?,
        "Ki" => 1024,
        "Mi" => power(1024, 2)?,
        "Gi" => power(1024, 3)?,
        "Ti" => power(1024, 4)?,
        "Pi" => power(1024, 5)?,
        "Ei" => power(1024, 6)?,
        other => {
            let exponent: i32 = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = power(10, exponent.unsigned_abs())?;
            return if exponent < 0 {
                Some(value / size)
            } else {
                value.checked_mul(size)
            };
        }
    };
    value.checked_mul(factor)
}

/// A sum in the shortest plain form.
fn render(amount: i128) -> String {
    if amount % UNIT != 0 {
        return format!("{}m", (amount + MILLI - 1).div_euclid(MILLI));
    }
    let mut whole = amount / UNIT;
    for suffix in ["", "Ki", "Mi", "Gi", "Ti", "Pi"] {
        if whole == 0 || whole % 1024 != 0 {
            return format!("{whole}{suffix}");
        }
        whole /= 1024;
    }
    format!("{whole}Ei")
}

/// Rounds amounts finer than a thousandth up to it, as the real server does on reading.
pub(crate) fn round_up_list(object: &mut Value, path: &str) {
    let Some(list) = at_mut(object, path).and_then(Value::as_object_mut) else {
        return;
    };
    for value in list.values_mut() {
        let amount = of(value);
        if amount % MILLI != 0 {
            let up = amount.div_euclid(MILLI) + 1;
            *value = if up % 1000 == 0 {
                Value::String((up / 1000).to_string())
            } else {
                Value::String(format!("{up}m"))
            };
        }
    }
}

/// What the containers of a pod request together: sums, or the largest init container where that is more.
pub(crate) fn container_requests(spec: &Value) -> BTreeMap<String, String> {
    let mut sums: BTreeMap<String, i128> = BTreeMap::new();
    for container in items(spec, "containers") {
        for (name, value) in map(container, "resources.requests").into_iter().flatten() {
            *sums.entry(name.clone()).or_default() += of(value);
        }
    }
    let mut sidecars: BTreeMap<String, i128> = BTreeMap::new();
    let mut peaks: BTreeMap<String, i128> = BTreeMap::new();
    for container in items(spec, "initContainers") {
        let sidecar = text(container, "restartPolicy") == "Always";
        for (name, value) in map(container, "resources.requests").into_iter().flatten() {
            let running = sidecars.get(name).copied().unwrap_or(0);
            if sidecar {
                *sums.entry(name.clone()).or_default() += of(value);
                *sidecars.entry(name.clone()).or_default() += of(value);
            } else {
                let peak = peaks.entry(name.clone()).or_default();
                *peak = (*peak).max(running + of(value));
            }
        }
    }
    for (name, peak) in peaks {
        let sum = sums.entry(name).or_default();
        *sum = (*sum).max(peak);
    }
    sums.into_iter().map(|(k, v)| (k, render(v))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_compare_across_suffixes() {
        assert_eq!(of(&json!("1")), of(&json!("1000m")));
        assert_eq!(of(&json!("1Gi")), of(&json!("1024Mi")));
        assert!(of(&json!("1G")) < of(&json!("1Gi")));
        assert_eq!(of(&json!("-1")), -UNIT);
        assert_eq!(of(&json!("1e3")), of(&json!("1k")));
        assert_eq!(of(&json!(0.5)), of(&json!("500m")));
        assert!(!is_whole(&json!("500m")));
    }
}
