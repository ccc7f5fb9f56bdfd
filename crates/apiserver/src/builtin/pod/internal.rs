//! Values as the real server's messages show them: in the shape of its internal types.
//!
//! Some messages contain whole structures of types that are not the API's own: field names in capitals, all fields
//! present, hosts' namespaces inside the security context. The table `internal_types.txt` has one line a type and,
//! for each field, its internal name, its name in the API where that is not the same with a small first letter, and
//! its type: `s` text, `i` number, `b` boolean, `q` quantity, `v` a type of the API itself, `n` a time; `*` a
//! pointer, `[` a list, `{` a map; a name is another line. `^` is an embedded type.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::value::{at, put};

static TABLE: &str = include_str!("internal_types.txt");

static TYPES: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    TABLE
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let name = words.next()?;
            Some((name, words.filter_map(Field::read).collect()))
        })
        .collect()
});

/// How deep structures are shown; no type of the table nests deeper.
const DEPTH: usize = 24;

#[derive(Debug)]
struct Field {
    shown: &'static str,
    name: String,
    kind: &'static str,
    embedded: bool,
}

impl Field {
    fn read(word: &'static str) -> Option<Self> {
        if let Some(kind) = word.strip_prefix("^:") {
            return Some(Self {
                shown: "",
                name: String::new(),
                kind,
                embedded: true,
            });
        }
        let mut parts = word.split(':');
        let (shown, name, kind) = (parts.next()?, parts.next()?, parts.next()?);
        let name = if name.is_empty() {
            let mut letters = shown.chars();
            let first = letters.next()?.to_ascii_lowercase();
            format!("{first}{}", letters.as_str())
        } else {
            name.to_owned()
        };
        Some(Self {
            shown,
            name,
            kind,
            embedded: false,
        })
    }
}

/// A value with its fields in order.
enum Tree {
    Leaf(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// A value of this type on one line.
pub fn render(kind: &str, value: &Value) -> String {
    let mut out = String::new();
    tree(kind, Some(value), DEPTH).compact(&mut out);
    out
}

/// A value of this type on many lines, indented by one space.
pub fn render_lines(kind: &str, value: &Value) -> Vec<String> {
    let mut out = String::new();
    tree(kind, Some(value), DEPTH).indented(&mut out, 0);
    out.lines().map(str::to_owned).collect()
}

/// A pod spec with what the internal type keeps elsewhere.
pub fn pod_spec(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for field in [
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "shareProcessNamespace",
        "hostUsers",
    ] {
        if let Some(value) = at(&spec, field).cloned() {
            put(&mut spec, &format!("securityContext.{field}"), value);
        }
    }
    spec
}

fn tree(kind: &str, value: Option<&Value>, depth: usize) -> Tree {
    let value = value.filter(|v| !v.is_null());
    if depth == 0 {
        return Tree::Leaf("null".to_owned());
    }
    let zero = |text: &str| value.map_or_else(|| Tree::Leaf(text.to_owned()), plain);
    if let Some(inner) = kind.strip_prefix('*') {
        return match value {
            Some(value) => tree(inner, Some(value), depth),
            None => Tree::Leaf("null".to_owned()),
        };
    }
    if let Some(inner) = kind.strip_prefix('[') {
        return match value.and_then(Value::as_array) {
            Some(list) => Tree::List(
                list.iter()
                    .map(|v| tree(inner, Some(v), depth - 1))
                    .collect(),
            ),
            None => Tree::Leaf("null".to_owned()),
        };
    }
    if let Some(inner) = kind.strip_prefix('{') {
        return match value.and_then(Value::as_object) {
            Some(map) => Tree::Object(
                map.iter()
                    .map(|(k, v)| (k.clone(), tree(inner, Some(v), depth - 1)))
                    .collect(),
            ),
            None => Tree::Leaf("null".to_owned()),
        };
    }
    match kind {
        "s" => zero("\"\""),
        "i" => zero("0"),
        "b" => zero("false"),
        "q" => zero("\"0\""),
        "n" => zero("null"),
        "v" => value.map_or(Tree::Object(Vec::new()), plain),
        name => Tree::Object(fields(name, value, depth)),
    }
}

fn fields(name: &str, value: Option<&Value>, depth: usize) -> Vec<(String, Tree)> {
    let empty = Value::Null;
    let value = value.unwrap_or(&empty);
    let mut out = Vec::new();
    for field in TYPES.get(name).into_iter().flatten() {
        if field.embedded && field.kind == "v" {
            let metadata = value.get("metadata").and_then(Value::as_object);
            if let Some(metadata) = metadata {
                out.extend(ordered(metadata));
            }
        } else if field.embedded {
            out.extend(fields(field.kind, Some(value), depth.saturating_sub(1)));
        } else {
            let inner = value.get(&field.name);
            let shown = if field.shown == "Spec" && name == "PodTemplateSpec" {
                tree(field.kind, inner.map(pod_spec).as_ref(), depth - 1)
            } else {
                tree(field.kind, inner, depth - 1)
            };
            out.push((field.shown.to_owned(), shown));
        }
    }
    out
}

/// A value of the API's own types: as it is, with the few fields in order whose names do not sort that way.
fn plain(value: &Value) -> Tree {
    match value {
        Value::Object(map) => Tree::Object(ordered(map)),
        Value::Array(list) => Tree::List(list.iter().map(plain).collect()),
        leaf => Tree::Leaf(escape(&leaf.to_string())),
    }
}

fn ordered(map: &Map<String, Value>) -> Vec<(String, Tree)> {
    const FIRST: [&str; 7] = [
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "matchLabels",
        "matchExpressions",
    ];
    let rank = |key: &str| FIRST.iter().position(|f| *f == key).unwrap_or(FIRST.len());
    let mut pairs: Vec<(&String, &Value)> = map.iter().filter(|(_, v)| !v.is_null()).collect();
    pairs.sort_by_key(|(key, _)| rank(key));
    pairs
        .into_iter()
        .map(|(key, value)| (key.clone(), plain(value)))
        .collect()
}

/// Go's JSON writes these characters as escapes.
fn escape(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

fn key(name: &str) -> String {
    escape(&Value::String(name.to_owned()).to_string())
}

impl Tree {
    fn compact(&self, out: &mut String) {
        match self {
            Self::Leaf(text) => out.push_str(text),
            Self::List(list) => {
                out.push('[');
                for (i, item) in list.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.compact(out);
                }
                out.push(']');
            }
            Self::Object(fields) => {
                out.push('{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    let _ = write!(out, "{}:", key(name));
                    value.compact(out);
                }
                out.push('}');
            }
        }
    }

    fn indented(&self, out: &mut String, depth: usize) {
        let margin = |out: &mut String, depth: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        };
        match self {
            Self::List(list) if !list.is_empty() => {
                out.push('[');
                for (i, item) in list.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    margin(out, depth + 1);
                    item.indented(out, depth + 1);
                }
                margin(out, depth);
                out.push(']');
            }
            Self::Object(fields) if !fields.is_empty() => {
                out.push('{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    margin(out, depth + 1);
                    let _ = write!(out, "{}: ", key(name));
                    value.indented(out, depth + 1);
                }
                margin(out, depth);
                out.push('}');
            }
            other => other.compact(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shows_the_internal_shape() {
        assert_eq!(
            render("DeploymentStrategy", &json!({"type": "Foo"})),
            r#"{"Type":"Foo","RollingUpdate":null}"#
        );
        let context = json!({"privileged": true, "allowPrivilegeEscalation": false, "capabilities": {"add": ["X", "CAP_SYS_ADMIN"]}});
        assert_eq!(
            render("SecurityContext", &context),
            r#"{"Capabilities":{"Add":["X","CAP_SYS_ADMIN"],"Drop":null},"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}"#
        );
    }
}
