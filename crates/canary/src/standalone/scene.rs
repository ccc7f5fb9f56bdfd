//! A Canary and the objects around it, as the engine sees them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::canary::{Canary, Phase};
use slipway_kernel::fields::strings;

use super::about::{command, label, pods, route, thresholds, tracked};
use super::acts::foreign_scaler;
use super::adopt::{self, Scene as Adoption};
use super::configs::{self, Config, Known, Tracked};
use super::primary::{self, Recipe};
use super::readiness::{Demand, Workload, readiness};
use super::{Names, PodLabel, cookies, hash, scaler, services};
use crate::engine::{Readiness, Revision, Routing, Run, Side, Sight, Weights};
use crate::places::Places;
use crate::provider::Provider;
use crate::reasons::Reason;
use crate::router::{self, CannotRoute, Objects, Route};
use crate::settings::Settings;
use crate::spec::{self, Asked, Problem};

/// All that is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The Canary.
    pub canary: &'a Canary,
    /// Workloads, Services, autoscalers and routing objects of its namespace that it may be about.
    pub objects: &'a Objects,
    /// `ConfigMap`s and Secrets of its namespace.
    pub configs: &'a BTreeMap<Config, Known>,
    /// What the person who runs the operator decides.
    pub settings: &'a Settings,
    /// What time it is.
    pub now: Timestamp,
}

/// What keeps a Canary from being followed at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// A word that programs match on.
    pub reason: Reason,
    /// A sentence: what is wrong, and what to do.
    pub message: String,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
}

impl Obstacle {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            until: None,
        }
    }
}

impl From<CannotRoute> for Obstacle {
    fn from(error: CannotRoute) -> Self {
        let reason = match &error {
            CannotRoute::Spec(_) => Reason::InvalidSpec,
            CannotRoute::NotOurs { .. } => Reason::NotOurs,
            CannotRoute::Missing { .. } | CannotRoute::NoBackend { .. } => Reason::RouteNotFound,
        };
        Self::new(reason, error.to_string())
    }
}

/// A Canary that can be followed.
#[derive(Debug, Clone)]
pub struct Stand {
    /// What it asks for.
    pub asked: Asked,
    /// The kind of its workload.
    pub kind: Workload,
    /// What things are called.
    pub names: Names,
    /// The label by which pods are known.
    pub label: PodLabel,
    /// The Canary, as an owner.
    pub owner: Value,
    /// How traffic comes to its Services.
    pub route: Route,
    /// What the workload is configured with.
    pub tracked: Tracked,
    /// What is remembered.
    pub run: Run,
    /// What the engine sees.
    pub sight: Sight,
    /// Whether the apex leads to where the weight says, which the router sees to.
    pub is_led: bool,
}

/// Looks at a Canary.
pub fn stand(seen: &Seen<'_>) -> Result<Stand, Obstacle> {
    let asked = asked(seen).map_err(|problem| {
        let reason = if problem.is_unsupported() {
            Reason::Unsupported
        } else {
            Reason::InvalidSpec
        };
        Obstacle::new(reason, problem.to_string())
    })?;
    let called = Places::kind(seen.canary);
    let kind = Workload::of(called).unwrap_or(Workload::Deployment);
    let places = Places::of_canary(seen.canary);
    let names = Names::of(&places.target, &places.apex);
    let target = seen.objects.get(called, &names.target);
    let primary = seen.objects.get(called, &names.primary);
    let label = label(seen, target, primary)?;
    let status = seen.canary.status.clone().unwrap_or_default();
    let tracked = tracked(seen, target, &status)?;
    let wanted = target.map(|target| Revision {
        template: hash::template(target),
        configs: seen
            .settings
            .config_tracking
            .then(|| tracked.checksums.clone()),
    });
    let mut route = route(seen, &names);
    route.pods = Some(pods(seen, &names, &label));
    let owner = route.owner();
    let mut stand = Stand {
        asked,
        kind,
        names,
        label,
        owner,
        route,
        tracked,
        run: Run::default(),
        sight: Sight::default(),
        is_led: false,
    };
    let routing = router::seen(stand.asked.provider, &stand.route, seen.objects)?;
    stand.is_led = stand.asked.provider.divides() && routing.weights.is_some();
    let is_alike = stand.is_alike(seen, target, primary, wanted.as_ref());
    let adoption = Adoption {
        target: wanted.clone(),
        is_alike,
        weights: routing.weights,
        is_matching: stand.asked.rules.is_matching(),
        command: command(seen.canary).map(|command| command.id),
    };
    let run = adopt::run(&status, &adoption);
    stand.run = if stand.asked.rules.suspend {
        // What has to be given back of another workload is not forgotten while nothing may be done.
        run
    } else {
        of_workload(run, called, &places)
    };
    stand.own_names(seen, target)?;
    stand.is_labelled(seen)?;
    let routing = stand.routing_of_run(seen, routing)?;
    stand.route.affinity = cookies::affinity(seen.canary, &stand.run);
    stand.sight = Sight {
        source: stand.source(seen, primary, is_alike.then_some(wanted.as_ref()).flatten())?,
        target: stand.target(seen, target, primary, wanted)?,
        routing: stand.routing(seen, target, routing),
        command: command(seen.canary),
        refused_since: None,
    };
    Ok(stand)
}

/// What the Canary asks for. In the middle of a run its traffic is shifted as it was when that began.
fn asked(seen: &Seen<'_>) -> Result<Asked, Problem> {
    let (spec, usual) = (&seen.canary.spec, seen.settings.provider);
    let provider = Provider::of_canary(seen.canary, usual)?;
    let mut asked = spec::read_with(spec, provider)?;
    let places = Places::of_canary(seen.canary);
    asked.rules.places = places.kept();
    if !places.is_of(spec) {
        let message = "spec.targetRef, service.name, routeRef and ingressRef are followed from the next run on";
        asked.warnings.push(message.to_owned());
    }
    let written = spec.provider.as_deref().filter(|name| !name.is_empty());
    if written.map_or(Ok(usual), Provider::of) != Ok(provider) {
        let name = provider.full_name();
        asked.warnings.push(format!(
            "spec.provider is followed from the next run on; this one goes on with {name}"
        ));
    }
    Ok(asked)
}

/// The run of this workload. Of another one than was remembered, or of another kind, there is none yet: what serves has to be made.
fn of_workload(run: Run, kind: &str, places: &Places) -> Run {
    let is = |what: &str, now: &str| run.places.get(what).is_none_or(|known| known == now);
    if is("kind", kind) && is("target", &places.target) {
        return run;
    }
    Run {
        // Services that clients knew before are still to be given back.
        places: places.kept(),
        command: run.command,
        ends: run.ends,
        ..Run::default()
    }
}

/// Whether a workload is the copy that the Canary made, or Flagger for it: it controls it; or it bears our mark, and nobody
/// controls it.
pub(crate) fn is_copy(route: &Route, primary: &Value) -> bool {
    let is_left = primary::is_stamped(primary) && router::is_ours(route, primary);
    router::is_controlled(route, primary) || is_left
}

impl Stand {
    /// Why the names of what is to be made are not ours to use, or the workload is not ours to change.
    fn own_names(&self, seen: &Seen<'_>, target: Option<&Value>) -> Result<(), Obstacle> {
        if let Some(config) = configs::foreign(&self.tracked.copies, seen.configs) {
            let (kind, name) = (config.kind.as_str(), config.name);
            let message = format!(
                "{kind} {name} has the name of a copy, and no Canary made it; rename it, or the one that is to be copied"
            );
            return Err(Obstacle::new(Reason::NotOurs, message));
        }
        if target.is_some_and(router::has_canary) {
            let name = &self.names.target;
            let message = format!("{name} is the copy of another Canary; name its workload");
            return Err(Obstacle::new(Reason::NotOurs, message));
        }
        if self.run.phase != Phase::Initializing {
            return Ok(());
        }
        // Nothing is put away where what is to be made cannot be.
        let (provider, route) = (self.asked.provider, &self.route);
        let routed = router::ensure(provider, route, seen.objects, Weights::SOURCE);
        if let Err(error @ (CannotRoute::NotOurs { .. } | CannotRoute::Spec(_))) = routed {
            return Err(error.into());
        }
        foreign_scaler(seen, self).map_or(Ok(()), Err)
    }

    /// Why the pods of both sides could not be found together, where that is how traffic is divided. In a run it is a weight that
    /// is not taken.
    fn is_labelled(&self, seen: &Seen<'_>) -> Result<(), Obstacle> {
        let (run, provider) = (&self.run, self.asked.provider);
        let is_left = run.weight == 0 && !run.draining && !run.phase.is_running();
        let why = is_left
            .then(|| router::replicas::unlabelled(&self.route, seen.objects))
            .flatten();
        match why.filter(|_| provider.divides()) {
            Some(why) => Err(Obstacle::new(Reason::InvalidSpec, why)),
            None => Ok(()),
        }
    }

    /// How traffic is divided, by what its run says the weight is of. Where that is of all requests, none are looked for that
    /// match.
    fn routing_of_run(&mut self, seen: &Seen<'_>, routing: Routing) -> Result<Routing, Obstacle> {
        if self.run.weight == 0 || self.run.matching || !self.route.is_matching() {
            return Ok(routing);
        }
        self.route.matching.clear();
        self.route.written.clear();
        let found = router::seen(self.asked.provider, &self.route, seen.objects);
        found.map_err(Obstacle::from)
    }

    /// What the copy is made of, for a version.
    pub fn recipe<'a>(
        &'a self,
        seen: &Seen<'a>,
        target: &'a Value,
        revision: &'a Revision,
    ) -> Recipe<'a> {
        Recipe {
            target,
            kind: self.kind,
            names: &self.names,
            label: &self.label,
            labels: &seen.settings.selector_labels,
            owner: &self.owner,
            copies: &self.tracked.copies,
            revision,
            serving: self.run.serving.as_ref(),
            attempt: self.run.attempt,
            is_scaled: seen.canary.spec.autoscaler_ref.is_some() || self.asked.provider.divides(),
            prefixes: &seen.settings.include_label_prefix,
        }
    }

    /// What Services are made of.
    pub fn services<'a>(&'a self, target: &'a Value) -> services::Recipe<'a> {
        services::Recipe {
            namespace: &self.route.namespace,
            service: &self.route.service,
            names: &self.names,
            label: &self.label,
            target,
            owner: &self.owner,
            is_led: self.is_led,
        }
    }

    /// Whether the copy is what the workload is. Where somebody else made it, what it is configured with has to be as well.
    fn is_alike(
        &self,
        seen: &Seen<'_>,
        target: Option<&Value>,
        primary: Option<&Value>,
        wanted: Option<&Revision>,
    ) -> bool {
        let (Some(target), Some(primary), Some(wanted)) = (target, primary, wanted) else {
            return false;
        };
        let recipe = Recipe {
            attempt: 0,
            is_scaled: false,
            prefixes: &[],
            ..self.recipe(seen, target, wanted)
        };
        let mut copies = self.tracked.copies.iter();
        let has_copies = if primary::is_stamped(primary) {
            configs::is_copied(wanted, seen.configs)
        } else {
            copies.all(|copy| copy.is_done(seen.configs))
        };
        primary::is_of(&recipe, primary) && has_copies
    }

    /// The copy that serves. Which version it is of is written on it, or found by comparing.
    fn source(
        &self,
        seen: &Seen<'_>,
        primary: Option<&Value>,
        alike: Option<&Revision>,
    ) -> Result<Side, Obstacle> {
        let Some(primary) = primary else {
            return Ok(Side {
                full: 1,
                ..Side::default()
            });
        };
        if !is_copy(&self.route, primary) {
            let name = &self.names.primary;
            let message = format!(
                "{name} is not controlled by this Canary; rename one of the two, or delete it"
            );
            return Err(Obstacle::new(Reason::NotOurs, message));
        }
        let threshold = thresholds(seen).0;
        let scaler = self.scaler(seen, true)?;
        Ok(Side {
            revision: alike.cloned().or_else(|| self.known(seen, primary)),
            attempt: self.tried(primary),
            size: self.kind.size(primary),
            full: self.kind.size(primary).max(1),
            most: scaler.and_then(scaler::most),
            readiness: readiness(self.kind, primary, self.demand(threshold), seen.now),
        })
    }

    /// The attempt of the run's version that the copy has its template from, if it is the last one.
    fn tried(&self, primary: &Value) -> Option<u32> {
        let (target, attempt) = (self.run.target.as_ref()?, self.run.attempt);
        primary::is_tried(primary, target, attempt).then_some(attempt)
    }

    /// A version that is remembered, and that the copy is of: its template, and what it is configured with.
    fn known(&self, seen: &Seen<'_>, primary: &Value) -> Option<Revision> {
        let annotations = strings(primary, "/metadata/annotations");
        let written = annotations.get(slipway_api::flagger::REVISION);
        let remembered = [&self.run.target, &self.run.serving];
        let Some(written) = written else {
            // Of somebody else's making, and not what the workload is: what was promoted last.
            return self.run.serving.clone();
        };
        let is_it = |one: &&Revision| {
            primary::stamp(one) == *written && configs::is_copied(one, seen.configs)
        };
        let mut known = remembered.into_iter().flatten();
        let found = known.find(is_it).cloned();
        found.or_else(|| {
            Some(Revision {
                template: written.clone(),
                configs: None,
            })
        })
    }

    fn target(
        &self,
        seen: &Seen<'_>,
        target: Option<&Value>,
        primary: Option<&Value>,
        wanted: Option<Revision>,
    ) -> Result<Side, Obstacle> {
        let Some(target) = target else {
            return Ok(Side::default());
        };
        let threshold = thresholds(seen).1;
        let scaler = self.scaler(seen, false)?;
        Ok(Side {
            revision: wanted,
            attempt: None,
            size: self.kind.size(target),
            full: scaler::from_zero(self.kind, target, primary, scaler),
            most: scaler.and_then(scaler::most),
            readiness: readiness(self.kind, target, self.demand(threshold), seen.now),
        })
    }

    fn demand(&self, percent: u8) -> Demand {
        Demand {
            percent,
            deadline: self.asked.rules.deadline,
        }
    }

    /// The autoscaler of the copy, or the person's own, which has to be there if it is named.
    pub fn scaler<'a>(
        &self,
        seen: &Seen<'a>,
        of_copy: bool,
    ) -> Result<Option<&'a Value>, Obstacle> {
        let Some(asked) = &seen.canary.spec.autoscaler_ref else {
            return Ok(None);
        };
        let kind = "HorizontalPodAutoscaler";
        if of_copy {
            return Ok(seen.objects.get(kind, &scaler::name(asked)));
        }
        let found = seen.objects.get(kind, &asked.name);
        if found.is_none() && self.run.phase.is_running() {
            // A run that has begun does without its bounds.
            return Ok(None);
        }
        let message = || format!("{kind} {} does not exist; create it", asked.name);
        found
            .map(Some)
            .ok_or_else(|| Obstacle::new(Reason::AutoscalerNotFound, message()))
    }

    /// Traffic is divided as the routing objects say, once the Services lead to the two sides.
    fn routing(&self, seen: &Seen<'_>, target: Option<&Value>, routing: Routing) -> Routing {
        let Some(target) = target else {
            return routing;
        };
        let recipe = self.services(target);
        let is_made = services::Which::ALL.into_iter().all(|which| {
            let there = seen
                .objects
                .get("Service", services::name(&self.names, which));
            let wanted = services::service(&recipe, which, there);
            there.is_some_and(|there| router::covers(there, &wanted))
        });
        if is_made {
            return routing;
        }
        Routing {
            weights: None,
            pending: Some("the Services do not lead to both sides yet".to_owned()),
        }
    }
}

/// Whether a side exists.
pub(crate) fn is_there(side: &Side) -> bool {
    side.readiness != Readiness::Missing
}
