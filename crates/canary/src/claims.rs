//! Claims: while a version is analysed or takes over, no other capability disrupts its workload, and the other way round.
//!
//! A claim is put on a workload in the same write by which it is disrupted, and is void after the time that this may take. It
//! goes with the write that puts the workload away.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::flagger::SCALE_TO_ZERO;
use slipway_api::names::DISRUPTION_CLAIM;
use slipway_kernel::claim::Claim;
use slipway_kernel::fields::{integer, strings};
use slipway_kernel::instant::later;

use crate::NAME;
use crate::engine::{Rules, Strategy};
use crate::kinds;
use crate::observe::World;
use crate::router::Write;
use crate::standalone::scene::Stand;

/// No claim is for longer: whoever is gone for good keeps nobody away for ever.
const MOST: Duration = Duration::from_hours(24);

/// What a write does to a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disruption {
    /// Its pods come, or become others.
    Begins,
    /// Its pods go.
    Ends,
}

/// What a write does to a workload that is there; none if it is about something else.
fn disruption(write: &Write) -> Option<(String, Disruption)> {
    let Write::Patch { kind, name, body } = write else {
        return None;
    };
    if ![kinds::DEPLOYMENT, kinds::DAEMON_SET].contains(kind) {
        return None;
    }
    let away = body.pointer("/spec/template/spec/nodeSelector");
    let away = away.and_then(|selector| selector.get(SCALE_TO_ZERO)?.as_str());
    let is_put_away = integer(body, "/spec/replicas") == Some(0) || away.is_some();
    let disruption = if is_put_away {
        Disruption::Ends
    } else {
        Disruption::Begins
    };
    Some((name.clone(), disruption))
}

/// The claim of another capability that a write has to wait for. What puts a workload away waits for nobody.
pub fn of_other(world: &World, stand: &Stand, write: &Write, now: Timestamp) -> Option<Claim> {
    let (name, Disruption::Begins) = disruption(write)? else {
        return None;
    };
    claim(world, stand, &name, now).filter(|claim| claim.holder != NAME)
}

fn claim(world: &World, stand: &Stand, name: &str, now: Timestamp) -> Option<Claim> {
    let kind = crate::standalone::acts::workload(stand.kind).kind;
    let object = world.objects.get(&kind, name)?;
    let annotations = strings(object, "/metadata/annotations");
    Claim::read(annotations.get(DISRUPTION_CLAIM)?, now)
}

/// Adds our claim to a write that disrupts a workload, or takes it away with one that ends that.
pub fn mark(world: &World, stand: &Stand, write: &mut Write, now: Timestamp) {
    let Some((name, disruption)) = disruption(write) else {
        return;
    };
    let value = match disruption {
        Disruption::Begins => {
            let Some(until) = later(now, longest(&stand.asked.rules)) else {
                return;
            };
            let holder = NAME.to_owned();
            json!(Claim { holder, until }.render())
        }
        Disruption::Ends => {
            let known = claim(world, stand, &name, now);
            if known.is_none_or(|claim| claim.holder != NAME) {
                return;
            }
            Value::Null
        }
    };
    if let Write::Patch { body, .. } = write {
        annotate(body, value);
    }
}

/// Puts an annotation into a patch; null, by which it goes, as well.
fn annotate(body: &mut Value, value: Value) {
    let mut place = body;
    for field in ["metadata", "annotations"] {
        let Some(fields) = place.as_object_mut() else {
            return;
        };
        place = fields.entry(field).or_insert_with(|| json!({}));
    }
    if let Some(annotations) = place.as_object_mut() {
        annotations.insert(DISRUPTION_CLAIM.to_owned(), value);
    }
}

/// How long a run takes at the longest while nobody has to be waited for.
fn longest(rules: &Rules) -> Duration {
    let checks = match &rules.strategy {
        Strategy::Weights(steps) => u32::try_from(steps.len()).unwrap_or(u32::MAX),
        Strategy::Matching(iterations) | Strategy::Switch(iterations) => *iterations,
    };
    let checks = rules.interval.saturating_mul(checks.saturating_add(2));
    checks.saturating_add(rules.deadline).min(MOST)
}
