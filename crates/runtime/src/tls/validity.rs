//! From when until when a certificate is good: the one thing that webpki checks and does not tell.

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Splits one element off: its tag, what is in it, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if first & 0x80 == 0 {
        (usize::from(*first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        let length = digits.iter().fold(0, |n, d| n << 8 | usize::from(*d));
        (length, rest)
    };
    let (inner, rest) = rest.split_at_checked(length)?;
    Some((*tag, inner, rest))
}

fn expect(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, inner, rest) = element(der)?;
    (found == tag).then_some((inner, rest))
}

/// The times that a certificate says it is good between.
pub(super) fn of(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (outer, _) = expect(certificate, SEQUENCE)?;
    let (fields, _) = expect(outer, SEQUENCE)?;
    let (tag, _, rest) = element(fields)?;
    // The version is left out in old ones.
    let after_serial = if tag == VERSION {
        element(rest)?.2
    } else {
        rest
    };
    let (_, _, after_algorithm) = element(after_serial)?;
    let (_, _, after_issuer) = element(after_algorithm)?;
    let (validity, _) = expect(after_issuer, SEQUENCE)?;
    let (tag, from, rest) = element(validity)?;
    let from = time(tag, from)?;
    let (tag, until, _) = element(rest)?;
    Some((from, time(tag, until)?))
}

fn time(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 {
        return None;
    }
    let two = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let (month, day) = (two(0)?, two(2)?);
    let (hour, minute, second) = (two(4)?, two(6)?, two(8)?);
    let moment = civil::DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    Some(moment.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn both_ways_to_write_a_time_are_understood() {
        let moment: Timestamp = "2049-12-31T23:59:59Z".parse().unwrap();
        assert_eq!(time(UTC_TIME, b"491231235959Z"), Some(moment));
        let moment: Timestamp = "1950-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(time(UTC_TIME, b"500102030405Z"), Some(moment));
        let moment: Timestamp = "2126-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(time(GENERALIZED_TIME, b"21260102030405Z"), Some(moment));
    }

    #[test]
    fn what_is_no_certificate_has_no_times() {
        for bad in [
            &b""[..],
            b"\x30",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x80\x00\x00",
            b"\x30\x03\x30\x01\x02",
            b"not a certificate at all",
        ] {
            assert_eq!(of(bad), None, "{bad:?}");
        }
        for bad in [
            "",
            "Z",
            "4912312359Z",
            "49123123595é",
            "-91231235959Z",
            "499931235959Z",
        ] {
            assert_eq!(time(UTC_TIME, bad.as_bytes()), None, "{bad}");
        }
    }
}
