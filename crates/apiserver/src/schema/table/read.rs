//! Reading the table.
//!
//! One line a package (`package ALIAS OPENAPI-PREFIX GO-NAME`), type (`type NAME …`) or field
//! (` NAME TYPE …`, indented). A TYPE is a letter (`s` string, `y` bytes, `b` boolean, `i` int32, `l` int64, `d` double,
//! `q` quantity, `x` int-or-string, `t` time, `m` micro time, `r` raw extension, `f` managed fields, `j` JSON), with
//! `:` and the Go type where that has a name of its own; `@ALIAS.NAME` for another type; `[GO]TYPE` for a list;
//! `{GO}TYPE` for a map. Words after it: `#` its
//! number in protobuf, after those of the messages it is inlined through, with `w` where the list is a message of
//! its own; `!` required, `z` left out when zero, `a` always written, `n` always
//! written, as `null` when empty; `set` and `map=KEYS` list kinds; `atomic`, `granular` objects; `patch=` and `key=`
//! for strategic merge; `in=` the Go structs it is embedded in; `default=`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::schema::{Field, ListKind, Node, NodeId, PatchStrategy, Presence, Shape, Types};

/// Types with a JSON form of their own.
const SPECIAL: &[(&str, &str, &str, Shape, &str)] = &[
    (
        "q",
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        "resource.Quantity",
        Shape::Quantity,
        "",
    ),
    (
        "x",
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        "intstr.IntOrString",
        Shape::IntOrString,
        "int-or-string",
    ),
    (
        "t",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
        "v1.Time",
        Shape::String,
        "date-time",
    ),
    (
        "m",
        "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        "v1.MicroTime",
        Shape::String,
        "date-time",
    ),
    (
        "r",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        "runtime.RawExtension",
        Shape::Object,
        "",
    ),
    (
        "f",
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        "v1.FieldsV1",
        Shape::Object,
        "",
    ),
    (
        "j",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "v1.JSON",
        Shape::Any,
        "",
    ),
];

/// A table being read.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) types: Types,
    pub(super) kinds: BTreeMap<Box<str>, NodeId>,
    pub(super) names: BTreeMap<Box<str>, NodeId>,
    /// Nodes by the words that describe them, so that equal ones are shared. `@ALIAS.NAME` finds a type.
    words: BTreeMap<String, NodeId>,
    /// Fields whose object merges by field although its type says otherwise.
    granular: Vec<(NodeId, Box<str>)>,
}

impl Reader {
    /// Adds the types with a JSON form of their own.
    pub(super) fn specials(&mut self) {
        for (letter, name, go_type, shape, format) in SPECIAL {
            let open = matches!(shape, Shape::Object | Shape::Any);
            let id = self.types.push(Node {
                shape: *shape,
                format: (*format).into(),
                name: (*name).into(),
                go_type: (*go_type).into(),
                preserve_unknown: open,
                nullable: open,
                ..Node::default()
            });
            self.words.insert((*letter).to_owned(), id);
            self.names.insert((*name).into(), id);
        }
    }

    /// Gives each type its place, so that fields can refer to types further down.
    pub(super) fn declare(&mut self, text: &str) {
        let mut package = Package::default();
        for line in text.lines() {
            if let Some(found) = Package::read(line) {
                package = found;
            } else if let Some(rest) = line.strip_prefix("type ") {
                let mut words = rest.split(' ');
                let short = words.next().unwrap_or_default();
                let name = format!("{}.{short}", package.name);
                let mut node = Node {
                    shape: Shape::Object,
                    name: name.as_str().into(),
                    go_type: format!("{}.{short}", package.go_name).into(),
                    ..Node::default()
                };
                let mut kind = None;
                for word in words {
                    match word.split_once('=') {
                        Some(("gvk", gvk)) => kind = Some(gvk),
                        Some(("either", _)) => {
                            node.shape = Shape::Any;
                            node.preserve_unknown = true;
                        }
                        _ => node.atomic |= word == "atomic",
                    }
                }
                let id = self.types.push(node);
                self.words.insert(format!("@{}.{short}", package.alias), id);
                self.names.insert(name.into(), id);
                if let Some(gvk) = kind {
                    self.kinds.insert(gvk.into(), id);
                }
            }
        }
    }

    /// Reads the fields of each type.
    pub(super) fn fill(&mut self, text: &str) {
        let mut package = Package::default();
        let mut open: Option<(NodeId, Node)> = None;
        for line in text.lines() {
            if let Some(found) = Package::read(line) {
                package = found;
            } else if let Some(rest) = line.strip_prefix("type ") {
                self.close(open.take());
                let mut words = rest.split(' ');
                let short = words.next().unwrap_or_default();
                if let Some(&id) = self.words.get(&format!("@{}.{short}", package.alias)) {
                    let mut node = self.types.view(id).node.clone();
                    if let Some(inner) = words.find_map(|word| word.strip_prefix("either=")) {
                        let inner = format!("@{}.{inner}", package.alias);
                        node.items = self.words.get(&inner).copied();
                    }
                    open = Some((id, node));
                }
            } else if let Some((id, node)) = &mut open {
                self.field(*id, node, line);
            }
        }
        self.close(open);
    }

    fn close(&mut self, open: Option<(NodeId, Node)>) {
        if let Some((id, node)) = open {
            self.types.set(id, node);
        }
    }

    fn field(&mut self, owner: NodeId, node: &mut Node, line: &str) {
        let mut words = line.trim_start().split(' ');
        let (Some(name), Some(ty)) = (words.next(), words.next()) else {
            return;
        };
        let words: Vec<&str> = words.collect();
        let id = self.node(ty, &words);
        if words.contains(&"granular") && self.types.view(id).node.atomic {
            self.granular.push((owner, name.into()));
        }
        let value = |key: &str| {
            words
                .iter()
                .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        let strategy = value("patch").unwrap_or_default();
        let (presence, zero) = if words.contains(&"a") {
            (Presence::Always, Some(zero(self.types.view(id).node)))
        } else if words.contains(&"n") {
            (Presence::Always, Some(Value::Null))
        } else if words.contains(&"z") {
            (Presence::OmitZero, None)
        } else {
            (Presence::Optional, None)
        };
        let default = value("default").and_then(|text| serde_json::from_str(text).ok());
        let field = Field {
            node: id,
            required: words.contains(&"!"),
            presence,
            patch: PatchStrategy {
                merge: strategy.split(',').any(|s| s == "merge"),
                retain_keys: strategy.split(',').any(|s| s == "retainKeys"),
                replace: strategy == "replace",
                merge_key: value("key").unwrap_or_default().into(),
            },
            default: default.or(zero),
        };
        node.fields.insert(name.into(), field);
        if let Some(through) = value("in") {
            node.embedded_in.insert(name.into(), through.into());
        }
    }

    /// The node for a type word, with what the field's words say of lists and maps.
    fn node(&mut self, ty: &str, words: &[&str]) -> NodeId {
        let container = ty.starts_with(['[', '{']);
        let said: Vec<&str> = words
            .iter()
            .copied()
            .filter(|word| *word == "set" || *word == "atomic" || word.starts_with("map="))
            .filter(|_| container)
            .collect();
        let key = format!("{ty} {}", said.join(" "));
        if let Some(&id) = self
            .words
            .get(ty)
            .filter(|_| !container)
            .or_else(|| self.words.get(&key))
        {
            return id;
        }
        let mut node = self.form(ty);
        for word in said {
            match word.split_once('=') {
                Some((_, keys)) => {
                    node.list = ListKind::Map(keys.split(',').map(Into::into).collect());
                }
                None if word == "set" => node.list = ListKind::Set,
                None => node.atomic = true,
            }
        }
        let id = self.types.push(node);
        self.words.insert(key, id);
        id
    }

    /// The form of an anonymous type.
    fn form(&mut self, ty: &str) -> Node {
        if let Some((go, inner)) = ty.strip_prefix('[').and_then(|t| t.split_once(']')) {
            let items = self.node(inner, &[]);
            let plain = format!("[]{}", self.types.view(items).node.go_type);
            return Node {
                shape: Shape::List,
                items: Some(items),
                go_type: if go.is_empty() {
                    plain.into()
                } else {
                    go.into()
                },
                ..Node::default()
            };
        }
        if let Some((go, inner)) = ty.strip_prefix('{').and_then(|t| t.split_once('}')) {
            let values = self.node(inner, &[]);
            let plain = format!("map[string]{}", self.types.view(values).node.go_type);
            let named = go.replacen('|', "[", 1).replacen('|', "]", 1);
            return Node {
                shape: Shape::Object,
                values: Some(values),
                go_type: if go.is_empty() {
                    plain.into()
                } else {
                    named.into()
                },
                ..Node::default()
            };
        }
        let (letter, go) = ty.split_once(':').unwrap_or((ty, ""));
        let (shape, format, plain) = match letter {
            "s" => (Shape::String, "", "string"),
            "y" => (Shape::String, "byte", "[]uint8"),
            "b" => (Shape::Boolean, "", "bool"),
            "i" => (Shape::Integer, "int32", "int32"),
            "l" => (Shape::Integer, "int64", "int64"),
            "d" => (Shape::Number, "double", "float64"),
            _ => (Shape::Any, "", "interface {}"),
        };
        Node {
            shape,
            format: format.into(),
            go_type: if go.is_empty() {
                plain.into()
            } else {
                go.into()
            },
            ..Node::default()
        }
    }

    /// Gives fields that merge by field a copy of their atomic type.
    pub(super) fn make_granular(&mut self) {
        for (owner, name) in std::mem::take(&mut self.granular) {
            let mut node = self.types.view(owner).node.clone();
            let Some(field) = node.fields.get_mut(&name) else {
                continue;
            };
            let mut target = self.types.view(field.node).node.clone();
            target.atomic = false;
            field.node = self.types.push(target);
            self.types.set(owner, node);
        }
    }
}

#[derive(Default)]
pub(super) struct Package<'a> {
    alias: &'a str,
    pub(super) name: &'a str,
    go_name: &'a str,
}

impl<'a> Package<'a> {
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let mut words = line.strip_prefix("package ")?.split(' ');
        Some(Self {
            alias: words.next()?,
            name: words.next()?,
            go_name: words.next()?,
        })
    }
}

/// What Go writes for a value that was never set.
fn zero(node: &Node) -> Value {
    match node.shape {
        Shape::String => Value::from(""),
        Shape::Integer | Shape::Number | Shape::IntOrString => Value::from(0),
        Shape::Boolean => Value::from(false),
        Shape::Quantity => Value::from("0"),
        Shape::Object if node.values.is_none() && !node.preserve_unknown => {
            Value::Object(Map::new())
        }
        Shape::Object | Shape::List | Shape::Any => Value::Null,
    }
}
