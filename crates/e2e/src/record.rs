//! Request/response pairs of programs on a kube-apiserver: how they are kept, and a proxy that records them.
//!
//! The proxy lets one request through at a time, so that the order of the pairs is the order in which the server carried
//! them out. Watches run beside; of their events only what happened to which object is kept. Nothing secret is kept: the
//! proxy speaks with a token of its own, and tokens in answers are taken out.

pub mod kept;
mod proxy;

pub use proxy::Proxy;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What stands for a token.
pub const SCRUBBED: &str = "<scrubbed>";

/// One request and its answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The `User-Agent`, to its first blank.
    pub agent: String,
    /// Such as `GET`.
    pub method: String,
    /// With its query.
    pub path: String,
    /// The `Accept` that the server saw.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub accept: String,
    /// The `Content-Type` of the body.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media: String,
    /// The body.
    #[serde(default, skip_serializing_if = "Content::is_empty")]
    pub body: Content,
    /// The status code.
    pub code: u16,
    /// The answer's body.
    #[serde(default, skip_serializing_if = "Content::is_empty")]
    pub answer: Content,
    /// Of a watch: what it showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Seen>>,
}

impl Pair {
    /// Whether this is a watch.
    pub fn is_watch(&self) -> bool {
        is_watch(&self.path)
    }

    /// The program that asked.
    pub fn program(&self) -> &str {
        self.agent.split('/').next().unwrap_or_default()
    }
}

/// Whether a path asks for a watch.
fn is_watch(path: &str) -> bool {
    path.split_once('?').is_some_and(|(_, query)| {
        query
            .split('&')
            .any(|part| matches!(part, "watch=true" | "watch=1"))
    })
}

/// A body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// None.
    #[default]
    Empty,
    /// JSON.
    Json(Value),
    /// Anything else, in base64.
    Bytes(String),
}

impl Content {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::Empty
    }

    /// From bytes.
    pub fn read(bytes: &[u8]) -> Self {
        use base64::Engine as _;
        if bytes.is_empty() {
            return Self::Empty;
        }
        serde_json::from_slice(bytes).map_or_else(
            |_| Self::Bytes(base64::engine::general_purpose::STANDARD.encode(bytes)),
            Self::Json,
        )
    }
}

/// An event of a watch: type, namespace, name and version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seen(pub String, pub String, pub String, pub String);

impl Seen {
    /// What a line of a watch says; none for bookmarks.
    pub fn read(line: &[u8]) -> Option<Self> {
        let event: Value = serde_json::from_slice(line).ok()?;
        let text = |path: &str| {
            let found = event.pointer(path).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let kind = text("/type");
        (kind != "BOOKMARK").then(|| {
            Self(
                kind,
                text("/object/metadata/namespace"),
                text("/object/metadata/name"),
                text("/object/metadata/resourceVersion"),
            )
        })
    }
}
