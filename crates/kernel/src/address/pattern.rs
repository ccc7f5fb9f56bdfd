//! Lists of hosts, as an administrator writes them.

use std::fmt;
use std::net::IpAddr;

use super::cidr::{Cidr, NotACidr};
use super::class::faces;
use super::host::{Host, NotAHost, check_name};

/// Why a text is no entry of a list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAPattern {
    /// It is no name.
    #[error(
        "{text:?} names no host: {why}; write a name, *.name for all below it, an address, or a range as 10.0.0.0/8"
    )]
    Name {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: NotAHost,
    },
    /// It is no range of addresses.
    #[error(transparent)]
    Range(#[from] NotACidr),
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// This name.
    Name(String),
    /// All names below this one, at any depth.
    Below(String),
    /// All addresses in this range.
    Range(Cidr),
}

impl Pattern {
    /// Reads `example.com`, `*.example.com`, `10.0.0.0/8`, `10.1.2.3`, `fd00::/8` or `[::1]`.
    pub fn parse(text: &str) -> Result<Self, NotAPattern> {
        let unbracketed = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let text = unbracketed.unwrap_or(text);
        if text.contains('/') || text.parse::<IpAddr>().is_ok() {
            return Ok(Self::Range(Cidr::parse(text)?));
        }
        let (rest, below) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let name = rest.strip_suffix('.').unwrap_or(rest).to_ascii_lowercase();
        check_name(&name).map_err(|why| NotAPattern::Name {
            text: text.to_owned(),
            why,
        })?;
        Ok(if below {
            Self::Below(name)
        } else {
            Self::Name(name)
        })
    }

    fn matches_name(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Below(own) => name
                .strip_suffix(own.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
            Self::Range(_) => false,
        }
    }

    fn matches_address(&self, address: IpAddr) -> bool {
        matches!(self, Self::Range(range) if range.contains(address))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Range(range) => write!(f, "{range}"),
        }
    }
}

/// A list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patterns(Vec<Pattern>);

impl Patterns {
    /// Reads a list.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, NotAPattern> {
        texts.into_iter().map(Pattern::parse).collect()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a host is in the list as it is written: a name by its name, an address by a range.
    pub fn has_host(&self, host: &Host) -> bool {
        match host {
            Host::Name { name, .. } => self.0.iter().any(|one| one.matches_name(name)),
            Host::Address(address) => self.has_address(*address),
        }
    }

    /// Whether an address is in the list.
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.0.iter().any(|one| one.matches_address(address))
    }

    /// Whether an address, or an IPv4 address in it, is in the list: for lists of what is not allowed.
    pub(super) fn has_any_face(&self, address: IpAddr) -> bool {
        faces(address).any(|(face, _)| self.has_address(face))
    }
}

impl FromIterator<Pattern> for Patterns {
    fn from_iter<I: IntoIterator<Item = Pattern>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

/// The hosts that may be called at all: everybody, unless the administrator says who.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedHosts(Option<Patterns>);

impl AllowedHosts {
    /// Everybody.
    pub fn any() -> Self {
        Self(None)
    }

    /// These, and nobody else; nobody at all if the list is empty.
    pub fn only(patterns: Patterns) -> Self {
        Self(Some(patterns))
    }

    /// Whether a host may be called, going by how it is written: a name by its name, an address by a range.
    pub fn allows(&self, host: &Host) -> bool {
        self.0.as_ref().is_none_or(|only| only.has_host(host))
    }

    /// The list, if there is one.
    pub fn patterns(&self) -> Option<&Patterns> {
        self.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_names_names_below_and_addresses() {
        let list = Patterns::parse([
            "prom.example",
            "*.corp.example",
            "10.0.0.0/8",
            "[fd00::1]",
            "Root.Example.",
        ]);
        let list = list.unwrap();
        let table = [
            ("prom.example", true),
            ("PROM.example.", true),
            ("a.prom.example", false),
            ("corp.example", false),
            ("a.corp.example", true),
            ("a.b.corp.example", true),
            ("evilcorp.example", false),
            ("10.9.8.7", true),
            ("11.0.0.1", false),
            ("[fd00::1]", true),
            ("[fd00::2]", false),
            ("root.example", true),
        ];
        for (host, is_in) in table {
            assert_eq!(list.has_host(&Host::parse(host).unwrap()), is_in, "{host}");
        }
    }

    #[test]
    fn an_entry_that_names_nobody_is_an_error() {
        for text in [
            "",
            "*",
            "*.",
            "*.*.a",
            "a*.b",
            "https://a",
            "a:443",
            "127.1",
            "10.0.0.0/x",
        ] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn without_a_list_everybody_is_allowed_and_with_an_empty_one_nobody() {
        let host = Host::parse("a.example").unwrap();
        assert!(AllowedHosts::any().allows(&host));
        assert!(!AllowedHosts::only(Patterns::default()).allows(&host));
    }
}
