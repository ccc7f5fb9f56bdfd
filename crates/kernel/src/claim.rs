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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use jiff::Timestamp;

    use super::Claim;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_claim_is_read_as_it_was_written_until_its_end() {
        let claim = Claim {
            holder: "zones".to_owned(),
            until: at(100),
        };
        let text = claim.render();
        assert_eq!(text, r#"{"holder":"zones","until":"1970-01-01T00:01:40Z"}"#);
        assert_eq!(Claim::read(&text, at(99)), Some(claim));
        assert_eq!(Claim::read(&text, at(100)), None);
    }

    #[test]
    fn what_cannot_be_read_claims_nothing() {
        for text in [
            "",
            "zones",
            "{}",
            r#"{"holder":"zones"}"#,
            r#"{"holder":1,"until":2}"#,
        ] {
            assert_eq!(Claim::read(text, at(0)), None, "{text}");
        }
    }
}
