#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use slipway_kernel::address::Patterns;

use super::*;

const MARKER: &str = "marker-5ecret-0f-the-test";

struct Made {
    certificate: String,
    key: String,
}

/// A certificate and its key, in base64.
fn made() -> Made {
    let made = rcgen::generate_simple_self_signed(vec!["api.example".to_owned()]).unwrap();
    Made {
        certificate: STANDARD.encode(made.cert.pem()),
        key: STANDARD.encode(made.signing_key.serialize_pem()),
    }
}

/// A kubeconfig that is taken.
fn whole() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "preferences": {"colors": true},
        "current-context": "context",
        "clusters": [{"name": "cluster", "cluster": {
            "server": "https://api.example:6443",
            "certificate-authority-data": made().certificate,
        }}],
        "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
        "users": [{"name": "user", "user": {"token": MARKER}}],
    })
}

fn cluster(of: &mut Value) -> &mut Value {
    &mut of["clusters"][0]["cluster"]
}

fn user(of: &mut Value) -> &mut Value {
    &mut of["users"][0]["user"]
}

fn parse(value: &Value) -> Result<Kubeconfig, KubeconfigError> {
    Kubeconfig::parse(value.to_string().as_bytes(), &AllowedHosts::any())
}

/// What is said of a kubeconfig that was changed.
fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let mut value = whole();
    change(&mut value);
    let told = parse(&value).expect_err(&value.to_string()).to_string();
    assert!(!told.contains(MARKER), "{told}");
    told
}

fn read(text: &str) -> Result<Kubeconfig, KubeconfigError> {
    Kubeconfig::parse(text.as_bytes(), &AllowedHosts::any())
}

#[test]
fn a_token_or_a_certificate_is_taken_from_json_and_yaml() {
    let by_token = parse(&whole()).unwrap();
    assert_eq!(by_token.server().to_string(), "https://api.example:6443/");
    assert_eq!(by_token.namespace(), "default");
    assert!(by_token.authority().is_some());
    assert!(
        matches!(by_token.credentials(), Credentials::Token(token) if token.expose() == MARKER)
    );
    let Made { certificate, key } = made();
    let folded = certificate.as_bytes().chunks(64);
    let folded: Vec<&str> = folded
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let text = format!(
        "# of a tool\napiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster:\n    server: https://10.0.0.1/k8s/clusters/c-1\n    insecure-skip-tls-verify: false\n    extensions: [{{name: x, extension: {{a: [1, 2]}}}}]\ncontexts:\n- name: x\n  context: {{cluster: a, user: b, namespace: ops}}\nusers:\n- name: b\n  user:\n    client-certificate-data: |\n      {}\n    client-key-data: {key}\n    exec: null\n    username: \"\"\n    as-groups: []\ncurrent-context: x\n",
        folded.join("\n      ")
    );
    let by_certificate = read(&text).unwrap();
    assert!(matches!(
        by_certificate.credentials(),
        Credentials::Certificate(_)
    ));
    assert!(by_certificate.authority().is_none());
    assert_eq!(by_certificate.namespace(), "ops");
    assert_eq!(by_certificate.server().path(), "/k8s/clusters/c-1");
}

#[test]
fn only_a_server_and_who_we_are_is_taken_and_each_other_field_is_refused_by_name() {
    let of_cluster = [
        ("certificate-authority", json!("/etc/ca.crt")),
        ("insecure-skip-tls-verify", json!(true)),
        ("insecure-skip-tls-verify", json!("yes")),
        ("proxy-url", json!("http://proxy.example")),
        ("tls-server-name", json!("other.example")),
    ];
    for (field, value) in of_cluster {
        let told = refusal(|of| cluster(of)[field] = value.clone());
        let place = format!("clusters[0].cluster.{field} ");
        assert!(told.contains(&place) && told.contains("line 1"), "{told}");
    }
    let of_user = [
        (
            "exec",
            json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}),
        ),
        ("exec", json!({})),
        ("auth-provider", json!({"name": "oidc"})),
        ("tokenFile", json!("/var/run/secrets/token")),
        ("client-certificate", json!("/a")),
        ("client-key", json!("/b")),
        ("username", json!("admin")),
        ("password", json!(MARKER)),
        ("as", json!("root")),
        ("as-uid", json!("1")),
        ("as-groups", json!(["system:masters"])),
        ("as-user-extra", json!({"a": ["b"]})),
    ];
    for (field, value) in of_user {
        let told = refusal(|of| user(of)[field] = value.clone());
        assert!(told.contains(&format!("users[0].user.{field} ")), "{told}");
    }
}

#[test]
fn what_is_refused_is_refused_in_entries_that_are_not_used_as_well() {
    let told = refusal(|of| {
        let other = json!({"name": "other", "user": {"exec": {"command": "sh"}}});
        of["users"].as_array_mut().unwrap().push(other);
    });
    assert!(told.contains("users[1].user.exec "), "{told}");
}

#[test]
fn what_nobody_knows_is_refused_and_named_only_if_it_looks_like_a_name() {
    for (change, part) in [
        (json!({"EXEC": {"command": "sh"}}), "EXEC"),
        (json!({"token ": "a"}), "its name is not shown"),
        (json!({MARKER: "a"}), "its name is not shown"),
    ] {
        let told = refusal(|of| *user(of) = change.clone());
        assert!(
            told.contains("users[0].user ") && told.contains(part),
            "{told}"
        );
    }
    assert!(refusal(|of| of["exec"] = json!({})).contains("in the file (line 1)"));
    assert!(refusal(|of| of["users"][0]["exec"] = json!({})).contains("in users[0] (line 1)"));
}

#[test]
fn servers_are_reached_over_tls_at_one_plain_address() {
    let table = [
        ("http://api.example", "not https://"),
        ("api.example:6443", "http:// or https://"),
        ("https://user:word@api.example", "user name or password"),
        ("https://api.example?a=b", "query"),
        ("https://api.example/?", "query"),
        ("https://api.example/#a", "fragment"),
        ("https://api.example/a/../b", "path with dots"),
        ("https://api.example/%2e%2e/b", "path with dots or escapes"),
        ("https://127.1", "looks like a number"),
        ("https://0x7f000001", "looks like a number"),
        ("https://api.example:0", "port"),
        ("https://api.example:99999", "port"),
        ("https://", "host is empty"),
        ("https://a b", "characters"),
        ("https://[::1%25eth0]", "IPv6"),
        ("unix:///var/run/a.sock", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("", "clusters[0].cluster.server is missing"),
    ];
    for (server, part) in table {
        let told = refusal(|of| cluster(of)["server"] = json!(server));
        assert!(
            told.contains("clusters[0].cluster.server") && told.contains(part),
            "{server}: {told}"
        );
    }
    for odd in [json!(1), json!(["https://a"]), json!({"a": "b"})] {
        refusal(|of| cluster(of)["server"] = odd.clone());
    }
}

#[test]
fn hosts_outside_of_the_list_are_refused() {
    let allowed = Patterns::parse(["*.corp.example", "10.0.0.0/8"]).unwrap();
    let allowed = AllowedHosts::only(allowed);
    let table = [
        ("https://a.corp.example", true),
        ("https://A.CORP.example.:6443", true),
        ("https://10.1.2.3", true),
        ("https://corp.example", false),
        ("https://a.corp.example.evil.example", false),
        ("https://11.1.2.3", false),
        ("https://[::ffff:10.1.2.3]", false),
    ];
    for (server, is_allowed) in table {
        let mut value = whole();
        cluster(&mut value)["server"] = json!(server);
        let read = Kubeconfig::parse(value.to_string().as_bytes(), &allowed);
        match read {
            Ok(_) => assert!(is_allowed, "{server}"),
            Err(error) => {
                assert!(
                    !is_allowed && error.to_string().contains("list of hosts"),
                    "{server}: {error}"
                );
            }
        }
    }
}

#[test]
fn it_is_clear_which_entries_are_meant() {
    type Change = fn(&mut Value);
    fn twice(of: &mut Value, list: &str) {
        let mut second = of[list][0].clone();
        second["name"] = json!("second");
        of[list].as_array_mut().unwrap().push(second);
    }
    let table: [(Change, &str); 14] = [
        (
            |of| of["current-context"] = json!("other"),
            "current-context names an entry",
        ),
        (
            |of| of["contexts"][0]["context"]["cluster"] = json!("x"),
            "contexts[0].context.cluster names",
        ),
        (
            |of| of["contexts"][0]["context"]["user"] = json!("x"),
            "contexts[0].context.user names",
        ),
        (
            |of| of["contexts"][0]["context"]["user"] = json!(null),
            "contexts[0].context.user is missing",
        ),
        (
            |of| of["contexts"][0]["context"] = json!(null),
            "contexts[0].context.cluster is missing",
        ),
        (
            |of| of["clusters"][0]["name"] = json!(""),
            "clusters[0].name is missing",
        ),
        (
            |of| of["users"][0]["name"] = json!(null),
            "users[0].name is missing",
        ),
        (
            |of| {
                twice(of, "users");
                of["users"][1]["name"] = json!("user");
            },
            "users[1].name is the name of another",
        ),
        (
            |of| {
                twice(of, "contexts");
                of["current-context"] = json!("");
            },
            "set current-context",
        ),
        (
            |of| {
                twice(of, "clusters");
                of["contexts"] = json!([]);
                of["current-context"] = json!(null);
            },
            "set current-context",
        ),
        (
            |of| of["users"] = json!([]),
            "contexts[0].context.user names",
        ),
        (|of| of["users"] = json!("user"), "users is not a list"),
        (
            |of| of["users"] = json!(["user"]),
            "users[0] is not a mapping",
        ),
        (
            |of| of["contexts"][0]["context"]["namespace"] = json!("a/b"),
            "contexts[0].context.namespace",
        ),
    ];
    for (change, part) in table {
        let told = refusal(change);
        assert!(told.contains(part), "{part}: {told}");
    }
    let mut only = whole();
    only["current-context"] = json!(null);
    assert!(parse(&only).is_ok());
    only["contexts"] = json!(null);
    assert!(parse(&only).is_ok());
}

#[test]
fn who_we_are_is_clear() {
    let Made { certificate, key } = made();
    let other = made();
    let table = [
        (json!({}), "neither a token"),
        (json!(null), "neither a token"),
        (json!({"token": "", "extensions": []}), "neither a token"),
        (
            json!({"client-certificate-data": certificate}),
            "client-key-data is missing",
        ),
        (
            json!({"client-key-data": key}),
            "client-certificate-data is missing",
        ),
        (
            json!({"client-certificate-data": certificate, "client-key-data": key, "token": "a"}),
            "keep one",
        ),
        (
            json!({"client-certificate-data": certificate, "client-key-data": other.key}),
            "does not fit",
        ),
        (
            json!({"client-certificate-data": key, "client-key-data": key}),
            "no PEM certificate",
        ),
        (
            json!({"client-certificate-data": certificate, "client-key-data": certificate}),
            "no PEM private key",
        ),
        (
            json!({"client-certificate-data": "!", "client-key-data": key}),
            "client-certificate-data is not base64",
        ),
        (
            json!({"client-certificate-data": certificate, "client-key-data": MARKER}),
            "client-key-data is not base64",
        ),
        (json!({"token": ["a"]}), "users[0].user.token is not a text"),
        (
            json!({"token": format!("{MARKER}\n")}),
            "cannot be sent as a token",
        ),
        (
            json!({"token": format!("{MARKER} {MARKER}")}),
            "cannot be sent as a token",
        ),
        (
            json!({"token": "a".repeat(LONGEST_TOKEN + 1)}),
            "cannot be sent as a token",
        ),
    ];
    for (credentials, part) in table {
        let told = refusal(|of| *user(of) = credentials.clone());
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_ca_is_one() {
    let table = [
        (json!("%"), "not base64"),
        (json!(STANDARD.encode("no pem")), "no PEM certificate"),
        (
            json!(
                STANDARD.encode("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            ),
            "cannot be understood",
        ),
        (
            json!(STANDARD.encode("-----BEGIN CERTIFICATE-----\n%%\n-----END CERTIFICATE-----\n")),
            "cannot be understood",
        ),
    ];
    for (authority, part) in table {
        let told = refusal(|of| cluster(of)["certificate-authority-data"] = authority.clone());
        assert!(
            told.contains("certificate-authority-data") && told.contains(part),
            "{told}"
        );
    }
}

#[test]
fn yaml_that_says_more_than_it_shows_is_refused() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d")] {
        bomb = format!("{bomb}{to}: &{to} [*{from}, *{from}, *{from}, *{from}, *{from}]\n");
    }
    let deep = "[".repeat(100) + &"]".repeat(100);
    let wide = format!("extensions: [{}]", "a, ".repeat(30_000));
    let table: [(&str, &str); 13] = [
        (&bomb, "anchors"),
        ("users: &a []\n", "anchors"),
        ("users: *a\n", "neither YAML nor JSON"),
        ("users: &a []\nclusters: *a\n", "anchors"),
        ("kind: !!str Config\n", "tags"),
        ("%YAML 1.1\n---\nkind: Config\n", "neither YAML nor JSON"),
        (
            "kind: Config\nkind: Config\n",
            "line 2: a field stands twice",
        ),
        ("kind: Config\n---\nkind: Config\n", "second document"),
        (&deep, "nested too deeply"),
        (&wide, "too many values"),
        ("{[a]: b}\n", "name of a field"),
        ("kind: [\n", "neither YAML nor JSON"),
        ("just a text\n", "not a mapping"),
    ];
    for (text, part) in table {
        let told = read(text).unwrap_err().to_string();
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(
        read("").unwrap_err(),
        KubeconfigError::Syntax {
            line: 1,
            what: "it is empty"
        }
    );
    let large = format!("# {}", "x".repeat(LARGEST));
    assert_eq!(read(&large).unwrap_err(), KubeconfigError::TooLarge);
    let not_text = Kubeconfig::parse(&[0xff, 0xfe], &AllowedHosts::any()).unwrap_err();
    assert!(not_text.to_string().contains("UTF-8"), "{not_text}");
    for (kind, version) in [("Pod", "v1"), ("Config", "v2")] {
        let told = refusal(|of| {
            of["kind"] = json!(kind);
            of["apiVersion"] = json!(version);
        });
        assert!(told.contains("is not"), "{told}");
    }
}

#[test]
fn nothing_secret_is_in_what_is_shown() {
    let shown = format!("{:?}", parse(&whole()).unwrap());
    assert!(
        shown.contains("api.example") && !shown.contains(MARKER),
        "{shown}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused_and_no_secret_is_told(
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
        at in any::<prop::sample::Index>(),
        cut in 0_usize..40,
    ) {
        let mut text = whole().to_string().into_bytes();
        let at = at.index(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, bytes.iter().copied());
        for input in [&bytes, &text] {
            if let Err(error) = Kubeconfig::parse(input, &AllowedHosts::any()) {
                let shown = format!("{error} {error:?}");
                prop_assert!(!shown.contains(MARKER), "{}", shown);
            }
        }
    }
}
