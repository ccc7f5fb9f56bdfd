//! How names are judged: DNS labels, subdomains and the rest.

/// Texts of what is wrong with `name` as a DNS-1123 subdomain.
pub fn dns_subdomain(_name: &str, _prefix: bool) -> Vec<String> {
    Vec::new()
}
