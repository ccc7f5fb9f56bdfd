//! Durations, in Go's form and in a looser one.

use std::sync::LazyLock;

use regex::Regex;

static LOOSE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"([0-9]+)\s*([A-Za-zµ]+)").ok());

/// The length of a duration in Go's form (`1h30m`), or in the looser one (`2 days`) that the server also takes.
pub(crate) fn duration_nanos(text: &str) -> Option<i64> {
    go_duration(text).or_else(|| loose_duration(text))
}

const NANOS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

fn go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, next) = tail.split_at(unit_end);
        let nanos = NANOS.iter().find(|(name, _)| *name == unit)?.1;
        total = total.checked_add(scaled(number, nanos)?)?;
        rest = next;
    }
    Some(if negative { -total } else { total })
}

/// `number` (with an optional fraction) times `unit`.
fn scaled(number: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanos = whole.checked_mul(unit)?;
    let mut scale = i128::from(unit);
    for digit in fraction.chars().take(18) {
        let digit = i128::from(digit.to_digit(10)?);
        nanos = nanos.checked_add(i64::try_from(digit * scale / 10).ok()?)?;
        scale /= 10;
    }
    Some(nanos)
}

/// The names of units; the last of each also stands for any word that begins with it.
const UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

fn loose_duration(text: &str) -> Option<i64> {
    let mut total = None;
    for found in LOOSE.as_ref()?.captures_iter(text) {
        let factor: i64 = found.get(1)?.as_str().parse().ok()?;
        let unit = found.get(2)?.as_str().to_lowercase();
        for (names, nanos) in UNITS {
            let prefix = names.last().is_some_and(|last| unit.starts_with(last));
            if prefix || names.contains(&unit.as_str()) {
                let part = factor.wrapping_mul(nanos);
                total = Some(total.unwrap_or(0_i64).wrapping_add(part));
            }
        }
    }
    total
}
