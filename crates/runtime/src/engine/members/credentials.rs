//! Reads the credentials of a member, and has a client made of them.
//!
//! They go from the answer to whoever makes the client and nowhere else: into no store, fact, message or log line. What was read
//! is overwritten when the client is there, the entries that nobody asked for as well. That does not reach the buffers of the
//! connection to home, which go when they are used again.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use slipway_api::purpose::runtime::CREDENTIALS;
use slipway_kernel::Sensitive;
use slipway_kernel::identity::{ObjectRef, kinds};
use slipway_kernel::member::Member;
use zeroize::Zeroize;

use crate::channel::Channel;
use crate::connect::{Connect, Unconnected};
use crate::request::{ApiRequest, Outcome};

/// A client for a member.
pub(super) async fn client(
    home: &Channel,
    connect: &Arc<dyn Connect>,
    member: &Member,
    timeout: Duration,
) -> Result<Channel, Unconnected> {
    let from = &member.credentials;
    let secret = ObjectRef::local(kinds::SECRET, &from.namespace, &from.name);
    let wanted = ApiRequest::get(&secret).traced(format!("purpose={CREDENTIALS}"));
    let failed = |why: &str| Unconnected(format!("{secret}: {why}"));
    let found = match wanted.send(home, timeout).await {
        Outcome::Done(found) => found,
        Outcome::Absent(_) => return Err(failed("there is none")),
        Outcome::Refused(refused) | Outcome::Unknown(refused, _) => {
            return Err(failed(&refused.message));
        }
        Outcome::Conflict | Outcome::Busy(_) => {
            return Err(failed("the API server has too much to do"));
        }
    };
    let key = &from.key;
    let bytes = entry(found, key).map_err(|why| failed(&format!("{why} {key}")))?;
    let made = connect.connect(member, bytes.expose());
    made.map_err(|Unconnected(why)| failed(&format!("entry {key}: {why}")))
}

/// What an entry of a Secret holds. Nothing is left of the others.
fn entry(mut secret: Value, key: &str) -> Result<Sensitive<Vec<u8>>, &'static str> {
    let text = secret.get_mut("data").and_then(|data| data.get_mut(key));
    let text = match text.map(Value::take) {
        Some(Value::String(text)) => Some(Sensitive::new(text)),
        _ => None,
    };
    wipe(secret);
    let text = text.ok_or("it has no entry")?;
    let bytes = STANDARD.decode(text.expose());
    bytes
        .map(Sensitive::new)
        .map_err(|_| "it has no base64 in its entry")
}

/// Overwrites all texts of an object. Annotations may have a copy of all that is in a Secret.
fn wipe(value: Value) {
    match value {
        Value::String(mut text) => text.zeroize(),
        Value::Array(items) => items.into_iter().for_each(wipe),
        Value::Object(fields) => fields.into_iter().for_each(|(_, field)| wipe(field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    #[test]
    fn one_entry_is_read_and_an_error_has_nothing_of_any() {
        let secret = || {
            json!({
                "metadata": {"annotations": {"applied": "marker"}},
                "data": {"good": STANDARD.encode("marker"), "bad": "marker!", "odd": ["marker"]},
            })
        };
        let good = entry(secret(), "good").ok().unwrap();
        assert_eq!(good.expose(), b"marker");
        for (key, part) in [
            ("bad", "no base64"),
            ("odd", "no entry"),
            ("none", "no entry"),
        ] {
            let why = entry(secret(), key).err().unwrap();
            assert!(why.contains(part) && !why.contains("marker"), "{why}");
        }
        assert!(entry(json!(null), "good").is_err());
    }
}
