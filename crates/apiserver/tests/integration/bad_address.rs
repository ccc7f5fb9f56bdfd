//! Bad addresses and heads of requests: paths, queries, methods and headers.

use bytes::Bytes;
use http::{HeaderValue, Method, Request};

use super::bad_input::{MAPS, answer};
use super::stage::{cluster, panics, send, virtually};
use super::verdict::is_real;

#[test]
fn names_paths_and_queries_may_be_anything() {
    let long = "x".repeat(50_000);
    let paths = [
        "/".to_owned(),
        "//".to_owned(),
        "/api/".to_owned(),
        "/api//v1".to_owned(),
        "/apis/apps/v1/namespaces//deployments".to_owned(),
        "/api/v1/namespaces/../../etc/passwd".to_owned(),
        "/api/v1/namespaces/%2e%2e/configmaps".to_owned(),
        "/api/v1/namespaces/default/configmaps/%00".to_owned(),
        "/api/v1/namespaces/default/configmaps/%ff%fe".to_owned(),
        "/api/v1/namespaces/default/configmaps/a%2fb".to_owned(),
        "/api/v1/namespaces/default/configmaps/%".to_owned(),
        "/api/v1/namespaces/default/configmaps/a/b/c/d/e".to_owned(),
        "/api/v1/watch".to_owned(),
        "/clusters/x".to_owned(),
        format!("{MAPS}/{long}"),
        format!("{MAPS}?labelSelector={long}"),
        format!("{MAPS}?fieldSelector={long}"),
        format!("{MAPS}?{}", "a=b&".repeat(20_000)),
        format!("{MAPS}?labelSelector={}", "a%3Db,".repeat(5000)),
        format!("{MAPS}?limit=99999999999999999999"),
        format!("{MAPS}?limit=-1"),
        format!("{MAPS}?continue=%ff"),
        format!("{MAPS}?continue=bm90aGluZw"),
        format!("{MAPS}?resourceVersion=x"),
        format!("{MAPS}?resourceVersion=99999999"),
        format!("{MAPS}?watch=1&timeoutSeconds=x"),
        format!("{MAPS}?watch=1&resourceVersion=99999999999999999999999"),
        format!("{MAPS}?resourceVersionMatch=Exact"),
        format!("{MAPS}?sendInitialEvents=true"),
        format!("{MAPS}?timeoutSeconds=-5&watch=1"),
        format!("{MAPS}?labelSelector=a%20in%20("),
        format!("{MAPS}?labelSelector=!!"),
        format!("{MAPS}?fieldSelector=a%3D%3D%3Db"),
        format!("{MAPS}?pretty=%ff&dryRun=maybe&fieldValidation=Perhaps"),
    ];
    virtually(async {
        let cluster = cluster();
        for path in &paths {
            for method in [
                "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
                "BREW", "get",
            ] {
                // Names this long do not fit into a URI of the http crate.
                let Ok(request) = Request::builder()
                    .method(method)
                    .uri(path.as_str())
                    .body(Bytes::new())
                else {
                    continue;
                };
                let (code, text) = answer(&cluster, request).await;
                let shown: String = path.chars().take(80).collect();
                assert!(
                    code < 500 || is_real(&text),
                    "{method} {shown}: {code} {text}"
                );
                if !matches!(method, "GET" | "HEAD" | "DELETE") {
                    assert!(code >= 400, "{method} {shown}: {code} {text}");
                }
            }
        }
        assert_eq!(panics(), 0);
    });
}

#[test]
fn headers_may_hold_any_bytes() {
    virtually(async {
        let cluster = cluster();
        let names = [
            "accept",
            "content-type",
            "user-agent",
            "authorization",
            "impersonate-user",
            "impersonate-group",
            "impersonate-uid",
            "impersonate-extra-x%ff",
            "x-trace-context",
            "host",
            "accept-encoding",
            "range",
            "upgrade",
        ];
        let long = vec![b'x'; 100_000];
        let values: [&[u8]; 6] = [
            b"\xff\xfe",
            b"",
            b";;;,,,",
            b"application/json;as=Table;v=v9;g=meta.k8s.io",
            b"Bearer \xff",
            &long,
        ];
        for name in names {
            for value in values {
                for method in [Method::GET, Method::POST] {
                    let request = Request::builder()
                        .method(method)
                        .uri(MAPS)
                        .header(name, HeaderValue::from_bytes(value).unwrap());
                    let (code, text) = answer(&cluster, request.body(Bytes::new()).unwrap()).await;
                    assert!(code < 500, "{name}: {code} {text}");
                }
            }
        }
        assert_eq!(panics(), 0);
    });
}

/// Found by fuzzing: the moment at which such a watch ends does not exist, and its task died looking for it.
#[test]
fn a_watch_may_ask_for_any_time() {
    virtually(async {
        let cluster = cluster();
        let path = format!("{MAPS}?watch=1&timeoutSeconds={}", i64::MAX);
        let request = Request::builder().uri(path).body(Bytes::new()).unwrap();
        let watch = send(&cluster, request).await;
        tokio::time::sleep(std::time::Duration::from_hours(1)).await;
        assert_eq!(cluster.watches(), 1);
        drop(watch);
    });
    assert_eq!(panics(), 0);
}
