//! What is to be known to give a workload back, whatever else is wrong with its Canary.

use std::collections::BTreeSet;

use serde_json::Value;

use super::about::{command, label, pods, route, thresholds};
use super::acts::workload;
use super::adopt::{self, Scene};
use super::readiness::{Demand, Workload, readiness};
use super::scene::{Seen, is_copy};
use super::{Names, PodLabel, primary, scaler};
use crate::engine::{Command, Run, Side, Verb};
use crate::kinds::DAEMON_SET;
use crate::places::Places;
use crate::provider::{Provider, is_busy};
use crate::router::{self, Route, Write};
use crate::spec::deadline;

/// A Canary that is to give its workload back.
#[derive(Debug, Clone)]
pub struct Leave {
    /// The kind of its workload.
    pub kind: Workload,
    /// What things are called.
    pub names: Names,
    /// The Services that clients knew before, and that may lead to the copy as well.
    pub former: BTreeSet<String>,
    /// The label by which pods are known; none if nobody knows it any more.
    pub label: Option<PodLabel>,
    /// How traffic comes to its Services.
    pub route: Route,
    /// What shifts the traffic; none if that cannot be read.
    pub provider: Option<Provider>,
    /// What is remembered.
    pub run: Run,
    /// The copy that serves.
    pub source: Side,
    /// The workload.
    pub target: Side,
    /// Who asks that it is ended as it is, if somebody does and was not heard yet.
    pub abort: Option<Command>,
}

impl Leave {
    /// Whether an object that is changed is a person's own, and would stay as it is. A Service by which pods are divided is only
    /// changed in a run, and before that nobody is kept waiting for the sake of it.
    pub fn borrows(&self, seen: &Seen<'_>) -> bool {
        let Some(provider) = self.provider else {
            return false;
        };
        let is_run = || seen.canary.status.as_ref().is_some_and(is_busy);
        let is_changed = || !router::restore(provider, &self.route, seen.objects).is_empty();
        let is_due = !provider.divides() || is_run() || is_changed();
        is_due && router::borrows(provider, &self.route, seen.objects)
    }
}

/// Looks at a Canary that is being deleted, or cannot be followed; none if it can have taken nothing.
pub fn leave(seen: &Seen<'_>) -> Option<Leave> {
    let spec = &seen.canary.spec;
    let places = Places::of_canary(seen.canary);
    let names = Names::of(&places.target, &places.apex);
    let mut route = route(seen, &names);
    let kind = kind_of(seen, &route, &names)?;
    let called = workload(kind).kind;
    let object = |name: &str| seen.objects.get(&called, name);
    let target = object(&names.target);
    let primary = object(&names.primary).filter(|primary| is_copy(&route, primary));
    let label = label(seen, target, primary).ok();
    route.pods = label.as_ref().map(|label| pods(seen, &names, label));
    let provider = Provider::of_canary(seen.canary, seen.settings.provider);
    let status = seen.canary.status.clone().unwrap_or_default();
    let run = adopt::run(&status, &Scene::default());
    let demand = |percent| Demand {
        percent,
        deadline: deadline(spec.progress_deadline_seconds),
    };
    let asked = spec.autoscaler_ref.as_ref();
    let theirs = asked.and_then(|asked| {
        let kind = "HorizontalPodAutoscaler";
        seen.objects.get(kind, &asked.name)
    });
    let side = |object: &Value, percent| Side {
        size: kind.size(object),
        full: kind.size(object),
        readiness: readiness(kind, object, demand(percent), seen.now),
        ..Side::default()
    };
    let (of_copy, of_workload) = thresholds(seen);
    let mut given = target.map(|one| side(one, of_workload)).unwrap_or_default();
    if let Some(target) = target {
        given.most = theirs.and_then(scaler::most);
        // What was never taken is not given back.
        if run.serving.is_some() {
            given.full = scaler::from_zero(kind, target, primary, theirs);
        }
    }
    Some(Leave {
        kind,
        former: places.former,
        label,
        route,
        provider: provider.ok(),
        source: primary.map(|one| side(one, of_copy)).unwrap_or_default(),
        target: given,
        abort: command(seen.canary).filter(|one| {
            let is_new = run.command.as_deref() != Some(one.id.as_str());
            one.verb == Some(Verb::Abort) && is_new
        }),
        names,
        run,
    })
}

/// The kind of the workload: the one that the Canary names, unless what serves is of the other one. Somebody may have changed it
/// since, also to what nobody can follow; what was taken is there all the same.
fn kind_of(seen: &Seen<'_>, route: &Route, names: &Names) -> Option<Workload> {
    let said = Workload::of(Places::kind(seen.canary));
    let is_taken = |kind: &Workload| {
        let copy = seen.objects.get(&workload(*kind).kind, &names.primary);
        copy.is_some_and(|copy| is_copy(route, copy))
    };
    let all = [Workload::Deployment, Workload::DaemonSet];
    let mut all = said.into_iter().chain(all);
    all.find(is_taken).or(said)
}

/// The workload that the last run was of, where another one is named since; none while that run goes on, or where what served is
/// not this Canary's any more.
pub fn before(seen: &Seen<'_>) -> Option<(Workload, Names)> {
    let canary = seen.canary;
    let (kept, now) = (Places::of_run(canary)?, Places::of_canary(canary));
    let said = Places::kind(canary);
    let is_kind = kept.kind.as_deref().is_none_or(|kind| kind == said);
    if is_kind && kept.target == now.target {
        return None;
    }
    let (kind, names) = (kept.workload(), kept.names());
    let copy = seen.objects.get(&workload(kind).kind, &names.primary)?;
    is_copy(&route(seen, &names), copy).then_some((kind, names))
}

/// How a `DaemonSet` gets its pods back, where a workload of another kind is named since: when that is followed, nobody looks at
/// `DaemonSet`s any more.
pub fn pods_back(seen: &Seen<'_>) -> Option<Write> {
    let (kind, names) = before(seen)?;
    let is_other = kind == Workload::DaemonSet && Places::kind(seen.canary) != DAEMON_SET.kind;
    let target = seen.objects.get(&DAEMON_SET.kind, &names.target)?;
    (is_other && kind.size(target) == 0).then(|| Write::Patch {
        kind: DAEMON_SET,
        name: names.target,
        body: primary::sized(kind, 1),
    })
}

/// How a person's own route becomes what it was that the last run went by, and that the next one will not go by.
pub fn former(seen: &Seen<'_>) -> Vec<Write> {
    let canary = seen.canary;
    let is_kept = canary.status.as_ref().is_some_and(is_busy);
    let before = Places::of_run(canary).zip(Provider::of_run(canary));
    let Some((places, provider)) = before.filter(|_| !is_kept) else {
        return Vec::new();
    };
    let now = Places::of_canary(canary);
    let is_same = (&places.apex, &places.route) == (&now.apex, &now.route);
    if is_same && Provider::of_canary(canary, seen.settings.provider) == Ok(provider) {
        return Vec::new();
    }
    let names = Names::of(&places.target, &places.apex);
    let route = Route {
        route: places.route,
        ingress: places.ingress,
        ..route(seen, &names)
    };
    router::restore(provider, &route, seen.objects)
}
