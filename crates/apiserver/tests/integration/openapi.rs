//! The `OpenAPI` documents beside the real server's: for the kinds that are served, the same paths with the same methods and
//! parameters, and schemas with the same fields. The real ones are those of the release (`openapi.outline`, by `cargo xtask generate`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::bad_input::ask;
use super::outline::{self, Outline};
use super::stage::{cluster, virtually};

const REAL: &str = include_str!("openapi.outline");

/// What the real server has and the embedded one has not, and how often: by the end of a path, or a schema's name.
const LEFT_OUT: &[(&str, &str, usize)] = &[
    ("/proxy", "nothing is behind a proxy here", 42),
    ("/attach", "pods have no processes", 2),
    ("/exec", "pods have no processes", 2),
    ("/portforward", "pods have no ports", 2),
    ("/log", "pods say nothing", 1),
    (
        "schema io.k8s.apimachinery.pkg.apis.meta.v1.",
        "documents of reviews also have the options of requests that reviews do not take",
        16,
    ),
];

fn ours() -> BTreeMap<String, Outline> {
    let mut all = BTreeMap::new();
    virtually(async {
        let cluster = cluster();
        let get = async |path: &str| -> Value {
            let (code, text) = ask(&cluster, "GET", path, "", "").await;
            assert_eq!(code, 200, "{path}: {text}");
            serde_json::from_str(&text).unwrap()
        };
        let index = get("/openapi/v3").await;
        for name in index["paths"].as_object().unwrap().keys() {
            let document = get(&format!("/openapi/v3/{name}")).await;
            all.insert(name.replace('/', "__"), outline::of(&document));
        }
    });
    all
}

/// What a path is about: the collection, below its namespace if it has one.
fn resource(name: &str) -> Option<&str> {
    let (_, path) = name
        .split_once(' ')
        .filter(|(method, _)| *method != "schema")?;
    let steps: Vec<&str> = path.split('/').skip(1).collect();
    let (["api", _, rest @ ..] | ["apis", _, _, rest @ ..]) = steps.as_slice() else {
        return None;
    };
    match rest {
        ["namespaces", "{namespace}", plural, ..] | [plural, ..] => Some(plural),
        [] => None,
    }
}

/// Where the two differ, as far as kinds are concerned that ours serves.
fn differences(real: &Outline, ours: &Outline) -> Vec<String> {
    let served: BTreeSet<&str> = ours.keys().filter_map(|name| resource(name)).collect();
    let mut all = Vec::new();
    for (name, has) in ours {
        match real.get(name) {
            None => all.push(format!("{name}: the real server has none")),
            Some(theirs) if theirs != has => {
                let less: Vec<&String> = theirs.difference(has).collect();
                let more: Vec<&String> = has.difference(theirs).collect();
                all.push(format!("{name}: ours lacks {less:?} and has {more:?}"));
            }
            Some(_) => {}
        }
    }
    for name in real.keys().filter(|name| !ours.contains_key(*name)) {
        // A schema that nothing of ours refers to is of a kind that is not served.
        if resource(name).is_some_and(|about| served.contains(about)) {
            all.push(format!("{name}: ours has none"));
        }
    }
    all
}

#[test]
fn documents_have_what_the_real_server_s_have() {
    let real = outline::read(REAL);
    let mut left_out: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (title, ours) in ours() {
        let Some(real) = real.get(&title) else {
            // A custom resource of the test's own.
            continue;
        };
        compared += ours.len();
        for difference in differences(real, &ours) {
            let known = LEFT_OUT.iter().find(|(mark, ..)| difference.contains(mark));
            match known {
                Some((mark, ..)) => *left_out.entry(mark).or_default() += 1,
                None => wrong.push(format!("{title}: {difference}")),
            }
        }
    }
    assert!(
        compared > 1_000,
        "only {compared} paths and schemas were compared"
    );
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for (mark, why, count) in LEFT_OUT {
        let found = left_out.get(mark).copied().unwrap_or_default();
        assert_eq!(found, *count, "{mark:?} ({why})");
    }
}

#[test]
fn a_document_without_a_path_a_parameter_or_a_field_is_seen() {
    let get = |parameters: Value| json!({"get": {"parameters": parameters}});
    let named = json!([{"name": "limit"}, {"name": "watch"}]);
    let document = json!({
        "paths": {"/api/v1/pods": get(named.clone()), "/api/v1/pods/{name}": get(json!([]))},
        "components": {"schemas": {"Pod": {"properties": {"spec": {}, "status": {}}}}},
    });
    let real = outline::of(&document);
    assert_eq!(differences(&real, &real), [""; 0]);
    for path in [
        "/paths/~1api~1v1~1pods/get/parameters",
        "/components/schemas/Pod/properties/status",
        "/paths/~1api~1v1~1pods~1{name}",
    ] {
        let mut less = document.clone();
        let (parent, last) = path.rsplit_once('/').unwrap();
        let last = last.replace("~1", "/");
        let parent = less
            .pointer_mut(parent)
            .and_then(Value::as_object_mut)
            .unwrap();
        assert!(parent.remove(&last).is_some(), "{path}");
        let found = differences(&real, &outline::of(&less));
        assert_eq!(found.len(), 1, "{path}: {found:?}");
    }
}
