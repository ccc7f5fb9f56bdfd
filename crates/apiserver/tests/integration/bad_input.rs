//! Bad input: always an answer of the API's kind, never a panic.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;

use super::stage::{cluster, panics, send, virtually, whole};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Asks, and gives the code and the text of the answer. A failure has to be a `Status` that says the same code, or text.
pub(crate) async fn ask(
    cluster: &Arc<Cluster>,
    method: &str,
    path: &str,
    content_type: &str,
    body: impl Into<Bytes>,
) -> (u16, String) {
    let mut request = Request::builder().method(method).uri(path);
    if !content_type.is_empty() {
        request = request.header("content-type", content_type);
    }
    let request = request.body(body.into()).unwrap();
    answer(cluster, request).await
}

pub(crate) async fn answer(cluster: &Arc<Cluster>, request: Request<Bytes>) -> (u16, String) {
    let told = format!("{} {}", request.method(), request.uri());
    let told = told.chars().take(200).collect::<String>();
    let answer = send(cluster, request).await;
    let code = answer.status().as_u16();
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    if code == 200 && matches!(answer.body(), slipway_apiserver::shell::Body::Stream(_)) {
        return (code, "a stream".to_owned());
    }
    let text = String::from_utf8(whole(answer).await.to_vec()).unwrap();
    if code >= 400 && kind == "application/json" {
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{told}");
        assert!(!status["message"].as_str().unwrap().is_empty(), "{told}: {text}");
    } else if code >= 400 && kind != "application/yaml" {
        assert!(kind.starts_with("text/plain"), "{told}: {kind}");
    }
    (code, text)
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"a\"}},\"data\":{}{}}}",
        open.repeat(depth),
        close.repeat(depth)
    )
}

#[test]
fn bodies_that_are_no_objects_are_refused() {
    let bodies: Vec<String> = [
        "", " ", "{", "}", "[", "[]", "null", "true", "1", "\"\"", "\"text\"", "{\"a\"}", "{\"a\":}", "{,}", "{}", "nul",
        "{\"kind\":1}", "{\"kind\":\"ConfigMap\"}", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}",
        "{\"apiVersion\":\"v2\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}",
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":3}",
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":{}}}",
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":1}}",
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}} trailing",
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"\\ud800\"}}",
        "\u{feff}{}", "a: b: c", "- a\n b", "&a [*a]", "*x", "? {a: b}", "%YAML 9.9\n---\n", "\u{0}", "a: !!binary x",
        "&a [&b [*a, *b], *b]", "{a: 1, a: 2}", "<xml/>", "--- |\n text",
    ].into_iter().map(str::to_owned)
    .chain([nested("[", "]", 100_000), nested("{\"a\":", "}", 100_000), "[".repeat(1_000_000), "- ".repeat(100_000), "{a: ".repeat(50_000)])
    .chain(["a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f]".to_owned()])
    .collect();
    virtually(async {
        let cluster = cluster();
        for body in &bodies {
            for kind in ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"] {
                let (code, text) = ask(&cluster, "POST", MAPS, kind, body.clone()).await;
                let shown: String = body.chars().take(60).collect();
                assert!((400..500).contains(&code), "{kind} {shown}: {code} {text}");
            }
        }
        assert_eq!(panics(), 0);
    });
}

#[test]
fn bodies_that_are_no_text_are_refused() {
    virtually(async {
        let cluster = cluster();
        let garbage: [&[u8]; 5] = [&[0xff, 0xfe, 0xfd], &[0], b"k8s\0", b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"{\"a\":\"\xff\"}"];
        for bytes in garbage {
            for kind in ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "text/plain", "a/b/c;;", ";"] {
                for method in ["POST", "PUT"] {
                    let path = if method == "POST" { MAPS.to_owned() } else { format!("{MAPS}/a") };
                    let (code, text) = ask(&cluster, method, &path, kind, bytes).await;
                    assert!((400..500).contains(&code), "{method} {kind}: {code} {text}");
                }
            }
        }
        assert_eq!(panics(), 0);
    });
}

#[test]
fn patches_that_make_no_sense_are_refused() {
    virtually(async {
        let cluster = cluster();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        assert_eq!(ask(&cluster, "POST", MAPS, "application/json", object.to_string()).await.0, 201);
        let path = format!("{MAPS}/a?fieldManager=x");
        let patches = [
            "", "null", "[]x", "{", "3", "\"x\"", "[3]", "[{}]", "[null]", "[{\"op\":\"add\"}]", "[{\"op\":\"jump\",\"path\":\"/a\"}]",
            "[{\"op\":\"remove\",\"path\":\"/nothing/here\"}]", "[{\"op\":\"replace\",\"path\":\"\",\"value\":3}]",
            "[{\"op\":\"move\",\"from\":\"/metadata\",\"path\":\"/metadata/name/x\"}]", "[{\"op\":\"copy\",\"from\":\"/data\",\"path\":\"/data/-1\"}]",
            "[{\"op\":\"test\",\"path\":\"/data/k\",\"value\":\"w\"}]", "{\"metadata\":3}", "{\"data\":{\"k\":{}}}", "{\"data\":[1]}",
            "{\"metadata\":{\"name\":\"b\"}}", "{\"metadata\":{\"labels\":{\"a b\":\"c\"}}}", "{\"metadata\":{\"$patch\":\"explode\"}}",
            "{\"$patch\":3}", "{\"metadata\":{\"ownerReferences\":[{}]}}", "{\"metadata\":{\"$setElementOrder/finalizers\":3}}",
            "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":3}}", "{\"kind\":\"Pod\"}", "{\"apiVersion\":\"v9\"}",
        ];
        for kind in ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml", "json", "nothing"] {
            for patch in patches {
                let (code, text) = ask(&cluster, "PATCH", &path, &format!("application/{kind}"), patch).await;
                assert!(code < 500 || text.contains("map: map[]"), "{kind} {patch}: {code} {text}");
            }
            let deep = "{\"a\":".repeat(100_000);
            let (code, _) = ask(&cluster, "PATCH", &path, &format!("application/{kind}"), deep).await;
            assert!((400..500).contains(&code), "{kind}: {code}");
        }
        let many: Vec<Value> = (0..10_001).map(|_| json!({"op": "test", "path": "/data/k", "value": "v"})).collect();
        let (code, text) = ask(&cluster, "PATCH", &path, "application/json-patch+json", json!(many).to_string()).await;
        assert_eq!(code, 413, "{text}");
        assert_eq!(panics(), 0);
    });
}

#[test]
fn three_mebibytes_are_the_limit() {
    virtually(async {
        let cluster = cluster();
        let object = |size: usize| {
            let empty = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": ""}).to_string();
            empty.replace("\"x\":\"\"", &format!("\"x\":\"{}\"", "x".repeat(size - empty.len())))
        };
        let limit = 3 * 1024 * 1024;
        assert_eq!(ask(&cluster, "POST", MAPS, "application/json", object(limit)).await.0, 201);
        let (code, text) = ask(&cluster, "POST", MAPS, "application/json", object(limit + 1)).await;
        assert_eq!(code, 413);
        assert!(text.contains("Request entity too large: limit is 3145728"), "{text}");
        let big = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "x".repeat(1_100_000)}});
        let (code, text) = ask(&cluster, "POST", MAPS, "application/json", big.to_string()).await;
        assert_eq!(code, 422);
        assert!(text.contains("Too long: may not be more than 1048576 bytes"), "{text}");
    });
}

#[test]
fn names_paths_and_queries_may_be_anything() {
    let long = "x".repeat(50_000);
    let paths = [
        "/".to_owned(), "//".to_owned(), "/api/".to_owned(), "/api//v1".to_owned(), "/apis/apps/v1/namespaces//deployments".to_owned(),
        "/api/v1/namespaces/../../etc/passwd".to_owned(), "/api/v1/namespaces/%2e%2e/configmaps".to_owned(),
        "/api/v1/namespaces/default/configmaps/%00".to_owned(), "/api/v1/namespaces/default/configmaps/%ff%fe".to_owned(),
        "/api/v1/namespaces/default/configmaps/a%2fb".to_owned(), "/api/v1/namespaces/default/configmaps/%".to_owned(),
        "/api/v1/namespaces/default/configmaps/a/b/c/d/e".to_owned(), "/api/v1/watch".to_owned(), "/clusters/x".to_owned(),
        format!("{MAPS}/{long}"), format!("{MAPS}?labelSelector={long}"), format!("{MAPS}?fieldSelector={long}"),
        format!("{MAPS}?{}", "a=b&".repeat(20_000)), format!("{MAPS}?labelSelector={}", "a%3Db,".repeat(5000)),
        format!("{MAPS}?limit=99999999999999999999"), format!("{MAPS}?limit=-1"), format!("{MAPS}?continue=%ff"),
        format!("{MAPS}?continue=bm90aGluZw"), format!("{MAPS}?resourceVersion=x"), format!("{MAPS}?resourceVersion=99999999"),
        format!("{MAPS}?watch=1&timeoutSeconds=x"), format!("{MAPS}?watch=1&resourceVersion=99999999999999999999999"),
        format!("{MAPS}?resourceVersionMatch=Exact"), format!("{MAPS}?sendInitialEvents=true"), format!("{MAPS}?timeoutSeconds=-5&watch=1"),
        format!("{MAPS}?labelSelector=a%20in%20("), format!("{MAPS}?labelSelector=!!"), format!("{MAPS}?fieldSelector=a%3D%3D%3Db"),
        format!("{MAPS}?pretty=%ff&dryRun=maybe&fieldValidation=Perhaps"),
    ];
    virtually(async {
        let cluster = cluster();
        for path in &paths {
            for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW", "get"] {
                // Names this long do not fit into a URI of the http crate.
                let Ok(request) = Request::builder().method(method).uri(path.as_str()).body(Bytes::new()) else {
                    continue;
                };
                let (code, text) = answer(&cluster, request).await;
                let shown: String = path.chars().take(80).collect();
                assert!(code < 500, "{method} {shown}: {code} {text}");
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
        let names = ["accept", "content-type", "user-agent", "authorization", "impersonate-user", "impersonate-group", "impersonate-uid",
            "impersonate-extra-x%ff", "x-trace-context", "host", "accept-encoding", "range", "upgrade"];
        let long = vec![b'x'; 100_000];
        let values: [&[u8]; 6] = [b"\xff\xfe", b"", b";;;,,,", b"application/json;as=Table;v=v9;g=meta.k8s.io", b"Bearer \xff", &long];
        for name in names {
            for value in values {
                for method in [Method::GET, Method::POST] {
                    let request = Request::builder().method(method).uri(MAPS).header(name, HeaderValue::from_bytes(value).unwrap());
                    let (code, text) = answer(&cluster, request.body(Bytes::new()).unwrap()).await;
                    assert!(code < 500, "{name}: {code} {text}");
                }
            }
        }
        assert_eq!(panics(), 0);
    });
}

#[test]
fn thousands_of_labels_are_taken() {
    virtually(async {
        let cluster = cluster();
        let labels: serde_json::Map<String, Value> = (0..5000).map(|n| (format!("l{n}"), json!("v"))).collect();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}});
        assert_eq!(ask(&cluster, "POST", MAPS, "application/json", object.to_string()).await.0, 201);
        let (code, text) = ask(&cluster, "GET", &format!("{MAPS}?labelSelector=l4999%3Dv,l0"), "", "").await;
        assert_eq!((code, text.contains("\"l4999\":\"v\"")), (200, true));
        let annotations: serde_json::Map<String, Value> = (0..5000).map(|n| (format!("a{n}"), json!("v".repeat(60)))).collect();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "annotations": annotations}});
        let (code, text) = ask(&cluster, "POST", MAPS, "application/json", object.to_string()).await;
        assert_eq!(code, 422);
        assert!(text.contains("metadata.annotations: Too long: may not be more than 262144 bytes"), "{text}");
    });
}
