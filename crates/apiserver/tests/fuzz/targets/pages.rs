//! Lists page by page, while others write, and tokens that nobody handed out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::server::{Stage, stage};
use super::{law, told};
use crate::fuzz::generate::damage;
use crate::fuzz::tape::Tape;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An honest token leads through everything that was there at the first page, once, whatever is written meanwhile; any
/// other gets 400, 410 or a page.
pub(super) fn pages(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let stage = stage(true);
    let mut there = BTreeMap::new();
    for n in 0..=tape.below(10) {
        let name = format!("{}{n}", tape.pick(&["a", "b", "a-a", "a.b"]));
        write(&stage, &mut there, &name, "POST", "0");
    }
    let custom = tape.pick(&[
        "",
        "&labelSelector=even%3Dyes",
        "&fieldSelector=metadata.name!%3Da0",
    ]);
    let limit = 1 + tape.below(4);
    told(|| format!("{there:?} {limit} a page {custom}"));
    let wanted: BTreeMap<String, String> = there
        .clone()
        .into_iter()
        .filter(|(name, _)| is_selected(custom, name))
        .collect();
    let mut found = Vec::new();
    let mut page = format!("{MAPS}?limit={limit}{custom}");
    let mut version = Value::Null;
    let mut expired = false;
    for _ in 0..40 {
        let (code, text) = stage.ask("GET", &page, "", Vec::new());
        let list: Value = serde_json::from_str(&text).unwrap();
        if code == 410 {
            assert!(expired, "{text}");
            let token = list["metadata"]["continue"].as_str().unwrap_or_default();
            // Going on is allowed, but what comes is of another version.
            let (code, text) = stage.ask(
                "GET",
                &format!("{MAPS}?limit={limit}{custom}&continue={token}"),
                "",
                Vec::new(),
            );
            assert_eq!(code, 200, "{text}");
            return;
        }
        assert_eq!(code, 200, "{text}");
        let items = list["items"].as_array().unwrap();
        assert!(items.len() <= limit, "{text}");
        for item in items {
            found.push((
                item["metadata"]["name"].as_str().unwrap().to_owned(),
                item["data"]["k"].as_str().unwrap().to_owned(),
            ));
        }
        let of = list["metadata"]["resourceVersion"].clone();
        assert!(
            version.is_null() || version == of,
            "pages of versions {version} and {of}"
        );
        version = of;
        let token = list["metadata"]["continue"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if token.is_empty() {
            let names: BTreeSet<&String> = found.iter().map(|(name, _)| name).collect();
            law();
            assert_eq!(names.len(), found.len(), "something came twice: {found:?}");
            assert_eq!(
                found.into_iter().collect::<BTreeMap<_, _>>(),
                wanted,
                "not what was there at the first page"
            );
            return;
        }
        assert!(
            !items.is_empty(),
            "an empty page that is not the last: {text}"
        );
        mangle(tape, &stage, &token, limit);
        for _ in 0..tape.below(3) {
            let name = format!("{}{}", tape.pick(&["a", "b", "c", "a-a"]), tape.below(10));
            let method = if there.contains_key(&name) {
                tape.pick(&["PUT", "DELETE"])
            } else {
                "POST"
            };
            write(&stage, &mut there, &name, method, "1");
        }
        if tape.once_in(12) {
            stage.cluster.compact();
            expired = true;
        }
        page = format!("{MAPS}?limit={limit}{custom}&continue={token}");
    }
    panic!("the pages do not end");
}

fn is_even(name: &str) -> bool {
    name.bytes().last().is_some_and(|b| b % 2 == 0)
}

fn is_selected(custom: &str, name: &str) -> bool {
    match custom {
        "" => true,
        labels if labels.contains("label") => is_even(name),
        _ => name != "a0",
    }
}

fn write(
    stage: &Stage,
    there: &mut BTreeMap<String, String>,
    name: &str,
    method: &str,
    value: &str,
) {
    let even = if is_even(name) { "yes" } else { "no" };
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"even": even}}, "data": {"k": value}});
    let path = if method == "POST" {
        MAPS.to_owned()
    } else {
        format!("{MAPS}/{name}")
    };
    let body = if method == "DELETE" {
        Vec::new()
    } else {
        map.to_string().into_bytes()
    };
    let (code, text) = stage.ask(method, &path, "application/json", body);
    if there.contains_key(name) && method == "POST" {
        assert_eq!(code, 409, "{text}");
        return;
    }
    assert!(code < 300, "{method} {path}: {text}");
    if method == "DELETE" {
        there.remove(name);
    } else {
        there.insert(name.to_owned(), value.to_owned());
    }
}

/// Asks with a token that is not quite the one that was handed out.
fn mangle(tape: &mut Tape<'_>, stage: &Stage, token: &str, limit: usize) {
    use base64::Engine;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let forged = if tape.once_in(2) {
        let mut text = token.as_bytes().to_vec();
        damage(tape, &mut text, &["A", "=", "-", "_", "+", "%00", "/"], 3);
        text
    } else {
        let mut text = engine.decode(token).unwrap();
        let tokens = [
            "-1",
            "0",
            "9223372036854775807",
            "99999999999999999999",
            "\"start\":",
            "\\u0000",
            "default/",
            "../",
            "meta.k8s.io/v2",
            "null",
            "{",
            "1e3",
        ];
        damage(tape, &mut text, &tokens, 3);
        engine.encode(text).into_bytes()
    };
    let forged: String =
        percent_encoding::percent_encode(&forged, percent_encoding::NON_ALPHANUMERIC).to_string();
    told(|| format!("forged {forged}"));
    if forged.len() > 60_000 {
        // No address is as long.
        return;
    }
    let (code, text) = stage.ask(
        "GET",
        &format!("{MAPS}?limit={limit}&continue={forged}"),
        "",
        Vec::new(),
    );
    assert!(matches!(code, 200 | 400 | 410), "{code} {text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let kind = if code == 200 {
        "ConfigMapList"
    } else {
        "Status"
    };
    assert_eq!(answer["kind"], kind, "{text}");
}
