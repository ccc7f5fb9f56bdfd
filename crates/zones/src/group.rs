//! Annotations and labels as people write them, by exactly the grammars of the original.
//!
//! What cannot be read is told by name; what is done then is for the caller: the original ignores some, and refuses to go
//! on for others.

use std::time::Duration;

use slipway_kernel::duration::{self, NotADuration};

/// How many pods of a zone may be unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxUnavailable {
    /// So many.
    Pods(i64),
    /// A part of the replicas.
    Percent(i64),
}

impl MaxUnavailable {
    /// Where the annotation is missing or cannot be read.
    pub const DEFAULT: Self = Self::Pods(1);

    /// Reads the annotation: `3`, `+3`, `25%`, with blanks around it.
    pub fn read(text: &str) -> Result<Self, NotAShare> {
        let trimmed = text.trim();
        let wrong = || NotAShare(text.to_owned());
        match trimmed.strip_suffix('%') {
            Some(percent) => {
                let percent = atoi(percent).ok_or_else(wrong)?;
                if (1..=100).contains(&percent) {
                    Ok(Self::Percent(percent))
                } else {
                    Err(wrong())
                }
            }
            None => match atoi(trimmed) {
                Some(pods) if pods > 0 => Ok(Self::Pods(pods)),
                _ => Err(wrong()),
            },
        }
    }

    /// As a number of pods; at least one.
    pub fn of(self, replicas: Option<i64>) -> i64 {
        match (self, replicas) {
            (Self::Pods(pods), _) => pods,
            (Self::Percent(_), None) => 1,
            (Self::Percent(percent), Some(replicas)) => {
                (percent.saturating_mul(replicas) / 100).max(1)
            }
        }
    }
}

/// A text that is no number of pods.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a positive number of pods nor a percentage from 1% to 100%; 1 is used")]
pub struct NotAShare(String);

/// A whole number as Go's `Atoi` takes it: a sign perhaps, digits, nothing else.
pub fn atoi(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Replicas that override others; none for what is no number of replicas.
pub fn force_replicas(text: Option<&str>) -> Option<i64> {
    atoi(text?).filter(|number| (0..=i64::from(i32::MAX)).contains(number))
}

/// Whether replicas are written back: yes, unless a readable value says no or it cannot be read.
pub fn write_back(text: Option<&str>) -> bool {
    matches!(
        text,
        None | Some("1" | "t" | "T" | "TRUE" | "true" | "True")
    )
}

/// The group of an API version: `group/version`, or `version` for the core. None if it has more parts.
pub fn api_group(version: &str) -> Option<&str> {
    match version.split_once('/') {
        None => Some(""),
        Some((group, version)) => (!version.contains('/')).then_some(group),
    }
}

/// A duration by Go's grammar, which knows no days. What is below zero has always passed.
pub fn go_duration(text: &str) -> Result<Duration, NotADuration> {
    let foreign = |c: char| matches!(c, 'd' | 'w') || c.is_whitespace();
    if text.contains(foreign) {
        return Err(NotADuration::Malformed(text.to_owned()));
    }
    match duration::parse(text) {
        Err(NotADuration::Negative(_)) => Ok(Duration::ZERO),
        other => other,
    }
}

/// A duration by Prometheus' grammar: whole numbers of years, weeks, days, hours, minutes, seconds and milliseconds, in
/// this order, or `0`.
pub fn prometheus_duration(text: &str) -> Result<Duration, NotADuration> {
    const UNITS: [(&str, u64); 7] = [
        ("y", 365 * 86_400_000),
        ("w", 7 * 86_400_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];
    let malformed = || NotADuration::Malformed(text.to_owned());
    match text {
        "" => return Err(NotADuration::Empty),
        "0" => return Ok(Duration::ZERO),
        _ => {}
    }
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .ok_or_else(malformed)?;
        let (digits, after) = rest.split_at(end);
        let number: u64 = digits.parse().map_err(|_| malformed())?;
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, length) = units
            .find(|(name, _)| *name == unit)
            .ok_or_else(malformed)?;
        let part = number.checked_mul(*length);
        sum = part
            .and_then(|part| sum.checked_add(part))
            .ok_or_else(|| NotADuration::TooLong(text.to_owned()))?;
        rest = after;
    }
    Ok(Duration::from_millis(sum))
}

/// The address of a pod of a zone.
pub fn pod_host(set: &str, ordinal: i64, service: &str, namespace: &str, domain: &str) -> String {
    format!("{set}-{ordinal}.{service}.{namespace}.svc.{domain}")
}

/// A URL with another host; its port, scheme, path and query stay. None if it has no scheme or host.
pub fn with_host(url: &str, host: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if scheme.is_empty() || authority.is_empty() {
        return None;
    }
    let address = authority.rsplit_once('@').map_or(authority, |(_, at)| at);
    let port = match address.rsplit_once(':') {
        Some((_, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            format!(":{port}")
        }
        _ => String::new(),
    };
    Some(format!("{scheme}://{host}{port}{path}"))
}

#[cfg(test)]
mod tests;
