//! However much is made up, the metrics stay as long as they were.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use slipway_kernel::admission::Count;
use slipway_runtime::request_filter::{Rejection, RequestFilter};
use slipway_runtime::{Environment, View, probes};
use tower::ServiceExt;

use crate::stage::{Stage, epoch, virtually};
use crate::webhook::guard;

/// Counts each request by what a header says, and refuses none.
struct Curious;

impl RequestFilter for Curious {
    fn filter(&self, _: &str, headers: &HeaderMap) -> Option<Rejection> {
        let said = headers.get("x-cluster")?.to_str().ok()?;
        Some(Rejection {
            count: Count {
                name: "curious_total",
                help: "What was said",
                labels: vec![("said", said.to_owned())],
            },
            message: "somebody has said something".to_owned(),
            refusal: None,
        })
    }
}

fn series(view: &View) -> usize {
    let text = view.metrics();
    text.lines().filter(|line| !line.starts_with('#')).count()
}

fn request<B>(n: u32, body: B) -> Request<B> {
    let method = format!("METHOD{n}");
    let path = format!("/path{n}?q={n}");
    let mut request = Request::new(body);
    *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap();
    *request.uri_mut() = path.parse().unwrap();
    let said = format!("cluster-{n}").parse().unwrap();
    request.headers_mut().insert("x-cluster", said);
    request
}

#[test]
fn made_up_methods_paths_headers_and_resources_make_few_series() {
    virtually(async {
        let stage = Stage::new().await;
        let operator = guard(&stage, Environment::virtual_from(epoch(), 7));
        let operator = operator.with_request_filter(Arc::new(Curious));
        let (admissions, view, client) =
            (operator.admissions(), operator.view(), operator.client());
        let router = probes::router(view.clone());
        let flood = async |from: u32, to: u32| {
            for n in from..to {
                let asked = router.clone().oneshot(request(n, Body::empty()));
                asked.await.unwrap();
                admissions.answer(request(n, Bytes::new())).await;
                let mut known = request(n, Bytes::from_static(b"{"));
                *known.uri_mut() = "/admission/guard".parse().unwrap();
                admissions.answer(known).await;
                // As for a mirrored resource, whose kind an annotation names.
                let path = format!("/apis/group{n}.dev/v1/namespaces/default/kinds{n}/a/scale");
                let asked = Request::get(path).body(Vec::new()).unwrap();
                let _ = client.request_text(asked).await;
            }
        };
        flood(0, 300).await;
        let once = series(&view);
        // A few for each method and route, and some dozens of values that others chose.
        assert!(once < 2_000, "{once} series");
        flood(300, 900).await;
        assert_eq!(series(&view), once);
    });
}
