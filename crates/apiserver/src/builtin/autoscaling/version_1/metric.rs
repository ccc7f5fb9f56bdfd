//! Metrics, wanted and current, in the form of version 1.

use serde_json::{Map, Value, json};

use super::read::{self, Unreadable};
use crate::value::{at, has, put, take, text};

/// Which metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metrics {
    /// Those of the spec.
    Wanted,
    /// Those of the status.
    Current,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Text,
    Number,
    /// An amount that is always written.
    Amount,
    /// An amount that may be missing.
    SomeAmount,
    Selector,
    Reference,
}

/// A field in version 1, its path in version 2, and what it holds.
type Field = (&'static str, &'static str, Holds);

const NAME: Field = ("metricName", "metric.name", Holds::Text);
const SELECTOR: Field = ("selector", "metric.selector", Holds::Selector);
const REFERENCE: Field = ("target", "describedObject", Holds::Reference);
const RESOURCE: Field = ("name", "name", Holds::Text);
const CONTAINER: Field = ("container", "container", Holds::Text);

const fn some(written: &'static str, path: &'static str) -> Field {
    (written, path, Holds::SomeAmount)
}

const fn always(written: &'static str, path: &'static str) -> Field {
    (written, path, Holds::Amount)
}

const WANTED_PERCENT: Field = (
    "targetAverageUtilization",
    "target.averageUtilization",
    Holds::Number,
);
const WANTED_AVERAGE: Field = some("targetAverageValue", "target.averageValue");
const CURRENT_PERCENT: Field = (
    "currentAverageUtilization",
    "current.averageUtilization",
    Holds::Number,
);
const CURRENT_AVERAGE: Field = always("currentAverageValue", "current.averageValue");

/// The fields of each kind, in the order in which the real server writes them.
type Table = [(&'static str, &'static [Field]); 5];

const WANTED: Table = [
    (
        "object",
        &[
            REFERENCE,
            NAME,
            always("targetValue", "target.value"),
            SELECTOR,
            some("averageValue", "target.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            NAME,
            always("targetAverageValue", "target.averageValue"),
            SELECTOR,
        ],
    ),
    ("resource", &[RESOURCE, WANTED_PERCENT, WANTED_AVERAGE]),
    (
        "containerResource",
        &[RESOURCE, WANTED_PERCENT, WANTED_AVERAGE, CONTAINER],
    ),
    (
        "external",
        &[
            NAME,
            ("metricSelector", "metric.selector", Holds::Selector),
            some("targetValue", "target.value"),
            WANTED_AVERAGE,
        ],
    ),
];

const CURRENT: Table = [
    (
        "object",
        &[
            REFERENCE,
            NAME,
            always("currentValue", "current.value"),
            SELECTOR,
            some("averageValue", "current.averageValue"),
        ],
    ),
    ("pods", &[NAME, CURRENT_AVERAGE, SELECTOR]),
    ("resource", &[RESOURCE, CURRENT_PERCENT, CURRENT_AVERAGE]),
    (
        "containerResource",
        &[RESOURCE, CURRENT_PERCENT, CURRENT_AVERAGE, CONTAINER],
    ),
    (
        "external",
        &[
            NAME,
            ("metricSelector", "metric.selector", Holds::Selector),
            always("currentValue", "current.value"),
            some("currentAverageValue", "current.averageValue"),
        ],
    ),
];

impl Metrics {
    fn table(self) -> &'static Table {
        match self {
            Self::Wanted => &WANTED,
            Self::Current => &CURRENT,
        }
    }
}

/// The text of these metrics, which are in the form of version 2.
pub(super) fn write(metrics: &[&Value], which: Metrics) -> String {
    let all: Vec<String> = metrics.iter().map(|m| write_one(m, which)).collect();
    format!("[{}]", all.join(","))
}

fn write_one(metric: &Value, which: Metrics) -> String {
    let mut parts = vec![read::pair("type", &text(metric, "type").into())];
    for (source, fields) in which.table() {
        let Some(value) = metric.get(*source).filter(|v| v.is_object()) else {
            continue;
        };
        let written: Vec<String> = fields
            .iter()
            .filter_map(|f| write_field(value, *f))
            .collect();
        parts.push(format!("\"{source}\":{{{}}}", written.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

fn write_field(source: &Value, (name, path, holds): Field) -> Option<String> {
    let found = at(source, path).filter(|v| !v.is_null());
    match holds {
        Holds::Text => Some(read::pair(name, &text(source, path).into())),
        Holds::Amount => Some(read::pair(name, found.unwrap_or(&json!("0")))),
        Holds::Number | Holds::SomeAmount => Some(read::pair(name, found?)),
        Holds::Selector => Some(format!("\"{name}\":{}", write_selector(found?))),
        Holds::Reference => {
            let nothing = Value::Null;
            let reference = found.unwrap_or(&nothing);
            let mut parts: Vec<String> = ["kind", "name"]
                .iter()
                .map(|f| read::pair(f, &text(reference, f).into()))
                .collect();
            let version = text(reference, "apiVersion");
            if !version.is_empty() {
                parts.push(read::pair("apiVersion", &version.into()));
            }
            Some(format!("\"{name}\":{{{}}}", parts.join(",")))
        }
    }
}

/// Labels come before expressions; within an expression the order is that of the alphabet.
fn write_selector(selector: &Value) -> String {
    let parts: Vec<String> = ["matchLabels", "matchExpressions"]
        .iter()
        .filter(|f| has(selector, f))
        .filter_map(|f| Some(read::pair(f, selector.get(*f)?)))
        .collect();
    format!("{{{}}}", parts.join(","))
}

/// These metrics in the form of version 2.
pub(super) fn read(written: &Value, which: Metrics) -> Result<Vec<Value>, Unreadable> {
    read::list(written)?
        .iter()
        .map(|metric| read_one(metric, which))
        .collect()
}

fn read_one(written: &Value, which: Metrics) -> Result<Value, Unreadable> {
    let mut metric = json!({"type": read::string(written, "type")?});
    for (source, fields) in which.table() {
        let Some(value) = read::field(written, source)? else {
            continue;
        };
        let mut out = Value::Object(Map::new());
        for field in *fields {
            read_field(&mut out, value, *field)?;
        }
        if which == Metrics::Wanted {
            set_target_type(&mut out, source);
        }
        put(&mut metric, source, out);
    }
    Ok(metric)
}

fn read_field(
    out: &mut Value,
    source: &Value,
    (name, path, holds): Field,
) -> Result<(), Unreadable> {
    let value: Option<Value> = match holds {
        Holds::Text => Some(read::string(source, name)?.into()),
        Holds::Number => read::number(source, name)?.map(Into::into),
        Holds::Amount => {
            let amount = read::amount(source, name)?;
            Some(amount.unwrap_or_else(|| "0".to_owned()).into())
        }
        Holds::SomeAmount => read::amount(source, name)?.map(Into::into),
        Holds::Selector => match read::field(source, name)? {
            Some(selector) => Some(read_selector(selector)?),
            None => None,
        },
        Holds::Reference => {
            let nothing = Value::Null;
            let reference = read::field(source, name)?.unwrap_or(&nothing);
            let mut out = Map::new();
            for field in ["kind", "name", "apiVersion"] {
                let said = read::string(reference, field)?;
                if !said.is_empty() || field != "apiVersion" {
                    out.insert(field.to_owned(), said.into());
                }
            }
            Some(Value::Object(out))
        }
    };
    if let Some(value) = value {
        put(out, path, value);
    }
    Ok(())
}

fn read_selector(written: &Value) -> Result<Value, Unreadable> {
    let mut selector = written.clone();
    let schema = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
    if let Some(schema) = crate::schema::table::named(schema) {
        crate::decode::shape(&schema, &mut selector).map_err(|_| Unreadable)?;
    }
    Ok(selector)
}

/// Version 1 does not say of what type a target is: that follows from what is set.
fn set_target_type(source: &mut Value, kind: &str) {
    let average = has(source, "target.averageValue");
    let of_value = match kind {
        "object" => !average,
        "external" => has(source, "target.value"),
        _ => false,
    };
    let of_percent = has(source, "target.averageUtilization");
    let target = if of_value {
        "Value"
    } else if of_percent {
        "Utilization"
    } else {
        "AverageValue"
    };
    // Version 1 cannot leave out the value of an object's metric.
    if kind == "object" && average && text(source, "target.value") == "0" {
        take(source, "target.value");
    }
    put(source, "target.type", target);
}
