//! One step of a field path: a field, a list item by its keys or by its value, or an index; and its three texts:
//! the `FieldsV1` key, the form in messages, and (through [`Item`]) the API's order of values.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::field::quote;

/// A JSON value ordered and compared like the API does it: numbers by what they mean, not by how they are written.
#[derive(Debug, Clone)]
pub(super) struct Item(pub(super) Value);

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0, &other.0)
    }
}

/// Whether two values mean the same: `1` and `1.0` do.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    order(a, b) == Ordering::Equal
}

fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => sequence(a.iter(), b.iter(), order),
        (Value::Object(a), Value::Object(b)) => sequence(a.iter(), b.iter(), |(k, v), (l, w)| {
            k.cmp(l).then_with(|| order(v, w))
        }),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn sequence<T>(
    a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
    order: impl Fn(T, T) -> Ordering,
) -> Ordering {
    for left in a {
        let Some(right) = b.next() else {
            return Ordering::Greater;
        };
        match order(left, right) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    b.next().map_or(Ordering::Equal, |_| Ordering::Less)
}

fn numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (whole(a), whole(b)) {
        return a.cmp(&b);
    }
    let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn whole(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// One step of a field path. The order of the variants is the order in which sets list them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A field of an object or an entry of a map.
    Field(String),
    /// The item of an associative list with these keys, sorted by name.
    Key(Vec<(String, Item)>),
    /// The item of a set with this value.
    Value(Item),
    /// The item of a list at this place.
    Index(i64),
}

impl Step {
    /// A field step.
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// The key under which `FieldsV1` lists this step.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => {
                let fields: Vec<String> = keys
                    .iter()
                    .map(|(name, item)| format!("{}:{}", json_text(name), json(&item.0)))
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(item) => format!("v:{}", json(&item.0)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads a key of `FieldsV1`: `None` for kinds of steps that this version does not know.
    pub(super) fn decode(text: &str) -> Result<Option<Self>, String> {
        let Some((kind, rest)) = text.split_at_checked(2) else {
            return Err("key must be 2 characters long:".to_owned());
        };
        let step = match kind {
            "f:" => Self::field(rest),
            "v:" => Self::Value(Item(parse(rest)?)),
            "k:" => {
                let fields: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|e| e.to_string())?;
                Self::Key(fields.into_iter().map(|(k, v)| (k, Item(v))).collect())
            }
            "i:" => Self::Index(rest.parse().map_err(|_| format!("invalid index: {rest}"))?),
            _ if kind.ends_with(':') => return Ok(None),
            _ => return Err(format!("missing colon: {text}")),
        };
        Ok(Some(step))
    }
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let fields: Vec<String> = keys
                    .iter()
                    .map(|(name, item)| format!("{name}={}", plain(&item.0)))
                    .collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(item) => write!(f, "[={}]", plain(&item.0)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path as messages show it: `.spec.ports[port=80,protocol="TCP"].name`.
pub(super) fn path_text(path: &[Step]) -> String {
    path.iter().map(ToString::to_string).collect()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => shown_number(number),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}={}", plain(value)))
                .collect();
            fields.concat()
        }
        other => other.to_string(),
    }
}

/// A number as Go's `%v` shows it.
pub(super) fn shown_number(number: &Number) -> String {
    match (whole(number), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(float)) if float != 0.0 && !(1e-4..1e6).contains(&float.abs()) => {
            exponent(float, 2)
        }
        (None, Some(float)) => float.to_string(),
        (None, None) => number.to_string(),
    }
}

fn exponent(float: f64, digits: usize) -> String {
    let text = format!("{float:e}");
    let Some((mantissa, power)) = text.split_once('e') else {
        return text;
    };
    match power.strip_prefix('-') {
        Some(power) => format!("{mantissa}e-{power:0>digits$}"),
        None => format!("{mantissa}e+{power:0>digits$}"),
    }
}

/// JSON as Go writes it: `<`, `>` and `&` escaped, whole floats without a fraction.
pub(super) fn json(value: &Value) -> String {
    match value {
        Value::String(text) => json_text(text),
        Value::Number(number) => json_number(number),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", json_text(name), json(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        other => other.to_string(),
    }
}

fn json_number(number: &Number) -> String {
    match (whole(number), number.as_f64()) {
        (None, Some(float)) if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) => {
            exponent(float, 1)
        }
        (None, Some(float)) => float.to_string(),
        _ => number.to_string(),
    }
}

fn json_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for c in Value::from(text).to_string().chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}
