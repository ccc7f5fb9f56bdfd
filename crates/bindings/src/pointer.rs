//! JSON pointers: which field of an object.
//!
//! As in RFC 6901: empty for all of it, else `/key/0/key`, with `~1` for `/` and `~0` for `~`. There are no wildcards, and
//! `-` is no element.

use serde_json::Value;

/// A pointer that is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    tokens: Vec<String>,
}

/// Why a text is no pointer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPointer {
    /// It does not begin with a slash.
    #[error("{0:?} is no JSON pointer: it has to begin with /, as /data/key")]
    NoSlash(String),
    /// There is a `~` that stands for nothing.
    #[error("{0:?} is no JSON pointer: ~ is written ~0, and / within a key ~1")]
    Tilde(String),
}

/// Where a pointer led to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Nowhere {
    /// There is no such key.
    #[error("there is no {0}")]
    NoKey(String),
    /// There is no such element.
    #[error("{0} is no element of the list")]
    NoElement(String),
    /// What has no fields was asked for one.
    #[error("{0} is asked of what has no fields")]
    NoFields(String),
}

impl Pointer {
    /// Reads a pointer.
    pub fn parse(text: &str) -> Result<Self, NoPointer> {
        if text.is_empty() {
            return Ok(Self { tokens: Vec::new() });
        }
        let inner = text
            .strip_prefix('/')
            .ok_or_else(|| NoPointer::NoSlash(text.to_owned()))?;
        let tokens = inner.split('/').map(unescape).collect::<Option<Vec<_>>>();
        let tokens = tokens.ok_or_else(|| NoPointer::Tilde(text.to_owned()))?;
        Ok(Self { tokens })
    }

    /// A pointer to these keys.
    pub fn to<const N: usize>(keys: [&str; N]) -> Self {
        Self {
            tokens: keys.map(str::to_owned).into(),
        }
    }

    /// Its keys and indices.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// What it leads to.
    pub fn find<'a>(&self, value: &'a Value) -> Result<&'a Value, Nowhere> {
        self.tokens.iter().try_fold(value, step)
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut tokens = self.tokens.iter();
        tokens.try_for_each(|token| {
            let token = token.replace('~', "~0").replace('/', "~1");
            write!(f, "/{token}")
        })
    }
}

/// A token without its escapes; none where a `~` stands for nothing.
fn unescape(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (sign, rest) = match part.as_bytes().first()? {
            b'0' => ('~', part.get(1..)?),
            b'1' => ('/', part.get(1..)?),
            _ => return None,
        };
        text.push(sign);
        text.push_str(rest);
    }
    Some(text)
}

fn step<'a>(value: &'a Value, token: &String) -> Result<&'a Value, Nowhere> {
    match value {
        Value::Object(fields) => fields
            .get(token)
            .ok_or_else(|| Nowhere::NoKey(token.clone())),
        Value::Array(list) => index(token)
            .and_then(|index| list.get(index))
            .ok_or_else(|| Nowhere::NoElement(token.clone())),
        _ => Err(Nowhere::NoFields(token.clone())),
    }
}

/// Digits, without zeros before others.
fn index(token: &str) -> Option<usize> {
    let is_number = !token.is_empty() && token.bytes().all(|b| b.is_ascii_digit());
    let is_plain = token == "0" || !token.starts_with('0');
    (is_number && is_plain)
        .then(|| token.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{NoPointer, Nowhere, Pointer};

    fn find(pointer: &str) -> Result<Value, String> {
        let object =
            json!({"a": {"b": [10, {"c": null}]}, "": 1, "x/y": 2, "x~y": 3, "~1": 4, "é": 5});
        let pointer = Pointer::parse(pointer).map_err(|error| error.to_string())?;
        let found = pointer.find(&object).map_err(|error| error.to_string())?;
        Ok(found.clone())
    }

    #[test]
    fn pointers_lead_to_fields_and_elements() {
        for (pointer, expected) in [
            ("/a/b/0", json!(10)),
            ("/a/b/1/c", Value::Null),
            ("/a/b/1", json!({"c": null})),
            ("/", json!(1)),
            ("/x~1y", json!(2)),
            ("/x~0y", json!(3)),
            ("/~01", json!(4)),
            ("/é", json!(5)),
        ] {
            assert_eq!(find(pointer), Ok(expected), "{pointer}");
        }
        assert_eq!(
            find("").map(|whole| whole["a"]["b"][0].clone()),
            Ok(json!(10))
        );
    }

    #[test]
    fn what_leads_nowhere_is_told_apart() {
        for (pointer, expected) in [
            ("/b", Nowhere::NoKey("b".to_owned())),
            ("/a/b/2", Nowhere::NoElement("2".to_owned())),
            ("/a/b/-", Nowhere::NoElement("-".to_owned())),
            ("/a/b/00", Nowhere::NoElement("00".to_owned())),
            ("/a/b/+1", Nowhere::NoElement("+1".to_owned())),
            ("/a/b/c", Nowhere::NoElement("c".to_owned())),
            (
                "/a/b/99999999999999999999",
                Nowhere::NoElement("99999999999999999999".to_owned()),
            ),
            ("/a/b/0/x", Nowhere::NoFields("x".to_owned())),
        ] {
            assert_eq!(find(pointer), Err(expected.to_string()), "{pointer}");
        }
        for text in [".data.x", "data", "a/b"] {
            let told = NoPointer::NoSlash(text.to_owned());
            assert_eq!(Pointer::parse(text), Err(told));
        }
        for text in ["/~", "/~2", "/a/~é", "/a~"] {
            let told = NoPointer::Tilde(text.to_owned());
            assert_eq!(Pointer::parse(text), Err(told));
        }
    }

    #[test]
    fn pointers_are_printed_as_they_are_read() {
        for text in ["", "/", "/a/b/0", "/x~1y/x~0y", "/~01", "//"] {
            assert_eq!(
                Pointer::parse(text).map(|p| p.to_string()),
                Ok(text.to_owned())
            );
        }
    }
}
