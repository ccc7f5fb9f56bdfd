//! Command lines by the grammar of Go's `flag` package, for programs that are replaced by this one: `-x`, `--x`, `-x=v`,
//! `-x v`, switches without a value, the same messages, the same layout of the usage text. Pure.
//!
//! What is not promised: hexadecimal floats.

use std::fmt::Write as _;
use std::time::Duration;

use slipway_kernel::duration;
use slipway_zones::group::{go_duration, prometheus_duration};

/// Where in the options `C` a flag's value goes, which is also where its default comes from.
pub(crate) enum Slot<C> {
    /// A switch.
    Bool(fn(&mut C) -> &mut bool),
    /// A whole number.
    Int(fn(&mut C) -> &mut i64),
    /// A number.
    Float(fn(&mut C) -> &mut f64),
    /// Any text.
    Text(fn(&mut C) -> &mut String),
    /// Texts between commas.
    List(fn(&mut C) -> &mut Vec<String>),
    /// A duration by Go's grammar. What is below zero is taken for zero.
    Duration(fn(&mut C) -> &mut Duration),
    /// A duration by Prometheus' grammar.
    Long(fn(&mut C) -> &mut Duration),
}

/// One flag.
pub(crate) struct Flag<C> {
    /// Its name, without dashes.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) usage: &'static str,
    /// Where it goes.
    pub(crate) slot: Slot<C>,
}

/// Why there are no options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Help was asked for.
    Help,
    /// The command line is wrong: the first thing that is.
    Wrong(String),
}

/// Reads a command line over the options' defaults. Reading ends at the first argument that is no flag, as in Go.
/// `known_as` gives the name of a flag that is also known under another one.
pub(crate) fn parse<C: Default>(
    flags: &[Flag<C>],
    known_as: fn(&str) -> Option<String>,
    arguments: &[String],
) -> Result<C, Stopped> {
    let mut options = C::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(body) = argument.strip_prefix('-').filter(|body| !body.is_empty()) else {
            break;
        };
        let body = body.strip_prefix('-').unwrap_or(body);
        if body.is_empty() {
            break;
        }
        if body.starts_with(['-', '=']) {
            return Err(Stopped::Wrong(format!("bad flag syntax: {argument}")));
        }
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let find = |name: &str| flags.iter().find(|flag| flag.name == name);
        let other = || known_as(name).and_then(|name| find(&name));
        let Some(flag) = find(name).or_else(other) else {
            return Err(match name {
                "h" | "help" => Stopped::Help,
                _ => Stopped::Wrong(format!("flag provided but not defined: -{name}")),
            });
        };
        if let Slot::Bool(slot) = flag.slot {
            let value = value.unwrap_or("true");
            *slot(&mut options) = switch(value).ok_or_else(|| {
                Stopped::Wrong(format!(
                    "invalid boolean value {value:?} for -{name}: parse error"
                ))
            })?;
            continue;
        }
        let value = value.or_else(|| rest.next().map(String::as_str));
        let value =
            value.ok_or_else(|| Stopped::Wrong(format!("flag needs an argument: -{name}")))?;
        set(&flag.slot, &mut options, value).map_err(|problem| {
            Stopped::Wrong(format!(
                "invalid value {value:?} for flag -{name}: {problem}"
            ))
        })?;
    }
    Ok(options)
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn set<C>(slot: &Slot<C>, options: &mut C, text: &str) -> Result<(), String> {
    let wrong = || "parse error".to_owned();
    match slot {
        Slot::Bool(slot) => *slot(options) = switch(text).ok_or_else(wrong)?,
        Slot::Int(slot) => *slot(options) = integer(text)?,
        Slot::Float(slot) => *slot(options) = text.parse().map_err(|_| wrong())?,
        Slot::Text(slot) => text.clone_into(slot(options)),
        Slot::List(slot) => {
            let parts = text.split(',').filter(|part| !part.is_empty());
            *slot(options) = parts.map(str::to_owned).collect();
        }
        Slot::Duration(slot) => *slot(options) = go_duration(text).map_err(|_| wrong())?,
        Slot::Long(slot) => {
            *slot(options) = match text {
                "" => return Err("empty duration string".to_owned()),
                _ => prometheus_duration(text)
                    .map_err(|_| format!("not a valid duration string: {text:?}"))?,
            }
        }
    }
    Ok(())
}

/// A whole number as Go's literals are written: `8001`, `0x1F41`, `0o17`, `017`, `8_001`.
fn integer(text: &str) -> Result<i64, String> {
    let wrong = || "parse error".to_owned();
    let (sign, body) = match text.split_at_checked(1) {
        Some(("-", body)) => ("-", body),
        Some(("+", body)) => ("", body),
        _ => ("", text),
    };
    let prefix = body.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match prefix.as_deref() {
        Some("0x") => (16, body.get(2..).unwrap_or_default()),
        Some("0b") => (2, body.get(2..).unwrap_or_default()),
        Some("0o") => (8, body.get(2..).unwrap_or_default()),
        _ if body.len() > 1 && body.starts_with('0') => (8, body),
        _ => (10, body),
    };
    let after_prefix = radix != 10 && digits.starts_with('_');
    let inner = if after_prefix {
        digits.get(1..).unwrap_or_default()
    } else {
        digits
    };
    let parts: Vec<&str> = inner.split('_').collect();
    let is_digits = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_digit(radix));
    if !parts.iter().all(is_digits) {
        return Err(wrong());
    }
    let plain = format!("{sign}{}", parts.concat());
    i64::from_str_radix(&plain, radix).map_err(|_| "value out of range".to_owned())
}

/// What is printed after a wrong command line, and for `-h`: every flag by name, with its default.
pub(crate) fn usage<C: Default>(program: &str, flags: &[Flag<C>]) -> String {
    let mut sorted: Vec<&Flag<C>> = flags.iter().collect();
    sorted.sort_by_key(|flag| flag.name);
    let mut text = format!("Usage of {program}:\n");
    let mut options = C::default();
    for flag in sorted {
        let (kind, default) = shown(&flag.slot, &mut options);
        let kind = if kind.is_empty() {
            String::new()
        } else {
            format!(" {kind}")
        };
        let default = default.map_or_else(String::new, |value| format!(" (default {value})"));
        let (name, usage) = (flag.name, flag.usage);
        // Writing into a text cannot fail.
        let _ = write!(text, "  -{name}{kind}\n    \t{usage}{default}\n");
    }
    text
}

/// The name of a flag's type, and its default unless that is nothing.
fn shown<C>(slot: &Slot<C>, options: &mut C) -> (&'static str, Option<String>) {
    match slot {
        Slot::Bool(slot) => ("", slot(options).then(|| "true".to_owned())),
        Slot::Int(slot) => {
            let value = *slot(options);
            ("int", (value != 0).then(|| value.to_string()))
        }
        Slot::Float(slot) => {
            let value = *slot(options);
            ("float", (value != 0.0).then(|| value.to_string()))
        }
        Slot::Text(slot) => {
            let value = slot(options);
            ("string", (!value.is_empty()).then(|| format!("{value:?}")))
        }
        Slot::List(slot) => {
            let value = slot(options);
            ("value", (!value.is_empty()).then(|| value.join(",")))
        }
        Slot::Duration(slot) => {
            let value = *slot(options);
            let is_set = !value.is_zero();
            ("duration", is_set.then(|| duration::render(value)))
        }
        Slot::Long(slot) => {
            let value = *slot(options);
            ("value", (!value.is_zero()).then(|| long(value)))
        }
    }
}

/// A duration by Prometheus' grammar: in the largest units that make it whole.
fn long(value: Duration) -> String {
    const DAY: u64 = 86_400;
    let seconds = value.as_secs();
    for (unit, length) in [("y", 365 * DAY), ("w", 7 * DAY), ("d", DAY)] {
        if seconds >= length && seconds.is_multiple_of(length) {
            return format!("{}{unit}", seconds / length);
        }
    }
    duration::render(value)
}

#[cfg(test)]
mod tests;
