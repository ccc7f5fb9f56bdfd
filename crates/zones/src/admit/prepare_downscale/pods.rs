//! The pods that a downscale takes away, and how they are told.
//!
//! Addresses are made of names that the API accepts as such, and lead into the cluster's own domain: nothing in a review
//! can send a request elsewhere.

use std::time::Duration;

use slipway_api::purpose::zones as purpose;
use slipway_kernel::Purpose;
use slipway_kernel::admission::Review;
use slipway_kernel::fact::{Answer, Question, Request};
use slipway_kernel::question::Failure;

use super::case::Rejection;
use crate::admit::inquiry::{Inquiry, Pending};
use crate::admit::replicas::Downscale;
use crate::grammar::is_name;
use crate::group::pod_host;

/// How many pods are asked at once.
const AT_ONCE: usize = 32;

/// How every refusal begins that is for a pod's sake: the original says nothing else.
pub(super) const UNPREPARED: &str = "one or more pods failed to prepare for shutdown.";

/// How many pods a refusal names.
const MAX_NAMED: usize = 3;

/// How many characters a cause may have: it is passed on to whoever scales.
const MAX_CAUSE: usize = 200;

/// How many pods one downscale takes away at most.
const MAX_PODS: i64 = 10_000;

/// Where a pod's endpoint is, besides its own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint<'a> {
    pub(super) service: &'a str,
    pub(super) port: &'a str,
    pub(super) path: &'a str,
    /// The ordinal of the first pod.
    pub(super) start: i64,
}

/// The addresses of the pods that go, the last one first; none if they cannot be addressed.
pub(super) fn addresses(
    review: &Review,
    down: Downscale,
    endpoint: &Endpoint<'_>,
    domain: &str,
) -> Option<Vec<String>> {
    let Endpoint {
        service,
        port,
        path,
        start,
    } = endpoint;
    let Review {
        name, namespace, ..
    } = review;
    let to = down.to.max(0);
    let is_sound = [name.as_str(), namespace.as_str(), service]
        .into_iter()
        .all(is_name)
        && port.parse::<u16>().is_ok_and(|port| port > 0)
        && path.chars().all(|c| c.is_ascii_graphic())
        && down.from - to <= MAX_PODS;
    is_sound.then(|| {
        (to..down.from)
            .rev()
            .map(|index| start.saturating_add(index))
            .map(|ordinal| {
                let host = pod_host(name, ordinal, service, namespace, domain);
                format!("http://{host}:{port}/{}", path.trim_start_matches('/'))
            })
            .collect()
    })
}

fn questions<'q>(
    inquiry: &'q Inquiry<'_>,
    purpose: Purpose,
    method: &'static str,
    addresses: &'q [String],
    timeout: Duration,
) -> Vec<Question> {
    (0_u32..)
        .zip(addresses)
        .map(|(index, url)| {
            let url = url.clone();
            inquiry.question(purpose, index, Request::Pod { method, url }, timeout)
        })
        .collect()
}

/// Asks all pods to prepare; as soon as one has not, which ones have not, and why.
pub(super) fn prepare(
    inquiry: &mut Inquiry<'_>,
    set: &str,
    addresses: &[String],
    timeout: Duration,
) -> Result<Result<(), Rejection>, Pending> {
    let all = questions(inquiry, purpose::PREPARE, "POST", addresses, timeout);
    let is_well = |answer: &Answer| {
        matches!(
            answer,
            Answer::Said {
                code: 200..=299,
                ..
            }
        )
    };
    let told = all
        .iter()
        .zip(addresses)
        .filter_map(|(question, url)| Some((url.as_str(), inquiry.told(&question.id)?)));
    let failed: Vec<_> = told.filter(|(_, answer)| !is_well(answer)).collect();
    if !failed.is_empty() {
        return Ok(Err(unprepared(set, &failed)));
    }
    let mut open = 0;
    for (question, url) in all.into_iter().zip(addresses) {
        match inquiry.ask(question) {
            Ok(answer) if is_well(&answer) => {}
            Ok(answer) => return Ok(Err(unprepared(set, &[(url, &answer)]))),
            Err(Pending) => open += 1,
        }
        if open == AT_ONCE {
            break;
        }
    }
    if open > 0 { Err(Pending) } else { Ok(Ok(())) }
}

/// The original's sentence, then the pods and what came of asking them.
fn unprepared(set: &str, failed: &[(&str, &Answer)]) -> Rejection {
    let mut parts: Vec<String> = failed
        .iter()
        .take(MAX_NAMED)
        .map(|(url, answer)| format!("{}: {}", pod(url, set), cause(answer)))
        .collect();
    if let Some(more) = failed.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        parts.push(format!("and {more} more"));
    }
    format!("{UNPREPARED} {}", parts.join("; "))
}

/// The pod that an address is of. Names of sets may have dots in them.
fn pod<'u>(url: &'u str, set: &str) -> &'u str {
    let host = url.strip_prefix("http://").unwrap_or(url);
    let ordinal = host.get(set.len()..).unwrap_or_default();
    let end = ordinal.find('.').map(|dot| set.len() + dot);
    end.and_then(|end| host.get(..end)).unwrap_or(host)
}

/// Why a pod counts as not prepared. What it wrote is not passed on.
fn cause(answer: &Answer) -> String {
    let plain = |why: &str| {
        let plain = why.chars().map(|c| if c.is_control() { ' ' } else { c });
        plain.take(MAX_CAUSE).collect()
    };
    match answer {
        Answer::Said { code, .. } => format!("answered {code}"),
        Answer::Read(reply) => format!("answered {}", reply.code),
        Answer::Failed(Failure::Timeout(_)) => "no answer in time".to_owned(),
        Answer::Failed(failure) => plain(&failure.why()),
        Answer::NoRight(why) => plain(why),
    }
}

/// Tells all pods that they stay. What there is no time for any more is given back, to be done afterwards.
pub(super) fn undo(
    inquiry: &mut Inquiry<'_>,
    addresses: &[String],
    timeout: Duration,
) -> Result<Vec<Question>, Pending> {
    let all = questions(inquiry, purpose::UNDO, "DELETE", addresses, timeout);
    let mut open = 0;
    let mut left = Vec::new();
    for question in all {
        match inquiry.attempt(question) {
            Ok(late) => left.extend(late),
            Err(Pending) => open += 1,
        }
        if open == AT_ONCE {
            break;
        }
    }
    if open > 0 { Err(Pending) } else { Ok(left) }
}
