//! What kubelet and Prometheus ask: `/ready`, `/healthz`, `/metrics`.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::view::View;

/// Serves until the process ends.
pub async fn serve(listener: tokio::net::TcpListener, view: View) -> std::io::Result<()> {
    axum::serve(listener, router(view)).await
}

/// The routes, to be served with others.
pub fn router(view: View) -> Router {
    Router::new()
        .route("/ready", get(ready))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .with_state(view)
}

async fn ready(State(view): State<View>) -> impl IntoResponse {
    answer(
        view.is_ready(),
        "ready\n",
        "not ready: not everything has been listed\n",
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
