//! Addresses: what is read is written as it is read, others read the same host, and special addresses are never allowed.

use slipway_kernel::address::{Rules, Url, faces};

use super::{law, told};
use crate::fuzz::generate::damage;
use crate::fuzz::tape::Tape;

const WHOLE: &[&str] = &[
    "http://prometheus.monitoring.svc:9090/api/v1/query?query=up",
    "https://hooks.example/services/T0/B0/x",
    "http://[fd00::1]:8080/",
    "http://127.0.0.1/",
    "https://[::ffff:169.254.169.254]/latest/",
    "http://0x7f.1/",
];

const TOKENS: &[&str] = &[
    "http://",
    "https://",
    "//",
    "/",
    "\\",
    "@",
    "#",
    "?",
    ":",
    "[",
    "]",
    "%",
    "%2e",
    "%40",
    ".",
    "..",
    "::",
    "0x7f",
    "0177",
    "127.0.0.1",
    "2130706433",
    "::ffff:",
    "64:ff9b::",
    "2002:",
    "localhost",
    "169.254.169.254",
    "\0",
    "\r\n",
    " ",
    "\t",
    "①",
    "。",
    "xn--",
    "user:word@",
    "&",
    "=",
    "+",
    "fe80::1%25eth0",
];

pub(super) fn addresses(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let mut text = tape.pick(WHOLE).as_bytes().to_vec();
    damage(tape, &mut text, TOKENS, 5);
    let text = String::from_utf8_lossy(&text).into_owned();
    told(|| format!("{text:?}"));
    let Ok(url) = Url::parse(&text) else {
        return;
    };
    law();
    let written = url.to_string();
    assert_eq!(Url::parse(&written).as_ref(), Ok(&url), "{written}");
    let uri: http::Uri = written
        .parse()
        .unwrap_or_else(|why| panic!("{written}: {why}"));
    assert_eq!(uri.host(), Some(url.host.to_string().as_str()), "{written}");
    assert_eq!(uri.port_u16().unwrap_or(url.port), url.port);
    if let Some(address) = url.host.address() {
        let is_ordinary = faces(address).all(|(_, class)| class.is_ordinary());
        assert_eq!(
            Rules::default().check_host(&url.host).is_ok(),
            is_ordinary,
            "{written}"
        );
        // The standard library's own notion of what is special.
        if address.is_loopback() || address.is_unspecified() || address.is_multicast() {
            assert!(!is_ordinary, "{written}");
        }
    }
    if let Ok(next) = url.follow(&text) {
        assert_eq!(next, url);
    }
}
