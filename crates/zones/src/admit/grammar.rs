//! Small grammars of texts in objects: durations and labels as Go and the API take them.

use std::time::Duration;

use slipway_kernel::duration::{self, NotADuration};

/// Reads a Go duration: no days, no weeks, no blanks.
pub(crate) fn go_duration(text: &str) -> Result<Duration, NotADuration> {
    if text.contains(|c: char| c.is_whitespace() || c == 'd' || c == 'w') {
        return Err(NotADuration::Malformed(text.to_owned()));
    }
    duration::parse(text)
}

/// Whether a text can be the key of a label.
pub(crate) fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(super::replicas::is_name)
}

/// Whether a text can be the value of a label.
pub(crate) fn is_label_value(value: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    let is_inner = |c: char| is_edge(c) || matches!(c, '-' | '_' | '.');
    value.is_empty()
        || (value.len() <= 63
            && value.chars().all(is_inner)
            && value.starts_with(is_edge)
            && value.ends_with(is_edge))
}
