//! The formats of strings that the server checks, as kube-openapi's registry understands them.

mod duration;

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

pub(crate) use duration::duration_nanos;

/// Whether `text` has the format; unknown formats accept everything.
pub(crate) fn matches(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "byte" => is(&BASE64, text),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => duration_nanos(text).is_some(),
        "email" => is_email(text),
        "hexcolor" => is(&HEX_COLOR, text),
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && sloppy_ip(text).is_some(),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8slongname" => text.len() <= 253 && is(&LONG_NAME, text),
        "k8sshortname" => text.len() <= 63 && is(&SHORT_NAME, text),
        "mac" => is_mac(text),
        "rgbcolor" => is(&RGB_COLOR, text),
        "ssn" => text.len() == 11 && is(&SSN, text),
        "uri" => is_request_uri(text),
        "uuid" => is(&UUID, text),
        "uuid3" => is(&UUID3, text),
        "uuid4" => is(&UUID4, text),
        "uuid5" => is(&UUID5, text),
        _ => true,
    }
}

/// A constant pattern. One that did not compile would match nothing, which the tests would notice.
type Pattern = LazyLock<Option<Regex>>;

fn is(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|p| p.is_match(text))
}

macro_rules! patterns {
    ($($name:ident = $text:expr;)*) => { $(static $name: Pattern = LazyLock::new(|| Regex::new($text).ok());)* };
}

patterns! {
    BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*\)$";
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    SHORT_NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
    LONG_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    HOSTNAME = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([-a-zA-Z0-9\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
    CREDIT_CARD = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
    TIME = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
}

/// An address, tolerating leading zeros as the server does.
fn sloppy_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let parts: Vec<&str> = text.split('.').collect();
    let numbers: Option<Vec<u8>> = parts
        .iter()
        .map(|p| {
            let digits = !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit());
            let short = p.trim_start_matches('0');
            let short = if short.is_empty() { "0" } else { short };
            digits.then(|| short.parse().ok()).flatten()
        })
        .collect();
    <[u8; 4]>::try_from(numbers?).ok().map(IpAddr::from)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let widest = match sloppy_ip(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    bits.bytes().all(|b| b.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|n| n <= widest)
}

fn is_mac(text: &str) -> bool {
    let hex = |group: &str, len: usize| {
        group.len() == len && group.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let grouped = |separator: char, len: usize, counts: [usize; 3]| {
        let groups: Vec<&str> = text.split(separator).collect();
        counts.contains(&groups.len()) && groups.iter().all(|g| hex(g, len))
    };
    grouped(':', 2, [6, 8, 20]) || grouped('-', 2, [6, 8, 20]) || grouped('.', 4, [3, 4, 10])
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, b)| {
            let digit = u32::from(b - b'0') * if i % 2 == 1 { 2 } else { 1 };
            if digit >= 10 { digit % 10 + 1 } else { digit }
        })
        .sum();
    is(&CREDIT_CARD, &digits) && sum.is_multiple_of(10)
}

/// The digits of an ISBN; `X` counts ten.
fn isbn_digits(text: &str) -> Option<Vec<u32>> {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .map(|c| if c == 'X' { Some(10) } else { c.to_digit(10) })
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let Some(digits) = isbn_digits(text).filter(|d| d.len() == 10) else {
        return false;
    };
    let no_x = digits.iter().take(9).all(|d| *d < 10);
    let weights = 1u32..;
    no_x && weights
        .zip(&digits)
        .map(|(w, d)| w * d)
        .sum::<u32>()
        .is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let Some(digits) = isbn_digits(text).filter(|d| d.len() == 13) else {
        return false;
    };
    let sum: u32 = digits
        .iter()
        .zip([1, 3].iter().cycle())
        .map(|(d, w)| d * w)
        .sum();
    digits.iter().all(|d| *d < 10) && sum.is_multiple_of(10)
}

fn is_hostname(text: &str) -> bool {
    is(&HOSTNAME, text) && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

fn is_date(text: &str) -> bool {
    let shaped = text.len() == 10
        && text.bytes().enumerate().all(|(i, b)| match i {
            4 | 7 => b == b'-',
            _ => b.is_ascii_digit(),
        });
    shaped && (text.parse::<jiff::civil::Date>().is_ok())
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some(found) = TIME.as_ref().and_then(|p| p.captures(time)) else {
        return false;
    };
    let at_most = |group: usize, max: &str| found.get(group).is_some_and(|m| m.as_str() <= max);
    is_date(date) && at_most(1, "23") && at_most(2, "59") && at_most(3, "59")
}

/// An address as in a mail header: `a@b` or `Name <a@b>`.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(open), Some(inner)) => inner.get(open + 1..).unwrap_or_default(),
        (None, None) => text,
        _ => return false,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let atom = |c: char| c.is_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    let dotted = |s: &str| {
        s.split('.')
            .all(|part| !part.is_empty() && part.chars().all(atom))
    };
    let quoted = local.len() >= 2 && local.starts_with('"') && local.ends_with('"');
    (quoted || dotted(local)) && dotted(domain)
}

/// An absolute URI or an absolute path.
fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let scheme_end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    let (scheme, rest) = match scheme_end.map(|at| (text.get(..at), text.get(at..))) {
        Some((Some(scheme), Some(tail))) if tail.starts_with(':') => {
            if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return false;
            }
            (scheme, tail.get(1..).unwrap_or_default())
        }
        _ => ("", text),
    };
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let (rest, _query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() || !rest.starts_with("///") => {
            let at = after.find('/').unwrap_or(after.len());
            after.split_at(at)
        }
        _ => ("", rest),
    };
    is_authority(authority) && escapes_are_whole(path)
}

fn is_authority(authority: &str) -> bool {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let port_start = match host.rfind(']') {
        Some(close) if host.starts_with('[') => close + 1,
        Some(_) => return false,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(port_start);
    let port_ok = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    let forbidden = |c: char| c.is_ascii() && " \"<>\\^`{|}".contains(c);
    port_ok && !name.contains(forbidden) && escapes_are_whole(name)
}

/// Whether every `%` is followed by two hexadecimal digits.
fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let mut bytes = after.bytes();
        let mut hex = || bytes.next().is_some_and(|b| b.is_ascii_hexdigit());
        hex() && hex()
    })
}

#[cfg(test)]
mod tests;
