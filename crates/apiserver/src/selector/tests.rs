#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use serde_json::json;

use super::*;

fn labels(text: &str, labels: &[(&str, &str)]) -> bool {
    let selector = LabelSelector::parse(text).unwrap();
    selector.matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v))
}

fn refusal(text: &str) -> String {
    let status = LabelSelector::parse(text).unwrap_err();
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
    status.message
}

#[test]
fn requirements_select() {
    let web = [("app", "web"), ("tier", "1")];
    assert!(labels("", &web));
    assert!(labels("app=web,tier==1,!x", &web));
    assert!(labels("app in (api,web), tier notin (2)", &web));
    assert!(labels("x notin (a),x!=b", &web));
    assert!(labels("tier>0,tier<2", &web));
    assert!(!labels("tier>1", &web));
    assert!(!labels("app>1", &web));
    assert!(!labels("x", &web));
    assert!(!labels("app!=web", &web));
    assert!(labels("x in (,y)", &[("x", "")]));
    assert!(labels("x=", &[("x", "")]));
    assert!(labels("in in (in)", &[("in", "in")]));
}

/// What kube-apiserver 1.36.3 says.
#[test]
fn refusals_are_the_real_ones() {
    for (text, message) in [
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "a in x",
            "unable to parse requirement: found 'x' expected: '('",
        ),
        (
            "a in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
        ),
        (
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a===b",
            "unable to parse requirement: found '=', expected: identifier",
        ),
        (
            "=b",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        ("a=b,", "found '', expected: identifier after ','"),
        (
            ",a",
            "found ',', expected: !, identifier, or 'end of string'",
        ),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        (
            "a=!!b",
            "unable to parse requirement: found '!', expected: identifier",
        ),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        (
            "!!a",
            "unable to parse requirement: found '!', expected: identifier",
        ),
        (
            "a!",
            "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a in (b,)x", "found 'x', expected: ',' or 'end of string'"),
        (
            "a)",
            "unable to parse requirement: found ')', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a,,b", "found ',', expected: identifier after ','"),
        (
            "a in (=)",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
        ),
        (
            "a in (b,=)",
            "unable to parse requirement: found '=', expected: ',', or identifier",
        ),
        (
            "a<>b",
            "unable to parse requirement: found '>', expected: identifier",
        ),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
    assert!(refusal("a/b/c=d").starts_with(
        "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must"
    ));
    assert!(refusal("a=b/c").starts_with(
        "unable to parse requirement: values[0][a]: Invalid value: \"b/c\": a valid label must"
    ));
}

#[test]
fn objects_become_selectors_and_text() {
    let object = json!({
        "matchLabels": {"b": "1", "a": "x"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["z", "y"]},
            {"key": "d", "operator": "DoesNotExist"},
            {"key": "a", "operator": "Exists"},
        ],
    });
    let selector = LabelSelector::from_object(Some(&object)).unwrap();
    assert_eq!(selector.to_string(), "a=x,a,b=1,c in (y,z),!d");
    assert!(
        selector.matches_object(&json!({"metadata": {"labels": {"a": "x", "b": "1", "c": "y"}}}))
    );
    assert!(!LabelSelector::from_object(None).unwrap().matches(|_| None));
    assert!(
        LabelSelector::from_object(Some(&json!({})))
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        LabelSelector::from_object(Some(
            &json!({"matchExpressions": [{"key": "a", "operator": "Gt"}]})
        )),
        Err("\"Gt\" is not a valid label selector operator".to_owned())
    );
}

#[test]
fn selectors_inside_objects_are_judged_by_field() {
    let wrong = validate(
        &json!({"matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["b c"]},
            {"key": "", "operator": "x"},
        ]}),
        "spec.selector",
    );
    let texts: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts[0],
        "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
    );
    assert_eq!(
        texts[1],
        "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    );
    assert!(
        texts[2].starts_with("spec.selector.matchExpressions[1].values[0]: Invalid value: \"b c\"")
    );
    assert_eq!(
        texts[3],
        "spec.selector.matchExpressions[2].operator: Invalid value: \"x\": not a valid selector operator"
    );
}

#[test]
fn field_selectors() {
    let selector = FieldSelector::parse("spec.nodeName!=b,,metadata.name==a\\,\\=c").unwrap();
    assert_eq!(selector.exact("metadata.name"), Some("a,=c"));
    assert_eq!(selector.exact("spec.nodeName"), None);
    assert_eq!(
        selector.to_string(),
        "metadata.name=a\\,\\=c,spec.nodeName!=b"
    );
    assert!(selector.matches(|f| (f == "metadata.name").then_some("a,=c")));
    assert!(!selector.matches(|_| Some("b")));
    for (text, message) in [
        (
            "metadata.name",
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
        ),
        (
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        ),
        (
            "a=b\\",
            "invalid field selector: invalid escape sequence: \\",
        ),
        (
            "a=b\\x",
            "invalid field selector: invalid escape sequence: \\x",
        ),
    ] {
        assert_eq!(FieldSelector::parse(text).unwrap_err().message, message);
    }
}
