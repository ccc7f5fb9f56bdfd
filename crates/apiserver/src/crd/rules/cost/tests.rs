#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::declared::Declared;
use super::estimate;
use crate::crd::rules::typecheck;
use crate::crd::structural::Structural;

fn cost(rule: &str, schema: &Structural, root: bool) -> u64 {
    let checked = typecheck::check(rule, schema, root, false)
        .unwrap_or_else(|issues| panic!("{rule}: {issues}"));
    estimate(&checked, &Declared::read(schema, root).unwrap())
}

#[test]
fn rules_cost_what_they_cost_on_the_real_server() {
    let mut schema = Structural::default();
    let mut wrong = Vec::new();
    for line in include_str!("recorded.txt").lines().skip(1) {
        let Some((wanted, rule)) = line.split_once('\t') else {
            schema = Structural::read(&serde_json::from_str(line).unwrap());
            continue;
        };
        let found = cost(rule, &schema, false);
        let right = match wanted {
            ">" => found > 1_000_000_000,
            number => found.to_string() == number,
        };
        if !right {
            wrong.push(format!("{rule}: {found}, not {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_schema_leaves_open_is_as_large_as_a_request() {
    let most = |schema: serde_json::Value| {
        let declared = Declared::read(&Structural::read(&schema), false).unwrap();
        (declared.max, declared.most_in_a_request())
    };
    let request = 3 * 1024 * 1024;
    assert_eq!(most(json!({"type":"string"})), (request - 2, request / 3));
    assert_eq!(most(json!({"type":"string","maxLength":5})).0, 20);
    assert_eq!(most(json!({"type":"string","maxLength":-5})).0, 0);
    let list = json!({"type":"array","items":{"type":"integer"}});
    assert_eq!(most(list), ((request - 2) / 2, request / 3));
    let map = json!({"type":"object","additionalProperties":{"type":"boolean"}});
    assert_eq!(most(map).0, (request - 2) / 10);
    // Only what is required and not filled in takes room.
    let object = json!({"type":"object","required":["ab","c"],"properties":{
        "ab":{"type":"integer"},"c":{"type":"string","default":"x"},"d":{"type":"string"}}});
    assert_eq!(most(object), (0, request / 10));
}

#[test]
fn a_whole_object_has_names_of_any_length() {
    let schema = Structural::read(&json!({"type":"object"}));
    let found = cost(
        "self.metadata.name == self.metadata.generateName",
        &schema,
        true,
    );
    assert_eq!(found, 6 + (3 * 1024 * 1024_u64 - 2).div_ceil(10));
}
