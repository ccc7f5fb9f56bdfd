//! How names are judged: DNS labels, subdomains and the rest.

/// Texts of what is wrong with `name` as a DNS-1123 subdomain.
pub fn dns_subdomain(_name: &str, _prefix: bool) -> Vec<String> {
    Vec::new()
}

/// Texts of what is wrong with `name` as a DNS-1123 label.
pub fn dns_label(_name: &str, _prefix: bool) -> Vec<String> {
    Vec::new()
}

/// Texts of what is wrong with `name` as a qualified name.
pub fn qualified_name(_name: &str) -> Vec<String> {
    Vec::new()
}

/// Texts of what is wrong with `value` as a label value.
pub fn label_value(_value: &str) -> Vec<String> {
    Vec::new()
}
