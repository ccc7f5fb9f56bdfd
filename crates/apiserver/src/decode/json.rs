//! JSON as Go's decoder reads it: the same texts accepted, the same errors, duplicate keys noticed.
//!
//! It does not recurse, so that nesting costs no stack; what comes out is nested at most [`MAX_DEPTH`] deep.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::text::Scanner;

/// How deep objects and lists may be nested. The real server allows 10,000; everything here that walks a value
/// recurses, so we refuse far earlier than the stack ends.
pub const MAX_DEPTH: usize = 512;

/// A value, and what its tree does not show.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Document {
    pub(super) value: Value,
    /// Paths of keys that stand twice in an object, in the order of the text.
    pub(super) duplicates: Vec<String>,
    /// Numbers whose text the value does not show, by path: `1e400`, `12345678901234567890123`.
    pub(super) literals: BTreeMap<String, String>,
}

/// What becomes of a key that stands twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twice {
    /// The last value counts, as in untyped Go values.
    Replace,
    /// Objects are merged, as in typed Go values.
    Merge,
}

/// Reads one value and nothing after it. The error is Go's text.
pub(super) fn read(body: &[u8], twice: Twice) -> Result<Document, String> {
    let mut reader = Reader::new(body);
    reader.twice = twice;
    reader.run()?;
    Ok(reader.document)
}

/// The places at which `paths` first stand in the text, for putting messages about them in its order. A path
/// given with `true` is looked for where it stands the second time.
pub(super) fn places(body: &[u8], paths: &[(&str, bool)]) -> Vec<usize> {
    let mut reader = Reader::new(body);
    reader.watch = Some(BTreeMap::new());
    // A text that cannot be read has no order; the caller has read it before.
    let _ = reader.run();
    let seen = reader.watch.unwrap_or_default();
    paths
        .iter()
        .map(|(path, second)| {
            seen.get(*path)
                .and_then(|at| at.get(usize::from(*second)).or(at.first()))
                .copied()
                .unwrap_or(usize::MAX)
        })
        .collect()
}

/// An object or list that is still open.
enum Frame {
    Object {
        map: Map<String, Value>,
        key: String,
    },
    List(Vec<Value>),
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    frames: Vec<Frame>,
    document: Document,
    twice: Twice,
    /// Where keys stand, if that is wanted.
    watch: Option<BTreeMap<String, Vec<usize>>>,
}

impl<'a> Reader<'a> {
    fn new(body: &'a [u8]) -> Self {
        Self {
            scanner: Scanner::new(body),
            frames: Vec::new(),
            document: Document::default(),
            twice: Twice::Replace,
            watch: None,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        loop {
            let Some(mut value) = self.begin_value()? else {
                continue;
            };
            // A finished value may finish the ones around it.
            loop {
                match self.frames.last_mut() {
                    None => {
                        self.document.value = value;
                        return self.scanner.end();
                    }
                    Some(Frame::Object { map, key }) => {
                        let key = std::mem::take(key);
                        match map.get_mut(&key) {
                            Some(old) if self.twice == Twice::Merge => merge(old, value),
                            _ => {
                                map.insert(key, value);
                            }
                        }
                        if self.scanner.more(b'}', "after object key:value pair")? {
                            let key = self.scanner.key()?;
                            self.note_key(&key);
                            break;
                        }
                    }
                    Some(Frame::List(items)) => {
                        items.push(value);
                        if self.scanner.more(b']', "after array element")? {
                            break;
                        }
                    }
                }
                value = match self.frames.pop() {
                    Some(Frame::Object { map, .. }) => Value::Object(map),
                    Some(Frame::List(items)) => Value::Array(items),
                    None => return Ok(()),
                };
            }
        }
    }

    /// A scalar or empty container; none if a container was opened and its first value comes next.
    fn begin_value(&mut self) -> Result<Option<Value>, String> {
        let first = self.scanner.first()?;
        match first {
            b'{' => {
                self.scanner.open(self.frames.len() + 1, MAX_DEPTH)?;
                if self.scanner.closes(b'}')? {
                    return Ok(Some(Value::Object(Map::new())));
                }
                self.frames.push(Frame::Object {
                    map: Map::new(),
                    key: String::new(),
                });
                let key = self.scanner.key()?;
                self.note_key(&key);
                Ok(None)
            }
            b'[' => {
                self.scanner.open(self.frames.len() + 1, MAX_DEPTH)?;
                if self.scanner.closes(b']')? {
                    return Ok(Some(Value::Array(Vec::new())));
                }
                self.frames.push(Frame::List(Vec::new()));
                Ok(None)
            }
            b'"' => Ok(Some(Value::String(self.scanner.string()?))),
            b't' => self.scanner.word(b"true").map(|()| Some(Value::Bool(true))),
            b'f' => self
                .scanner
                .word(b"false")
                .map(|()| Some(Value::Bool(false))),
            b'n' => self.scanner.word(b"null").map(|()| Some(Value::Null)),
            _ => {
                let literal = self.scanner.number()?.to_owned();
                Ok(Some(self.number(&literal)))
            }
        }
    }

    fn number(&mut self, literal: &str) -> Value {
        if let Ok(number) = literal.parse::<i64>() {
            return number.into();
        }
        let number = literal
            .parse::<u64>()
            .ok()
            .map(Number::from)
            .or_else(|| Number::from_f64(literal.parse().ok()?));
        let shown = number.as_ref().map(Number::to_string);
        if shown.as_deref() != Some(literal) {
            let path = self.path();
            self.document.literals.insert(path, literal.to_owned());
        }
        // What no float can hold has only its text left; readers of the text find it first.
        number.map_or(Value::from(0), Value::Number)
    }

    fn note_key(&mut self, key: &str) {
        let Some(Frame::Object { map, key: slot }) = self.frames.last_mut() else {
            return;
        };
        key.clone_into(slot);
        let twice = map.contains_key(key);
        if twice {
            let path = self.path();
            self.document.duplicates.push(path);
        }
        if self.watch.is_some() {
            let path = self.path();
            let at = self.scanner.at();
            if let Some(watch) = &mut self.watch {
                watch.entry(path).or_default().push(at);
            }
        }
    }

    /// The path of the value that comes next: `spec.containers[0].name`.
    fn path(&self) -> String {
        let mut path = String::new();
        for frame in &self.frames {
            match frame {
                Frame::Object { key, .. } => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                Frame::List(items) => {
                    path.push('[');
                    path.push_str(&items.len().to_string());
                    path.push(']');
                }
            }
        }
        path
    }
}

/// Puts `new` over `old`, entry by entry.
fn merge(old: &mut Value, new: Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                match old.get_mut(&key) {
                    Some(slot) => merge(slot, value),
                    None => {
                        old.insert(key, value);
                    }
                }
            }
        }
        (slot, new) => *slot = new,
    }
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

    fn error(text: &str) -> String {
        read(text.as_bytes(), Twice::Replace).unwrap_err()
    }

    #[test]
    fn reads_what_serde_reads() {
        let text = r#" {"a":[1,-2.5,true,null,{"b":"x\n\u00e9\ud83d\ude00"}],"c":{},"d":[],"":18446744073709551615} "#;
        let document = read(text.as_bytes(), Twice::Replace).unwrap();
        assert_eq!(document.value, serde_json::from_str::<Value>(text).unwrap());
        assert!(document.duplicates.is_empty() && document.literals.is_empty());
    }

    #[test]
    fn notices_duplicates_and_keeps_the_last() {
        let document = read(br#"{"a":[{"b":1,"b":2}],"c":1,"c":3}"#, Twice::Replace).unwrap();
        assert_eq!(document.value, json!({"a": [{"b": 2}], "c": 3}));
        assert_eq!(document.duplicates, ["a[0].b", "c"]);
    }

    #[test]
    fn errors_are_gos() {
        for (text, message) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{\"a\":1}}", "invalid character '}' after top-level value"),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            (
                "{'a':1}",
                "invalid character '\\'' looking for beginning of object key string",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{\"a\":1 2}",
                "invalid character '2' after object key:value pair",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            (
                "[tru]",
                "invalid character ']' in literal true (expecting 'e')",
            ),
            ("\"\u{1}\"", "invalid character '\\x01' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            (
                "\"\\u12g4\"",
                "invalid character 'g' in \\u hexadecimal character escape",
            ),
            ("01", "invalid character '1' after top-level value"),
            ("-x", "invalid character 'x' in numeric literal"),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            (
                "1ex",
                "invalid character 'x' in exponent of numeric literal",
            ),
            ("\"abc", "unexpected end of JSON input"),
            ("é", "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(error(text), message, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded_without_using_the_stack() {
        let deep = "[".repeat(1_000_000);
        assert_eq!(error(&deep), "invalid character '[' exceeded max depth");
        let fine = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(read(fine.as_bytes(), Twice::Replace).is_ok());
    }

    #[test]
    fn odd_text_is_read_as_go_reads_it() {
        let document = read(
            b"{\"a\":\"\xff\xfe\xe2(\",\"b\":\"\\ud800x\",\"c\":1e400}",
            Twice::Replace,
        )
        .unwrap();
        assert_eq!(document.value["a"], json!("\u{fffd}\u{fffd}\u{fffd}("));
        assert_eq!(document.value["b"], json!("\u{fffd}x"));
        assert_eq!(document.literals["c"], "1e400");
    }

    #[test]
    fn finds_places_in_the_text() {
        let at = places(
            br#"{"b":1,"a":{"x":1,"b":2},"b":3}"#,
            &[("b", true), ("a.x", false), ("b", false)],
        );
        assert!(at[2] < at[1] && at[1] < at[0]);
    }
}
