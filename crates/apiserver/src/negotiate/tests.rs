#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use super::*;

const TABLES: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

fn media(header: &str) -> Media {
    accept(Some(header)).unwrap().media
}

#[test]
fn json_is_the_default() {
    assert_eq!(accept(None).unwrap(), Form::default());
    assert_eq!(media("*/*"), Media::Json);
    assert_eq!(media("application/yaml"), Media::Yaml);
    assert_eq!(media("application/json, application/yaml"), Media::Json);
    assert_eq!(
        media("application/json;q=0.5, application/yaml"),
        Media::Yaml
    );
    assert_eq!(media("text/html, */*;q=0.1"), Media::Json);
}

#[test]
fn protobuf_falls_back_to_json() {
    assert_eq!(
        media("application/vnd.kubernetes.protobuf, application/json"),
        Media::Json
    );
    assert_eq!(
        media("application/vnd.kubernetes.protobuf,*/*"),
        Media::Json
    );
    assert_eq!(
        accept(Some("application/vnd.kubernetes.protobuf"))
            .unwrap_err()
            .code,
        406
    );
}

#[test]
fn kubectl_asks_for_tables() {
    let form = accept(Some(TABLES)).unwrap();
    let table = Transform {
        shape: Shape::Table,
        version: MetaVersion::V1,
    };
    assert_eq!(form.transform, Some(table));
    let partial = accept(Some(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    ));
    assert_eq!(
        partial.unwrap().transform.unwrap().shape,
        Shape::PartialList
    );
}

#[test]
fn refusals_are_the_real_ones() {
    let status = accept(Some("text/plain")).unwrap_err();
    assert_eq!(
        (status.code, status.reason.as_str(), status.message.as_str()),
        (
            406,
            "NotAcceptable",
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        )
    );
    assert!(status.details.is_some());
    assert!(accept(Some("application/*")).is_err());
    assert!(accept_at(Some("application/*"), Endpoint::Custom).is_ok());
    let status = accept_at(Some("text/plain"), Endpoint::Custom).unwrap_err();
    assert_eq!(
        status.message,
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    for header in [
        "application/json;as=Table;g=meta.k8s.io;v=v2",
        "application/json;as=Foo;g=meta.k8s.io;v=v1",
        "application/json;stream=foo",
    ] {
        assert_eq!(
            accept(Some(header)).unwrap_err().message,
            status.message,
            "{header}"
        );
    }
    let status = accept_at(Some("text/plain"), Endpoint::Collection).unwrap_err();
    assert!(status.message.ends_with(
        "protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    ));
}

#[test]
fn a_watch_is_json() {
    assert!(stream(accept(Some("application/json;stream=watch")).unwrap()).is_ok());
    assert_eq!(
        stream(accept(Some("application/yaml")).unwrap())
            .unwrap_err()
            .message,
        "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    );
}

#[test]
fn bodies() {
    assert_eq!(body(None).unwrap(), Media::Json);
    assert_eq!(
        body(Some("application/json; charset=utf-8")).unwrap(),
        Media::Json
    );
    assert_eq!(body(Some("application/json;")).unwrap(), Media::Json);
    assert_eq!(body(Some("application/yaml")).unwrap(), Media::Yaml);
    assert_eq!(
        body(Some("application/vnd.kubernetes.protobuf")).unwrap(),
        Media::Protobuf
    );
    for refused in [
        "text/plain",
        "*/*",
        "application/x-yaml",
        "application/vnd.kubernetes.protobuf;x",
        "application/json; charset",
    ] {
        let status = body(Some(refused)).unwrap_err();
        assert_eq!(
            (status.code, status.message.as_str()),
            (
                415,
                "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
            )
        );
    }
}

#[test]
fn people_get_indentation() {
    assert!(pretty(None, Some("curl/8.0")));
    assert!(!pretty(Some("0"), Some("curl/8.0")));
    assert!(pretty(Some("true"), None));
    assert!(!pretty(Some("yes"), None));
    assert!(accept(Some("application/json;pretty=1")).unwrap().pretty);
}

#[test]
fn odd_headers_are_harmless() {
    for header in [
        ",",
        ";",
        "/",
        "*",
        "a/b/c",
        "application/json;q=x",
        "application/json/",
        "=;=,=/=",
    ] {
        let _ = accept_at(Some(header), Endpoint::Custom);
    }
    assert!(accept(Some(&"application/json,".repeat(10_000))).is_ok());
}
