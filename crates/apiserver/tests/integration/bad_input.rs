//! Bad input: always an answer of the API's kind, never a panic.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;

use super::stage::{cluster, panics, send, virtually, whole};
use super::verdict::{is_real, judge};

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

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
    let kind = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    if code == 200 && matches!(answer.body(), slipway_apiserver::shell::Body::Stream(_)) {
        return (code, "a stream".to_owned());
    }
    let text = String::from_utf8(whole(answer).await.to_vec()).unwrap();
    judge(&told, code, &kind, &text);
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
            for kind in [
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ] {
                let (code, text) = ask(&cluster, "POST", MAPS, kind, body.clone()).await;
                let shown: String = body.chars().take(60).collect();
                assert!((400..500).contains(&code), "{kind} {shown}: {code} {text}");
            }
        }
        // After a whole object YAML does not look on, JSON does.
        let trailing = format!(
            "{} more",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        );
        assert_eq!(
            ask(&cluster, "POST", MAPS, "application/json", trailing)
                .await
                .0,
            400
        );
        assert_eq!(panics(), 0);
    });
}

#[test]
fn bodies_that_are_no_text_are_refused() {
    virtually(async {
        let cluster = cluster();
        let garbage: [&[u8]; 5] = [
            &[0xff, 0xfe, 0xfd],
            &[0],
            b"k8s\0",
            b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"{\"a\":\"\xff\"}",
        ];
        for bytes in garbage {
            for kind in [
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
                "application/cbor",
                "text/plain",
                "a/b/c;;",
                ";",
            ] {
                for method in ["POST", "PUT"] {
                    let path = if method == "POST" {
                        MAPS.to_owned()
                    } else {
                        format!("{MAPS}/a")
                    };
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
        assert_eq!(
            ask(
                &cluster,
                "POST",
                MAPS,
                "application/json",
                object.to_string()
            )
            .await
            .0,
            201
        );
        let path = format!("{MAPS}/a?fieldManager=x");
        let patches = [
            "",
            "null",
            "[]x",
            "{",
            "3",
            "\"x\"",
            "[3]",
            "[{}]",
            "[null]",
            "[{\"op\":\"add\"}]",
            "[{\"op\":\"jump\",\"path\":\"/a\"}]",
            "[{\"op\":\"remove\",\"path\":\"/nothing/here\"}]",
            "[{\"op\":\"replace\",\"path\":\"\",\"value\":3}]",
            "[{\"op\":\"move\",\"from\":\"/metadata\",\"path\":\"/metadata/name/x\"}]",
            "[{\"op\":\"copy\",\"from\":\"/data\",\"path\":\"/data/-1\"}]",
            "[{\"op\":\"test\",\"path\":\"/data/k\",\"value\":\"w\"}]",
            "{\"metadata\":3}",
            "{\"data\":{\"k\":{}}}",
            "{\"data\":[1]}",
            "{\"metadata\":{\"name\":\"b\"}}",
            "{\"metadata\":{\"labels\":{\"a b\":\"c\"}}}",
            "{\"metadata\":{\"$patch\":\"explode\"}}",
            "{\"$patch\":3}",
            "{\"metadata\":{\"ownerReferences\":[{}]}}",
            "{\"metadata\":{\"$setElementOrder/finalizers\":3}}",
            "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":3}}",
            "{\"kind\":\"Pod\"}",
            "{\"apiVersion\":\"v9\"}",
        ];
        for kind in [
            "json-patch+json",
            "merge-patch+json",
            "strategic-merge-patch+json",
            "apply-patch+yaml",
            "json",
            "nothing",
        ] {
            for patch in patches {
                let (code, text) = ask(
                    &cluster,
                    "PATCH",
                    &path,
                    &format!("application/{kind}"),
                    patch,
                )
                .await;
                assert!(
                    code < 500 || is_real(&text),
                    "{kind} {patch}: {code} {text}"
                );
            }
            let deep = "{\"a\":".repeat(100_000);
            let (code, _) = ask(
                &cluster,
                "PATCH",
                &path,
                &format!("application/{kind}"),
                deep,
            )
            .await;
            assert!((400..500).contains(&code), "{kind}: {code}");
        }
        let many: Vec<Value> = (0..10_001)
            .map(|_| json!({"op": "test", "path": "/data/k", "value": "v"}))
            .collect();
        let (code, text) = ask(
            &cluster,
            "PATCH",
            &path,
            "application/json-patch+json",
            json!(many).to_string(),
        )
        .await;
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
            empty.replace(
                "\"x\":\"\"",
                &format!("\"x\":\"{}\"", "x".repeat(size - empty.len())),
            )
        };
        let limit = 3 * 1024 * 1024;
        assert_eq!(
            ask(&cluster, "POST", MAPS, "application/json", object(limit))
                .await
                .0,
            201
        );
        let (code, text) = ask(
            &cluster,
            "POST",
            MAPS,
            "application/json",
            object(limit + 1),
        )
        .await;
        assert_eq!(code, 413);
        assert!(
            text.contains("Request entity too large: limit is 3145728"),
            "{text}"
        );
        let big = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "x".repeat(1_100_000)}});
        let (code, text) = ask(&cluster, "POST", MAPS, "application/json", big.to_string()).await;
        assert_eq!(code, 422);
        assert!(
            text.contains("Too long: may not be more than 1048576 bytes"),
            "{text}"
        );
    });
}

#[test]
fn thousands_of_labels_are_taken() {
    virtually(async {
        let cluster = cluster();
        let labels: serde_json::Map<String, Value> =
            (0..5000).map(|n| (format!("l{n}"), json!("v"))).collect();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}});
        assert_eq!(
            ask(
                &cluster,
                "POST",
                MAPS,
                "application/json",
                object.to_string()
            )
            .await
            .0,
            201
        );
        let (code, text) = ask(
            &cluster,
            "GET",
            &format!("{MAPS}?labelSelector=l4999%3Dv,l0"),
            "",
            "",
        )
        .await;
        assert_eq!((code, text.contains("\"l4999\":\"v\"")), (200, true));
        let annotations: serde_json::Map<String, Value> = (0..5000)
            .map(|n| (format!("a{n}"), json!("v".repeat(60))))
            .collect();
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "annotations": annotations}});
        let (code, text) = ask(
            &cluster,
            "POST",
            MAPS,
            "application/json",
            object.to_string(),
        )
        .await;
        assert_eq!(code, 422);
        assert!(
            text.contains("metadata.annotations: Too long: may not be more than 262144 bytes"),
            "{text}"
        );
    });
}

#[test]
fn only_a_whole_message_is_the_real_server_s() {
    for (reason, message, is_known) in [
        ("", "content is not a list", true),
        ("InternalError", "content is not a list", false),
        ("", "the content is not a list", false),
        ("", "content is not a list at all", false),
        // What a client sent is in the message of a failure that is ours.
        ("", "reading \"is not a map\": broken", false),
        ("", "value for key 3 is not a map", true),
        (
            "",
            "map: map[a:b] does not contain declared merge key: name",
            true,
        ),
        (
            "InternalError",
            "Internal error occurred: , but received a ",
            false,
        ),
    ] {
        let status = json!({"kind": "Status", "reason": reason, "message": message, "code": 500});
        assert_eq!(is_real(&status.to_string()), is_known, "{message}");
    }
}
