//! The part of kubectl's `JSONPath` that columns, selectable fields and scale paths use:
//! `.spec.a`, `.items[0]`, `.items[-1]`, `.items[*].x`, `['a.b']`, `[?(@.type=="Ready")].status`.
//!
//! What it cannot read finds nothing, as a column whose path is wrong shows nothing.

use std::cmp::Ordering;

use serde_json::Value;

/// One path, read once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    /// `start:end:step` or one index; negative counts from the end.
    Slice(Option<i64>, Option<i64>, i64),
    Index(i64),
    All,
    /// `..name`: the key at any depth.
    Deep,
    Filter(Box<Filter>),
    Union(Vec<Step>),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Operand,
    operator: String,
    right: Operand,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

/// Values that one path may find: `..` finds things more than once, and each `..` after it all of them again.
const MAX_FOUND: usize = 10_000;

impl JsonPath {
    /// Reads a path such as `.spec.replicas`; none if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text.trim() };
        let path = reader.path()?;
        reader.rest.is_empty().then_some(path)
    }

    /// All values at the path, in document order.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut here = vec![value];
        for step in &self.steps {
            let found = here.into_iter().flat_map(|v| apply(step, v));
            here = found.take(MAX_FOUND).collect();
        }
        here
    }
}

fn apply<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match step {
        Step::Key(name) => value.get(name.as_str()).into_iter().collect(),
        Step::All => children(value),
        Step::Deep => {
            let mut all = vec![value];
            for child in children(value) {
                all.extend(apply(step, child));
            }
            all
        }
        Step::Index(index) => {
            let Value::Array(list) = value else {
                return Vec::new();
            };
            absolute(*index, list.len())
                .and_then(|i| list.get(i))
                .into_iter()
                .collect()
        }
        Step::Slice(start, end, by) => slice(value, *start, *end, *by),
        Step::Filter(filter) => match value {
            Value::Array(list) => list.iter().filter(|v| filter.holds(v)).collect(),
            _ => Vec::new(),
        },
        Step::Union(steps) => steps.iter().flat_map(|s| apply(s, value)).collect(),
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

fn absolute(index: i64, len: usize) -> Option<usize> {
    if index >= 0 {
        usize::try_from(index).ok()
    } else {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
    }
}

fn slice(value: &Value, start: Option<i64>, end: Option<i64>, by: i64) -> Vec<&Value> {
    let (Value::Array(list), Ok(by)) = (value, usize::try_from(by)) else {
        return Vec::new();
    };
    let from = start
        .map_or(Some(0), |s| absolute(s, list.len()))
        .unwrap_or(0);
    let to = end
        .map_or(Some(list.len()), |e| absolute(e, list.len()))
        .unwrap_or(0);
    let width = to.min(list.len()).saturating_sub(from);
    list.iter()
        .skip(from)
        .take(width)
        .step_by(by.max(1))
        .collect()
}

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        let left = self.left.values(item);
        if self.operator == "exists" {
            return !left.is_empty();
        }
        let right = self.right.values(item);
        let ([left, ..], [right, ..]) = (left.as_slice(), right.as_slice()) else {
            return false;
        };
        let order = compare(left, right);
        match self.operator.as_str() {
            "==" => left == right || order == Some(Ordering::Equal),
            "!=" => !(left == right || order == Some(Ordering::Equal)),
            "<" => order == Some(Ordering::Less),
            ">" => order == Some(Ordering::Greater),
            "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            ">=" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            _ => false,
        }
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

impl Operand {
    fn values(&self, item: &Value) -> Vec<Value> {
        match self {
            Self::Path(path) => path.find(item).into_iter().cloned().collect(),
            Self::Literal(value) => vec![value.clone()],
        }
    }
}

/// Reads from the front of a text.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes everything up to the first of `stops`, or to the end.
    fn until(&mut self, stops: &[char]) -> &'a str {
        let at = self.rest.find(stops).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(at);
        self.rest = rest;
        taken
    }

    fn path(&mut self) -> Option<JsonPath> {
        let mut steps = Vec::new();
        self.eat("$");
        self.eat("@");
        loop {
            if self.eat("..") {
                if matches!(steps.last(), Some(Step::Deep)) {
                    return None;
                }
                steps.push(Step::Deep);
                let name = self.until(&['.', '[', ' ', '=', '!', '<', '>', ')']);
                if !name.is_empty() {
                    steps.push(key(name));
                }
            } else if self.eat(".") {
                let name = self.name();
                if !name.is_empty() {
                    steps.push(key(&name));
                }
            } else if self.eat("[") {
                steps.push(self.bracket()?);
            } else {
                return Some(JsonPath { steps });
            }
        }
    }

    /// A field name, in which `\.` stands for a dot.
    fn name(&mut self) -> String {
        let mut name = String::new();
        loop {
            name.push_str(self.until(&['.', '[', ' ', '=', '!', '<', '>', ')', '\\']));
            if !self.eat("\\") {
                return name;
            }
            let mut chars = self.rest.chars();
            name.extend(chars.next());
            self.rest = chars.as_str();
        }
    }

    fn bracket(&mut self) -> Option<Step> {
        if self.eat("?(") {
            let filter = self.filter()?;
            return self.eat("]").then_some(Step::Filter(Box::new(filter)));
        }
        let mut steps = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            steps.push(match self.rest.chars().next()? {
                quote @ ('\'' | '"') => Step::Key(self.quoted(quote)?),
                '*' => {
                    self.eat("*");
                    Step::All
                }
                _ => range(self.until(&[',', ']']).trim())?,
            });
            self.rest = self.rest.trim_start();
            if self.eat("]") {
                break;
            }
            if !self.eat(",") {
                return None;
            }
        }
        match steps.len() {
            1 => steps.pop(),
            _ => Some(Step::Union(steps)),
        }
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut chars = self.rest.chars();
        chars.next();
        let mut text = String::new();
        loop {
            match chars.next()? {
                '\\' => text.extend(chars.next()),
                c if c == quote => break,
                c => text.push(c),
            }
        }
        self.rest = chars.as_str();
        Some(text)
    }

    fn filter(&mut self) -> Option<Filter> {
        let left = self.operand()?;
        self.rest = self.rest.trim_start();
        if self.eat(")") {
            let (operator, right) = ("exists".to_owned(), Operand::Literal(Value::Null));
            return Some(Filter {
                left,
                operator,
                right,
            });
        }
        let operators = ["==", "!=", "<=", ">=", "<", ">"];
        let operator = operators.iter().find(|op| self.eat(op))?;
        let right = self.operand()?;
        self.rest = self.rest.trim_start();
        self.eat(")").then(|| Filter {
            left,
            operator: (*operator).to_owned(),
            right,
        })
    }

    fn operand(&mut self) -> Option<Operand> {
        self.rest = self.rest.trim_start();
        Some(match self.rest.chars().next()? {
            quote @ ('\'' | '"') => Operand::Literal(Value::String(self.quoted(quote)?)),
            '@' | '.' | '$' => Operand::Path(self.path()?),
            _ => {
                let text = self.until(&[' ', '=', '!', '<', '>', ')']);
                Operand::Literal(serde_json::from_str(text).ok()?)
            }
        })
    }
}

fn key(name: &str) -> Step {
    if name == "*" {
        Step::All
    } else {
        Step::Key(name.to_owned())
    }
}

/// `3`, `-1`, `1:4`, `::2`.
fn range(text: &str) -> Option<Step> {
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &str| -> Option<Option<i64>> {
        if part.is_empty() {
            Some(None)
        } else {
            part.parse().ok().map(Some)
        }
    };
    match parts.as_slice() {
        [one] => one.parse().ok().map(Step::Index),
        [start, end] => Some(Step::Slice(number(start)?, number(end)?, 1)),
        [start, end, by] => Some(Step::Slice(
            number(start)?,
            number(end)?,
            number(by)?.unwrap_or(1),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn the_paths_of_columns() {
        let value = json!({"spec":{"a":{"b":1},"l":[10,20,30]},"metadata":{"annotations":{"x.y/z":"v"}},
            "status":{"conditions":[{"type":"A","status":"False","n":1},{"type":"Ready","status":"True","n":2}]}});
        let find = |path: &str| -> Value {
            JsonPath::parse(path)
                .unwrap()
                .find(&value)
                .into_iter()
                .cloned()
                .collect()
        };
        assert_eq!(find(".spec.a.b"), json!([1]));
        assert_eq!(find(".spec.l[0]"), json!([10]));
        assert_eq!(find(".spec.l[-1]"), json!([30]));
        assert_eq!(find(".spec.l[0:2]"), json!([10, 20]));
        assert_eq!(find(".spec.l[*]"), json!([10, 20, 30]));
        assert_eq!(find(".metadata.annotations['x.y/z']"), json!(["v"]));
        assert_eq!(find(r".metadata.annotations.x\.y/z"), json!(["v"]));
        assert_eq!(
            find(r#".status.conditions[?(@.type=="Ready")].status"#),
            json!(["True"])
        );
        assert_eq!(
            find(".status.conditions[?(@.n > 1)].type"),
            json!(["Ready"])
        );
        assert_eq!(find(".status.conditions[*].type"), json!(["A", "Ready"]));
        assert_eq!(
            find("..status"),
            json!([{"conditions":[{"type":"A","status":"False","n":1},{"type":"Ready","status":"True","n":2}]},"False","True"])
        );
        assert_eq!(find(".nothing.here"), json!([]));
        assert!(JsonPath::parse(".a[").is_none());
        assert!(JsonPath::parse(".a[?(@.b").is_none());
    }

    /// Found by fuzzing: it took time in the power of the number of dots.
    #[test]
    fn repeated_descent_is_bounded() {
        assert!(JsonPath::parse("....").is_none());
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!({"a": deep});
        }
        let path = JsonPath::parse(&"..a".repeat(50)).unwrap();
        assert!(path.find(&deep).len() <= MAX_FOUND);
    }
}
