//! The small languages: quantities, JSON paths, field paths, patterns, versions, media types, managers.

use std::sync::LazyLock;

use serde_json::Value;
use slipway_apiserver::apply;
use slipway_apiserver::builtin::quantity::Quantity;
use slipway_apiserver::crd::pattern::Pattern;
use slipway_apiserver::crd::structural::Structural;
use slipway_apiserver::crd::{fieldpath, jsonpath::JsonPath, version};
use slipway_apiserver::negotiate;
use slipway_apiserver::patch::PatchKind;

use super::{law, told};
use crate::fuzz::corpus::corpus;
use crate::fuzz::generate::damage;
use crate::fuzz::tape::Tape;

/// One language after another, each with texts of its own.
pub(super) fn parsers(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    match tape.below(7) {
        0 | 1 => quantities(tape),
        2 => paths(tape),
        3 => patterns(tape),
        4 => versions(tape),
        5 => media(tape),
        _ => managers(tape),
    }
}

fn damaged(tape: &mut Tape<'_>, texts: &[&str], tokens: &[&str]) -> String {
    let mut bytes = tape.pick(texts).as_bytes().to_vec();
    damage(tape, &mut bytes, tokens, 4);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    told(|| format!("{text:?}"));
    text
}

fn quantities(tape: &mut Tape<'_>) {
    const TEXTS: &[&str] = &[
        "1",
        "0",
        "100m",
        "1.5Gi",
        "-2",
        "1e3",
        "12E6",
        "0.001",
        "9223372036854775807",
        "1n",
        "1u",
        "+1k",
        "5Ei",
        "1e-9",
        "1.0000000001",
    ];
    const TOKENS: &[&str] = &[
        "0", "9", ".", "-", "+", "e", "E", "m", "u", "n", "k", "K", "M", "G", "T", "P", "Ki", "Mi",
        "Ei", "00000", "99999",
    ];
    let text = damaged(tape, TEXTS, TOKENS);
    let other = damaged(tape, TEXTS, TOKENS);
    let Ok(quantity) = Quantity::parse(&text) else {
        return;
    };
    let printed = quantity.to_string();
    if [i64::MAX, i64::MIN].contains(&quantity.units()) {
        // Beyond the largest suffix the real server shows a number without one.
        return;
    }
    law();
    let again = Quantity::parse(&printed)
        .unwrap_or_else(|e| panic!("{text:?} is shown as {printed:?}: {e}"));
    assert_eq!(again.to_string(), printed, "{text:?}");
    assert_eq!(
        (
            again.sign(),
            again.units(),
            again.millis(),
            again.is_whole()
        ),
        (
            quantity.sign(),
            quantity.units(),
            quantity.millis(),
            quantity.is_whole()
        ),
        "{text:?} {printed:?}"
    );
    assert!(quantity.minus(&quantity).sign().is_eq(), "{text:?}");
    let _ = quantity.in_millis().to_string();
    if let Ok(other) = Quantity::parse(&other) {
        let (there, back) = (quantity.plus(&other), other.plus(&quantity));
        assert_eq!(there.units(), back.units(), "{text:?} + {other:?}");
        let _ = there.minus(&other).to_string();
    }
}

fn paths(tape: &mut Tape<'_>) {
    static SCHEMAS: LazyLock<Vec<Structural>> = LazyLock::new(|| {
        let schema = |crd: &Value| {
            Structural::read(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        };
        corpus().definitions.iter().map(schema).collect()
    });
    const TEXTS: &[&str] = &[
        ".spec.replicas",
        ".metadata.labels['a/b']",
        ".spec.a[0].b",
        ".spec.a[?(@.type==\"x\")].status",
        ".spec.containers[*].name",
        ".a[1:2]",
        "..name",
        ".spec.l[-1]",
        "{.a}{.b}",
    ];
    const TOKENS: &[&str] = &[
        ".",
        "[",
        "]",
        "*",
        "?(",
        "@",
        ")",
        "'",
        "\"",
        "\\",
        ":",
        "-",
        "0",
        "9999999999999999999",
        "==",
        "..",
        "{",
        "}",
        "$",
        "[?(@",
        "[?(@.a==",
    ];
    let text = damaged(tape, TEXTS, TOKENS);
    let object = &tape.pick_ref(&corpus().objects).value;
    if let Some(path) = JsonPath::parse(&text) {
        law();
        let found = path.find(object).len();
        assert_eq!(path.find(object).len(), found);
    }
    let schema = tape.pick_ref(&SCHEMAS);
    for is_rule in [true, false] {
        let _ = fieldpath::resolve(&text, schema, is_rule).is_ok();
    }
}

fn patterns(tape: &mut Tape<'_>) {
    const TEXTS: &[&str] = &[
        "^[a-z]+$",
        "(a|b)*",
        "\\d{1,3}",
        "[^/]+",
        "(?i)a",
        "\\p{Lu}",
        "a{2,5}?",
        "x*?y+?",
        "[[:alpha:]]",
        "\\Qa.b\\E",
        "(?P<n>a)",
    ];
    const TOKENS: &[&str] = &[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "*",
        "+",
        "?",
        "|",
        "\\",
        "^",
        "$",
        ".",
        "{999}",
        "{1000}",
        "(?:",
        "(?=",
        "\\1",
        "\\b",
        "[a-",
        "-",
        "\\pN",
        "\\x{10FFFF}",
        "(a*)*",
    ];
    let text = damaged(tape, TEXTS, TOKENS);
    if let Ok(machine) = Pattern::new(&text).machine() {
        let _ = machine.is_match("aaaaaaaaaaaaaaaaaaaaaaaa!");
    }
}

fn versions(tape: &mut Tape<'_>) {
    const TEXTS: &[&str] = &[
        "v1",
        "v2",
        "v10",
        "v1beta1",
        "v1alpha2",
        "foo",
        "v",
        "v1beta",
        "v01",
        "v99999999999999999999",
        "v1alpha99999999999999999999",
    ];
    const TOKENS: &[&str] = &["v", "1", "0", "beta", "alpha", "x"];
    let [a, b, c] = [(); 3].map(|()| damaged(tape, TEXTS, TOKENS));
    law();
    let compare = version::compare;
    assert_eq!(compare(&a, &b), compare(&b, &a).reverse(), "{a:?} {b:?}");
    assert!(compare(&a, &a).is_eq());
    if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
        assert!(compare(&a, &c).is_le(), "{a:?} {b:?} {c:?}");
    }
}

fn media(tape: &mut Tape<'_>) {
    const TEXTS: &[&str] = &[
        "application/json",
        "*/*",
        "application/json;as=Table;g=meta.k8s.io;v=v1, application/json",
        "application/yaml;q=0.5,text/*",
        "application/vnd.kubernetes.protobuf;type=watch",
        "application/merge-patch+json; charset=utf-8",
        "application/json;pretty=1",
        "application/apply-patch+yaml",
    ];
    const TOKENS: &[&str] = &[
        ",",
        ";",
        "q=",
        "q=2",
        "q=0",
        "/",
        "*",
        "as=",
        "g=",
        "v=",
        " ",
        "=",
        "\"",
        "application/",
        "charset=",
        "q=0.1234567",
        "q=-1",
        "é",
    ];
    let text = damaged(tape, TEXTS, TOKENS);
    for status in [
        negotiate::accept(Some(&text)).err(),
        negotiate::plain(&text, true).err(),
        negotiate::plain(&text, false).err(),
        negotiate::body(Some(&text)).err(),
        PatchKind::of(Some(&text), true).err(),
        PatchKind::of(Some(&text), false).err(),
    ]
    .into_iter()
    .flatten()
    {
        assert!(matches!(status.code, 400 | 406 | 415), "{status:?}");
    }
    let _ = negotiate::accepts_aggregated(&text);
}

fn managers(tape: &mut Tape<'_>) {
    let agent = damaged(
        tape,
        &["kubectl/v1.33 (linux)", "", "/", "curl", "a b/c"],
        &[
            "/",
            " ",
            "\u{0}",
            "é",
            "\u{200b}",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ],
    );
    let name = apply::manager_name("", &agent);
    let _ = apply::validate_manager(&agent, true, None);
    law();
    assert!(
        apply::validate_manager(&name, false, None).is_empty(),
        "{agent:?} gives {name:?}"
    );
}
