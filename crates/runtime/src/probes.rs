//! What kubelet and Prometheus ask: `/ready`, `/healthz`, `/metrics`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::body::Body;
use tokio::time::Instant;

use crate::metrics::traffic::Meter;
use crate::view::View;

/// Serves until the process ends.
pub async fn serve(listener: tokio::net::TcpListener, view: View) -> std::io::Result<()> {
    axum::serve(listener, router(view)).await
}

/// The routes, to be served with others.
pub fn router(view: View) -> Router {
    let meters: Meters = ["/ready", "/healthz", "/metrics", OTHER]
        .into_iter()
        .map(|path| (path, view.meter(path)))
        .collect();
    Router::new()
        .route("/ready", get(ready))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .with_state(view.clone())
        .layer(from_fn_with_state(view, vet))
        .layer(from_fn_with_state(Arc::new(meters), measure))
}

/// Refuses what must not be answered.
async fn vet(State(view): State<View>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    match view.shared().refuse_request(path, request.headers()) {
        Some(refusal) => refusal.map(axum::body::Body::from),
        None => next.run(request).await,
    }
}

/// What measures the requests to each path.
type Meters = BTreeMap<&'static str, Meter>;

const OTHER: &str = "/other";

async fn measure(State(meters): State<Arc<Meters>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let path = request.uri().path();
    let Some(meter) = meters.get(path).or_else(|| meters.get(OTHER)) else {
        return next.run(request).await;
    };
    let size = request.body().size_hint().lower();
    let under_way = meter.begin(
        request.method(),
        usize::try_from(size).unwrap_or(usize::MAX),
    );
    let response = next.run(request).await;
    let size = response.body().size_hint().lower();
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    under_way.end(response.status(), size, began.elapsed());
    response
}

async fn ready(State(view): State<View>) -> impl IntoResponse {
    let missing = view.unready();
    if missing.is_empty() {
        return (StatusCode::OK, "ready\n".to_owned());
    }
    let text = format!("not ready:\n- {}\n", missing.join("\n- "));
    (StatusCode::SERVICE_UNAVAILABLE, text)
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
