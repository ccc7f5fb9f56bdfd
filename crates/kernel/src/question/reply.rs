//! What is read out of an answer.

use serde_json::Value as Json;

use super::failure::Failure;
use super::number::Number;
use super::prometheus::{self, Measured};

/// How much of a text is kept: answers are many, and stay for as long as plans need them.
const LONGEST_TEXT: usize = 4 * 1024;
/// How much of what the other side says goes into an error.
const LONGEST_SAYING: usize = 256;

/// What is read out of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The status code alone.
    Status,
    /// The first 4 KiB of the body.
    Text,
    /// A number: all of the body, or what a JSON pointer (`/a/0/b`) leads to.
    Number(Option<String>),
    /// What Prometheus measured.
    Measured,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The HTTP status code.
    pub code: u16,
    /// What was read.
    pub value: Value,
}

impl Reply {
    /// How many bytes of text there are in it.
    pub(crate) fn size(&self) -> usize {
        match &self.value {
            Value::Text(text) => text.text.len(),
            Value::Measured(Measured::Partial { warnings, .. }) => {
                warnings.iter().map(String::len).sum()
            }
            Value::Nothing | Value::Number(_) | Value::Measured(Measured::Whole(_)) => 0,
        }
    }
}

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing was wanted but the status.
    Nothing,
    /// The beginning of the body.
    Text(Text),
    /// A number.
    Number(Number),
    /// What Prometheus measured.
    Measured(Measured),
}

/// The beginning of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// At most 4 KiB; what is no UTF-8 is replaced.
    pub text: String,
    /// There was more.
    pub is_cut: bool,
}

impl Wanted {
    /// Reads an answer that has come whole.
    pub fn read(&self, code: u16, body: &[u8]) -> Result<Reply, Failure> {
        let value = match self {
            Self::Status => Value::Nothing,
            Self::Text => Value::Text(beginning(body, LONGEST_TEXT)),
            Self::Number(_) if !(200..300).contains(&code) => return Err(refused(code, body)),
            Self::Number(pointer) => Value::Number(number(body, pointer.as_deref())?),
            Self::Measured => Value::Measured(prometheus::read(code, body)?),
        };
        Ok(Reply { code, value })
    }
}

/// What is said where the other side says no.
pub(super) fn refused(code: u16, body: &[u8]) -> Failure {
    let Text { mut text, is_cut } = beginning(body, LONGEST_SAYING);
    text.retain(|c| !c.is_control());
    if is_cut {
        text.push('…');
    }
    Failure::Refused {
        code,
        message: text,
    }
}

/// The first bytes, at most `most`, as text.
fn beginning(body: &[u8], most: usize) -> Text {
    let is_cut = body.len() > most;
    let kept = body.get(..most).unwrap_or(body);
    let text = match std::str::from_utf8(kept) {
        Ok(text) => text.to_owned(),
        // A character that was cut in two is left out.
        Err(error) if is_cut && error.error_len().is_none() => {
            let whole = kept.get(..error.valid_up_to()).unwrap_or_default();
            String::from_utf8_lossy(whole).into_owned()
        }
        Err(_) => {
            // Replacements are longer than what they replace.
            let mut text = String::from_utf8_lossy(kept).into_owned();
            while text.len() > most {
                text.pop();
            }
            text
        }
    };
    Text { text, is_cut }
}

fn number(body: &[u8], pointer: Option<&str>) -> Result<Number, Failure> {
    let malformed = |what: &str| Failure::Malformed(what.to_owned());
    let Some(pointer) = pointer else {
        let text = std::str::from_utf8(body).map_err(|_| malformed("it is no UTF-8"))?;
        return Number::parse(text.trim()).ok_or_else(|| malformed("it is no number"));
    };
    let json: Json = serde_json::from_slice(body).map_err(|_| malformed("it is no JSON"))?;
    let found = json.pointer(pointer);
    let found = found.ok_or_else(|| malformed("there is nothing where the number should be"))?;
    let number = match found {
        Json::Number(number) => number.as_f64().and_then(Number::finite),
        Json::String(text) => Number::parse(text),
        _ => None,
    };
    number.ok_or_else(|| malformed("there is no number where one should be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_whatever_the_body_is() {
        let reply = Wanted::Status.read(503, b"\xff\xff").unwrap();
        assert_eq!((reply.code, reply.value), (503, Value::Nothing));
    }

    #[test]
    fn of_a_text_the_first_four_kibibytes_are_kept() {
        let text = |body: &[u8]| match Wanted::Text.read(200, body).unwrap().value {
            Value::Text(text) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            text(b"ok"),
            Text {
                text: "ok".to_owned(),
                is_cut: false
            }
        );
        let long = text(&[b'x'; 5_000]);
        assert_eq!((long.text.len(), long.is_cut), (4_096, true));
        // Two bytes each, from an odd place on.
        let odd = text(format!("x{}", "ä".repeat(4_000)).as_bytes());
        assert_eq!((odd.text.len(), odd.is_cut), (4_095, true));
        let broken = text(&[0xff; 5_000]);
        assert!(broken.text.len() <= 4_096 && broken.is_cut);
    }

    #[test]
    fn a_number_is_the_body_or_what_a_pointer_leads_to() {
        let read = |pointer: Option<&str>, body: &str| {
            let wanted = Wanted::Number(pointer.map(str::to_owned));
            wanted.read(200, body.as_bytes())
        };
        let is = |number: f64| {
            Ok(Reply {
                code: 200,
                value: Value::Number(Number::Finite(number)),
            })
        };
        assert_eq!(read(None, " 12.5\n"), is(12.5));
        assert_eq!(read(Some("/a/0/b"), r#"{"a":[{"b":3}]}"#), is(3.0));
        assert_eq!(read(Some("/a"), r#"{"a":"-0"}"#), is(0.0));
        for (pointer, body) in [
            (None, "twelve"),
            (None, ""),
            (Some("/a"), "{}"),
            (Some("/a"), r#"{"a":true}"#),
            (Some("/a"), r#"{"a":1e400}"#),
            (Some("/a"), r#"{"a":"#),
            (Some("a"), r#"{"a":1}"#),
        ] {
            let read = read(pointer, body);
            assert!(
                matches!(read, Err(Failure::Malformed(_))),
                "{body}: {read:?}"
            );
        }
        let refused = Wanted::Number(None)
            .read(404, b"no\r\nsuch thing")
            .unwrap_err();
        assert_eq!(refused.to_string(), "refused with code 404: nosuch thing");
    }
}
