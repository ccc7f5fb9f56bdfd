//! Requests that are looked at before anybody answers them: at the probes' port and at the webhooks'.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;
use slipway_kernel::admission::Count;

use crate::state::Shared;

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// What is counted.
    pub count: Count,
    /// What is logged.
    pub message: String,
    /// What is answered; none if it is only counted.
    pub refusal: Option<(StatusCode, Value)>,
}

/// Looks at the heads of requests. Pure.
pub trait RequestFilter: Send + Sync + 'static {
    /// What is wrong with a request to this path, if anything is.
    fn filter(&self, path: &str, headers: &HeaderMap) -> Option<Rejection>;
}

impl Shared {
    /// The refusal of a request that must not be answered.
    pub(crate) fn refuse_request(
        &self,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<Response<Bytes>> {
        let rejection = self.request_filter.get()?.filter(path, headers)?;
        self.metrics.traffic.count(&rejection.count);
        tracing::warn!(path, "{}", rejection.message);
        let (code, body) = rejection.refusal?;
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = code;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        Some(response)
    }
}
