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
    #[error(
        "{0:?} is not a valid duration; write numbers with units, such as 90s, 1h30m, 1d or 2w"
    )]
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

/// A duration as Go prints it: `10m0s`, `1h0m0s`, `1.5s`, `500ms`.
pub fn render(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let nanos = duration.subsec_nanos();
    if seconds == 0 && nanos > 0 {
        let (unit, name) = match nanos {
            1_000_000.. => (1_000_000, "ms"),
            1_000.. => (1_000, "µs"),
            _ => (1, "ns"),
        };
        return format!("{}{}{name}", nanos / unit, fraction(nanos % unit, unit));
    }
    let tail = format!("{}{}s", seconds % 60, fraction(nanos, 1_000_000_000));
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => tail,
        (0, minutes) => format!("{minutes}m{tail}"),
        (hours, minutes) => format!("{hours}h{minutes}m{tail}"),
    }
}

/// `part` of `whole` as decimals after a point, without zeros at the end.
fn fraction(part: u32, whole: u32) -> String {
    if part == 0 {
        return String::new();
    }
    let width = whole.ilog10() as usize;
    let digits = format!("{part:0width$}");
    format!(".{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{NotADuration, parse, render};

    fn seconds(text: &str) -> Option<f64> {
        parse(text).ok().map(|duration| duration.as_secs_f64())
    }

    #[test]
    fn durations_of_go_days_and_weeks() {
        for (text, expected) in [
            ("0", 0.0),
            ("0s", 0.0),
            ("-0s", 0.0),
            ("10m", 600.0),
            ("3m0s", 180.0),
            ("1h30m", 5_400.0),
            ("1.5h", 5_400.0),
            (".5s", 0.5),
            ("1.s", 1.0),
            ("500ms", 0.5),
            ("250µs", 0.000_25),
            ("+5m", 300.0),
            ("1d", 86_400.0),
            ("2w", 1_209_600.0),
            ("1 day", 86_400.0),
            ("3 days 4 h", 273_600.0),
            ("1d12h", 129_600.0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_told_why() {
        assert_eq!(parse(""), Err(NotADuration::Empty));
        assert_eq!(parse("  "), Err(NotADuration::Empty));
        assert_eq!(parse("-5m"), Err(NotADuration::Negative("-5m".to_owned())));
        assert_eq!(
            parse("1.5d"),
            Err(NotADuration::Fraction("1.5d".to_owned()))
        );
        let long = "999999999h";
        assert_eq!(parse(long), Err(NotADuration::TooLong(long.to_owned())));
        for text in [
            "10", "abc", "1mo", "m", "1h-5m", "5m.", "--5m", "1e3s", "1h,5m",
        ] {
            assert!(
                matches!(parse(text), Err(NotADuration::Malformed(_))),
                "{text}"
            );
        }
        let endless = format!("{}h", "9".repeat(60));
        assert!(parse(&endless).is_err());
    }

    #[test]
    fn as_go_prints_them() {
        for text in [
            "0s",
            "1s",
            "1.5s",
            "10m0s",
            "1h0m0s",
            "24h0m0s",
            "1h2m3.25s",
            "500ms",
            "1.5ms",
            "20µs",
            "7ns",
        ] {
            assert_eq!(parse(text).map(render), Ok(text.to_owned()));
        }
        assert_eq!(render(Duration::from_millis(90_500)), "1m30.5s");
    }
}
