//! The numbers, names and types of the fields of built-in kinds, from a table that `cargo xtask generate` makes.
//!
//! A line is `message NAME`, with the word `either` if the message is one thing or another, or a field of it:
//! `NUMBER JSON-NAME TYPE`. The name `^` means that the fields of the field stand in the message's own JSON. A type
//! begins with `[]` if there are many and `{}` if it is a map by text; then comes a letter, or `@` and a message.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const TABLE: &str = include_str!("builtin.fields");

static MESSAGES: LazyLock<BTreeMap<&'static str, Message>> = LazyLock::new(|| read(TABLE));

/// How a field is written, and what JSON makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Whole,
    Truth,
    Fraction,
    Binary,
    Quantity,
    WholeOrText,
    /// `metav1.Time`.
    Seconds,
    /// `metav1.MicroTime`.
    Micros,
    /// JSON within protobuf.
    Json,
    /// A list of words in a message of its own.
    Words,
    Message(&'static str),
}

/// How often a field stands in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    One,
    Many,
    Map,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: Label,
    pub(super) ty: Type,
}

impl Field {
    /// Whether its own fields stand in the message's JSON.
    pub(super) fn is_inline(&self) -> bool {
        self.name == "^"
    }
}

/// A message.
#[derive(Debug, Default)]
pub(super) struct Message {
    fields: BTreeMap<u32, Field>,
    pub(super) either: bool,
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.fields.get(&number)
    }
}

/// A message by its name in the table.
pub(super) fn message(name: &str) -> Option<&'static Message> {
    MESSAGES.get(name)
}

/// The message of a kind. Options belong to every group.
pub(super) fn kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    // Packages are named by the first part of the group: `rbac` for `rbac.authorization.k8s.io`.
    let package = group.split('.').next().unwrap_or_default();
    message(&format!("{package}.{version}.{kind}")).or_else(|| message(&format!("meta.v1.{kind}")))
}

fn read(text: &'static str) -> BTreeMap<&'static str, Message> {
    let mut all = BTreeMap::new();
    let mut current = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("message ") {
            let (name, mark) = rest.split_once(' ').unwrap_or((rest, ""));
            current = name;
            all.insert(name, Message { either: mark == "either", ..Message::default() });
        } else if let Some((number, field)) = line.strip_prefix(' ').and_then(field)
            && let Some(message) = all.get_mut(current)
        {
            message.fields.insert(number, field);
        }
    }
    all
}

fn field(line: &'static str) -> Option<(u32, Field)> {
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let name = words.next()?;
    let word = words.next()?;
    let (label, word) = if let Some(word) = word.strip_prefix("[]") {
        (Label::Many, word)
    } else if let Some(word) = word.strip_prefix("{}") {
        (Label::Map, word)
    } else {
        (Label::One, word)
    };
    let ty = match word {
        "s" => Type::Text,
        "i" => Type::Whole,
        "b" => Type::Truth,
        "d" => Type::Fraction,
        "y" => Type::Binary,
        "q" => Type::Quantity,
        "x" => Type::WholeOrText,
        "t" => Type::Seconds,
        "m" => Type::Micros,
        "r" => Type::Json,
        "w" => Type::Words,
        _ => Type::Message(word.strip_prefix('@')?),
    };
    Some((number, Field { name, label, ty }))
}
