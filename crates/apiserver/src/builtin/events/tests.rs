#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use jiff::Timestamp;
use serde_json::json;

use super::*;

fn texts(errors: &FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn event() -> Value {
    json!({"apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": "e", "namespace": "hb"},
        "regarding": {"kind": "Pod", "name": "x", "namespace": "hb"}, "reason": "R", "note": "n", "type": "Normal",
        "eventTime": "2024-01-01T00:00:00.000000Z", "action": "A", "reportingController": "a.b/c",
        "reportingInstance": "i"})
}

#[test]
fn an_event_is_one_thing_in_two_forms() {
    let core = convert::to_core(&event());
    assert_eq!(core["apiVersion"], "v1");
    assert_eq!(core["involvedObject"]["name"], "x");
    assert_eq!(core["message"], "n");
    assert_eq!(core["reportingComponent"], "a.b/c");
    assert_eq!(core["source"], json!({}));
    assert_eq!(core["lastTimestamp"], Value::Null);
    assert_eq!(convert::to_core(&core), core);
    let back = convert::to_events(&core);
    assert_eq!(back["regarding"], event()["regarding"]);
    assert_eq!(back["deprecatedSource"], json!({}));
    assert_eq!(back["deprecatedLastTimestamp"], Value::Null);
    assert_eq!(convert::to_events(&back), back);
}

#[test]
fn an_old_event_lives_where_its_object_does() {
    let old = json!({"metadata": {"namespace": "hb"}, "involvedObject": {"namespace": "other"}});
    assert_eq!(
        texts(&validate_core(&old, true)),
        ["involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"]
    );
    let node = json!({"metadata": {"namespace": "default"}, "involvedObject": {"kind": "Node"}});
    assert!(validate_core(&node, true).is_empty());
}

#[test]
fn a_new_event_says_who_reports_what() {
    let bare = json!({"metadata": {"namespace": "hb"}, "involvedObject": {"namespace": "hb"}});
    assert_eq!(
        texts(&validate_new(&bare)),
        [
            "eventTime: Required value",
            "type: Invalid value: \"\": has invalid value: "
        ]
    );
    assert!(validate_new(&convert::to_core(&event())).is_empty());
}

#[test]
fn a_new_event_stays_as_it_is() {
    let old = convert::to_core(&event());
    let mut new = old.clone();
    new["involvedObject"]["name"] = "y".into();
    new["message"] = "n2".into();
    assert_eq!(
        texts(&validate_new_update(&new, &old)),
        [
            "involvedObject: Invalid value: {\"Kind\":\"Pod\",\"Namespace\":\"hb\",\"Name\":\"y\",\"UID\":\"\",\"APIVersion\":\"\",\"ResourceVersion\":\"\",\"FieldPath\":\"\"}: field is immutable",
            "message: Invalid value: \"n2\": field is immutable",
        ]
    );
}

#[test]
fn tables_show_when_and_whom() {
    let cx = Context {
        version: "v1",
        now: "2024-01-01T00:05:10Z".parse::<Timestamp>().unwrap(),
        user: None,
    };
    let row = cells(&event(), &cx);
    assert_eq!(
        row,
        [
            json!("5m10s"),
            json!("Normal"),
            json!("R"),
            json!("pod/x"),
            json!(""),
            json!("a.b/c, i"),
            json!("n"),
            json!("5m10s"),
            json!(1),
            json!("e"),
        ]
    );
}
