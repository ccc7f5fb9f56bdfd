//! Durations as people write them into objects: Go's grammar, and whole days and weeks.

use std::time::Duration;

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotADuration {
    /// There is nothing.
    #[error("it is empty; write a number with a unit, such as 10m, 12h or 1d")]
    Empty,
    /// It is below zero.
    #[error("{0:?} is negative")]
    Negative(String),
    /// There is no number where one should be, or a unit that nobody knows.
    #[error("{0:?} is no duration; write numbers with units, such as 90s, 1h30m, 1d or 2w")]
    Malformed(String),
    /// Days and weeks are whole.
    #[error("{0:?}: days and weeks must be whole numbers; write hours instead")]
    Fraction(String),
    /// More than 290 years.
    #[error("{0:?} is too long")]
    TooLong(String),
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Reads a duration: `1h30m`, `1.5h`, `500ms`, `0`, `1d`, `2 weeks`.
pub fn parse(text: &str) -> Result<Duration, NotADuration> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(NotADuration::Empty);
    }
    let unsigned = trimmed.strip_prefix('+').unwrap_or(trimmed);
    if let Some(rest) = unsigned.strip_prefix('-') {
        return match magnitude(rest, text) {
            Ok(0) => Ok(Duration::ZERO),
            Ok(_) => Err(NotADuration::Negative(text.to_owned())),
            Err(error) => Err(error),
        };
    }
    let nanos = magnitude(unsigned, text)?;
    let seconds = u64::try_from(nanos / NANOS_PER_SECOND).unwrap_or(u64::MAX);
    let rest = u32::try_from(nanos % NANOS_PER_SECOND).unwrap_or_default();
    Ok(Duration::new(seconds, rest))
}

/// The sum of all numbers with their units, in nanoseconds.
fn magnitude(unsigned: &str, whole: &str) -> Result<u128, NotADuration> {
    let malformed = || NotADuration::Malformed(whole.to_owned());
    if unsigned == "0" {
        return Ok(0);
    }
    let mut rest = unsigned;
    let mut sum: u128 = 0;
    while !rest.is_empty() {
        let (integer, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if integer.is_empty() && fraction.is_empty() {
            return Err(malformed());
        }
        let after = after.trim_start();
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.' || c.is_whitespace())
            .unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        let (unit, is_whole) = unit(name).ok_or_else(malformed)?;
        if is_whole && !fraction.is_empty() {
            return Err(NotADuration::Fraction(whole.to_owned()));
        }
        let part = scaled(integer, fraction, unit).ok_or_else(malformed)?;
        sum = sum.checked_add(part).ok_or_else(malformed)?;
        rest = after.trim_start();
    }
    if sum > i64::MAX as u128 {
        return Err(NotADuration::TooLong(whole.to_owned()));
    }
    Ok(sum)
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// A unit in nanoseconds, and whether it takes whole numbers only.
fn unit(name: &str) -> Option<(u128, bool)> {
    Some(match name {
        "ns" => (1, false),
        "us" | "µs" | "μs" => (1_000, false),
        "ms" => (1_000_000, false),
        "s" => (NANOS_PER_SECOND, false),
        "m" => (60 * NANOS_PER_SECOND, false),
        "h" => (3_600 * NANOS_PER_SECOND, false),
        "d" | "day" | "days" => (86_400 * NANOS_PER_SECOND, true),
        "w" | "week" | "weeks" => (7 * 86_400 * NANOS_PER_SECOND, true),
        _ => return None,
    })
}

fn scaled(integer: &str, fraction: &str, unit: u128) -> Option<u128> {
    let integer: u128 = if integer.is_empty() {
        0
    } else {
        integer.parse().ok()?
    };
    let mut sum = integer.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.chars().take(18) {
        place /= 10;
        sum = sum.checked_add(place * u128::from(digit.to_digit(10)?))?;
    }
    Some(sum)
}

/// A duration as Go prints it: `10m0s`, `1h0m0s`, `1.5s`.
pub fn render(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let fraction = duration.subsec_nanos();
    let tail = if fraction == 0 {
        format!("{}s", seconds % 60)
    } else {
        let digits = format!("{fraction:09}");
        format!("{}.{}s", seconds % 60, digits.trim_end_matches('0'))
    };
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => tail,
        (0, minutes) => format!("{minutes}m{tail}"),
        (hours, minutes) => format!("{hours}h{minutes}m{tail}"),
    }
}
