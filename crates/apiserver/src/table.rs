//! The other forms of an answer: `as=Table`, which `kubectl get` shows, and `as=PartialObjectMetadata`.
//!
//! A [`Presenter`] turns objects, lists and watch events into the form that a client asked for. What stands in the
//! cells is the strategy's business.

mod present;
#[cfg(test)]
mod tests;

pub use present::{IncludeObject, Presenter, partial, partial_list};

const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const CREATED_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Column {
    /// The header, before kubectl puts it in capitals.
    pub name: String,
    /// `string`, `integer`, `boolean`, `date`, `number`.
    #[serde(rename = "type")]
    pub column_type: String,
    /// `name` for the first, else usually empty.
    pub format: String,
    /// For people.
    pub description: String,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
}

impl Column {
    /// A column of this type. The columns `Name` and `Age`, which nearly all kinds have, come with their
    /// description.
    pub fn new(name: &str, column_type: &str, priority: i32) -> Self {
        let (format, description) = match name {
            "Name" => ("name", NAME_DESCRIPTION),
            "Age" | "Created At" => ("", CREATED_DESCRIPTION),
            _ => ("", ""),
        };
        Self {
            name: name.to_owned(),
            column_type: column_type.to_owned(),
            format: format.to_owned(),
            description: description.to_owned(),
            priority,
        }
    }
}

/// The columns of a kind that has none of its own.
pub fn default_columns() -> Vec<Column> {
    vec![
        Column::new("Name", "string", 0),
        Column::new("Created At", "date", 0),
    ]
}

/// The columns of a `Scale`, which custom resources describe in other words.
fn scale_columns(is_custom: bool) -> Vec<Column> {
    let (desired, actual, age) = if is_custom {
        (
            "Number of desired replicas",
            "Number of actual replicas",
            "date",
        )
    } else {
        (
            "replicas is the desired number of instances for the scaled object.",
            "replicas is the actual number of observed instances of the scaled object.",
            "string",
        )
    };
    let mut columns = [
        ("Name", "string"),
        ("Desired", "integer"),
        ("Available", "integer"),
        ("Age", age),
    ]
    .map(|(name, kind)| Column::new(name, kind, 0));
    let [name, first, second, _] = &mut columns;
    desired.clone_into(&mut first.description);
    actual.clone_into(&mut second.description);
    if !is_custom {
        name.format.clear();
    }
    columns.to_vec()
}

/// The age of something that began at `since`, as kubectl shows it: two units at most (`5m10s`, `3h`, `2d4h`).
pub fn age(since: jiff::Timestamp, now: jiff::Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs();
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let pair = |high: i64, unit: char, low: i64, low_unit: char| {
        if low == 0 {
            format!("{high}{unit}")
        } else {
            format!("{high}{unit}{low}{low_unit}")
        }
    };
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        pair(minutes, 'm', seconds % 60, 's')
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        pair(hours, 'h', minutes % 60, 'm')
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 192 {
        pair(days, 'd', hours % 24, 'h')
    } else if days < 730 {
        format!("{days}d")
    } else if days < 8 * 365 {
        pair(days / 365, 'y', days % 365, 'd')
    } else {
        format!("{}y", days / 365)
    }
}

/// The age of an object, as its `Age` column shows it; `<unknown>` if it was never created.
pub fn object_age(object: &serde_json::Value, now: jiff::Timestamp) -> String {
    crate::value::text(object, "metadata.creationTimestamp")
        .parse()
        .map_or_else(|_| "<unknown>".to_owned(), |since| age(since, now))
}
