//! The oracles' own reading of Canaries: who serves, how traffic is divided, what was decided. Read from the history alone.
//!
//! Where traffic goes is read twice: from the objects that divide it, whichever kind they are of, and from what a gateway says it has
//! taken of them ([`TAKEN`]). Where nobody divides it, both are read of the Service that clients know and of pods ([`pods`]). What the
//! operator tells of weights is not believed.

mod leaving;
mod next;
mod pods;
mod promoting;
mod routing;
mod running;
mod serving;
mod sizes;

pub(super) use leaving::given_back;
pub(super) use next::begun;
pub(super) use promoting::promoted;
pub(super) use routing::{ready, sent_back, sums};
pub(super) use running::nothing_left;
pub(super) use serving::{deserted, served};
pub(super) use sizes::{remembered, scaled};

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_api::flagger::SCALE_TO_ZERO;
use slipway_sim::history::{Change, History, Image, Object};
use slipway_sim::routes::{
    self, HTTP_ROUTES, INGRESSES, Rule, TAKEN, TRAFFIC_SPLITS, VIRTUAL_SERVICES,
};

pub(super) const CANARIES: &str = "flagger.app/canaries";
pub(super) const DEPLOYMENTS: &str = "apps/deployments";
pub(super) const DAEMON_SETS: &str = "apps/daemonsets";
pub(super) const SERVICES: &str = "/services";
pub(super) const SLICES: &str = "discovery.k8s.io/endpointslices";

/// How long a new decision may take to reach the data plane's objects where nothing goes wrong.
pub(super) const A_MOMENT: SignedDuration = SignedDuration::from_secs(10);

/// The same, until a gateway has taken them.
pub(super) const TO_BE_TAKEN: SignedDuration = SignedDuration::from_secs(16);

/// Objects as they were at a version.
pub(super) struct Scene<'a> {
    canaries: BTreeMap<&'a Object, &'a Arc<Image>>,
    history: &'a History,
    version: u64,
}

/// A Canary as it was.
#[derive(Clone, Copy)]
pub(super) struct Canary<'a> {
    pub(super) object: &'a Object,
    pub(super) image: &'a Image,
}

/// The moment so long after another, as far as time goes.
pub(super) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// The version that there was at a moment.
pub(super) fn version_at(history: &History, at: Timestamp) -> u64 {
    let until = history.changes.partition_point(|change| change.at <= at);
    let last = until.checked_sub(1).and_then(|n| history.changes.get(n));
    last.map_or(history.base, |change| change.version)
}

impl<'a> Scene<'a> {
    /// At a version.
    pub(super) fn at(history: &'a History, version: u64) -> Self {
        Self {
            canaries: history.states(CANARIES, version),
            history,
            version,
        }
    }

    /// At a moment.
    pub(super) fn when(history: &'a History, at: Timestamp) -> Self {
        Self::at(history, version_at(history, at))
    }

    pub(super) fn canaries(&self) -> impl Iterator<Item = Canary<'a>> {
        let all = self.canaries.iter();
        all.map(|(&object, &image)| Canary {
            object,
            image: image.as_ref(),
        })
    }

    /// The Canary that an object belongs to.
    pub(super) fn of(&self, object: &Object) -> Option<Canary<'a>> {
        self.canaries().find(|canary| canary.is_about(object))
    }

    /// Another object in a Canary's namespace.
    pub(super) fn object(
        &self,
        canary: &Canary<'_>,
        resource: &str,
        name: &str,
    ) -> Option<&'a Image> {
        let object = (
            Arc::from(resource),
            canary.object.1.clone(),
            Arc::from(name),
        );
        let found = self.history.state(&object, self.version)?;
        Some(found.as_ref())
    }

    /// One of the two workloads.
    pub(super) fn workload(&self, canary: &Canary<'_>, name: &str) -> Option<&'a Image> {
        self.object(canary, canary.workloads(), name)
    }

    /// The rules of all objects that divide its traffic.
    pub(super) fn written(&self, canary: &Canary<'_>) -> Vec<Rule> {
        let routes = canary.routes().into_iter();
        let found = routes.filter_map(|(resource, name)| {
            let object = self.object(canary, resource, &name)?;
            Some(self.rules(canary, resource, object))
        });
        found.flatten().collect()
    }

    /// The rules of an object that divides its traffic.
    pub(super) fn rules(&self, canary: &Canary<'_>, resource: &str, object: &Image) -> Vec<Rule> {
        match resource {
            SERVICES => vec![self.selected(canary, object)],
            _ => routes::rules(resource, object.value()),
        }
    }

    /// The rules that a gateway has taken, or that follow from who is behind the Service that clients know.
    pub(super) fn taken(&self, canary: &Canary<'_>) -> Vec<Rule> {
        let routes = canary.routes().into_iter();
        let found = routes.filter_map(|(resource, name)| {
            if resource == SERVICES {
                return Some(vec![self.divided(canary)]);
            }
            let plural = resource.rsplit('/').next()?;
            let object = self.object(canary, TAKEN, &format!("{plural}.{name}"))?;
            Some(routes::rules(TAKEN, object.value()))
        });
        found.flatten().collect()
    }

    /// How many ready pods a Service leads to.
    pub(super) fn ready_behind(&self, canary: &Canary<'_>, service: &str) -> usize {
        let endpoints = self.endpoints(canary, service).into_iter();
        endpoints.filter(|one| takes_requests(one)).count()
    }

    /// All endpoints of a Service.
    fn endpoints(&self, canary: &Canary<'_>, service: &str) -> Vec<&'a Value> {
        let slices = self.history.states(SLICES, self.version).into_iter();
        let of_it = slices.filter(|(object, slice)| {
            object.1 == canary.object.1
                && slice.label("kubernetes.io/service-name") == Some(service)
        });
        let endpoints = of_it.flat_map(|(_, slice)| {
            let all = slice.at("/endpoints").and_then(Value::as_array);
            all.into_iter().flatten()
        });
        endpoints.collect()
    }
}

/// Whether an endpoint is ready.
fn takes_requests(endpoint: &Value) -> bool {
    endpoint.pointer("/conditions/ready") == Some(&Value::Bool(true))
}

/// The largest share that a Service has in any of these rules, of requests in general or of some of them.
pub(super) fn most(rules: &[Rule], service: &str) -> i64 {
    rules
        .iter()
        .map(|rule| rule.share(service))
        .max()
        .unwrap_or(0)
}

impl Canary<'_> {
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.image.text(pointer).unwrap_or_default()
    }

    pub(super) fn target(&self) -> String {
        self.text("/spec/targetRef/name").to_owned()
    }

    pub(super) fn primary(&self) -> String {
        format!("{}-primary", self.target())
    }

    /// The resource of its workloads.
    pub(super) fn workloads(&self) -> &'static str {
        match self.text("/spec/targetRef/kind") {
            "DaemonSet" => DAEMON_SETS,
            _ => DEPLOYMENTS,
        }
    }

    /// The Service that clients know.
    pub(super) fn apex(&self) -> String {
        let named = self.image.text("/spec/service/name");
        named.map_or_else(|| self.target(), str::to_owned)
    }

    /// The Service of what is new.
    pub(super) fn new_service(&self) -> String {
        format!("{}-canary", self.apex())
    }

    /// The Service of what serves.
    pub(super) fn serving_service(&self) -> String {
        format!("{}-primary", self.apex())
    }

    pub(super) fn phase(&self) -> &str {
        self.text("/status/phase")
    }

    pub(super) fn is(&self, pointer: &str) -> bool {
        self.image.at(pointer) == Some(&Value::Bool(true))
    }

    /// Whether the numbers of pods are the weights in its run.
    pub(super) fn is_divided(&self) -> bool {
        self.image.number("/status/run/replicas") > 0
    }

    /// Whether it says what it waits for.
    pub(super) fn is_explained(&self) -> bool {
        let waits = self.image.at("/status/waitingFor");
        let waits = waits.and_then(Value::as_array);
        waits.is_some_and(|waits| !waits.is_empty())
    }

    /// Whether it has a webhook of a type.
    pub(super) fn has_hook(&self, wanted: &str) -> bool {
        let hooks = self.image.at("/spec/analysis/webhooks");
        let mut hooks = hooks.and_then(Value::as_array).into_iter().flatten();
        hooks.any(|hook| hook.get("type").and_then(Value::as_str) == Some(wanted))
    }

    /// Objects that may divide its traffic: resource and name.
    pub(super) fn routes(&self) -> Vec<(&'static str, String)> {
        let own = self.image.text("/spec/routeRef/name");
        let route = own.map_or_else(|| self.apex(), str::to_owned);
        let ingress = self.text("/spec/ingressRef/name");
        let mut all = vec![
            (HTTP_ROUTES, route),
            (VIRTUAL_SERVICES, self.apex()),
            (TRAFFIC_SPLITS, self.apex()),
            (INGRESSES, format!("{ingress}-canary")),
        ];
        if self.is_by_pods() {
            all.push((SERVICES, self.apex()));
        }
        all
    }

    /// Whether an object divides its traffic.
    pub(super) fn is_routed_by(&self, object: &Object) -> bool {
        let (resource, namespace, name) = object;
        let mut routes = self.routes().into_iter();
        *namespace == self.object.1
            && routes.any(|(of, called)| *of == **resource && *called == **name)
    }

    /// Whether an object is one that it may write.
    pub(super) fn is_about(&self, object: &Object) -> bool {
        let (resource, namespace, name) = object;
        if *namespace != self.object.1 {
            return false;
        }
        let is_one_of = |names: &[String]| names.iter().any(|one| **one == **name);
        let sides = [self.serving_service(), self.new_service()];
        match &**resource {
            DEPLOYMENTS | DAEMON_SETS => is_one_of(&[self.primary(), self.target()]),
            SERVICES => is_one_of(&sides) || is_one_of(&[self.apex()]),
            "networking.istio.io/destinationrules" => is_one_of(&sides),
            "autoscaling/horizontalpodautoscalers" => {
                let own = self.text("/spec/autoscalerRef/name");
                **name == *format!("{own}-primary")
            }
            _ => self.is_routed_by(object),
        }
    }
}

/// How many replicas a workload is asked for; a `DaemonSet` has some, or was put away.
pub(super) fn size(workload: &Image) -> i64 {
    if workload.at("/spec/replicas").is_some() {
        return workload.number("/spec/replicas");
    }
    let selector = workload.at("/spec/template/spec/nodeSelector");
    let is_away = selector.is_some_and(|all| all.get(SCALE_TO_ZERO).is_some());
    i64::from(!is_away)
}

/// Whether as many pods of a workload are available as are asked for, and there are some.
pub(super) fn is_ready(workload: &Image) -> bool {
    let seen = workload.number("/status/observedGeneration");
    if seen < workload.number("/metadata/generation") {
        return false;
    }
    let (asked, updated, available) = if workload.at("/spec/replicas").is_some() {
        (
            workload.number("/spec/replicas"),
            workload.number("/status/updatedReplicas"),
            workload.number("/status/availableReplicas"),
        )
    } else {
        (
            workload.number("/status/desiredNumberScheduled"),
            workload.number("/status/updatedNumberScheduled"),
            workload.number("/status/numberAvailable"),
        )
    };
    asked > 0 && available >= asked && updated >= asked
}

/// What the containers of a workload run.
pub(super) fn images(workload: &Image) -> Vec<&str> {
    let containers = workload.at("/spec/template/spec/containers");
    let containers = containers.and_then(Value::as_array).into_iter().flatten();
    containers
        .filter_map(|one| one.get("image")?.as_str())
        .collect()
}

/// Both states of an object that the operator has changed.
pub(super) fn both(change: &Change) -> Option<(&Image, &Image)> {
    change.before.as_deref().zip(change.after.as_deref())
}
