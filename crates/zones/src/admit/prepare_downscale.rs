//! `/admission/prepare-downscale`: the pods that a downscale takes away are told first, and the zones of a group go one
//! after the other.
//!
//! It promises that a downscale of a labelled `StatefulSet` is let through only while it holds the lock of its group,
//! after the other zones were found whole and rested, and after every pod that goes has said yes; and that otherwise
//! every pod that may have been told is told that it stays, before the lock is given back or by what is to be undone.
//! Until it is known that pods have to be told, errors let the change pass with a warning; from then on they stop it.
//! A dry run asks and writes nothing.
//!
//! The review says how many replicas are wanted. Everything else (whether pods are told, which and where, the group, how
//! many there are now) is read from the API: whoever reaches the port and makes a review up reaches no pod by it that the
//! zone itself would not have told.

mod case;
mod ledger;
mod lock;
mod others;
mod pods;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::zones;
use slipway_kernel::admission::{Admission, Admit, Expiry, Remarks, Review, Verdict};
use slipway_kernel::identity::kinds;
use slipway_kernel::parts::Parts;
use slipway_kernel::{Facts, Stores};

use super::inquiry::{Decision, Inquiry, Pending, expiry};
use super::no_downscale::refusal;
use super::replicas::{Change, Downscale, change, marked, parent};
use case::{Case, Rejection};
use pods::Endpoint;

/// The webhook.
#[derive(Debug, Clone)]
pub struct PrepareDownscale {
    /// The `ConfigMap` of the zone tracker; without, times are kept in annotations.
    pub tracker: Option<String>,
    /// The DNS domain of the cluster.
    pub cluster_domain: String,
    /// How long a pod may take to answer.
    pub pod_timeout: Duration,
}

impl Default for PrepareDownscale {
    fn default() -> Self {
        Self {
            tracker: None,
            cluster_domain: "cluster.local.".to_owned(),
            pod_timeout: Duration::from_secs(5),
        }
    }
}

impl PrepareDownscale {
    fn decide(
        &self,
        review: &Review,
        (stores, facts): (&Stores, &Facts),
        inquiry: &mut Inquiry<'_>,
        now: Timestamp,
    ) -> Result<Decision, Pending> {
        if review.is_dry_run {
            return Ok(Verdict::allowed().into());
        }
        let down = match change(review, false) {
            Change::Settled(verdict) | Change::Unclear(verdict) => return Ok(verdict.into()),
            Change::Down(down) => down,
        };
        let denied = |why: &str| {
            let message = format!("{} because {why}", refusal(review, down));
            Decision::from(Verdict::denied(message))
        };
        // What the review says of an object can keep it from being looked at, and no more.
        if !down.is_scale {
            if let Some(other) = other_kind(&review.old) {
                return Ok(other.into());
            }
            if !is_labelled(&review.old) {
                return Ok(Verdict::allowed().into());
            }
        }
        let set = match parent(review, inquiry)? {
            Ok(object) => object,
            Err(failure) if down.is_scale => {
                let warning = format!("{failure}, allowing the change");
                return Ok(Verdict::warned(warning).into());
            }
            Err(failure) => {
                let why = format!("the statefulset could not be read: {failure}");
                return Ok(denied(&why));
            }
        };
        let set = &set;
        if let Some(other) = other_kind(set) {
            return Ok(other.into());
        }
        if !is_labelled(set) {
            return Ok(Verdict::allowed().into());
        }
        if !is_same(set, review, down) {
            return Ok(denied("the statefulset has changed meanwhile; try again."));
        }
        let endpoint = match endpoint(set) {
            Ok(endpoint) => endpoint,
            Err(why) => return Ok(denied(&why)),
        };
        let Some(addresses) = pods::addresses(review, down, &endpoint, &self.cluster_domain) else {
            let why = "they cannot be addressed: look at the port, the path and serviceName";
            return Ok(denied(&format!("{} {why}", pods::UNPREPARED)));
        };
        let group = marked(set, "labels", zones::ROLLOUT_GROUP).filter(|group| !group.is_empty());
        let case = Case {
            hook: self,
            review,
            stores,
            facts,
            now,
            down,
            group,
            last: marked(set, "annotations", zones::LAST_DOWNSCALE),
            addresses,
        };
        case.decide(inquiry)
    }
}

/// What is said to the downscale of something that is no `StatefulSet`.
fn other_kind(object: &Value) -> Option<Verdict> {
    let kind = object.get("kind").and_then(Value::as_str);
    let kind = kind.unwrap_or_default();
    let warning = || Verdict::warned(format!("unsupported type {kind}, allowing the change"));
    (kind != kinds::STATEFUL_SET.kind).then(warning)
}

fn is_labelled(set: &Value) -> bool {
    marked(set, "labels", zones::PREPARE_DOWNSCALE) == Some("true")
}

/// Whether the object that a review is about is the one that there is, with as many replicas.
fn is_same(set: &Value, review: &Review, down: Downscale) -> bool {
    let uid = |object: &Value| object.pointer("/metadata/uid").cloned();
    let replicas = set.pointer("/spec/replicas").and_then(Value::as_i64);
    uid(set).is_some_and(|own| uid(&review.old) == Some(own)) && replicas.unwrap_or(1) == down.from
}

/// Where the pods of a `StatefulSet` are told.
fn endpoint(set: &Value) -> Result<Endpoint<'_>, Rejection> {
    let filled = |key: &str| {
        let value = marked(set, "annotations", key).filter(|value| !value.is_empty());
        value.ok_or_else(|| format!("the {key} annotation is not set or empty."))
    };
    let port = filled(zones::PREPARE_DOWNSCALE_PORT)?;
    let path = filled(zones::PREPARE_DOWNSCALE_PATH)?;
    let spec = |field: &str| set.get("spec").and_then(|spec| spec.get(field));
    let service = spec("serviceName").and_then(Value::as_str);
    let service = service.filter(|service| !service.is_empty());
    let start = spec("ordinals").and_then(|ordinals| ordinals.get("start")?.as_i64());
    Ok(Endpoint {
        service: service.ok_or("the serviceName is not set or empty.")?,
        port,
        path,
        start: start.unwrap_or_default(),
    })
}

impl Admit for PrepareDownscale {
    fn path(&self) -> &'static str {
        "/admission/prepare-downscale"
    }

    fn judge_name(&self) -> &'static str {
        "admission.PrepareDownscale()"
    }

    fn reads(&self) -> Parts {
        Parts::NONE
    }

    fn judge(
        &self,
        review: &Review,
        stores: &Stores,
        facts: &Facts,
        now: Timestamp,
    ) -> (Admission, Remarks) {
        let mut inquiry = Inquiry::open(review, facts);
        let decided = self.decide(review, (stores, facts), &mut inquiry, now);
        inquiry.admission(decided)
    }

    fn expire(&self, review: &Review, stores: &Stores, facts: &Facts, now: Timestamp) -> Expiry {
        let mut inquiry = Inquiry::over(review, facts);
        let decided = self.decide(review, (stores, facts), &mut inquiry, now);
        expiry(decided, Verdict::denied("context deadline exceeded"))
    }
}
