//! Keys, variables, percentages and other texts with a pattern.

use super::{SUBDOMAIN_MAX, regex_text, too_long};

/// An identifier as in C.
pub fn c_identifier(value: &str) -> Vec<String> {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if starts_and_goes_on(value, is_first, |c| c.is_ascii_alphanumeric() || c == '_') {
        return Vec::new();
    }
    vec![regex_text(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// The name of an environment variable, by the old strict rule.
pub fn env_var_name(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let is_first = |c: char| c.is_ascii_alphabetic() || "-._".contains(c);
    if !starts_and_goes_on(value, is_first, |c| {
        c.is_ascii_alphanumeric() || "-._".contains(c)
    }) {
        wrong.push(regex_text(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        ));
    }
    wrong.extend(directory_change(value));
    wrong
}

/// The name of an environment variable of a container, as it is judged since 1.34.
pub fn relaxed_env_var_name(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if value
        .chars()
        .any(|c| !(c.is_ascii_graphic() || c == ' ') || c == '=')
    {
        wrong.push("a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned());
    }
    wrong
}

/// A key of a `ConfigMap` or Secret.
pub fn config_map_key(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, SUBDOMAIN_MAX, "characters");
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if !starts_and_goes_on(value, is_allowed, is_allowed) {
        wrong.push(regex_text(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    wrong.extend(directory_change(value));
    wrong
}

/// A percentage such as `25%`.
pub fn percent(value: &str) -> Vec<String> {
    let digits = value.strip_suffix('%').unwrap_or_default();
    if starts_and_goes_on(digits, |c| c.is_ascii_digit(), |c| c.is_ascii_digit()) {
        return Vec::new();
    }
    vec![regex_text(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// The reason of a `metav1.Condition`.
pub fn condition_reason(value: &str) -> Vec<String> {
    let is_end = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = starts_and_goes_on(
        value,
        |c| c.is_ascii_alphabetic(),
        |c| is_end(c) || c == ',' || c == ':',
    ) && value.ends_with(is_end);
    if fits {
        return Vec::new();
    }
    vec![regex_text(
        "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
        &[
            "my_name",
            "MY_NAME",
            "MyName",
            "ReasonA,ReasonB",
            "ReasonA:ReasonB",
        ],
    )]
}

fn directory_change(value: &str) -> Option<String> {
    match value {
        "." | ".." => Some(format!("must not be '{value}'")),
        _ if value.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn starts_and_goes_on(
    value: &str,
    first: impl Fn(char) -> bool,
    rest: impl Fn(char) -> bool,
) -> bool {
    value.starts_with(first) && value.chars().skip(1).all(rest)
}
