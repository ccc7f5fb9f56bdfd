//! What is to be done now about one Canary.
//!
//! ```text
//! ending   it is being deleted, or may have to give something back
//! retreat  it cannot be followed, and its version is to lose its traffic
//! follow   advance ─► another run: it is written, and nothing else is done; the same: questions, deeds
//! report   why nothing, or not more, happens: blockers, waitingFor, events
//! telling  alerts and event webhooks, beside everything else
//! ```

mod ending;
mod follow;
mod original;
mod report;
mod retreat;
mod telling;

use std::time::Duration;

use jiff::Timestamp;
use slipway_api::canary::{Canary, ObjectReference, Phase};
use slipway_api::flagger::FINALIZER;
use slipway_api::purpose::canary as purpose;
use slipway_kernel::Plan;
use slipway_kernel::finalizer::Phase as Guard;
use slipway_kernel::instant::{later, second};

use crate::alerts::Service;
use crate::claims::{self, Held};
use crate::measures::PROMETHEUS;
use crate::observe::World;
use crate::reasons::Reason;
use crate::render;
use crate::settings::Settings;
use crate::standalone::acts::{self, workload};
use crate::standalone::adopt::is_pruned;
use crate::standalone::leave::leave;
use crate::standalone::scene::{Obstacle, Seen, Stand, stand};
use crate::webhooks;
use report::Report;

/// How long to wait before something is written again that was not kept.
const UNTIL_AGAIN: Duration = Duration::from_mins(10);

/// All that one plan is made of.
#[derive(Clone, Copy)]
struct Look<'a> {
    settings: &'a Settings,
    world: &'a World,
    canary: &'a Canary,
    now: Timestamp,
}

impl<'a> Look<'a> {
    /// The Canary's namespace.
    fn namespace(&self) -> &'a str {
        let namespace = self.canary.metadata.namespace.as_deref();
        namespace.unwrap_or_default()
    }

    fn seen(&self) -> Seen<'a> {
        Seen {
            canary: self.canary,
            objects: &self.world.objects,
            configs: &self.world.configs,
            settings: self.settings,
            now: self.now,
        }
    }
}

/// Decides about a Canary. Times are of whole seconds, as statuses keep them.
pub fn plan(settings: &Settings, world: &World, now: Timestamp) -> Plan {
    let now = second(now);
    let mut plan = Plan {
        basis: world.basis.clone(),
        ..Plan::default()
    };
    let canary = match &world.canary.body().read {
        Ok(canary) => canary,
        Err(why) => {
            let message = format!("the Canary cannot be read: {why}");
            let obstacle = Obstacle::new(Reason::InvalidSpec, message);
            Report::new(world, now).untold(&obstacle, &mut plan);
            // Its run is left as it is, and is nobody else's meanwhile; unless Flagger sees to it.
            let held = Held::unread(world).filter(|_| world.original.is_none());
            if let Some(held) = held {
                claims::keep(world, &held, &mut plan, now);
            }
            return plan;
        }
    };
    let look = Look {
        settings,
        world,
        canary,
        now,
    };
    let guard = world.canary.body().finalizers.phase(FINALIZER);
    if guard == Guard::Released {
        return plan;
    }
    let stood = match obstacle(&look) {
        Some(obstacle) => Err(obstacle),
        None => stand(&look.seen()),
    };
    if ending::end(&look, guard, stood.as_ref(), &mut plan) {
        return plan;
    }
    match stood {
        Ok(mut stand) => {
            stand.sight.refused_since = refused_since(&look, &stand);
            follow::follow(&look, &stand, &mut plan);
        }
        Err(obstacle) if obstacle.reason == Reason::DefinitionTooOld => {
            Report::new(world, now).untold(&obstacle, &mut plan);
            lead(&look, &obstacle, &mut plan);
            if let Some(at) = tried_again(canary) {
                plan.wake(at);
            }
        }
        Err(obstacle) => {
            if !retreat::retreat(&look, &obstacle, &mut plan) {
                lead(&look, &obstacle, &mut plan);
                claim(&look, &obstacle, &mut plan);
                obstructed(&look, &obstacle, &mut plan);
            }
            if let Some(at) = obstacle.until {
                plan.wake(at);
            }
        }
    }
    plan
}

/// Says what is in the way. What happened before is told all the same.
fn obstructed(look: &Look<'_>, obstacle: &Obstacle, plan: &mut Plan) {
    let report = Report::new(look.world, look.now);
    let before = look.canary.status.clone().unwrap_or_default();
    let mut after = report.obstructed(look.canary, obstacle, plan);
    plan.keeps.extend(telling::kept(look, &before));
    telling::tell(look, &mut after, plan);
    plan.statuses.extend(report.status(&before, &after));
}

/// What is left as it is in the middle of a run is nobody else's meanwhile; unless that is somebody else's to see to.
fn claim(look: &Look<'_>, obstacle: &Obstacle, plan: &mut Plan) {
    let is_theirs = [Reason::FlaggerRuns, Reason::TargetBusy].contains(&obstacle.reason);
    let leave = leave(&look.seen()).filter(|_| !is_theirs);
    if let Some(leave) = leave {
        claims::keep(look.world, &Held::left(&leave), plan, look.now);
    }
}

/// The apex leads to what serves, whatever is in the way; unless that is somebody else's to see to.
fn lead(look: &Look<'_>, obstacle: &Obstacle, plan: &mut Plan) {
    if [Reason::FlaggerRuns, Reason::TargetBusy].contains(&obstacle.reason) {
        return;
    }
    let seen = look.seen();
    let write = leave(&seen).and_then(|leave| acts::lead(&seen, &leave));
    let action = write.and_then(|write| render::write(look.world, write, purpose::LEAD));
    if let Some(action) = action {
        plan.act(action);
    }
}

/// Since when the API refuses what the copy that serves is to become, or what that is to be configured with.
fn refused_since(look: &Look<'_>, stand: &Stand) -> Option<Timestamp> {
    let name = &stand.names.primary;
    let copy = render::object(look.world, workload(stand.kind), name);
    let copies = stand.tracked.copies.iter();
    let configs = copies.flat_map(|copy| [copy.copy(), copy.config.former()]);
    let configs = configs.map(|one| render::config(look.world, &one));
    let refusals = &look.world.refusals;
    let all = configs.chain([copy]).filter_map(|one| refusals.get(&one));
    all.map(|refusal| refusal.since).min()
}

/// When something that was not kept may be written again: somebody may have changed the definition, which nobody tells us.
fn tried_again(canary: &Canary) -> Option<Timestamp> {
    let status = canary.status.as_ref()?;
    later(status.last_transition_time.as_ref()?.0, UNTIL_AGAIN)
}

/// What keeps a Canary from being followed, besides what it and its objects say.
fn obstacle(look: &Look<'_>) -> Option<Obstacle> {
    let of = |reason, message: String| Some(Obstacle::new(reason, message));
    let target = &look.canary.spec.target_ref;
    let is_pruned = look.canary.status.as_ref().is_some_and(is_pruned);
    if is_pruned && tried_again(look.canary).is_some_and(|at| look.now < at) {
        let message = "the definition of Canaries does not keep status.run; apply that of deploy/crds.yaml, which has all that Flagger's has";
        return of(Reason::DefinitionTooOld, message.to_owned());
    }
    if let Some(rival) = &look.world.rival {
        let (kind, name) = (&target.kind, &target.name);
        let message = format!(
            "Canary {rival} is about {kind} {name}, or its Service, already; delete one of the two"
        );
        return of(Reason::TargetBusy, message);
    }
    if let Some(obstacle) = original::acts(look) {
        return Some(obstacle);
    }
    if let Some(kind) = look.world.unseen.first() {
        let (plural, group) = (&kind.plural, &kind.group);
        let message = format!(
            "{plural}.{group} {} are not served by this cluster, or may not be seen; install them, or grant get, list and watch",
            kind.version
        );
        return of(Reason::RouteNotFound, message);
    }
    if let Some(obstacle) = foreign_key(look) {
        return Some(obstacle);
    }
    // In the middle of a run it is a check that fails, or nobody to be told.
    if is_running(look.canary) {
        return None;
    }
    unusable(look)
}

/// A webhook that is to be signed with the key of another namespace. No administrator can allow that, and no run goes on with it.
fn foreign_key(look: &Look<'_>) -> Option<Obstacle> {
    let analysis = look.canary.spec.analysis().unwrap_or_default();
    let own = look.namespace();
    analysis.webhooks.iter().find_map(|hook| {
        let (namespace, name) = webhooks::foreign_key(hook, own)?;
        let message = format!(
            "spec.analysis.webhooks: signing of {} names Secret {namespace}/{name}, and a key is only used by Canaries of its own namespace; put one into {own}",
            hook.name
        );
        Some(Obstacle::new(Reason::InvalidSpec, message))
    })
}

fn is_running(canary: &Canary) -> bool {
    let phase = canary
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    Phase::of(phase).is_running()
}

/// What templates and alert providers that the Canary names ask for, and do not get.
fn unfollowed(look: &Look<'_>) -> Vec<String> {
    let templates = look.world.templates.iter().filter_map(|(place, found)| {
        let spec = &found.0.as_ref().ok()?.spec;
        let (namespace, name) = place;
        spec.provider.insecure_skip_verify.then(|| {
            format!("MetricTemplate {namespace}/{name}: insecureSkipVerify is not followed, its certificate is verified")
        })
    });
    let providers = look.world.providers.iter().filter_map(|(place, found)| {
        let spec = &found.0.as_ref().ok()?.spec;
        let (namespace, name) = place;
        (!spec.proxy.is_empty()).then(|| {
            format!(
                "AlertProvider {namespace}/{name}: proxy is not followed, it is called directly"
            )
        })
    });
    templates.chain(providers).collect()
}

/// What the Canary asks that is not built, or that it may not use, is said at once and not at the first check.
fn unusable(look: &Look<'_>) -> Option<Obstacle> {
    let of = |reason, message: String| Some(Obstacle::new(reason, message));
    let analysis = look.canary.spec.analysis().unwrap_or_default();
    let own = look.namespace();
    let place = |reference: &ObjectReference| {
        let namespace = reference.namespace.as_deref().unwrap_or(own);
        (namespace.to_owned(), reference.name.clone())
    };
    let templates = analysis
        .metrics
        .iter()
        .filter_map(|one| one.template_ref.as_ref());
    let providers = analysis.alerts.iter().map(|one| &one.provider_ref);
    let mut named = templates.clone().chain(providers.clone());
    let foreign = |reference: &&ObjectReference| place(reference).0 != own;
    if !look.settings.cross_namespace
        && let Some(reference) = named.find(foreign)
    {
        let (namespace, name) = place(reference);
        let message = format!(
            "{namespace}/{name} is in another namespace, which the administrator does not allow"
        );
        return of(Reason::MetricNotFound, message);
    }
    for (namespace, name) in templates.map(place) {
        let found = look.world.templates.get(&(namespace.clone(), name.clone()));
        let kind = found.and_then(|found| Some(&found.0.as_ref().ok()?.spec.provider.kind));
        if let Some(kind) = kind.filter(|kind| *kind != PROMETHEUS) {
            let message = format!(
                "MetricTemplate {namespace}/{name}: provider {kind} is not supported; use {PROMETHEUS}"
            );
            return of(Reason::Unsupported, message);
        }
    }
    for (namespace, name) in providers.map(place) {
        let found = look.world.providers.get(&(namespace.clone(), name.clone()));
        let kind = found.and_then(|found| Some(&found.0.as_ref().ok()?.spec.kind));
        if let Some(Err(error)) = kind.map(|kind| Service::of(kind)) {
            let message = format!("AlertProvider {namespace}/{name}: {error}");
            return of(Reason::Unsupported, message);
        }
    }
    None
}
