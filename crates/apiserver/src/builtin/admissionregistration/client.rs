//! How a webhook is reached: a URL or a service.

use serde_json::Value;

use crate::builtin::checks::child;
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors, quote};
use crate::value;

const FORM: &str = "; desired format: https://host[/path]";

/// The `clientConfig` of `hook`, which stands at `at`.
pub(super) fn validate(at: &str, hook: &Value) -> FieldErrors {
    let url = value::at(hook, "clientConfig.url").and_then(Value::as_str);
    let service = value::at(hook, "clientConfig.service").filter(|s| !s.is_null());
    match (url, service) {
        (Some(url), None) => validate_url(&child(at, "url"), url),
        (None, Some(service)) => validate_service(&child(at, "service"), service),
        _ => vec![FieldError::required(
            at,
            "exactly one of url or service is required",
        )],
    }
}

/// The parts of a URL that are judged.
#[derive(Debug, Default, PartialEq, Eq)]
struct Url<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    host: &'a str,
    query: &'a str,
    fragment: &'a str,
}

impl<'a> Url<'a> {
    /// Takes a URL apart as Go does; the error is its text.
    fn parse(text: &'a str) -> Result<Self, String> {
        let fail = |why: &str| Err(format!("parse {}: {why}", quote(text)));
        if text.chars().any(|c| c.is_ascii_control()) {
            return fail("net/url: invalid control character in URL");
        }
        if let Some(escape) = bad_escape(text) {
            let why = format!("invalid URL escape {}", quote(escape));
            return fail(&why);
        }
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let scheme_end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')))
            .unwrap_or(rest.len());
        let (scheme, rest) = match rest.split_at_checked(scheme_end) {
            Some(("", after)) if after.starts_with(':') => return fail("missing protocol scheme"),
            Some((scheme, after)) if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                match after.strip_prefix(':') {
                    Some(after) => (scheme, after),
                    None => ("", rest),
                }
            }
            _ => ("", rest),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let Some(authority) = rest.strip_prefix("//") else {
            let first = rest.split('/').next().unwrap_or_default();
            if scheme.is_empty() && first.contains(':') {
                return fail("first path segment in URL cannot contain colon");
            }
            return Ok(Self {
                scheme,
                query,
                fragment,
                ..Self::default()
            });
        };
        let authority = authority.split('/').next().unwrap_or_default();
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        if let Some((_, port)) = host.rsplit_once(':')
            && !port.ends_with(']')
            && !port.bytes().all(|b| b.is_ascii_digit())
        {
            let why = format!("invalid port {} after host", quote(&format!(":{port}")));
            return fail(&why);
        }
        Ok(Self {
            scheme,
            user,
            host,
            query,
            fragment,
        })
    }
}

/// A `%` in the path that two hexadecimal digits do not follow.
fn bad_escape(url: &str) -> Option<&str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.match_indices('%').find_map(|(at, _)| {
        let rest = path.get(at..).unwrap_or_default();
        let escape = rest.get(..3).unwrap_or(rest);
        let digits = escape.bytes().skip(1).filter(u8::is_ascii_hexdigit).count();
        (digits < 2).then_some(escape)
    })
}

fn validate_url(path: &str, text: &str) -> FieldErrors {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(why) => {
            let detail = format!("url must be a valid URL: {why}{FORM}");
            return vec![FieldError::required(path, detail)];
        }
    };
    let mut errors = Vec::new();
    let mut refuse = |shown: &str, detail: &str| {
        errors.push(FieldError::invalid_str(path, shown, detail));
    };
    let scheme = url.scheme.to_ascii_lowercase();
    if scheme != "https" {
        refuse(
            &scheme,
            &format!("'https' is the only allowed URL scheme{FORM}"),
        );
    }
    if url.host.is_empty() {
        refuse("", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = url.user {
        refuse(user, "user information is not permitted in the URL");
    }
    if !url.fragment.is_empty() {
        refuse(url.fragment, "fragments are not permitted in the URL");
    }
    if !url.query.is_empty() {
        refuse(url.query, "query parameters are not permitted in the URL");
    }
    errors
}

fn validate_service(at: &str, service: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    for field in ["name", "namespace"] {
        if value::text(service, field).is_empty() {
            errors.push(FieldError::required(child(at, field), ""));
        }
    }
    let port = value::integer(service, "port").unwrap_or_default();
    let wrong = names::port_number(port);
    if !wrong.is_empty() {
        let detail = format!("port is not valid: {}", wrong.join(", "));
        let path = child(at, "port");
        errors.push(FieldError::invalid(path, &port.into(), detail));
    }
    errors.extend(validate_path(
        &child(at, "path"),
        value::text(service, "path"),
    ));
    errors
}

fn validate_path(at: &str, path: &str) -> FieldErrors {
    let mut errors = Vec::new();
    if path.is_empty() || path == "/" {
        return errors;
    }
    let mut refuse = |detail: String| errors.push(FieldError::invalid_str(at, path, detail));
    if path == "//" {
        refuse("segment[0] may not be empty".to_owned());
        return errors;
    }
    if !path.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    // The first character goes, slash or not, as in the real server.
    let mut characters = path.chars();
    characters.next();
    let rest = characters.as_str();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (i, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{i}] may not be empty"));
            continue;
        }
        for wrong in names::subdomain(step) {
            refuse(format!("segment[{i}]: {wrong}"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn urls_come_apart() {
        let url = Url::parse("https://u:p@h:1/x?y=1#f").unwrap();
        assert_eq!(
            (url.scheme, url.user, url.host, url.query, url.fragment),
            ("https", Some("u:p"), "h:1", "y=1", "f")
        );
        assert_eq!(Url::parse("/x").unwrap(), Url::default());
        assert_eq!(
            Url::parse("::bad").unwrap_err(),
            "parse \"::bad\": missing protocol scheme"
        );
    }
}
