#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::builtin::describe;
use crate::builtin::rules::{PLAIN, Rules};
use crate::negotiate::{MetaVersion, Shape, Transform};
use crate::resource::{Context, Resource};

fn config_maps(with_columns: bool) -> Resource {
    let columns = if with_columns { PLAIN.columns } else { &[] };
    let rules = Arc::new(Rules { columns, ..PLAIN });
    describe::resource("", "v1", "ConfigMap", "configmaps", rules).build()
}

fn presenter(resource: &Resource, shape: Shape) -> Presenter<'_> {
    Presenter {
        transform: Transform {
            shape,
            version: MetaVersion::V1,
        },
        include: IncludeObject::Metadata,
        resource,
        is_custom: false,
        cx: Context {
            version: "v1",
            now: "2026-01-01T00:10:00Z".parse().unwrap(),
            user: None,
        },
    }
}

fn a() -> Value {
    json!({"metadata": {"name": "a", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}, "data": {}})
}

#[test]
fn a_list_becomes_a_table() {
    let resource = config_maps(true);
    let list = json!({"metadata": {"resourceVersion": "9", "continue": "", "remainingItemCount": 3}, "items": [a()]});
    let table = presenter(&resource, Shape::Table).list(&list).unwrap();
    assert_eq!(
        table["metadata"],
        json!({"resourceVersion": "9", "remainingItemCount": 3})
    );
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
    assert_eq!(table["rows"][0]["cells"], json!(["a", "10m"]));
    assert_eq!(
        table["rows"][0]["object"],
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": a()["metadata"]})
    );
}

#[test]
fn rows_include_what_is_asked_for() {
    let resource = config_maps(true);
    let mut presenter = presenter(&resource, Shape::Table);
    presenter.include = IncludeObject::None;
    assert_eq!(
        presenter.object(&a()).unwrap()["rows"][0]["object"],
        Value::Null
    );
    presenter.include = IncludeObject::Object;
    let whole = presenter.object(&a()).unwrap();
    assert_eq!(whole["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(whole["rows"][0]["object"]["kind"], "ConfigMap");
    assert_eq!(whole["rows"][0]["object"]["data"], json!({}));
    assert_eq!(
        IncludeObject::parse(Some("foo")).unwrap_err().message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"foo\": must be 'Metadata', 'Object', 'None', or empty"
    );
}

#[test]
fn only_the_first_event_has_columns() {
    let resource = config_maps(true);
    let mut presenter = presenter(&resource, Shape::Table);
    presenter.include = IncludeObject::None;
    assert!(presenter.event(&a(), true)["columnDefinitions"].is_array());
    assert!(presenter.event(&a(), false)["columnDefinitions"].is_null());
    let bookmark = json!({"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}});
    let event = presenter.event(&bookmark, false);
    assert_eq!(event["rows"][0]["cells"], json!(["", "<unknown>"]));
    assert_eq!(event["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[test]
fn kinds_without_columns_show_name_and_creation() {
    let resource = config_maps(false);
    let table = presenter(&resource, Shape::Table).object(&a()).unwrap();
    assert_eq!(table["columnDefinitions"][1]["name"], "Created At");
    assert_eq!(
        table["rows"][0]["cells"],
        json!(["a", "2026-01-01T00:00:00Z"])
    );
}

#[test]
fn partial_objects() {
    let resource = config_maps(true);
    let list = json!({"metadata": {"resourceVersion": "9"}, "items": [a()]});
    let partials = presenter(&resource, Shape::PartialList)
        .list(&list)
        .unwrap();
    assert_eq!(partials["items"][0]["kind"], "PartialObjectMetadata");
    assert!(partials["items"][0].get("data").is_none());
    assert_eq!(
        partial_list(&json!({}), MetaVersion::V1)["items"],
        Value::Null
    );
    assert_eq!(
        presenter(&resource, Shape::PartialList)
            .object(&a())
            .unwrap_err()
            .message,
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"
    );
    let refused = presenter(&resource, Shape::Partial)
        .list(&list)
        .unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            406,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"
        )
    );
}

#[test]
fn ages_have_two_units() {
    let since: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let shown = |seconds: f64| {
        let millis = jiff::SignedDuration::from_secs_f64(seconds);
        age(since, since.checked_add(millis).unwrap())
    };
    for (seconds, text) in [
        (-2.0, "<invalid>"),
        (-1.5, "0s"),
        (-0.5, "0s"),
        (119.9, "119s"),
        (120.0, "2m"),
        (599.0, "9m59s"),
        (600.0, "10m"),
        (10_799.0, "179m"),
        (10_800.0, "3h"),
        (10_860.0, "3h1m"),
        (28_800.0, "8h"),
        (172_799.0, "47h"),
        (172_800.0, "2d"),
        (176_400.0, "2d1h"),
        (691_200.0, "8d"),
        (63_072_000.0, "2y"),
        (63_158_400.0, "2y1d"),
        (252_288_000.0, "8y"),
    ] {
        assert_eq!(shown(seconds), text, "{seconds}");
    }
}
