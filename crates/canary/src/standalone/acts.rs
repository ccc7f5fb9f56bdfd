//! What the engine wants done, as writes of objects.
//!
//! Nothing is decided here but an order in which each write can be the last: configs are copied before the copy of the
//! workload uses them, the apex turns to the copy when that is ready, and whatever is as it should be is not written.

use serde_json::Value;
use slipway_api::canary::Phase;
use slipway_kernel::Kind;

use super::configs::{self, Copy};
use super::leave::{Leave, leave};
use super::primary;
use super::readiness::Workload;
use super::scene::{Obstacle, Seen, Stand, is_there};
use super::{scaler, services};
use crate::engine::{Deed, Deeds, Revision, Weights};
use crate::kinds::{self, AUTOSCALER, SERVICE};
use crate::places::Places;
use crate::reasons::Reason;
use crate::router::{self, Ensured, Write};

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// A write.
    Write(Write),
    /// A `ConfigMap` or Secret is to be copied, with all that is in it, and owned by the Canary as well.
    Copy(Copy),
}

/// What is to be done now, and what stands in the way of the rest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Acts {
    /// What, in this order.
    pub list: Vec<Act>,
    /// What stands in the way.
    pub obstacles: Vec<Obstacle>,
}

impl Acts {
    /// Whether an object is written already: each is written once, from the version that was seen.
    fn has(&self, object: (&Kind, &str)) -> bool {
        let mut all = self.list.iter();
        all.any(|act| matches!(act, Act::Write(write) if write.object() == object))
    }

    fn write(&mut self, kind: Kind, name: &str, body: Value, is_ours: bool) {
        let name = name.to_owned();
        self.list.push(Act::Write(if is_ours {
            Write::Apply { kind, name, body }
        } else {
            Write::Patch { kind, name, body }
        }));
    }
}

/// Makes acts of deeds. The run must have been written.
pub fn acts(seen: &Seen<'_>, stand: &Stand, deeds: &Deeds) -> Acts {
    let mut acts = Acts::default();
    let is_over = matches!(stand.run.phase, Phase::Terminating | Phase::Terminated);
    if stand.asked.rules.suspend {
        let leads = leave(seen).and_then(|leave| lead(seen, &leave));
        acts.list.extend(leads.map(Act::Write));
    }
    if stand.asked.rules.suspend || is_over {
        return acts;
    }
    let kind = Places::kind(seen.canary);
    let target = seen.objects.get(kind, &stand.names.target);
    if let Some(target) = target {
        side_services(seen, stand, target, &mut acts);
    }
    for deed in &deeds.list {
        if let Deed::Template(revision) = deed {
            template(seen, stand, target, revision, &mut acts);
        }
    }
    lost_copies(seen, stand, &mut acts);
    copys_scaler(seen, stand, &mut acts);
    if let Some(target) = target.filter(|_| can_turn(stand)) {
        one_service(seen, stand, target, services::Which::Apex, &mut acts);
    }
    routes(seen, stand, deeds, &mut acts);
    sizes(stand, deeds, &mut acts);
    acts
}

/// Whether the apex may lead to the copy: for the first time when that is ready; from then on always, because nobody else is to
/// answer.
fn can_turn(stand: &Stand) -> bool {
    let source = &stand.sight.source;
    if stand.run.phase == Phase::Initializing {
        source.state().is_ready()
    } else {
        is_there(source)
    }
}

fn side_services(seen: &Seen<'_>, stand: &Stand, target: &Value, acts: &mut Acts) {
    one_service(seen, stand, target, services::Which::Canary, acts);
    // One that leads to the copy of another workload leads there until this one's is ready.
    let there = seen.objects.get("Service", &stand.names.apex_primary);
    let is_used = there.is_some_and(|there| router::is_controlled(&stand.route, there));
    if !is_used || can_turn(stand) {
        one_service(seen, stand, target, services::Which::Primary, acts);
    }
}

fn one_service(
    seen: &Seen<'_>,
    stand: &Stand,
    target: &Value,
    which: services::Which,
    acts: &mut Acts,
) {
    let name = services::name(&stand.names, which);
    let there = seen.objects.get("Service", name);
    let wanted = services::service(&stand.services(target), which, there);
    if !there.is_some_and(|there| router::covers(there, &wanted)) {
        let is_ours = there.is_none_or(|there| is_taken(stand, which, there, &wanted));
        if is_ours {
            acts.write(SERVICE, name, wanted, true);
        } else {
            let message = format!(
                "Service {name} is controlled by somebody else; choose another spec.service.name"
            );
            let obstacle = Obstacle::new(Reason::NotOurs, message);
            acts.obstacles.push(obstacle);
        }
    }
}

/// Whether a Service that is there may become what it is to be. The apex is often a person's own. Those of the sides are not:
/// one that nobody controls is taken only where it leads to the same pods already.
fn is_taken(stand: &Stand, which: services::Which, there: &Value, wanted: &Value) -> bool {
    if which == services::Which::Apex || router::is_controlled(&stand.route, there) {
        return router::is_ours(&stand.route, there);
    }
    let selector = |one: &Value| one.pointer("/spec/selector").cloned();
    router::is_ours(&stand.route, there) && selector(there) == selector(wanted)
}

/// The copy becomes of a version: first its configs, then itself.
fn template(
    seen: &Seen<'_>,
    stand: &Stand,
    target: Option<&Value>,
    revision: &Revision,
    acts: &mut Acts,
) {
    let kind = Places::kind(seen.canary);
    let name = &stand.names.primary;
    let there = seen.objects.get(kind, name);
    let is_wanted = stand.sight.target.revision.as_ref() == Some(revision);
    let Some(target) = target.filter(|_| is_wanted) else {
        take_back(seen, stand, (there, revision), acts);
        return;
    };
    if let Some(missing) = &stand.tracked.missing {
        // Without it the copy would be configured with what nobody has analysed.
        let obstacle = Obstacle::new(Reason::ConfigNotFound, missing.to_string());
        acts.obstacles.push(obstacle);
        return;
    }
    let serving = stand.run.serving.as_ref();
    let copies = configs::to_be_copied(&stand.tracked.copies, serving, seen.configs);
    if !copies.is_empty() {
        acts.list.extend(copies.into_iter().map(Act::Copy));
        return;
    }
    let recipe = stand.recipe(seen, target, revision);
    match there {
        None => acts.write(workload(stand.kind), name, primary::make(&recipe), true),
        Some(there) => {
            let body = primary::promote(&recipe, there);
            acts.write(workload(stand.kind), name, body, false);
        }
    }
}

/// The copy becomes of a version again that the workload is not any more: first its configs, then its template. What is lost
/// of the configs does not keep the template away.
fn take_back(
    seen: &Seen<'_>,
    stand: &Stand,
    (there, revision): (Option<&Value>, &Revision),
    acts: &mut Acts,
) {
    let name = &stand.names.primary;
    let (copies, lost) = configs::to_be_given_back(revision, &stand.route.uid, seen.configs);
    for config in lost {
        let (kind, name) = (config.kind.as_str(), config.name);
        let message = format!("what {kind} {name} had in it is not known any more; apply that");
        let obstacle = Obstacle::new(Reason::TemplateLost, message);
        acts.obstacles.push(obstacle);
    }
    if !copies.is_empty() {
        acts.list.extend(copies.into_iter().map(Act::Copy));
        return;
    }
    if there.is_some_and(|there| primary::is_stamped_as(there, revision)) {
        return;
    }
    let Some(body) = there.and_then(|there| primary::give_back(there, revision)) else {
        let message = format!(
            "the template that {name} had is not known; apply that version to the workload"
        );
        let obstacle = Obstacle::new(Reason::TemplateLost, message);
        acts.obstacles.push(obstacle);
        return;
    };
    acts.write(workload(stand.kind), name, body, false);
}

/// Copies of configs that somebody has deleted are made again, while what serves is what the workload is.
fn lost_copies(seen: &Seen<'_>, stand: &Stand, acts: &mut Acts) {
    let (run, sight) = (&stand.run, &stand.sight);
    let is_idle = matches!(run.phase, Phase::Initialized | Phase::Succeeded);
    let serves = run.serving.is_some() && run.serving == sight.target.revision;
    if !is_idle || !serves || sight.source.revision != run.serving {
        return;
    }
    let is_lost = |copy: &&Copy| !seen.configs.contains_key(&copy.copy());
    let lost = stand.tracked.copies.iter().filter(is_lost);
    acts.list.extend(lost.cloned().map(Act::Copy));
}

/// The kind of a workload.
pub(crate) fn workload(kind: Workload) -> Kind {
    match kind {
        Workload::Deployment => kinds::DEPLOYMENT,
        Workload::DaemonSet => kinds::DAEMON_SET,
    }
}

/// The copy's autoscaler is made with the copy, and follows the person's own with each promotion.
fn copys_scaler(seen: &Seen<'_>, stand: &Stand, acts: &mut Acts) {
    let Some(asked) = &seen.canary.spec.autoscaler_ref else {
        return;
    };
    let Ok(Some(theirs)) = stand.scaler(seen, false) else {
        return;
    };
    if !is_there(&stand.sight.source) {
        return;
    }
    if let Some(obstacle) = foreign_scaler(seen, stand) {
        acts.obstacles.push(obstacle);
        return;
    }
    let wanted = scaler::scaler(asked, theirs, &stand.names, &stand.owner);
    let there = stand.scaler(seen, true).ok().flatten();
    let is_due = there.is_none() || stand.run.phase == Phase::Promoting;
    let is_so = there.is_some_and(|there| router::covers(there, &wanted));
    if is_due && !is_so {
        acts.write(AUTOSCALER, &scaler::name(asked), wanted, true);
    }
}

/// Why the copy's autoscaler is not ours to write, if it is not: a person may have made one of this name.
pub(super) fn foreign_scaler(seen: &Seen<'_>, stand: &Stand) -> Option<Obstacle> {
    let asked = seen.canary.spec.autoscaler_ref.as_ref()?;
    let there = stand.scaler(seen, true).ok().flatten()?;
    let theirs = stand.scaler(seen, false).ok().flatten()?;
    let wanted = scaler::scaler(asked, theirs, &stand.names, &stand.owner);
    (!router::is_taken(&stand.route, there, &wanted)).then(|| {
        let name = scaler::name(asked);
        let message = format!(
            "HorizontalPodAutoscaler {name} has the name of the copy's, and this Canary did not make it; delete or rename it"
        );
        Obstacle::new(Reason::NotOurs, message)
    })
}

/// Routing objects are as the run says; where the target is not to get more yet, they are left.
fn routes(seen: &Seen<'_>, stand: &Stand, deeds: &Deeds, acts: &mut Acts) {
    let wanted = stand.run.weights();
    let asked = deeds.list.iter().any(|deed| matches!(deed, Deed::Route(_)));
    let is_at = stand.sight.routing.weights == Some(wanted);
    let is_first = stand.run.phase == Phase::Initializing;
    let is_ready = !is_first || stand.sight.source.state().is_ready();
    if !is_ready || !(asked || is_at) {
        return;
    }
    let weights = if is_first { Weights::SOURCE } else { wanted };
    match router::ensure(stand.asked.provider, &stand.route, seen.objects, weights) {
        Ok(Ensured::Pending { writes, .. }) => {
            let new = writes.into_iter().filter(|write| !acts.has(write.object()));
            let new: Vec<Act> = new.map(Act::Write).collect();
            acts.list.extend(new);
        }
        Ok(Ensured::Converged) => {}
        Err(error) => {
            if weights == Weights::SOURCE {
                // To go back needs nothing of what cannot be written.
                let writes = router::retreat(stand.asked.provider, &stand.route, seen.objects);
                acts.list.extend(writes.into_iter().map(Act::Write));
            }
            acts.obstacles.push(error.into());
        }
    }
}

fn sizes(stand: &Stand, deeds: &Deeds, acts: &mut Acts) {
    for deed in &deeds.list {
        let (name, size) = match deed {
            Deed::SizeSource(size) => (&stand.names.primary, *size),
            Deed::SizeTarget(size) => (&stand.names.target, *size),
            Deed::Route(_) | Deed::Template(_) => continue,
        };
        // One write for each object: a template that is written in the same pass is followed by its replicas in the next.
        let object = (&workload(stand.kind), name.as_str());
        if !acts.has(object) {
            let body = primary::sized(stand.kind, size);
            acts.write(workload(stand.kind), name, body, false);
        }
    }
}

/// How the apex is led to the copy again, where that served before and something else is led to: whatever is wrong with the
/// Canary, nobody else is there to answer.
pub fn lead(seen: &Seen<'_>, leave: &Leave) -> Option<Write> {
    let (run, names) = (&leave.run, &leave.names);
    let is_begun = run.serving.is_some() && run.phase != Phase::Initializing;
    let is_over = matches!(run.phase, Phase::Terminating | Phase::Terminated);
    // What the Canary has not followed yet is not turned.
    let is_turned = Places::read(&run.places)
        .is_none_or(|known| (&known.target, &known.apex) == (&names.target, &names.apex));
    if !is_begun || is_over || !is_turned || !is_there(&leave.source) {
        return None;
    }
    if let Some(weights) = led(seen, leave) {
        let is_so = run.weight > 0 || weights == Weights::SOURCE;
        // A version that failed is drawn back by who sees to that.
        let is_seen_to = is_so || run.phase == Phase::Failed;
        let mut back = draw_back(seen, leave).into_iter();
        return back.next().filter(|_| !is_seen_to);
    }
    let label = leave.label.as_ref()?;
    let there = seen.objects.get("Service", &names.apex)?;
    let is_so = services::leads_to_copy(there, label) || !router::is_ours(&leave.route, there);
    (!is_so).then(|| Write::Patch {
        kind: SERVICE,
        name: names.apex.clone(),
        body: services::lead(label),
    })
}

/// The weights that the apex leads by, where it does.
fn led(seen: &Seen<'_>, leave: &Leave) -> Option<Weights> {
    let provider = leave.provider.filter(|provider| provider.divides())?;
    let routing = router::seen(provider, &leave.route, seen.objects).ok()?;
    routing.weights
}

/// How what serves gets back the replicas that a run took; nothing if it has them.
pub fn size_back(leave: &Leave) -> Option<Write> {
    let all = leave.run.replicas?;
    let is_short = is_there(&leave.source) && leave.source.size < all;
    is_short.then(|| Write::Patch {
        kind: workload(leave.kind),
        name: leave.names.primary.clone(),
        body: primary::sized(leave.kind, all),
    })
}

/// How a person's own routes become what they were, when the Canary goes; nothing if they are.
pub fn restore(seen: &Seen<'_>, leave: &Leave) -> Vec<Write> {
    let restore = |provider| router::restore(provider, &leave.route, seen.objects);
    leave.provider.map(restore).unwrap_or_default()
}

/// How all traffic is taken from what is new; nothing if it has none.
pub fn draw_back(seen: &Seen<'_>, leave: &Leave) -> Vec<Write> {
    let retreat = |provider| router::retreat(provider, &leave.route, seen.objects);
    leave.provider.map(retreat).unwrap_or_default()
}

/// How the apex is turned back to the workload, when the Canary gives it back; nothing if it is.
pub fn give_back(seen: &Seen<'_>, leave: &Leave) -> Vec<Write> {
    let mut all = restore(seen, leave);
    let Some(label) = &leave.label else {
        return all;
    };
    let is_led = |name: &&String| {
        let there = seen.objects.get("Service", name);
        there.is_some_and(|there| services::leads_to_copy(there, label))
    };
    let apexes = leave.former.iter().chain([&leave.names.apex]);
    all.extend(apexes.filter(is_led).map(|name| Write::Patch {
        kind: SERVICE,
        name: name.clone(),
        body: services::give_back(label),
    }));
    all
}
