//! How fast an autoscaler scales, as version 1 keeps it: in the names of the real server's own type.

use serde_json::{Map, Value};

use super::read::{self, Unreadable};
use crate::value::{integer, items, text};

const DIRECTIONS: [(&str, &str); 2] = [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")];

pub(super) fn write(behavior: &Value) -> String {
    let directions: Vec<String> = DIRECTIONS
        .iter()
        .map(|(written, field)| {
            let rules = behavior.get(*field).filter(|r| r.is_object());
            let rules = rules.map_or_else(|| "null".to_owned(), write_rules);
            format!("\"{written}\":{rules}")
        })
        .collect();
    format!("{{{}}}", directions.join(","))
}

fn write_rules(rules: &Value) -> String {
    let get = |field: &str| rules.get(field).unwrap_or(&Value::Null);
    let policies = if get("policies").is_array() {
        let all: Vec<String> = items(rules, "policies").iter().map(write_policy).collect();
        format!("[{}]", all.join(","))
    } else {
        "null".to_owned()
    };
    format!(
        "{{{},{},\"Policies\":{policies},{}}}",
        read::pair(
            "StabilizationWindowSeconds",
            get("stabilizationWindowSeconds")
        ),
        read::pair("SelectPolicy", get("selectPolicy")),
        read::pair("Tolerance", get("tolerance")),
    )
}

fn write_policy(policy: &Value) -> String {
    let number = |field: &str| integer(policy, field).unwrap_or(0).into();
    format!(
        "{{{},{},{}}}",
        read::pair("Type", &text(policy, "type").into()),
        read::pair("Value", &number("value")),
        read::pair("PeriodSeconds", &number("periodSeconds")),
    )
}

/// None where nothing is said.
pub(super) fn read(written: &Value) -> Result<Option<Value>, Unreadable> {
    let mut behavior = Map::new();
    for (name, field) in DIRECTIONS {
        if let Some(rules) = read::field(written, name)? {
            behavior.insert(field.to_owned(), read_rules(rules)?);
        }
    }
    Ok((!behavior.is_empty()).then_some(Value::Object(behavior)))
}

fn read_rules(written: &Value) -> Result<Value, Unreadable> {
    let mut rules = Map::new();
    if let Some(window) = read::number(written, "stabilizationWindowSeconds")? {
        rules.insert("stabilizationWindowSeconds".to_owned(), window.into());
    }
    let select = read::string(written, "selectPolicy")?;
    if read::field(written, "selectPolicy")?.is_some() {
        rules.insert("selectPolicy".to_owned(), select.into());
    }
    if let Some(policies) = read::field(written, "policies")? {
        let policies: Result<Vec<Value>, Unreadable> =
            read::list(policies)?.iter().map(read_policy).collect();
        rules.insert("policies".to_owned(), policies?.into());
    }
    if let Some(tolerance) = read::amount(written, "tolerance")? {
        rules.insert("tolerance".to_owned(), tolerance.into());
    }
    Ok(Value::Object(rules))
}

fn read_policy(written: &Value) -> Result<Value, Unreadable> {
    Ok(serde_json::json!({
        "type": read::string(written, "type")?,
        "value": read::number(written, "value")?.unwrap_or(0),
        "periodSeconds": read::number(written, "periodSeconds")?.unwrap_or(0),
    }))
}
