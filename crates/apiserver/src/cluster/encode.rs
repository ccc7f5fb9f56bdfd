//! From a reply to the bytes and headers that are sent.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};

use crate::exchange::{Content, Reply};
use crate::negotiate::{Form, Media};
use crate::shell::Body;

fn to_yaml(value: &serde_json::Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_default()
}

pub(crate) fn encode(reply: Reply, form: Form, pretty: bool) -> Response<Body> {
    let yaml = form.media == Media::Yaml;
    let mut content_type = if yaml {
        "application/yaml".to_owned()
    } else {
        "application/json".to_owned()
    };
    let body = match reply.content {
        Content::Value(value) if yaml => Body::Full(Bytes::from(to_yaml(&value))),
        Content::Value(value) if pretty => Body::Full(Bytes::from(
            serde_json::to_vec_pretty(&value).unwrap_or_default(),
        )),
        Content::Value(value) => {
            Body::Full(Bytes::from(serde_json::to_vec(&value).unwrap_or_default()))
        }
        Content::Json(bytes) if yaml || pretty => {
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let text = if yaml {
                to_yaml(&value).into()
            } else {
                serde_json::to_vec_pretty(&value).unwrap_or_default()
            };
            Body::Full(Bytes::from(text))
        }
        Content::Json(bytes) => Body::Full(Bytes::from(bytes)),
        Content::Text(text) => {
            "text/plain; charset=utf-8".clone_into(&mut content_type);
            Body::Full(Bytes::from(text))
        }
        Content::Typed(kind, bytes) => {
            content_type = kind;
            Body::Full(bytes)
        }
        Content::Stream(body) => body,
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(reply.code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_str(&content_type)
            .unwrap_or(HeaderValue::from_static("application/json")),
    );
    headers.insert(
        http::header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    for warning in super::warning::headers(&reply.warnings) {
        headers.append(http::header::WARNING, warning);
    }
    if let Some(seconds) = reply.retry_after
        && let Ok(value) =
            HeaderValue::from_str(&Duration::from_secs(seconds.into()).as_secs().to_string())
    {
        headers.insert(http::header::RETRY_AFTER, value);
    }
    response
}
