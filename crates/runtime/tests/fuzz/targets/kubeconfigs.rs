//! Kubeconfigs: whatever becomes of one, nothing panics, nothing secret is told, and what is taken is what may be taken.

use std::sync::LazyLock;

use slipway_kernel::address::{AllowedHosts, Patterns, Scheme};
use slipway_runtime::member::Kubeconfig;

use super::{law, told};
use crate::fuzz::generate::damage;
use crate::fuzz::tape::Tape;

const MARKER: &str = "marker-5ecret-0f-the-test";

/// Pieces that mean something in a kubeconfig.
const TOKENS: &[&str] = &[
    "exec:",
    "exec: {command: sh}",
    "auth-provider: {name: gcp}",
    "tokenFile: /etc/passwd",
    "certificate-authority: /a",
    "client-key: /b",
    "proxy-url: http://p",
    "http://",
    "https://",
    "insecure-skip-tls-verify: true",
    "username: a",
    "password: b",
    "as: root",
    "as-groups: [a]",
    "tls-server-name: x",
    "user@",
    "?a=b",
    "#c",
    "&a ",
    "*a",
    "!!binary ",
    "<<: *a",
    "---\n",
    "%YAML 1.1\n",
    "\n",
    "  ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "|",
    ">",
    ":",
    ": ",
    ",",
    "\t",
    "\r",
    "\0",
    "null",
    "~",
    "name: a",
    "current-context: b",
    "users:",
    "token:",
    "127.1",
    "[::1]",
    "example.net",
    "../",
];

static WHOLE: LazyLock<[String; 3]> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(vec!["api.example".to_owned()]).unwrap();
    let (ca, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let (ca, key) = (base64(ca.as_bytes()), base64(key.as_bytes()));
    let by_token = format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: https://api.example:6443\n    certificate-authority-data: {ca}\ncontexts:\n- name: x\n  context: {{cluster: c, user: u, namespace: n}}\nusers:\n- name: u\n  user:\n    token: {MARKER}\ncurrent-context: x\n"
    );
    let by_certificate = format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {{server: 'https://api.example/k8s'}}\nusers:\n- name: u\n  user:\n    client-certificate-data: {ca}\n    client-key-data: {key}\n"
    );
    let as_json = format!(
        r#"{{"apiVersion":"v1","kind":"Config","current-context":"x","preferences":{{}},"clusters":[{{"name":"c","cluster":{{"server":"https://10.0.0.1","certificate-authority-data":"{ca}"}}}}],"contexts":[{{"name":"x","context":{{"cluster":"c","user":"u"}}}}],"users":[{{"name":"u","user":{{"token":"{MARKER}"}}}}]}}"#
    );
    [by_token, by_certificate, as_json]
});

fn base64(bytes: &[u8]) -> String {
    use ::base64::Engine;
    ::base64::engine::general_purpose::STANDARD.encode(bytes)
}

pub(super) fn kubeconfig(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let whole = tape.pick_ref(WHOLE.as_slice());
    let allowed = if tape.once_in(3) {
        AllowedHosts::only(Patterns::parse(["*.example", "10.0.0.0/8"]).unwrap())
    } else {
        AllowedHosts::any()
    };
    let mut text = whole.clone().into_bytes();
    damage(tape, &mut text, TOKENS, 6);
    told(|| String::from_utf8_lossy(&text).into_owned());
    match Kubeconfig::parse(&text, &allowed) {
        Ok(kubeconfig) => {
            law();
            assert_eq!(kubeconfig.server().scheme, Scheme::Https);
            assert!(allowed.allows(&kubeconfig.server().host));
            assert!(!format!("{kubeconfig:?}").contains(MARKER));
        }
        Err(error) => {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(MARKER), "{shown}");
            assert!(shown.len() < 1_000, "{} bytes of error", shown.len());
        }
    }
}
