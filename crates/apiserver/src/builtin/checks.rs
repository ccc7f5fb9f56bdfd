//! Judgements that many kinds share: ports, IP addresses, label selectors, immutable fields.
//!
//! The texts are the API's. Judgements of names are in [`super::names`].

use std::net::IpAddr;

use serde_json::Value;

use super::names;
use crate::field::{FieldError, FieldErrors};
use crate::selector;
use crate::value;

/// The protocols of ports, in the order in which messages list them.
pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// `field is immutable`.
pub const IMMUTABLE: &str = "field is immutable";

/// `child` of `path`, which may be empty.
pub fn child(path: &str, child: &str) -> String {
    if path.is_empty() {
        child.to_owned()
    } else {
        format!("{path}.{child}")
    }
}

/// The items at `path` with the path of each (`path[0]`). `at` is `path` below `object`'s own place.
pub fn each<'a>(
    object: &'a Value,
    at: &str,
    path: &str,
) -> impl Iterator<Item = (String, &'a Value)> {
    let here = child(at, path);
    value::items(object, path)
        .iter()
        .enumerate()
        .map(move |(i, item)| (format!("{here}[{i}]"), item))
}

/// One error for each of `texts` about the string `text`.
pub fn invalid_texts(path: &str, text: &str, texts: Vec<String>) -> FieldErrors {
    texts
        .into_iter()
        .map(|detail| FieldError::invalid_str(path, text, detail))
        .collect()
}

/// A required string that must be one of `supported`.
pub fn one_of(path: &str, text: &str, supported: &[&str]) -> FieldErrors {
    if text.is_empty() {
        vec![FieldError::required(path, "")]
    } else {
        optional_one_of(path, text, supported)
    }
}

/// A string that must be one of `supported` if it is there.
pub fn optional_one_of(path: &str, text: &str, supported: &[&str]) -> FieldErrors {
    if text.is_empty() || supported.contains(&text) {
        Vec::new()
    } else {
        vec![FieldError::not_supported(path, &text.into(), supported)]
    }
}

/// Complains where what stands at `path` is not what stood there.
pub fn immutable(object: &Value, old: &Value, path: &str) -> FieldErrors {
    let (new, old) = (value::at(object, path), value::at(old, path));
    if new == old {
        return Vec::new();
    }
    let shown = new.unwrap_or(&Value::Null);
    vec![FieldError::invalid(path, shown, IMMUTABLE)]
}

/// A number that may not be negative.
pub fn not_negative(object: &Value, path: &str) -> FieldErrors {
    match value::at(object, path) {
        Some(number) if number.as_i64().is_some_and(|n| n < 0) => {
            vec![FieldError::invalid(
                path,
                number,
                "must be greater than or equal to 0",
            )]
        }
        _ => Vec::new(),
    }
}

/// A port number at `path`.
pub fn port(path: &str, number: i64) -> FieldErrors {
    names::port_number(number)
        .into_iter()
        .map(|detail| FieldError::invalid(path, &number.into(), detail))
        .collect()
}

/// A port number or name at `path`.
pub fn port_or_name(path: &str, port_value: &Value) -> FieldErrors {
    match port_value {
        Value::String(name) => invalid_texts(path, name, names::port_name(name)),
        number => port(path, number.as_i64().unwrap_or_default()),
    }
}

/// An address, if it is strictly written; an IPv4 address mapped into IPv6 is IPv4.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

/// Said of addresses in new fields only; the fields judged here are old ones.
const CANONICAL: &str = "must be in canonical form";

/// An IP address at `path`, of a field that also takes forms that are not canonical.
pub fn ip(path: &str, text: &str) -> FieldErrors {
    let mut wrong = names::ip(text);
    wrong.retain(|detail| !detail.starts_with(CANONICAL));
    invalid_texts(path, text, wrong)
}

/// An IP address that traffic can be sent to.
pub fn endpoint_ip(path: &str, text: &str) -> FieldErrors {
    let invalid = |detail: &str| vec![FieldError::invalid_str(path, text, detail)];
    if !names::ip_sloppy(text).is_empty() {
        return invalid("must be a valid IP address");
    }
    let Some(address) = parse_ip(text) else {
        return Vec::new();
    };
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(v4) => (
            v4.is_link_local(),
            v4.octets().get(..3) == Some(&[224, 0, 0]),
        ),
        IpAddr::V6(v6) => (
            v6.is_unicast_link_local(),
            v6.segments()
                .first()
                .is_some_and(|first| first & 0xff0f == 0xff02),
        ),
    };
    if address.is_unspecified() {
        invalid(&format!("may not be unspecified ({text})"))
    } else if address.is_loopback() {
        invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    } else if link_local {
        invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    } else if link_local_multicast {
        invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    } else {
        Vec::new()
    }
}

/// A network: an address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// Reads `10.0.0.0/8`, strictly written.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address = parse_ip(address)?;
        if prefix.is_empty() || !prefix.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let prefix: u32 = prefix.parse().ok()?;
        (prefix <= Self::bits(address)).then_some(Self { address, prefix })
    }

    fn bits(address: IpAddr) -> u32 {
        if address.is_ipv4() { 32 } else { 128 }
    }

    /// The address with the bits beyond `prefix` cleared.
    fn masked(address: IpAddr, prefix: u32) -> IpAddr {
        match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - prefix.min(32)).unwrap_or(0);
                IpAddr::V4((u32::from(v4) & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or(0);
                IpAddr::V6((u128::from(v6) & mask).into())
            }
        }
    }

    /// Whether `inner` lies within this network and is smaller.
    pub fn strictly_contains(self, inner: Self) -> bool {
        let inside =
            Self::masked(inner.address, self.prefix) == Self::masked(self.address, self.prefix);
        self.address.is_ipv4() == inner.address.is_ipv4() && inside && self.prefix < inner.prefix
    }
}

/// A network in CIDR form at `path`, of a field that also takes forms that are not canonical.
pub fn cidr(path: &str, text: &str) -> FieldErrors {
    let mut wrong = names::cidr(text);
    wrong.retain(|detail| !detail.starts_with(CANONICAL));
    invalid_texts(path, text, wrong)
}

/// A `metav1.LabelSelector` at `path`, if there is one.
pub fn label_selector(path: &str, found: Option<&Value>) -> FieldErrors {
    found.map_or_else(Vec::new, |found| selector::validate(found, path))
}
