//! Headers that people may have sent.

/// Why a header is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAHeader {
    /// No name of a header.
    #[error("{0:?} is no name of a header")]
    Name(String),
    /// One that is about the connection, or that is ours.
    #[error("the header {0} is not for others to set")]
    Ours(String),
    /// Line breaks, or characters that are not ASCII. What is in it is not told: it may be secret.
    #[error("the header {0} has a value with line breaks or characters that are not ASCII")]
    Value(String),
    /// Too long.
    #[error("the header {0} is longer than {LONGEST} bytes")]
    TooLong(String),
}

const LONGEST: usize = 8 * 1024;

/// About the connection and the message, or said by us.
const OURS: [&str; 15] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "keep-alive",
    "accept-encoding",
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-connection",
    "idempotency-key",
    "slipway-signature",
];

/// A header that may be sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Header {
    name: String,
    value: String,
}

impl Header {
    /// One of this name.
    pub fn new(name: &str, value: &str) -> Result<Self, NotAHeader> {
        let name = Self::check_name(name)?;
        if value.len() > LONGEST {
            return Err(NotAHeader::TooLong(name));
        }
        if !value
            .bytes()
            .all(|b| b == b'\t' || (b' '..=b'~').contains(&b))
        {
            return Err(NotAHeader::Value(name));
        }
        let value = value.to_owned();
        Ok(Self { name, value })
    }

    /// Whether a name may be used, in lower case.
    pub fn check_name(name: &str) -> Result<String, NotAHeader> {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || name.len() > 128 || !name.bytes().all(is_token) {
            return Err(NotAHeader::Name(name.chars().take(128).collect()));
        }
        let name = name.to_ascii_lowercase();
        if OURS.contains(&name.as_str()) {
            return Err(NotAHeader::Ours(name));
        }
        Ok(name)
    }

    /// What says that JSON is sent.
    pub(super) fn json() -> Self {
        Self::content("application/json")
    }

    /// What says that a form is sent.
    pub(super) fn form() -> Self {
        Self::content("application/x-www-form-urlencoded")
    }

    fn content(kind: &str) -> Self {
        Self {
            name: "content-type".to_owned(),
            value: kind.to_owned(),
        }
    }

    /// Its name, in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is in it.
    pub fn value(&self) -> &str {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_and_broken_ones_are_refused() {
        assert_eq!(
            Header::new("X-Scope-OrgID", "a b").unwrap().name(),
            "x-scope-orgid"
        );
        for ours in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "Idempotency-Key",
            "Slipway-Signature",
        ] {
            assert!(
                matches!(Header::new(ours, "x"), Err(NotAHeader::Ours(_))),
                "{ours}"
            );
        }
        for name in ["", "a b", "a:", "a\r\nb", "ä"] {
            assert!(
                matches!(Header::new(name, "x"), Err(NotAHeader::Name(_))),
                "{name}"
            );
        }
        for value in ["a\r\nb: c", "a\nb", "\0", "ä"] {
            assert!(
                matches!(Header::new("a", value), Err(NotAHeader::Value(_))),
                "{value:?}"
            );
        }
        let long = "x".repeat(LONGEST + 1);
        assert!(matches!(
            Header::new("a", &long),
            Err(NotAHeader::TooLong(_))
        ));
    }
}
