//! One call, to its end: the request, where answers point instead, and what is read of the last one.

use std::error::Error;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use slipway_kernel::address::{Rules, Scheme, Url};
use slipway_kernel::question::{Answer, Call, Failure, Method, Wanted};

use super::dial::{Clients, LARGEST_HEAD, NoConnection};
use super::prepared::Prepared;

/// How much of a text is wanted, and one byte to know that there is more.
const TEXT: usize = 4 * 1024 + 1;

/// Makes a call. Whoever drops it gives it up.
pub(super) async fn make(
    call: &Call,
    prepared: &Prepared,
    clients: &Clients,
    rules: &Rules,
) -> Answer {
    let client = clients.get(prepared.trust.as_ref())?;
    let mut step = Step {
        method: call.method,
        url: prepared.url.clone(),
        body: call.body.clone(),
    };
    let mut followed = 0;
    loop {
        let is_ours = step.url.is_same_origin(&prepared.url);
        let request = request(&step, prepared, is_ours)?;
        let answer = client.request(request).await;
        let answer = answer.map_err(|error| failure(&step.url, &error))?;
        if call.redirects == 0 {
            return read(call, prepared, answer).await;
        }
        let Some(next) = step.next(&answer, prepared, rules)? else {
            return read(call, prepared, answer).await;
        };
        followed += 1;
        if followed > call.redirects {
            return Err(Failure::NotAllowed(format!(
                "it points elsewhere more than {} times",
                call.redirects
            )));
        }
        step = next;
    }
}

/// One request of a call.
struct Step {
    method: Method,
    url: Url,
    body: String,
}

impl Step {
    /// Where an answer points, if it does.
    fn next(
        &self,
        answer: &Response<Incoming>,
        prepared: &Prepared,
        rules: &Rules,
    ) -> Result<Option<Self>, Failure> {
        let keeps_method = match answer.status().as_u16() {
            301 | 302 => self.method == Method::Get,
            303 => false,
            307 | 308 => true,
            _ => return Ok(None),
        };
        let Some(location) = answer.headers().get(LOCATION) else {
            return Ok(None);
        };
        let url = location
            .to_str()
            .ok()
            .and_then(|to| self.url.follow(to).ok());
        let not_allowed = |why: String| Failure::NotAllowed(format!("it points elsewhere: {why}"));
        let url = url.ok_or_else(|| not_allowed("to something that is no address".to_owned()))?;
        if self.url.scheme == Scheme::Https && url.scheme == Scheme::Http {
            return Err(not_allowed(format!("to {} without TLS", url.host.bare())));
        }
        if !url.is_same_origin(&prepared.url) && prepared.redaction.is_in(&url.to_string()) {
            return Err(not_allowed("with a secret in the address".to_owned()));
        }
        let checked = rules.check_host(&url.host);
        checked.map_err(|why| not_allowed(why.to_string()))?;
        Ok(Some(Self {
            method: if keeps_method {
                self.method
            } else {
                Method::Get
            },
            url,
            body: if keeps_method {
                self.body.clone()
            } else {
                String::new()
            },
        }))
    }
}

fn request(
    step: &Step,
    prepared: &Prepared,
    is_ours: bool,
) -> Result<Request<Full<Bytes>>, Failure> {
    let uri = step.url.to_string();
    let body = Full::new(Bytes::from(step.body.clone()));
    let request = Request::builder().method(step.method.as_str()).uri(uri);
    let mut request = request
        .body(body)
        .map_err(|_| Failure::NotAllowed("the request cannot be written".to_owned()))?;
    let headers = request.headers_mut();
    merge(headers, &prepared.headers);
    if is_ours {
        merge(headers, &prepared.private);
    }
    if step.body.is_empty() {
        headers.remove(CONTENT_TYPE);
    }
    Ok(request)
}

fn merge(into: &mut HeaderMap, from: &HeaderMap) {
    for (name, value) in from {
        into.append(name, value.clone());
    }
}

/// Reads as much of an answer as is wanted.
async fn read(call: &Call, prepared: &Prepared, answer: Response<Incoming>) -> Answer {
    let code = answer.status().as_u16();
    let most = match call.wanted {
        // Whatever the body is, it is not waited for.
        Wanted::Status => return call.wanted.read(code, b""),
        Wanted::Text => TEXT + prepared.redaction.longest(),
        Wanted::Number(_) | Wanted::Measured => call.largest,
    };
    let encoding = answer.headers().get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(Failure::Malformed(
            "it is compressed, which it was asked not to be".to_owned(),
        ));
    }
    let is_cut_off = call.wanted == Wanted::Text;
    let too_large = Failure::TooLarge {
        what: "a body",
        most,
    };
    if !is_cut_off && announced(answer.headers()).is_some_and(|length| length > most) {
        return Err(too_large);
    }
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        bytes.extend_from_slice(&data);
        if bytes.len() > most {
            if is_cut_off {
                break;
            }
            return Err(too_large);
        }
    }
    call.wanted.read(code, &prepared.redaction.of_bytes(bytes))
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// An answer that ends badly.
fn broken(error: &hyper::Error) -> Failure {
    if error.is_parse_too_large() {
        return head_too_large();
    }
    Failure::Malformed("it ends before it is whole, or is no HTTP".to_owned())
}

fn head_too_large() -> Failure {
    Failure::TooLarge {
        what: "a head",
        most: LARGEST_HEAD,
    }
}

/// Why there is no answer: what stands behind an error is looked for, its text is not.
fn failure(url: &Url, error: &(dyn Error + 'static)) -> Failure {
    let host = url.host.bare();
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(no_connection) = cause.downcast_ref::<NoConnection>() {
            return match no_connection {
                NoConnection::Forbidden(why) => Failure::NotAllowed(why.to_string()),
                NoConnection::Unreachable(why) => Failure::Unreachable(why.clone()),
            };
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            if error.is_parse_too_large() {
                return head_too_large();
            }
            if error.is_parse() {
                return Failure::Malformed(format!("{host} does not speak HTTP/1.1"));
            }
        }
        next = cause.source();
    }
    Failure::Unreachable(format!("{host} hung up"))
}
