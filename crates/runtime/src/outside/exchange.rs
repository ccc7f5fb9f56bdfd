//! One call, to its end: the request, where answers point instead, and what is read of the last one.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use slipway_kernel::address::{Rules, Scheme, Url};
use slipway_kernel::question::{Answer, Call, Failure, Method, Value, Wanted};
use tokio::time::Instant;

use super::Asked;
use super::prepared::Prepared;
use super::signature::SIGNATURE;
use super::transport::{Body, Manner, Transport};

/// How much of a text is wanted, and one byte to know that there is more.
const TEXT: usize = 4 * 1024 + 1;

/// By whom and under which rules requests are carried, and until when.
pub(super) struct Way<'a> {
    pub(super) transport: &'a dyn Transport,
    pub(super) rules: &'a Rules,
    pub(super) connecting: Duration,
    pub(super) deadline: Instant,
}

impl Way<'_> {
    /// No more than half of what is left goes to connecting: whoever is not there is told from who is slow.
    fn manner(&self, asked: &Asked, prepared: &Prepared) -> Manner {
        let left = self.deadline.saturating_duration_since(Instant::now());
        Manner {
            trust: prepared.trust.clone(),
            for_others: !asked.key.cluster.is_local(),
            connecting: self.connecting.min(left / 2),
        }
    }
}

/// Makes a call, and counts where it was sent on. Whoever drops it gives it up.
pub(super) async fn make(
    asked: &Asked,
    prepared: &Prepared,
    way: &Way<'_>,
    followed: &mut u8,
) -> Answer {
    let call = &asked.call;
    let mut step = Step {
        method: call.method,
        url: prepared.url.clone(),
        body: call.body.clone(),
        is_whole: true,
    };
    loop {
        let is_ours = step.url.is_same_origin(&prepared.url);
        let request = request(&step, prepared, is_ours)?;
        let manner = way.manner(asked, prepared);
        let answer = way.transport.send(request, &manner).await?;
        if call.redirects == 0 {
            return read(call, prepared, answer).await;
        }
        let Some(next) = step.next(&answer, prepared, way.rules)? else {
            return read(call, prepared, answer).await;
        };
        *followed = followed.saturating_add(1);
        if *followed > call.redirects {
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
    /// Whether it says what was to be said, and may be signed.
    is_whole: bool,
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
        if keeps_method && !self.body.is_empty() && !url.is_same_origin(&prepared.url) {
            // What people have written into it is meant for whom they named.
            let to = url.host.bare();
            return Err(not_allowed(format!(
                "to {to} with the body, which is not for others"
            )));
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
            is_whole: self.is_whole && (keeps_method || self.body.is_empty()),
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
    let request = Request::builder().method(step.method.as_str());
    let cannot = || Failure::NotAllowed("the request cannot be written".to_owned());
    let mut request = request.uri(uri.as_str()).body(body).map_err(|_| cannot())?;
    let headers = request.headers_mut();
    merge(headers, &prepared.headers);
    if is_ours {
        merge(headers, &prepared.private);
    }
    if step.body.is_empty() {
        headers.remove(CONTENT_TYPE);
    }
    // What was signed is this request: where an answer points to is another one.
    if let Some(signer) = prepared
        .signer
        .as_ref()
        .filter(|_| is_ours && step.is_whole)
    {
        let signature = signer.sign(step.method.as_str(), &uri, &step.body);
        let signature = HeaderValue::from_str(&signature).map_err(|_| cannot())?;
        headers.insert(SIGNATURE, signature);
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
                return cut(call, prepared, code, &bytes);
            }
            return Err(too_large);
        }
    }
    let bytes = prepared.redaction.of_bytes(&bytes);
    call.wanted.read(code, &bytes)
}

/// Reads the beginning of an answer of which there is more.
fn cut(call: &Call, prepared: &Prepared, code: u16, bytes: &[u8]) -> Answer {
    let bytes = prepared.redaction.of_beginning(bytes);
    let mut reply = call.wanted.read(code, &bytes)?;
    if let Value::Text(text) = &mut reply.value {
        // What stands in the place of a secret may be shorter.
        text.is_cut = true;
    }
    Ok(reply)
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
