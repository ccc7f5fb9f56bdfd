//! The pods that a downscale takes away, and how they are told.
//!
//! Addresses are made of names that the API accepts as such, and lead into the cluster's own domain: nothing in a review
//! can send a request elsewhere.

use std::time::Duration;

use serde_json::Value;
use slipway_api::purpose::zones as purpose;
use slipway_kernel::Purpose;
use slipway_kernel::admission::Review;
use slipway_kernel::fact::{Answer, Question};

use crate::admit::inquiry::{Inquiry, Pending};
use crate::admit::replicas::{Downscale, is_name};
use crate::group::pod_host;

/// How many pods are asked at once.
const AT_ONCE: usize = 32;

/// How many pods one downscale takes away at most.
const MOST_PODS: i64 = 10_000;

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
        && down.from - to <= MOST_PODS;
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
            inquiry.question(purpose, index, method, url.clone(), Value::Null, timeout)
        })
        .collect()
}

/// Asks all pods to prepare; false as soon as one has not.
pub(super) fn prepare(
    inquiry: &mut Inquiry<'_>,
    addresses: &[String],
    timeout: Duration,
) -> Result<bool, Pending> {
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
    let mut told = all.iter().filter_map(|question| inquiry.told(&question.id));
    if told.any(|answer| !is_well(answer)) {
        return Ok(false);
    }
    let mut open = 0;
    for question in all {
        match inquiry.ask(question) {
            Ok(answer) if is_well(&answer) => {}
            Ok(_) => return Ok(false),
            Err(Pending) => open += 1,
        }
        if open == AT_ONCE {
            break;
        }
    }
    if open > 0 { Err(Pending) } else { Ok(true) }
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
