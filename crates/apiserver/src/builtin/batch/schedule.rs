//! Cron schedules and time zones: whether they can be read, in the words of the real server's library.

use std::fmt::Display;

use crate::field::{FieldError, FieldErrors, quote};

/// Bounds of the five fields, in order.
const BOUNDS: [(u64, u64); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Reads a schedule; the error is what is wrong with it.
pub(super) fn parse(schedule: &str) -> Result<(), String> {
    if schedule.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let mut rest = schedule;
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        let zone_and_rest = schedule.split_once('=').map_or("", |(_, rest)| rest);
        let Some((zone, fields)) = zone_and_rest.split_once(' ') else {
            return Err(
                "invalid schedule format: runtime error: slice bounds out of range [:-1]"
                    .to_owned(),
            );
        };
        if !zone_exists(zone) {
            return Err(format!(
                "provided bad location {zone}: unknown time zone {zone}"
            ));
        }
        rest = fields.trim();
    }
    if rest.starts_with('@') {
        return parse_descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != BOUNDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (place, (field, bounds)) in fields.iter().zip(BOUNDS).enumerate() {
        let names: &[&str] = match place {
            3 => &MONTHS,
            4 => &DAYS,
            _ => &[],
        };
        for expression in field.split(',').filter(|e| !e.is_empty()) {
            parse_range(expression, bounds, names)?;
        }
    }
    Ok(())
}

fn parse_descriptor(text: &str) -> Result<(), String> {
    let known = [
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
    ];
    if known.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) if is_duration(duration) => Ok(()),
        Some(duration) => Err(format!(
            "failed to parse duration {text}: time: invalid duration {}",
            quote(duration)
        )),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

/// Go's durations: `1h30m`, `500ms`, `-1.5h`, `0`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.trim_start_matches(['+', '-']);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        if number.is_empty() || number.parse::<f64>().is_err() {
            return false;
        }
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"]
            .into_iter()
            .filter(|u| tail.starts_with(u))
            .max_by_key(|u| u.len());
        let Some(unit) = unit else { return false };
        rest = tail.strip_prefix(unit).unwrap_or_default();
    }
    true
}

fn parse_range(expression: &str, (min, max): (u64, u64), names: &[&str]) -> Result<(), String> {
    let told = |what: &dyn Display| Err(format!("{what}: {expression}"));
    let parts: Vec<&str> = expression.split('/').collect();
    let range: Vec<&str> = parts.first().map_or(Vec::new(), |r| r.split('-').collect());
    let number = |text: &str| parse_number(text, names, u64::from(names.len() == 12));
    let (start, mut end) = match range.as_slice() {
        [] | ["*" | "?", ..] => (min, max),
        [one] => {
            let start = number(one)?;
            (start, start)
        }
        [low, high] => (number(low)?, number(high)?),
        [low, ..] => {
            number(low)?;
            return told(&"too many hyphens");
        }
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = parse_number(step, &[], 0)?;
            if range.len() == 1 {
                end = max;
            }
            step
        }
        _ => return told(&"too many slashes"),
    };
    if start < min {
        told(&format_args!(
            "beginning of range ({start}) below minimum ({min})"
        ))
    } else if end > max {
        told(&format_args!("end of range ({end}) above maximum ({max})"))
    } else if start > end {
        told(&format_args!(
            "beginning of range ({start}) beyond end of range ({end})"
        ))
    } else if step == 0 {
        told(&"step of range should be a positive number")
    } else {
        Ok(())
    }
}

fn parse_number(text: &str, names: &[&str], first: u64) -> Result<u64, String> {
    let lower = text.to_lowercase();
    if let Some(place) = names.iter().position(|n| *n == lower) {
        return Ok(place as u64 + first);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax",
            quote(text)
        ));
    }
    let Ok(number) = text.parse::<i64>() else {
        return Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {}: value out of range",
            quote(text)
        ));
    };
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

/// Judges a time zone.
pub(super) fn validate_zone(errors: &mut FieldErrors, path: &str, zone: &str) {
    let mut invalid = |detail: String| errors.push(FieldError::invalid_str(path, zone, detail));
    if zone.is_empty() {
        invalid("timeZone must be nil or non-empty string".to_owned());
        return;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    let odd = |part: &str| {
        part == "."
            || part == ".."
            || part.starts_with('-')
            || part.is_empty()
            || part.len() > 14
            || !part.chars().all(plain)
    };
    if zone.split('/').any(odd) {
        invalid(format!("unknown time zone {zone}"));
        return;
    }
    let local = zone.eq_ignore_ascii_case("local");
    if local {
        invalid(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
    }
    if zone != "Local" && !zone_exists(zone) {
        invalid(format!("unknown time zone {zone}"));
    }
}

/// Whether there is such a zone; on a machine without a zone database, any will do.
fn zone_exists(zone: &str) -> bool {
    let zones = jiff::tz::db();
    let known = |found: jiff::tz::TimeZone| found.iana_name() == Some(zone);
    matches!(zone, "" | "UTC" | "Local")
        || zones.is_definitively_empty()
        || zones.get(zone).is_ok_and(known)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn good_schedules() {
        for text in [
            "* * * * *",
            "*/5 0-23/2 1,15 jan-mar MON",
            "@hourly",
            "@every 1h30m",
            "0 0 ? * 6",
        ] {
            assert_eq!(parse(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn bad_schedules() {
        for (text, want) in [
            ("x y", "expected exactly 5 fields, found 2: [x y]"),
            ("* * * * 8", "end of range (8) above maximum (6): 8"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            (
                "a * * * *",
                "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(parse(text).unwrap_err(), want, "{text}");
        }
    }
}
