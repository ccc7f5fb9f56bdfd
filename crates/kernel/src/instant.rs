//! Moments as objects carry them: RFC 3339 texts, whole seconds, sums that do not overflow.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A time that was written into an annotation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Written {
    /// It is not there, or empty.
    #[default]
    Missing,
    /// It is no RFC 3339 time.
    Unreadable(String),
    /// It is this time.
    At(Timestamp),
}

impl Written {
    /// Reads an annotation.
    pub fn read(value: Option<&str>) -> Self {
        match value {
            None | Some("") => Self::Missing,
            Some(text) => instant(text).map_or_else(|| Self::Unreadable(text.to_owned()), Self::At),
        }
    }

    /// The time, if there is one.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(*at),
            _ => None,
        }
    }
}

/// Reads RFC 3339 and nothing looser: `2024-06-28T12:00:00Z`, with a fraction or an offset if need be.
pub fn instant(text: &str) -> Option<Timestamp> {
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let bytes = text.as_bytes();
    let fits = bytes.len() > shape.len()
        && shape.iter().zip(bytes).all(|(want, have)| match want {
            b'd' => have.is_ascii_digit(),
            other => have == other,
        });
    let tail = text.get(shape.len()..)?;
    let zone = match tail.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return None;
            }
            zone
        }
        None => tail,
    };
    let offset = zone.len() == 6
        && zone.bytes().zip(b"+dd:dd").all(|(have, want)| match want {
            b'd' => have.is_ascii_digit(),
            b'+' => have == b'+' || have == b'-',
            other => have == *other,
        });
    if fits && (zone == "Z" || offset) {
        text.parse().ok()
    } else {
        None
    }
}

/// `at` plus `duration`, unless that is beyond all calendars.
pub fn later(at: Timestamp, duration: Duration) -> Option<Timestamp> {
    at.checked_add(SignedDuration::try_from(duration).ok()?)
        .ok()
}

/// The second that `at` is in, as stamps are written.
pub fn second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second() - i64::from(at.subsec_nanosecond() < 0)).unwrap_or(at)
}

/// A moment as annotations carry it: RFC 3339, whole seconds, UTC.
pub fn stamp(at: Timestamp) -> String {
    second(at).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
