//! A field of an object that was read, as a text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::canonical;
use crate::failure::Why;
use crate::known::{Found, Read, Reference};
use crate::pointer::{Nowhere, Pointer};
use crate::value::{MAX_TEXT, Text};

/// What a field comes to, or what is wrong with the object or the field.
pub(super) fn text(reference: &Reference, read: &Read, pointer: &Pointer) -> Result<Text, Why> {
    let of = || reference.clone();
    let found = match read {
        Read::Found(found) => found,
        Read::Missing => return Err(Why::Missing(of())),
        Read::Forbidden => return Err(Why::Forbidden(of())),
        Read::NoSuchKind => return Err(Why::NoSuchKind(of())),
        Read::NoSuchModule => return Err(Why::NoSuchModule(of())),
        Read::SeveralObjects => return Err(Why::SeveralObjects(of())),
        Read::SeveralKinds(versions) => {
            return Err(Why::SeveralKinds {
                reference: of(),
                versions: versions.clone(),
            });
        }
    };
    let value = value(reference, found, pointer)?;
    let text = canonical::text(&value).ok_or_else(|| Why::Null {
        reference: of(),
        pointer: pointer.to_string(),
    })?;
    if text.len() > MAX_TEXT {
        return Err(Why::TooLong);
    }
    Ok(if reference.is_secret() {
        Text::secret(text, found.stamp(), &pointer.to_string())
    } else {
        Text::public(text)
    })
}

fn value(reference: &Reference, found: &Found, pointer: &Pointer) -> Result<Value, Why> {
    let object = found.object();
    let is_encoded = reference.is_secret() && object.get("apiVersion") == Some(&"v1".into());
    let found = match pointer.tokens() {
        [data] if is_encoded && data == "data" => {
            return all(object.get("data")).ok_or_else(|| not_text(reference, pointer));
        }
        [data, key, rest @ ..] if is_encoded && data == "data" => {
            let found = Pointer::to(["data", key]).find(object);
            let text = found.map_err(|nowhere| no_field(reference, pointer, nowhere))?;
            let text = decoded(text).ok_or_else(|| not_text(reference, pointer))?;
            match rest.first() {
                None => Ok(Value::String(text)),
                Some(more) => Err(Nowhere::NoFields(more.clone())),
            }
        }
        _ => pointer.find(object).cloned(),
    };
    found.map_err(|nowhere| no_field(reference, pointer, nowhere))
}

fn no_field(reference: &Reference, pointer: &Pointer, nowhere: Nowhere) -> Why {
    Why::NoField {
        reference: reference.clone(),
        pointer: pointer.to_string(),
        nowhere,
    }
}

fn not_text(reference: &Reference, pointer: &Pointer) -> Why {
    Why::NotText {
        reference: reference.clone(),
        pointer: pointer.to_string(),
    }
}

/// What a Secret has under a key.
fn decoded(value: &Value) -> Option<String> {
    let bytes = STANDARD.decode(value.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

/// All that a Secret has.
fn all(data: Option<&Value>) -> Option<Value> {
    let Some(data) = data.filter(|data| !data.is_null()) else {
        return Some(Value::Object(Map::new()));
    };
    let pairs = data.as_object()?.iter();
    let pairs = pairs.map(|(key, value)| Some((key.clone(), Value::String(decoded(value)?))));
    pairs.collect::<Option<Map<_, _>>>().map(Value::Object)
}
