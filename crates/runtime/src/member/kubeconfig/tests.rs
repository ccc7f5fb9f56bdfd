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

mod documents;
mod fields_refused;
mod servers;

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
fn it_is_of_the_kind_and_version_that_we_read() {
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
