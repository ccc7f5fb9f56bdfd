//! What the world outside was asked.

use jiff::Timestamp;

use crate::fault::CallFault;

/// One call of the operator to the world outside of the API.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its place among all calls of the operator.
    pub number: u64,
    /// When it left.
    pub at: Timestamp,
    /// Which replica made it.
    pub replica: String,
    /// `GET`, `POST`, ….
    pub method: String,
    /// The whole address.
    pub url: String,
    /// The question's name: the idempotency key.
    pub id: String,
    /// What was sent along.
    pub body: String,
    /// What Prometheus is asked in it.
    pub query: Option<String>,
    /// The fault it met.
    pub fault: Option<&'static str>,
    /// How often it arrived.
    pub arrived: u32,
    /// When the operator was told something, and with which code; none if it never was.
    pub told: Option<(Timestamp, u16)>,
    /// What it was told, if that was whole.
    pub said: Option<String>,
}

impl Asked {
    /// Whether there is anything to be read in its answer: of others no more than the code can be known.
    pub fn is_readable(&self) -> bool {
        let garbled = [CallFault::Malformed.name(), CallFault::Endless.name()];
        self.fault.is_none_or(|fault| !garbled.contains(&fault))
    }

    /// Who was asked.
    pub fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.split(['/', ':', '?']).next().unwrap_or_default()
    }
}
