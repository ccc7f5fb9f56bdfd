//! What kubelet and Prometheus ask: `/ready` (also `/readyz`), `/healthz`, `/metrics`.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::connections::{Bounds, Seat, accept};
use crate::metrics::traffic::Meter;
use crate::view::View;

/// For the head of a request, and so also between two requests of a connection.
const HEAD: Duration = Duration::from_secs(10);
const HEAD_BYTES: usize = 64 << 10;
const BOUNDS: Bounds = Bounds {
    most: 128,
    idle: Duration::from_mins(1),
    grace: Duration::ZERO,
};

/// Serves HTTP/1.1 until the process ends. Kubelet and a few that scrape are expected: there are as many connections as
/// that takes, and each has so long for the head of a request.
pub async fn serve(listener: TcpListener, view: View) -> std::io::Result<()> {
    listener.local_addr()?;
    let router = router(view);
    accept(listener, BOUNDS, pending(), move |stream, seat| {
        let router = router.clone();
        async move { connection(stream, &seat, router).await }
    })
    .await;
    Ok(())
}

async fn connection(stream: TcpStream, seat: &Arc<Seat>, router: Router) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let (router, busy) = (router.clone(), seat.request());
        async move {
            let response = router.oneshot(request.map(axum::body::Body::new)).await;
            drop(busy);
            response
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    seat.serve(serving, http1::Connection::graceful_shutdown)
        .await;
}

/// The routes, to be served with others.
pub fn router(view: View) -> Router {
    let meters: Meters = ["/ready", "/readyz", "/healthz", "/metrics", OTHER]
        .into_iter()
        .map(|path| (path, view.meter(path)))
        .collect();
    Router::new()
        .route("/ready", get(ready))
        .route("/readyz", get(ready))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .with_state(view.clone())
        .layer(from_fn_with_state(view, refuse_unfit))
        .layer(from_fn_with_state(Arc::new(meters), measure))
}

/// Refuses what must not be answered.
async fn refuse_unfit(State(view): State<View>, request: Request, next: Next) -> Response {
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
