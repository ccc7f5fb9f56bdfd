//! YAML as the real server reads it: YAML 1.1 scalars (`yes`, `0777`, `~`), only the first document, keys made
//! text, duplicate keys noticed, anchors bounded.
//!
//! Syntax errors carry Go's text for the common mistakes and the parser's own for the rest.

mod scalar;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Tag};

use super::json::MAX_DEPTH;
use scalar::Scalar;

/// How many values aliases may stand for altogether: enough for any manifest, too few for a bomb.
const MAX_ALIASED: usize = 100_000;

/// A value and the complaints about keys that stand twice, without their common first line.
pub(super) struct Document {
    pub(super) value: Value,
    pub(super) duplicates: Vec<String>,
}

/// Reads the first document. The error is the whole text.
pub(super) fn read(body: &str) -> Result<Document, String> {
    let mut reader = Reader::default();
    let mut options = Options::default();
    options.emit_unresolved_aliases = true;
    for event in Parser::new_from_str_with_options(body, options) {
        let (event, span) = event.map_err(|error| explain(&error))?;
        if reader.take(event, span.start.line())? {
            break;
        }
    }
    Ok(Document {
        value: reader.finished.unwrap_or(Value::Null),
        duplicates: reader.duplicates,
    })
}

/// Go's text for a syntax error.
fn explain(error: &ScanError) -> String {
    let info = error.info();
    let known = [
        ("mapping values are not allowed", MAPPING_VALUES),
        ("simple key expect", "could not find expected ':'"),
        (
            "simple key is no longer valid",
            "could not find expected ':'",
        ),
        ("tab", BAD_TOKEN),
        ("unexpected character", BAD_TOKEN),
        ("unclosed quote", "found unexpected end of stream"),
        ("unclosed bracket '['", "did not find expected ',' or ']'"),
        ("unclosed bracket '{'", "did not find expected ',' or '}'"),
        ("',' or ']'", "did not find expected ',' or ']'"),
        ("misplaced bracket", "did not find expected node content"),
        ("invalid indentation", "did not find expected key"),
        (
            "block sequence entries",
            "block sequence entries are not allowed in this context",
        ),
    ];
    let text = known
        .iter()
        .find(|(mark, _)| info.contains(mark))
        .map_or(info.as_str(), |(_, text)| *text);
    let text = match text.split_once(", ") {
        Some((context, what)) if context.starts_with("while ") => what,
        _ => text,
    };
    match error.marker().line() {
        0 | 1 => format!("yaml: {text}"),
        line => format!("yaml: line {line}: {text}"),
    }
}

const MAPPING_VALUES: &str = "mapping values are not allowed in this context";
const BAD_TOKEN: &str = "found character that cannot start any token";

/// A mapping or sequence that is still open.
enum Frame {
    Map {
        map: Map<String, Value>,
        /// The key whose value comes next.
        key: Option<Key>,
        anchor: usize,
    },
    List {
        items: Vec<Value>,
        anchor: usize,
    },
}

enum Key {
    Named(String),
    /// `<<`: the mapping that comes next stands for its entries.
    Merge,
}

/// What an anchor stands for.
struct Anchored {
    value: Value,
    size: usize,
    depth: usize,
}

#[derive(Default)]
struct Reader {
    frames: Vec<Frame>,
    anchors: BTreeMap<usize, Anchored>,
    aliased: usize,
    duplicates: Vec<String>,
    finished: Option<Value>,
}

impl Reader {
    /// Takes one event; true when the first document is complete.
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<bool, String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), line)?;
            }
            Event::SequenceStart(_, anchor, _) => self.open(Frame::List {
                items: Vec::new(),
                anchor,
            })?,
            Event::MappingStart(_, anchor, _) => self.open(Frame::Map {
                map: Map::new(),
                key: None,
                anchor,
            })?,
            Event::SequenceEnd | Event::MappingEnd => {
                let (value, anchor) = match self.frames.pop() {
                    Some(Frame::Map { map, anchor, .. }) => (Value::Object(map), anchor),
                    Some(Frame::List { items, anchor }) => (Value::Array(items), anchor),
                    None => return Ok(true),
                };
                self.place(value, anchor)?;
            }
            Event::Alias(id) => {
                let (value, size, depth) = match self.anchors.get(&id) {
                    Some(found) => (found.value.clone(), found.size, found.depth),
                    None => return Err("yaml: anchor contains itself".to_owned()),
                };
                self.aliased = self.aliased.saturating_add(size);
                if self.aliased > MAX_ALIASED || self.frames.len() + depth > MAX_DEPTH {
                    return Err("yaml: document contains excessive aliasing".to_owned());
                }
                self.place(value, 0)?;
            }
            Event::UnresolvedAlias(name) => {
                return Err(format!("yaml: unknown anchor '{name}' referenced"));
            }
            Event::DocumentEnd | Event::StreamEnd => return Ok(true),
            _ => {}
        }
        Ok(false)
    }

    fn open(&mut self, frame: Frame) -> Result<(), String> {
        if self.frames.len() >= MAX_DEPTH {
            return Err("yaml: exceeded max depth of 10000".to_owned());
        }
        if self.expects_key() {
            return Err(unsupported_key("map[interface {}]interface {}"));
        }
        self.frames.push(frame);
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Map { key: None, .. }))
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        line: usize,
    ) -> Result<(), String> {
        let plain = style == ScalarStyle::Plain;
        let tag = tag.and_then(Tag::core_suffix);
        let scalar = scalar::resolve(text, plain, tag)?;
        if !self.expects_key() {
            return self.place(scalar.into_value()?, anchor);
        }
        let new = match scalar {
            Scalar::Text(text) if plain && text == "<<" => Key::Merge,
            other => Key::Named(other.into_key()?),
        };
        if let Some(Frame::Map { map, key, .. }) = self.frames.last_mut() {
            if let Key::Named(name) = &new
                && map.contains_key(name)
            {
                let name = crate::field::quote(name);
                self.duplicates
                    .push(format!("line {line}: key {name} already set in map"));
            }
            *key = Some(new);
        }
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn place(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        if anchor != 0 {
            let (size, depth) = measure(&value);
            self.anchors.insert(
                anchor,
                Anchored {
                    value: value.clone(),
                    size,
                    depth,
                },
            );
        }
        match self.frames.last_mut() {
            None => self.finished = Some(value),
            Some(Frame::List { items, .. }) => items.push(value),
            Some(Frame::Map { map, key, .. }) => match key.take() {
                Some(Key::Named(name)) => {
                    map.insert(name, value);
                }
                Some(Key::Merge) => merge(map, value)?,
                None => match value {
                    Value::String(text) => *key = Some(Key::Named(text)),
                    _ => return Err(unsupported_key("map[interface {}]interface {}")),
                },
            },
        }
        Ok(())
    }
}

fn unsupported_key(what: &str) -> String {
    format!("unsupported map key of type: {what}")
}

/// Adds the entries of the mapping, or list of mappings, that `<<` names.
fn merge(map: &mut Map<String, Value>, from: Value) -> Result<(), String> {
    match from {
        Value::Object(entries) => map.extend(entries),
        Value::Array(items) => {
            for item in items.into_iter().rev() {
                let Value::Object(entries) = item else {
                    return Err(
                        "yaml: map merge requires map or sequence of maps as the value".to_owned(),
                    );
                };
                map.extend(entries);
            }
        }
        _ => {
            return Err("yaml: map merge requires map or sequence of maps as the value".to_owned());
        }
    }
    Ok(())
}

/// How many values a value holds, and how deep it is nested.
fn measure(value: &Value) -> (usize, usize) {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => return (1, 0),
    };
    inner
        .map(measure)
        .fold((1, 1), |(size, depth), (s, d)| (size + s, depth.max(d + 1)))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "tests"
    )]

    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        read(text).unwrap().value
    }

    #[test]
    fn scalars_are_yaml_1_1() {
        assert_eq!(
            value(
                "a: yes\nb: off\nc: 0777\nd: 0x10\ne: ~\nf: 'yes'\ng: 1_000\nh: 1.0\ni: 1.5\nj: 2020-01-01\nk:\nl: 1e3\nm: 0b11\np: 12:30\no: !!str 5"
            ),
            json!({"a": true, "b": false, "c": 511, "d": 16, "e": null, "f": "yes", "g": 1000, "h": 1, "i": 1.5,
                "j": "2020-01-01", "k": null, "l": 1000, "m": 3, "p": "12:30", "o": "5"})
        );
    }

    #[test]
    fn keys_become_text_and_duplicates_are_noticed() {
        let document = read("yes: 1\n1: 2\n1.5: 3\nx: {a: 1, a: 2}\n1: 4\n").unwrap();
        assert_eq!(
            document.value,
            json!({"true": 1, "1": 4, "1.5": 3, "x": {"a": 2}})
        );
        assert_eq!(
            document.duplicates,
            [
                "line 4: key \"a\" already set in map",
                "line 5: key \"1\" already set in map"
            ]
        );
    }

    #[test]
    fn anchors_and_merges_work_within_bounds() {
        assert_eq!(
            value("a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n"),
            json!({"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}})
        );
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for i in 1..12 {
            let inner = vec![format!("*a{}", i - 1); 10].join(",");
            bomb = format!("{bomb}a{i}: &a{i} [{inner}]\n");
        }
        assert_eq!(
            read(&bomb).err().unwrap(),
            "yaml: document contains excessive aliasing"
        );
    }

    #[test]
    fn only_the_first_document_counts() {
        assert_eq!(value("a: 1\n---\nb: ["), json!({"a": 1}));
        assert_eq!(value(""), Value::Null);
    }

    #[test]
    fn mistakes_are_named_as_go_names_them() {
        for (text, message) in [
            (
                "a: b: c",
                "yaml: mapping values are not allowed in this context",
            ),
            (
                "a: b\n c: d",
                "yaml: line 2: mapping values are not allowed in this context",
            ),
            ("a: *x", "yaml: unknown anchor 'x' referenced"),
            (
                "metadata:\n\tname: x",
                "yaml: line 2: found character that cannot start any token",
            ),
            ("a: .nan", "json: unsupported value: NaN"),
            ("a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ] {
            assert_eq!(read(text).err().unwrap(), message, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(read(&deep).is_err());
    }
}
