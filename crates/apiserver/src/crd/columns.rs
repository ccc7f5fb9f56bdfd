//! The table form of custom resources: the name, then the columns that the definition lists, or the age.

use jiff::Timestamp;
use serde_json::Value;

use super::check::number::go_float;
use super::jsonpath::JsonPath;
use crate::table::{self, Column};
use crate::value;

/// The columns of one version.
#[derive(Debug)]
pub struct Columns {
    extra: Vec<(Column, Option<JsonPath>)>,
}

impl Columns {
    /// Reads `additionalPrinterColumns`.
    pub fn read(columns: &[Value]) -> Self {
        if columns.is_empty() {
            let path = JsonPath::parse(".metadata.creationTimestamp");
            return Self {
                extra: vec![(Column::new("Age", "date", 0), path)],
            };
        }
        Self {
            extra: columns.iter().map(read_column).collect(),
        }
    }

    /// With the name in front.
    pub fn headers(&self) -> Vec<Column> {
        let extra = self.extra.iter().map(|(column, _)| column.clone());
        std::iter::once(Column::new("Name", "string", 0))
            .chain(extra)
            .collect()
    }

    /// One cell a column.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = Value::from(value::text(object, "metadata.name"));
        let extra = self.extra.iter().map(|(column, path)| {
            let found = path.as_ref().map(|p| p.find(object)).unwrap_or_default();
            found
                .first()
                .map_or(Value::Null, |value| cell(&column.column_type, value, now))
        });
        std::iter::once(name).chain(extra).collect()
    }
}

fn read_column(column: &Value) -> (Column, Option<JsonPath>) {
    let path = value::text(column, "jsonPath");
    let mut description = value::text(column, "description").to_owned();
    if description.is_empty() {
        description = format!("Custom resource definition column (in JSONPath format): {path}");
    }
    let priority = value::integer(column, "priority").unwrap_or_default();
    let header = Column {
        name: value::text(column, "name").to_owned(),
        column_type: value::text(column, "type").to_owned(),
        format: value::text(column, "format").to_owned(),
        description,
        priority: i32::try_from(priority).unwrap_or_default(),
    };
    (header, JsonPath::parse(path))
}

/// A value as a cell of a column of this type; nothing where the types do not fit.
fn cell(column_type: &str, value: &Value, now: Timestamp) -> Value {
    match (column_type, value) {
        ("string", value) => Value::from(printed(value)),
        ("integer", Value::Number(n)) => n
            .as_i64()
            .map_or_else(|| truncated(n.as_f64()), Value::from),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => Value::from(match text.parse::<Timestamp>() {
            Ok(since) => table::age(since, now),
            Err(_) => "<invalid>".to_owned(),
        }),
        _ => Value::Null,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "Go converts in the same way"
)]
fn truncated(float: Option<f64>) -> Value {
    float.map_or(Value::Null, |f| Value::from(f as i64))
}

/// A value in a column of text: text as it is, the rest as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        Value::Number(n) if n.is_f64() => go_float(n.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// A value as Go's `fmt.Sprint` shows it, for field selectors.
pub(super) fn sprint(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        other => printed(other),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_follow_the_type_of_their_column() {
        let column = |kind: &str, path: &str| json!({"name":"X","type":kind,"jsonPath":path});
        let columns = Columns::read(&[
            column("string", ".spec.s"),
            column("string", ".spec.o"),
            column("integer", ".spec.f"),
            column("integer", ".spec.s"),
            column("date", ".metadata.creationTimestamp"),
            column("date", ".spec.s"),
            column("boolean", ".spec.b"),
            column("string", ".spec.absent"),
        ]);
        let object = json!({"metadata":{"name":"n","creationTimestamp":"2024-01-01T00:00:00Z"},
            "spec":{"s":"text","o":{"a":1},"f":2.7,"b":true}});
        let now: Timestamp = "2024-01-01T00:00:10Z".parse().unwrap();
        let cells = columns.cells(&object, now);
        assert_eq!(
            json!(cells),
            json!([
                "n",
                "text",
                "{\"a\":1}",
                2,
                null,
                "10s",
                "<invalid>",
                true,
                null
            ])
        );
        assert_eq!(columns.headers().len(), 9);
        let plain = Columns::read(&[]);
        assert_eq!(json!(plain.cells(&object, now)), json!(["n", "10s"]));
    }
}
