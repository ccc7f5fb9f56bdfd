//! What tests of controllers on virtual clusters stand on, here and in the crates of capabilities.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

/// The administrator's token of every cluster.
pub(crate) const ADMIN: &str = "admin-token";

/// When virtual clusters begin.
pub(crate) fn epoch() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap()
}

/// Runs to the end on one thread, on a clock that jumps to the next timer whenever nothing else is to do.
pub(crate) fn virtually<F: Future>(work: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(work)
}

pub(crate) async fn secs(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}

/// A request with this body, if it has one.
pub(crate) fn request(
    method: &str,
    path: &str,
    content: &str,
    body: &Value,
) -> http::Request<Vec<u8>> {
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = http::Request::builder().method(method).uri(path);
    request.header("content-type", content).body(body).unwrap()
}
