//! Ports, addresses and what HTTP allows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{range_text, regex_text};
use crate::field::quote;

/// The name of a port: an IANA service name in small letters.
pub fn port_name(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > 15 {
        wrong.push("must be no more than 15 characters".to_owned());
    }
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if value.is_empty() || !value.chars().all(is_allowed) {
        wrong.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !value.contains(|c: char| c.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// The number of a port.
pub fn port_number(value: i64) -> Vec<String> {
    if (1..=65535).contains(&value) {
        Vec::new()
    } else {
        vec![range_text(1, 65535)]
    }
}

/// The name of an HTTP header.
pub fn http_header_name(value: &str) -> Vec<String> {
    if !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Vec::new();
    }
    vec![regex_text(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// What follows the domain in a domain-prefixed path.
pub fn http_path(value: &str) -> Vec<String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !value.is_empty() && value.chars().all(is_allowed) {
        return Vec::new();
    }
    vec![regex_text(
        "Invalid path",
        r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+",
        &[],
    )]
}

/// An address in canonical form: new fields.
pub fn ip(value: &str) -> Vec<String> {
    let Some((address, strict)) = parse_ip(value) else {
        return vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()];
    };
    if !strict {
        return vec!["must not have leading 0s".to_owned()];
    }
    if is_mapped(value, address) {
        return vec!["must not be an IPv4-mapped IPv6 address".to_owned()];
    }
    let canonical = show_ip(address);
    if canonical == value {
        Vec::new()
    } else {
        vec![format!("must be in canonical form ({})", quote(&canonical))]
    }
}

/// An address in any form that has been accepted: fields from before the strict rule, such as `clusterIP`.
pub fn ip_sloppy(value: &str) -> Vec<String> {
    match parse_ip(value) {
        Some(_) => Vec::new(),
        None => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

/// Warnings for an address that [`ip_sloppy`] accepts.
pub fn ip_warnings(path: &str, value: &str) -> Vec<String> {
    let Some((address, strict)) = parse_ip(value) else {
        return Vec::new();
    };
    let canonical = show_ip(address);
    if !strict || is_mapped(value, address) {
        return vec![format!(
            "{path}: non-standard IP address {} is invalid: use {}",
            quote(value),
            quote(&canonical)
        )];
    }
    if address.is_ipv6() && canonical != value {
        return vec![format!(
            "{path}: IPv6 address {} should be in RFC 5952 canonical format ({})",
            quote(value),
            quote(&canonical)
        )];
    }
    Vec::new()
}

/// A CIDR in canonical form.
pub fn cidr(value: &str) -> Vec<String> {
    let Some(parsed) = parse_cidr(value) else {
        return vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()];
    };
    if !parsed.strict {
        return vec!["must not have leading 0s in IP or prefix length".to_owned()];
    }
    if parsed.mapped {
        return vec!["must not have an IPv4-mapped IPv6 address".to_owned()];
    }
    if parsed.masked != parsed.address {
        return vec!["must not have bits set beyond the prefix length".to_owned()];
    }
    let canonical = format!("{}/{}", show_ip(parsed.masked), parsed.length);
    if canonical == value {
        Vec::new()
    } else {
        vec![format!("must be in canonical form ({})", quote(&canonical))]
    }
}

/// Warnings for a CIDR of an old field.
pub fn cidr_warnings(path: &str, value: &str) -> Vec<String> {
    let Some(parsed) = parse_cidr(value) else {
        return Vec::new();
    };
    let network = format!("{}/{}", show_ip(parsed.masked), parsed.length);
    let mut warnings = Vec::new();
    if parsed.masked != parsed.address {
        let bits = if parsed.address.is_ipv4() { 32 } else { 128 };
        let single = format!("{}/{bits}", show_ip(parsed.address));
        warnings.push(format!(
            "{path}: CIDR value {} is ambiguous in this context (should be {} or {}?)",
            quote(value),
            quote(&network),
            quote(&single)
        ));
    }
    if !parsed.strict || parsed.mapped {
        warnings.push(format!(
            "{path}: non-standard CIDR value {} is invalid: use {}",
            quote(value),
            quote(&network)
        ));
    }
    if warnings.is_empty() && parsed.address.is_ipv6() && network != value {
        warnings.push(format!(
            "{path}: IPv6 CIDR value {} should be in RFC 5952 canonical format ({})",
            quote(value),
            quote(&network)
        ));
    }
    warnings
}

/// The address, and whether it has no leading zeros.
fn parse_ip(value: &str) -> Option<(IpAddr, bool)> {
    if let Ok(address) = value.parse::<IpAddr>() {
        return Some((address, true));
    }
    if value.contains(':') {
        let (head, tail) = value.rsplit_once(':')?;
        let address = format!("{head}:{}", sloppy_v4(tail)?)
            .parse::<Ipv6Addr>()
            .ok()?;
        return Some((IpAddr::V6(address), false));
    }
    Some((IpAddr::V4(sloppy_v4(value)?), false))
}

/// Four decimal numbers with leading zeros, which the API still reads as decimal.
fn sloppy_v4(value: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u8> = value.split('.').map(decimal).collect::<Option<_>>()?;
    <[u8; 4]>::try_from(parts).ok().map(Ipv4Addr::from)
}

fn decimal(digits: &str) -> Option<u8> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits
        .parse::<u32>()
        .ok()
        .and_then(|n| u8::try_from(n).ok())
}

fn is_mapped(value: &str, address: IpAddr) -> bool {
    match address {
        IpAddr::V6(v6) => value.contains(':') && v6.to_ipv4_mapped().is_some(),
        IpAddr::V4(_) => false,
    }
}

/// As Go shows an address: a mapped one as IPv4.
fn show_ip(address: IpAddr) -> String {
    address.to_canonical().to_string()
}

struct Cidr {
    address: IpAddr,
    masked: IpAddr,
    length: u32,
    strict: bool,
    mapped: bool,
}

fn parse_cidr(value: &str) -> Option<Cidr> {
    let (ip, length_text) = value.split_once('/')?;
    let (address, ip_strict) = parse_ip(ip)?;
    if length_text.is_empty() || !length_text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let length = length_text.parse::<u32>().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    if length > bits {
        return None;
    }
    let masked = match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
        }
    };
    Some(Cidr {
        address,
        masked,
        length,
        strict: ip_strict && (length_text == "0" || !length_text.starts_with('0')),
        mapped: is_mapped(ip, address),
    })
}
