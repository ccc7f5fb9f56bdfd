//! How names, label keys, label values and other constrained texts are judged.
//!
//! Every function gives the texts of what is wrong, in the API's words; none means that the value is fine. The
//! functions with a `prefix` judge object names, where `prefix` is true for `generateName`.

mod keys;
mod network;
#[cfg(test)]
mod tests;

pub use keys::{
    c_identifier, condition_reason, config_map_key, env_var_name, percent, relaxed_env_var_name,
};
pub use network::{
    cidr, cidr_warnings, http_header_name, http_path, ip, ip_sloppy, ip_warnings, port_name,
    port_number,
};

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

/// The longest DNS label, label key without prefix, and label value.
pub const LABEL_MAX: usize = 63;
/// The longest DNS subdomain, and so the longest name of most objects.
pub const SUBDOMAIN_MAX: usize = 253;
/// The most that all annotations of one object may take together, in bytes.
pub const ANNOTATIONS_MAX: usize = 256 * 1024;

/// A name that must be a DNS-1123 subdomain: most kinds.
pub fn dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    subdomain(&masked(name, prefix))
}

/// A name that must be a DNS-1123 label: namespaces, services, cron job templates.
pub fn dns_label(name: &str, prefix: bool) -> Vec<String> {
    label(&masked(name, prefix))
}

/// A name that must be a DNS-1035 label, which does not begin with a digit.
pub fn dns_1035_label(name: &str, prefix: bool) -> Vec<String> {
    label_1035(&masked(name, prefix))
}

/// A name that only has to fit into a URL path: the RBAC kinds.
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|bad| name.contains(**bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

/// The name of a Service. Since 1.36 it may begin with a digit (`RelaxedServiceNameValidation`).
pub fn service_name(name: &str, prefix: bool) -> Vec<String> {
    dns_label(name, prefix)
}

/// What the end of a prefix looks like once something is appended. The real server replaces the last two
/// characters by one; that shows in the length it judges.
fn masked(name: &str, prefix: bool) -> String {
    if prefix && name.len() > 1 && name.ends_with('-') {
        let mut kept: Vec<char> = name.chars().collect();
        kept.truncate(kept.len().saturating_sub(2));
        kept.push('a');
        return kept.into_iter().collect();
    }
    name.to_owned()
}

/// Any value that must be a DNS-1123 subdomain.
pub fn subdomain(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, SUBDOMAIN_MAX, "characters");
    if !is_subdomain(value) {
        wrong.push(regex_text(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"]));
    }
    wrong
}

/// Any value that must be a DNS-1123 label.
pub fn label(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, LABEL_MAX, "characters");
    if is_label(value) {
        return wrong;
    }
    wrong.push(if is_subdomain(value) {
        "must not contain dots".to_owned()
    } else {
        regex_text(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
            LABEL,
            &["my-name", "123-abc"],
        )
    });
    wrong
}

/// Any value that must be a DNS-1035 label.
pub fn label_1035(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, LABEL_MAX, "characters");
    if !(is_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        wrong.push(regex_text(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    wrong
}

/// A DNS-1123 subdomain whose labels may hold underscores (search domains of a pod).
pub fn subdomain_with_underscore(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, SUBDOMAIN_MAX, "characters");
    let part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        bounded(part, is_lower_alnum, |c| {
            is_lower_alnum(c) || c == '-' || c == '_'
        })
    };
    if !value.split('.').all(part) {
        wrong.push(regex_text(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    wrong
}

/// `*.` and a DNS-1123 subdomain (hosts of an Ingress).
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, SUBDOMAIN_MAX, "characters");
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        wrong.push(regex_text(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{SUBDOMAIN}"),
            &["*.example.com"],
        ));
    }
    wrong
}

/// A label key, also known as a qualified name: an optional DNS prefix, `/`, and a name. Finalizers, resource names,
/// condition types and taint keys are judged so too.
pub fn label_key(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(key_prefix(prefix));
            }
            *name
        }
        _ => {
            let rule = regex_text(LABEL_KEY_RULE, LABEL_KEY, &KEY_EXAMPLES);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        wrong.push(format!("name part must be no more than {LABEL_MAX} bytes"));
    }
    if !is_key_name(name) {
        let rule = regex_text(LABEL_KEY_RULE, LABEL_KEY, &KEY_EXAMPLES);
        wrong.push(format!("name part {rule}"));
    }
    wrong
}

const KEY_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];

/// In label keys the length is counted in bytes by name, unlike in object names.
fn key_prefix(prefix: &str) -> Vec<String> {
    let mut wrong = too_long(prefix, SUBDOMAIN_MAX, "bytes");
    if !is_subdomain(prefix) {
        wrong.push(regex_text(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"]));
    }
    wrong
        .iter()
        .map(|text| format!("prefix part {text}"))
        .collect()
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, LABEL_MAX, "bytes");
    if !(value.is_empty() || is_key_name(value)) {
        wrong.push(regex_text(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &format!("({LABEL_KEY})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// The key of an annotation: a label key in which capitals are as good as small letters.
pub fn annotation_key(value: &str) -> Vec<String> {
    label_key(&value.to_lowercase())
}

/// A finalizer of a built-in kind, besides being a [`label_key`]: qualified, or one of the three old ones.
pub fn standard_finalizer(value: &str) -> Vec<String> {
    if value.contains('/') || ["kubernetes", "orphan", "foregroundDeletion"].contains(&value) {
        return Vec::new();
    }
    vec!["name is neither a standard finalizer name nor is it fully qualified".to_owned()]
}

/// A name in a group that is qualified by at least two dots, such as a CSI or signer name.
pub fn fully_qualified_name(value: &str) -> Vec<String> {
    let wrong = subdomain(value);
    if !wrong.is_empty() {
        return vec![wrong.join(",")];
    }
    if value.split('.').count() < 3 {
        return vec![
            "should be a domain with at least three segments separated by dots".to_owned(),
        ];
    }
    Vec::new()
}

/// A key that must have a domain before its `/`.
pub fn domain_prefixed_key(value: &str) -> Vec<String> {
    let wrong = label_key(value);
    if !wrong.is_empty() || value.contains('/') {
        return wrong;
    }
    vec!["must be a domain-prefixed key (such as \"acme.io/foo\")".to_owned()]
}

/// The text for a value that breaks a pattern; examples are quoted the way the API quotes them.
pub fn regex_text(rule: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{pattern}')");
    }
    let quoted: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!(
        "{rule} (e.g. {}regex used for validation is '{pattern}')",
        quoted.join(" or ")
    )
}

/// The text for a number outside its limits.
pub fn range_text(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

fn too_long(value: &str, max: usize, unit: &str) -> Vec<String> {
    if value.len() > max {
        vec![format!("must be no more than {max} {unit}")]
    } else {
        Vec::new()
    }
}

fn is_lower_alnum(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Whether `value` is not empty, begins and ends with an `end`, and has only `inner` between.
fn bounded(value: &str, end: fn(char) -> bool, inner: impl Fn(char) -> bool) -> bool {
    value.starts_with(end) && value.ends_with(end) && value.chars().all(inner)
}

fn is_label(value: &str) -> bool {
    bounded(value, is_lower_alnum, |c| is_lower_alnum(c) || c == '-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_key_name(value: &str) -> bool {
    bounded(
        value,
        |c| c.is_ascii_alphanumeric(),
        |c| c.is_ascii_alphanumeric() || "-_.".contains(c),
    )
}
