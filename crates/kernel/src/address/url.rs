//! URLs, read strictly.
//!
//! What two programs could read as two different hosts is no URL here: names and passwords before the host, backslashes,
//! spaces, control characters, anything that is not ASCII, fragments, odd spellings of numbers.

use std::fmt;

use super::host::{Host, NotAHost};

/// The longest URL.
const LONGEST: usize = 8 * 1024;

/// Why a text is no URL. None of these has any of the text in it: parts of a URL may be secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAUrl {
    /// Too long.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// Another scheme, or none.
    #[error("it does not begin with http:// or https://")]
    Scheme,
    /// A character that has to be escaped, or a bad escape.
    #[error("it has characters that a URL cannot have; escape them with %")]
    Character,
    /// `user:password@`.
    #[error("it has a user name or password in it; give credentials by a Secret")]
    UserInfo,
    /// No host, or an ambiguous one.
    #[error(transparent)]
    Host(#[from] NotAHost),
    /// No port number.
    #[error("its port is no number between 1 and 65535")]
    Port,
    /// `#…`.
    #[error("it has a fragment (#), which is not sent")]
    Fragment,
}

/// How it is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// In the open.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// As a URL has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Whom to call, and what is asked for there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Url {
    /// How it is spoken.
    pub scheme: Scheme,
    /// Whom.
    pub host: Host,
    /// At which port.
    pub port: u16,
    path: String,
    query: Option<String>,
}

impl Url {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, NotAUrl> {
        if text.len() > LONGEST {
            return Err(NotAUrl::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(NotAUrl::Scheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(NotAUrl::Scheme),
        };
        if rest.contains('#') {
            return Err(NotAUrl::Fragment);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err(NotAUrl::UserInfo);
        }
        check_characters(target)?;
        let (host, port) = split_port(authority)?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        Ok(Self {
            scheme,
            host: Host::parse(host)?,
            port: port.unwrap_or(scheme.default_port()),
            path: if path.is_empty() { "/" } else { path }.to_owned(),
            query,
        })
    }

    /// The path; it begins with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What stands after `?`, if it is there.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Path and query, as a request has them.
    pub fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// Host and port, as a request names whom it is for; the port of the scheme is left out.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Scheme, host and port: what may be shown of a URL whose path or query is secret.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.authority())
    }

    /// Whether both are spoken with the same server.
    pub fn is_same_origin(&self, other: &Self) -> bool {
        (self.scheme, self.host.bare(), self.port) == (other.scheme, other.host.bare(), other.port)
    }

    /// The same with more of a path behind its own.
    #[must_use]
    pub fn join(mut self, path: &str) -> Self {
        let own = self.path.trim_end_matches('/');
        self.path = format!("{own}/{}", path.trim_start_matches('/'));
        self
    }

    /// The same with one more parameter, whose value is escaped.
    #[must_use]
    pub fn with_parameter(mut self, name: &str, value: &str) -> Self {
        let parameter = format!("{}={}", escaped(name), escaped(value));
        self.query = Some(match self.query.take() {
            Some(query) if !query.is_empty() => format!("{query}&{parameter}"),
            _ => parameter,
        });
        self
    }

    /// Where a `Location` leads from here: a whole URL, `//host/path`, `/path`, or a path beside this one.
    pub fn follow(&self, location: &str) -> Result<Self, NotAUrl> {
        // What stands behind # is for whoever follows.
        let location = location.split('#').next().unwrap_or_default();
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{}://{rest}", self.scheme.as_str()));
        }
        if has_scheme(location) {
            return Self::parse(location);
        }
        let target = if location.starts_with('/') {
            location.to_owned()
        } else if location.starts_with('?') {
            format!("{}{location}", self.path)
        } else {
            let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{location}")
        };
        Self::parse(&format!("{}{target}", self.origin()))
    }
}

/// Whether a text begins with a scheme: what comes later, in a path or a query, is part of those.
fn has_scheme(text: &str) -> bool {
    let end = text.find([':', '/', '?']);
    let Some((scheme, rest)) = end.and_then(|end| text.split_at_checked(end)) else {
        return false;
    };
    let is_known = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    rest.starts_with(':') && !scheme.is_empty() && scheme.bytes().all(is_known)
}

/// The whole URL: only for those without secrets in them.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.target())
    }
}

/// A value as it may stand anywhere in a URL: only letters, digits and `-._~` as they are.
pub fn escaped(value: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |n: u8| HEX.get(usize::from(n)).copied().map_or('0', char::from);
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    text
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), NotAUrl> {
    let after = authority.rfind(']').unwrap_or(0);
    let tail = authority.get(after..).unwrap_or_default();
    let Some(colon) = tail.find(':') else {
        return Ok((authority, None));
    };
    let (host, port) = authority.split_at(after + colon);
    let digits = port.trim_start_matches(':');
    let is_number = port.len() == digits.len() + 1
        && digits.len() <= 5
        && digits.bytes().all(|b| b.is_ascii_digit());
    let port = digits.parse().ok().filter(|port| *port > 0 && is_number);
    port.map(|port| (host, Some(port))).ok_or(NotAUrl::Port)
}

/// Whether a path and query have only characters that stand there unescaped, and whole escapes.
fn check_characters(target: &str) -> Result<(), NotAUrl> {
    let mut rest = target.as_bytes();
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'%', [a, b, after @ ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => after,
            (b'%', _) => return Err(NotAUrl::Character),
            (byte, _)
                if byte.is_ascii_alphanumeric() || b"-._~:/?@!$&'()*+,;=[]".contains(byte) =>
            {
                after
            }
            _ => return Err(NotAUrl::Character),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Url {
        Url::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn whole_urls_are_read_and_written() {
        let table = [
            ("http://prom:9090", "http://prom:9090/"),
            ("HTTPS://A.example:443/x?y=z", "https://a.example/x?y=z"),
            ("https://a.example?y", "https://a.example/?y"),
            ("http://[fd00::1]:8080/p", "http://[fd00::1]:8080/p"),
            ("http://[fd00::1]/p", "http://[fd00::1]/p"),
            ("http://a.example./p%20q", "http://a.example./p%20q"),
            ("http://a.example/@b:c", "http://a.example/@b:c"),
        ];
        for (text, written) in table {
            assert_eq!(read(text).to_string(), written, "{text}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let table = [
            ("", NotAUrl::Scheme),
            ("a.example", NotAUrl::Scheme),
            ("ftp://a.example", NotAUrl::Scheme),
            ("file:///etc/passwd", NotAUrl::Scheme),
            ("gopher://a", NotAUrl::Scheme),
            ("http:/a.example", NotAUrl::Scheme),
            ("http:\\\\a.example", NotAUrl::Scheme),
            (" http://a.example", NotAUrl::Scheme),
            ("http://", NotAUrl::Host(NotAHost::Empty)),
            ("http:///path", NotAUrl::Host(NotAHost::Empty)),
            ("http://user@a.example", NotAUrl::UserInfo),
            ("http://user:word@a.example", NotAUrl::UserInfo),
            ("http://a.example@127.0.0.1", NotAUrl::UserInfo),
            ("http://a.example#@b.example", NotAUrl::Fragment),
            ("http://a.example/#x", NotAUrl::Fragment),
            ("http://a.example\\@b.example", NotAUrl::UserInfo),
            ("http://a.example\\b", NotAUrl::Host(NotAHost::Character)),
            ("http://a.example/\\b", NotAUrl::Character),
            ("http://a.example/ b", NotAUrl::Character),
            ("http://a.example/\r\nx: y", NotAUrl::Character),
            ("http://a.example\t/", NotAUrl::Host(NotAHost::Character)),
            ("http://a.example/ä", NotAUrl::Character),
            ("http://a.example/%", NotAUrl::Character),
            ("http://a.example/%g0", NotAUrl::Character),
            ("http://a.example/%0", NotAUrl::Character),
            ("http://a.example:0", NotAUrl::Port),
            ("http://a.example:", NotAUrl::Port),
            ("http://a.example:65536", NotAUrl::Port),
            ("http://a.example:+80", NotAUrl::Port),
            ("http://a.example:80:80", NotAUrl::Port),
            ("http://a.example::80", NotAUrl::Port),
            ("http://[::1]:x", NotAUrl::Port),
            ("http://[::1]x", NotAUrl::Host(NotAHost::Brackets)),
            ("http://::1", NotAUrl::Port),
            ("http://0x7f.1", NotAUrl::Host(NotAHost::Number)),
            ("http://127.1", NotAUrl::Host(NotAHost::Number)),
            ("http://%31%32%37.0.0.1", NotAUrl::Host(NotAHost::Character)),
        ];
        for (text, why) in table {
            assert_eq!(Url::parse(text), Err(why), "{text:?}");
        }
        let long = format!("http://a.example/{}", "x".repeat(LONGEST));
        assert_eq!(Url::parse(&long), Err(NotAUrl::TooLong));
    }

    #[test]
    fn paths_and_parameters_are_added() {
        let url = read("https://a.example/prom/").join("/api/v1/query");
        let url = url.with_parameter("query", "up{a=\"b\"} > 1&x");
        assert_eq!(
            url.to_string(),
            "https://a.example/prom/api/v1/query?query=up%7Ba%3D%22b%22%7D%20%3E%201%26x"
        );
        let url = read("http://a.example/?a=b").with_parameter("c", "d");
        assert_eq!(url.target(), "/?a=b&c=d");
        assert_eq!(Url::parse(&url.to_string()), Ok(url));
    }

    #[test]
    fn locations_lead_where_they_say() {
        let from = read("https://a.example:8443/x/y?z");
        let table = [
            ("https://b.example/c", "https://b.example/c"),
            ("//b.example/c", "https://b.example/c"),
            ("/c?d", "https://a.example:8443/c?d"),
            ("c", "https://a.example:8443/x/c"),
            ("?q", "https://a.example:8443/x/y?q"),
            ("/c#d", "https://a.example:8443/c"),
            (
                "/login?next=https://b.example/",
                "https://a.example:8443/login?next=https://b.example/",
            ),
            ("?u=http://b", "https://a.example:8443/x/y?u=http://b"),
            ("c/http://b", "https://a.example:8443/x/c/http://b"),
        ];
        for (location, to) in table {
            assert_eq!(from.follow(location).unwrap().to_string(), to, "{location}");
        }
        for hostile in [
            "javascript:alert(1)\r\n",
            "http://user@b",
            "javascript:alert(1)",
            "mailto:a",
            "file:///x",
            "/a b",
            "\\\\b",
        ] {
            assert!(from.follow(hostile).is_err(), "{hostile}");
        }
        assert!(from.is_same_origin(&from.follow("/other").unwrap()));
        assert!(!from.is_same_origin(&from.follow("https://a.example/x").unwrap()));
    }
}
