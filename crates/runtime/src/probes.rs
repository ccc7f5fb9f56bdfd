//! What kubelet and Prometheus ask: `/ready`, `/healthz`, `/metrics`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::time::Instant;

use crate::metrics::traffic::Meter;
use crate::state::Shared;
use crate::view::View;

/// Serves until the process ends.
pub async fn serve(listener: tokio::net::TcpListener, view: View) -> std::io::Result<()> {
    axum::serve(listener, router(view)).await
}

/// The routes, to be served with others. Requests are measured and looked at like those to webhooks.
pub fn router(view: View) -> Router {
    let watch = Arc::new(Watch::new(view.shared()));
    Router::new()
        .route("/ready", get(ready))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .fallback(nothing)
        .layer(from_fn_with_state(watch, watched))
        .with_state(view)
}

/// What is noted of requests.
struct Watch {
    shared: Arc<Shared>,
    meters: BTreeMap<&'static str, Meter>,
    other: Meter,
}

impl Watch {
    fn new(shared: Arc<Shared>) -> Self {
        let traffic = &shared.metrics.traffic;
        let paths = ["/ready", "/healthz", "/metrics"];
        Self {
            meters: paths
                .map(|path| (path, traffic.meter(&Method::GET, path)))
                .into(),
            other: traffic.meter(&Method::GET, "/other"),
            shared,
        }
    }
}

async fn watched(State(watch): State<Arc<Watch>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let path = request.uri().path().to_owned();
    let meter = watch.meters.get(path.as_str()).unwrap_or(&watch.other);
    let under_way = meter.begin(request.method(), 0);
    let refused = watch.shared.refuse_request(&path, request.headers());
    let response = match refused {
        Some(refusal) => refusal.map(Body::from),
        None => next.run(request).await,
    };
    let size = response.body().size_hint().exact().unwrap_or_default();
    let size = usize::try_from(size).unwrap_or_default();
    under_way.end(response.status(), size, began.elapsed());
    response
}

async fn nothing() -> impl IntoResponse {
    (StatusCode::NOT_FOUND, "404 page not found\n")
}

async fn ready(State(view): State<View>) -> impl IntoResponse {
    answer(
        view.is_ready(),
        "ready\n",
        "not ready: not everything has been listed, or there is no certificate yet\n",
    )
}

async fn health(State(view): State<View>) -> impl IntoResponse {
    answer(view.is_healthy(), "ok\n", "the loop has made no progress\n")
}

async fn metrics(State(view): State<View>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], view.metrics())
}

fn answer(good: bool, yes: &'static str, no: &'static str) -> (StatusCode, &'static str) {
    if good {
        (StatusCode::OK, yes)
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, no)
    }
}
