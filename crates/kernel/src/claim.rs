//! Who disrupts a workload now: an annotation on it, so that two capabilities never do at once.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A holder's claim, void after its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The capability.
    pub holder: String,
    /// When it ends at the latest.
    pub until: Timestamp,
}

impl Claim {
    /// The claim in an annotation's value, if it still holds. What cannot be read claims nothing.
    pub fn read(value: &str, now: Timestamp) -> Option<Self> {
        let claim: Self = serde_json::from_str(value).ok()?;
        (claim.until > now).then_some(claim)
    }

    /// As an annotation's value.
    pub fn render(&self) -> String {
        serde_json::json!({"holder": self.holder, "until": self.until.to_string()}).to_string()
    }
}
