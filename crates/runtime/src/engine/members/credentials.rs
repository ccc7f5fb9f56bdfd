//! Reads the credentials of a member, and has a client made of them.
//!
//! They go from the answer to whoever makes the client and nowhere else: into no store, fact, message or log line.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use slipway_api::purpose::runtime::CREDENTIALS;
use slipway_kernel::identity::{ObjectRef, kinds};
use slipway_kernel::member::Member;

use crate::connect::{Connect, Unconnected};
use crate::request::{ApiRequest, Outcome};

/// A client for a member.
pub(super) async fn client(
    home: &kube::Client,
    connect: &Arc<dyn Connect>,
    member: &Member,
    timeout: Duration,
) -> Result<kube::Client, Unconnected> {
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
    let data = found.get("data").and_then(|data| data.get(key));
    let Some(text) = data.and_then(Value::as_str) else {
        return Err(failed(&format!("it has no entry {key}")));
    };
    let Ok(bytes) = STANDARD.decode(text) else {
        return Err(failed(&format!("entry {key} is no base64")));
    };
    let made = connect.connect(member, &bytes);
    made.map_err(|Unconnected(why)| failed(&format!("entry {key}: {why}")))
}
