//! Hosts in the one spelling that everybody reads alike.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name that DNS knows.
const LONGEST_NAME: usize = 253;
/// The longest part of a name.
const LONGEST_LABEL: usize = 63;

/// Why a text is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAHost {
    /// There is nothing.
    #[error("the host is empty")]
    Empty,
    /// It is too long for a name.
    #[error("the host is longer than any name")]
    TooLong,
    /// A character that no name has.
    #[error("the host has characters that no name has; write letters, digits, dots and hyphens")]
    Character,
    /// It would be an address to some programs, and not to others.
    #[error(
        "the host looks like a number; write an IPv4 address as four decimal numbers without leading zeros"
    )]
    Number,
    /// Square brackets without an IPv6 address.
    #[error("the host is no IPv6 address in brackets; zones (%) are not taken")]
    Brackets,
}

/// Whom a URL is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A name, in lower case and without its last dot.
    Name {
        /// The name.
        name: String,
        /// It was written with a dot at its end: no search list is to be tried.
        is_rooted: bool,
    },
    /// An address.
    Address(IpAddr),
}

impl Host {
    /// Reads what stands before the port.
    pub fn parse(text: &str) -> Result<Self, NotAHost> {
        if text.is_empty() {
            return Err(NotAHost::Empty);
        }
        if text.starts_with('[') || text.contains(':') {
            let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
            let address: Option<Ipv6Addr> = inner.and_then(|inner| inner.parse().ok());
            return address
                .map(|address| Self::Address(address.into()))
                .ok_or(NotAHost::Brackets);
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        let (name, is_rooted) = match text.strip_suffix('.') {
            Some(name) => (name, true),
            None => (text, false),
        };
        check_name(name)?;
        Ok(Self::Name {
            name: name.to_ascii_lowercase(),
            is_rooted,
        })
    }

    /// The address, if it is none of a name.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Name { .. } => None,
            Self::Address(address) => Some(*address),
        }
    }

    /// What a certificate has to say, and what rules and metrics go by: a name without its last dot, an address without
    /// brackets.
    pub fn bare(&self) -> String {
        match self {
            Self::Name { name, .. } => name.clone(),
            Self::Address(address) => address.to_string(),
        }
    }
}

/// As a URL has it.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name {
                name,
                is_rooted: true,
            } => write!(f, "{name}."),
            Self::Name { name, .. } => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Whether a text is a name of DNS that nobody takes for a number.
pub(super) fn check_name(name: &str) -> Result<(), NotAHost> {
    if name.is_empty() {
        return Err(NotAHost::Empty);
    }
    if name.len() > LONGEST_NAME {
        return Err(NotAHost::TooLong);
    }
    for label in name.split('.') {
        if label.len() > LONGEST_LABEL {
            return Err(NotAHost::TooLong);
        }
        let is_known = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let is_odd = label.is_empty() || label.starts_with('-') || label.ends_with('-');
        if is_odd || !label.bytes().all(is_known) {
            return Err(NotAHost::Character);
        }
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    // Browsers and resolvers of C read all of these as IPv4 addresses: 127.1, 2130706433, 0x7f000001, 0177.0.0.1.
    let digits = last
        .strip_prefix("0x")
        .or_else(|| last.strip_prefix("0X"))
        .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    if digits.is_some() || last.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NotAHost::Number);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_read_in_one_spelling() {
        let table = [
            ("example.com", "example.com"),
            ("Example.COM", "example.com"),
            ("prom.monitoring.svc.", "prom.monitoring.svc."),
            ("a_b.example", "a_b.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("1password.com", "1password.com"),
            ("10.0.0.1", "10.0.0.1"),
            ("[::1]", "[::1]"),
            ("[0:0:0:0:0:0:0:1]", "[::1]"),
            ("[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]"),
            ("0xcafe.example", "0xcafe.example"),
        ];
        for (text, read) in table {
            assert_eq!(Host::parse(text).unwrap().to_string(), read, "{text}");
        }
        assert_eq!(Host::parse("a.b.").unwrap().bare(), "a.b");
        assert_eq!(Host::parse("[::1]").unwrap().bare(), "::1");
        assert_eq!(Host::parse("a.b.").unwrap().address(), None);
    }

    #[test]
    fn what_others_may_read_otherwise_is_refused() {
        let table = [
            ("", NotAHost::Empty),
            (".", NotAHost::Empty),
            ("..", NotAHost::Character),
            ("127.1", NotAHost::Number),
            ("127.0.0.1.", NotAHost::Number),
            ("2130706433", NotAHost::Number),
            ("0x7f000001", NotAHost::Number),
            ("0X7F.0.0.1", NotAHost::Number),
            ("0x7f.0x0.0x0.0x1", NotAHost::Number),
            ("0177.0.0.1", NotAHost::Number),
            ("127.0.0.01", NotAHost::Number),
            ("127.0.0.256", NotAHost::Number),
            ("a.0x", NotAHost::Number),
            ("::1", NotAHost::Brackets),
            ("[::1%lo]", NotAHost::Brackets),
            ("[::1%25lo]", NotAHost::Brackets),
            ("[127.0.0.1]", NotAHost::Brackets),
            ("[", NotAHost::Brackets),
            ("a..b", NotAHost::Character),
            ("-a.b", NotAHost::Character),
            ("a b", NotAHost::Character),
            ("a%2eb", NotAHost::Character),
            ("①②⑦.⓪.⓪.①", NotAHost::Character),
            ("ⓛocalhost", NotAHost::Character),
            ("127。0。0。1", NotAHost::Character),
        ];
        for (text, why) in table {
            assert_eq!(Host::parse(text), Err(why), "{text}");
        }
        assert_eq!(Host::parse(&"a.".repeat(200)), Err(NotAHost::TooLong));
        assert_eq!(Host::parse(&"a".repeat(64)), Err(NotAHost::TooLong));
    }
}
