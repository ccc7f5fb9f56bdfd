//! One call, to its end: the request, where answers point instead, and what is read of the last one.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use slipway_kernel::address::{Rules, Scheme, Url};
use slipway_kernel::question::{Answer, Call, Failure, Method, Wanted};

use super::prepared::Prepared;
use super::transport::{Body, Transport};

/// How much of a text is wanted, and one byte to know that there is more.
const TEXT: usize = 4 * 1024 + 1;

/// Makes a call. Whoever drops it gives it up.
pub(super) async fn make(
    call: &Call,
    prepared: &Prepared,
    transport: &dyn Transport,
    rules: &Rules,
) -> Answer {
    let mut step = Step {
        method: call.method,
        url: prepared.url.clone(),
        body: call.body.clone(),
    };
    let mut followed = 0;
    loop {
        let is_ours = step.url.is_same_origin(&prepared.url);
        let request = request(&step, prepared, is_ours)?;
        let answer = transport.send(request, prepared.trust.as_ref()).await?;
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
        answer: &Response<Body>,
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

fn request(step: &Step, prepared: &Prepared, is_ours: bool) -> Result<Request<Bytes>, Failure> {
    let uri = step.url.to_string();
    let body = Bytes::from(step.body.clone());
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
async fn read(call: &Call, prepared: &Prepared, answer: Response<Body>) -> Answer {
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
        let Ok(data) = frame?.into_data() else {
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
