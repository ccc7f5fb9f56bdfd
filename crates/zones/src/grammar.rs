//! Names and labels, as the API takes them.

/// Whether a text can be the key of a label.
pub(crate) fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_name)
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

/// Whether a text can be part of a path or a host name.
pub(crate) fn is_name(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !text.is_empty()
        && text.len() <= 253
        && text.chars().all(is_inner)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && !text.contains("..")
}
