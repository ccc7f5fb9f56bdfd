//! Claims: while a version is analysed or takes over, no other capability disrupts its workload, and the other way round.
//!
//! A claim is put on a workload in the same write by which it is disrupted, and is void after the time that this may take; as long
//! as the run goes on it is renewed, however long gates, pauses and people take. It goes with the write that puts the workload
//! away, and that of the copy when the run is over; and with a Canary that is deleted meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::canary::Phase;
use slipway_api::flagger::SCALE_TO_ZERO;
use slipway_api::names::DISRUPTION_CLAIM;
use slipway_api::purpose::canary as purpose;
use slipway_kernel::basis::basis;
use slipway_kernel::claim::Claim;
use slipway_kernel::fields::{integer, strings};
use slipway_kernel::instant::later;
use slipway_kernel::{Action, Key, Plan, Stores};

use crate::NAME;
use crate::engine::{Rules, Run, Strategy};
use crate::kinds;
use crate::observe::{World, abandoned};
use crate::render;
use crate::router::Write;
use crate::standalone::Names;
use crate::standalone::acts::workload;
use crate::standalone::adopt::{self, Scene};
use crate::standalone::leave::Leave;
use crate::standalone::readiness::Workload;
use crate::standalone::scene::Stand;

/// No claim is for longer: whoever is gone for good keeps nobody away for ever.
const MOST: Duration = Duration::from_hours(24);

/// For how long a claim is renewed where nobody can say how long a run may take.
const UNKNOWN: Duration = Duration::from_hours(1);

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
    let claim = claim(world, stand.kind, &name)?;
    (claim.holder != NAME && claim.until > now).then_some(claim)
}

/// The last claim on a workload, whether it still holds or not.
fn claim(world: &World, kind: Workload, name: &str) -> Option<Claim> {
    read(world.objects.get(&workload(kind).kind, name)?)
}

/// The same of a workload as it was seen.
pub(crate) fn read(object: &Value) -> Option<Claim> {
    let annotations = strings(object, "/metadata/annotations");
    Claim::read(annotations.get(DISRUPTION_CLAIM)?, Timestamp::MIN)
}

/// A run, as far as claims are about it.
#[derive(Debug, Clone)]
pub struct Held {
    kind: Workload,
    names: Names,
    /// Whether it goes on.
    is_running: bool,
    /// How many replicas the new version has.
    size: u32,
    /// How long a claim is for.
    whole: Duration,
}

impl Held {
    /// Of a Canary that is followed.
    pub fn followed(stand: &Stand) -> Self {
        Self {
            kind: stand.kind,
            names: stand.names.clone(),
            is_running: goes_on(&stand.run),
            size: stand.sight.target.size,
            whole: longest(&stand.asked.rules),
        }
    }

    /// Of one that cannot be, and is left as it is meanwhile.
    pub fn left(leave: &Leave) -> Self {
        Self {
            kind: leave.kind,
            names: leave.names.clone(),
            is_running: goes_on(&leave.run),
            size: leave.target.size,
            whole: UNKNOWN,
        }
    }

    /// Of one that cannot be read, by what its status says; none if it is in the middle of nothing: then another one may be about
    /// its workload.
    pub fn unread(world: &World) -> Option<Self> {
        let (status, places) = world.canary.body().unread()?;
        let kind = places.workload();
        let names = places.names();
        let target = world.objects.get(&workload(kind).kind, &names.target);
        let held = Self {
            kind,
            size: target.map(|target| kind.size(target)).unwrap_or_default(),
            is_running: goes_on(&adopt::run(&status, &Scene::default())),
            names,
            whole: UNKNOWN,
        };
        held.is_running.then_some(held)
    }

    /// Whether a workload is disrupted for as long as the run goes on.
    fn disrupts(&self, name: &str) -> bool {
        let is_away = *name == self.names.target && self.size == 0;
        self.is_running && !is_away
    }
}

/// Whether a run disrupts. One that failed does until its version is put away.
fn goes_on(run: &Run) -> bool {
    run.phase.is_running() || (run.phase == Phase::Failed && run.draining)
}

/// Keeps our claims, besides what else a plan writes: those of a run that goes on last longer, the others end.
pub fn keep(world: &World, held: &Held, plan: &mut Plan, now: Timestamp) {
    let kind = workload(held.kind);
    for name in [&held.names.target, &held.names.primary] {
        let of = render::object(world, kind.clone(), name);
        let mut written = plan.steps.iter().filter_map(|step| step.action.object());
        let known = claim(world, held.kind, name).filter(|claim| claim.holder == NAME);
        let Some(until) = known.map(|claim| claim.until) else {
            continue;
        };
        if written.any(|object| *object == of) {
            // It comes with that, or in the next plan.
            continue;
        }
        let value = if held.disrupts(name) {
            // In the middle of its time: nobody who is away for a while loses it.
            let due = until.checked_sub(held.whole / 2).ok();
            if let Some(due) = due.filter(|due| *due > now) {
                plan.wake(due);
                continue;
            }
            ours_until(now, held.whole)
        } else {
            Some(Value::Null).filter(|_| until > now)
        };
        let write = value.map(|value| {
            let mut body = json!({});
            annotate(&mut body, value);
            let (kind, name) = (kind.clone(), name.clone());
            Write::Patch { kind, name, body }
        });
        let action = write.and_then(|write| render::write(world, write, purpose::CLAIM));
        if let Some(action) = action {
            plan.act(action);
        }
    }
}

/// Ends our claim on the workload of a Canary that goes, together with what gives it back.
pub fn give_up(world: &World, leave: &Leave, plan: &mut Plan, now: Timestamp) {
    end(world, (leave.kind, &leave.names.target), plan, now);
}

/// Ends our claims on the workload of a run that is over, and on its copy, where another one is named since; gives whether there
/// are any. Where the API refuses that, they end by themselves, and nobody is kept waiting.
pub fn end_former(
    world: &World,
    (kind, names): &(Workload, Names),
    plan: &mut Plan,
    now: Timestamp,
) -> bool {
    for name in [&names.target, &names.primary] {
        let object = render::object(world, workload(*kind), name);
        if !world.refusals.contains_key(&object) {
            end(world, (*kind, name), plan, now);
        }
    }
    !plan.steps.is_empty()
}

/// Ends our claim on a workload, where it holds.
fn end(world: &World, (kind, name): (Workload, &str), plan: &mut Plan, now: Timestamp) {
    let known = claim(world, kind, name);
    if known.is_none_or(|claim| claim.holder != NAME || claim.until <= now) {
        return;
    }
    let write = Write::Patch {
        kind: workload(kind),
        name: name.to_owned(),
        body: ended(),
    };
    if let Some(action) = render::write(world, write, purpose::CLAIM) {
        plan.act(action);
    }
}

/// Ends our claims on workloads of a namespace that no Canary is about any more: whoever is deleted in the middle of a run, and has
/// nothing to give back, is gone before anybody can do it. None if there are none, or this Canary is there.
pub fn end_abandoned(stores: &Stores, key: &Key, now: Timestamp) -> Option<Plan> {
    let mut plan = Plan {
        basis: basis(stores, &key.cluster),
        ..Plan::default()
    };
    for (target, object) in abandoned(stores, key) {
        let claim = read(&object).filter(|claim| claim.holder == NAME && claim.until > now);
        if claim.is_some() {
            plan.act(Action::Patch {
                target,
                purpose: purpose::CLAIM,
                body: ended(),
            });
        }
    }
    (!plan.steps.is_empty()).then_some(plan)
}

/// A patch by which a claim goes.
fn ended() -> Value {
    let mut body = json!({});
    annotate(&mut body, Value::Null);
    body
}

/// A claim of ours for so long.
fn ours_until(now: Timestamp, time: Duration) -> Option<Value> {
    let holder = NAME.to_owned();
    later(now, time).map(|until| json!(Claim { holder, until }.render()))
}

/// Adds our claim to a write that disrupts a workload, or takes it away with one that ends that.
pub fn mark(world: &World, stand: &Stand, write: &mut Write, now: Timestamp) {
    let Some((name, disruption)) = disruption(write) else {
        return;
    };
    let value = match disruption {
        Disruption::Begins => {
            let Some(value) = ours_until(now, longest(&stand.asked.rules)) else {
                return;
            };
            value
        }
        Disruption::Ends => {
            let known = claim(world, stand.kind, &name);
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

/// How long a run takes at the longest while nobody has to be waited for; then it is renewed.
fn longest(rules: &Rules) -> Duration {
    let checks = match &rules.strategy {
        Strategy::Weights(steps) => u32::try_from(steps.len()).unwrap_or(u32::MAX),
        Strategy::Matching(iterations) | Strategy::Switch(iterations) => *iterations,
    };
    let checks = rules.interval.saturating_mul(checks.saturating_add(2));
    checks.saturating_add(rules.deadline).min(MOST)
}
