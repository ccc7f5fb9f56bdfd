//! Routers: weights as the objects of whoever moves the traffic.
//!
//! All have one contract, [`ensure`]: given the objects that were seen and the weights that are to be, traffic is
//! [`Ensured::Converged`], or it is [`Ensured::Pending`] with what is to be written and why it is not there yet. The same
//! question asked after the writes were done has no writes. [`seen`] says the weights that the objects have now.
//!
//! A router that works on a person's own object ([`gateway`] with `routeRef`) changes only what it needs, and [`restore`]
//! puts back exactly what was there. What is made by us (routes, splits, the canary Ingress) has the Canary as its owner,
//! and goes with it.

pub mod gateway;
mod gateway_rules;
pub mod istio;
pub mod kubernetes;
pub mod nginx;
mod parts;
pub mod replicas;
pub mod smi;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_api::canary::{Service, SessionAffinity};
use slipway_api::foreign::istio::HttpMatch;
use slipway_kernel::Kind;

pub(crate) use parts::{controller, covers, has_canary, is_controlled, is_ours, is_taken, lacking};

use crate::engine::{Routing, Weights};
use crate::provider::Provider;

/// All that a router has to know of a Canary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Route {
    /// The namespace of everything.
    pub namespace: String,
    /// The Canary's name.
    pub canary: String,
    /// The Canary's uid.
    pub uid: String,
    /// The Service that clients know, and what routing objects are called.
    pub apex: String,
    /// The Service of what serves.
    pub source: String,
    /// The Service of what is new.
    pub target: String,
    /// What is said about Services and routes.
    pub service: Service,
    /// Which requests the target gets, with A/B.
    pub matching: Vec<HttpMatch>,
    /// The same, as it was written.
    pub written: Vec<Value>,
    /// How many percent of the requests are copied.
    pub mirror_weight: Option<i64>,
    /// How clients are kept at a version.
    pub affinity: Option<Affinity>,
    /// The person's own route that is to be changed in place.
    pub route: Option<String>,
    /// The person's Ingress.
    pub ingress: Option<String>,
    /// What annotations of ingress-nginx begin with.
    pub prefix: String,
    /// How pods are found; none if nobody knows it any more.
    pub pods: Option<Pods>,
}

/// How the pods of the two sides are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pods {
    /// The label that tells them apart.
    pub key: String,
    /// Its value on the source's.
    pub source: String,
    /// Its value on the target's.
    pub target: String,
    /// The kind of their workloads.
    pub kind: String,
    /// The source's workload.
    pub of_source: String,
    /// The target's workload.
    pub of_target: String,
}

/// How clients are kept at a version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Affinity {
    /// What a person asked for.
    pub rules: SessionAffinity,
    /// `NAME=VALUE` of those who have seen the target.
    pub cookie: Option<String>,
    /// `NAME=VALUE` of the run before, which clients are to forget.
    pub previous: Option<String>,
    /// `NAME=VALUE` of those who have seen the source, and for how many seconds they are kept there.
    pub primary: Option<(String, u64)>,
}

/// The objects that were seen, by kind and name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Objects(pub BTreeMap<(String, String), Value>);

impl Objects {
    /// The object of this kind and name.
    pub fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        self.0.get(&(kind.to_owned(), name.to_owned()))
    }
}

/// Something to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// An object of our own comes to be so.
    Apply {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// All that we say of it.
        body: Value,
    },
    /// A person's object is changed: a merge patch, from the version that was seen.
    Patch {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// The change.
        body: Value,
    },
}

impl Write {
    /// What is written, by kind and name.
    pub fn object(&self) -> (&Kind, &str) {
        match self {
            Self::Apply { kind, name, .. } | Self::Patch { kind, name, .. } => (kind, name),
        }
    }
}

/// Where the traffic is.
#[derive(Debug, Clone, PartialEq)]
pub enum Ensured {
    /// As it is to be.
    Converged,
    /// Not yet.
    Pending {
        /// What is to be written; nothing where the data plane has to do the rest.
        writes: Vec<Write>,
        /// Why.
        why: String,
    },
}

/// Why traffic cannot be shifted before somebody changes something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotRoute {
    /// An object that a person has to make is not there.
    #[error("{kind} {name} does not exist; create it, or correct the reference in the Canary")]
    Missing {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// It does not send anything to the Service that it is about.
    #[error("{kind} {name} has no backend {backend}; add one, or correct spec.service.name")]
    NoBackend {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The Service.
        backend: String,
    },
    /// The Canary does not say what is needed.
    #[error("{0}")]
    Spec(String),
    /// There is an object of the name that we need, and it is somebody else's.
    #[error("{kind} {name} is not controlled by this Canary; delete it, or let the Canary own it")]
    NotOurs {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
}

/// What is to be written, by the version of a router's API.
pub type Writes = fn(&'static str, &Route, &Objects, Weights) -> Result<Vec<Write>, CannotRoute>;

/// All that is known of a router, in its own file.
#[derive(Debug)]
pub struct Router {
    /// The names that people write, each with the version of its API that it means.
    pub names: &'static [(&'static str, &'static str)],
    /// What it can do.
    pub can: Abilities,
    /// Whether the weights are the numbers of pods, which have to be what the weight says.
    pub divides: bool,
    /// Whether the data plane says that it has taken weights.
    pub acknowledges: bool,
    /// The kinds of the objects that it looks at and writes, by the version of its API.
    pub kinds: fn(&'static str) -> Vec<Kind>,
    /// The weights that the objects have, and whether the data plane has taken them.
    pub seen: fn(&Route, &Objects) -> Result<Routing, CannotRoute>,
    /// What is to be written so that traffic is divided so; nothing where it is.
    pub writes: Writes,
    /// What takes all traffic from the target in the objects that are there, whatever the Canary says about them by now.
    pub retreat: fn(&'static str, &Route, &Objects) -> Vec<Write>,
    /// Why it cannot follow a match, if it cannot.
    pub check_match: fn(&Value) -> Result<(), String>,
    /// Whether an object that it changes is a person's own, and stays when the Canary goes.
    pub borrows: fn(&Route, &Objects) -> bool,
    /// Puts back what was changed of a person's own objects.
    pub restore: fn(&'static str, &Route, &Objects) -> Vec<Write>,
    /// What the data plane measures.
    pub measures: Builtin,
}

/// What a router can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own, and has its own answer"
)]
pub struct Abilities {
    /// Shift traffic at all.
    pub shift: bool,
    /// Send some requests elsewhere by what is in them.
    pub match_requests: bool,
    /// Copy requests.
    pub mirror: bool,
    /// Keep a client at the version that it has seen.
    pub keep_clients: bool,
}

impl Abilities {
    /// All of it.
    pub const ALL: Self = Self {
        shift: true,
        match_requests: true,
        mirror: true,
        keep_clients: true,
    };
    /// Nothing.
    pub const NONE: Self = Self {
        shift: false,
        match_requests: false,
        mirror: false,
        keep_clients: false,
    };
}

/// Queries of builtin measures, with names in them.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// How many percent of the requests succeed.
    pub success_rate: fn() -> String,
    /// How many milliseconds they take.
    pub duration: fn() -> String,
}

/// The routers that there are. A new one is its own file, and its line here.
pub static ALL: &[&Router] = &[
    &kubernetes::ROUTER,
    &replicas::ROUTER,
    &gateway::ROUTER,
    &istio::ROUTER,
    &smi::ROUTER,
    &nginx::ROUTER,
];

/// The kinds of the objects that a router looks at and writes.
pub fn kinds(provider: Provider) -> Vec<Kind> {
    (provider.router().kinds)(provider.version())
}

/// The weights that the objects have, and whether the data plane has taken them.
pub fn seen(provider: Provider, route: &Route, objects: &Objects) -> Result<Routing, CannotRoute> {
    (provider.router().seen)(route, objects)
}

/// Brings traffic to these weights.
pub fn ensure(
    provider: Provider,
    route: &Route,
    objects: &Objects,
    weights: Weights,
) -> Result<Ensured, CannotRoute> {
    let writes = (provider.router().writes)(provider.version(), route, objects, weights)?;
    if !writes.is_empty() {
        let why = format!("weight {} is being written", weights.target);
        return Ok(Ensured::Pending { writes, why });
    }
    let pending = seen(provider, route, objects)?.pending;
    Ok(pending.map_or(Ensured::Converged, |why| Ensured::Pending {
        writes: Vec::new(),
        why,
    }))
}

/// Takes all traffic from the target where what the Canary says cannot be written.
pub fn retreat(provider: Provider, route: &Route, objects: &Objects) -> Vec<Write> {
    (provider.router().retreat)(provider.version(), route, objects)
}

/// Whether an object that is changed is a person's own.
pub fn borrows(provider: Provider, route: &Route, objects: &Objects) -> bool {
    (provider.router().borrows)(route, objects)
}

/// Puts back what was changed of a person's own objects. What is ours goes with the Canary.
pub fn restore(provider: Provider, route: &Route, objects: &Objects) -> Vec<Write> {
    (provider.router().restore)(provider.version(), route, objects)
}

impl Route {
    /// An object of ours: named, owned by the Canary, left alone by Flux.
    pub(crate) fn own(&self, kind: &Kind, name: &str, spec: &Value) -> Value {
        let mut annotations = BTreeMap::from(
            [
                slipway_api::flagger::FLUX_RECONCILE,
                slipway_api::flagger::FLUX_DRIFT,
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        let apex = self.service.apex.clone().unwrap_or_default();
        annotations.extend(apex.annotations);
        json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": apex.labels,
                "annotations": annotations,
                "ownerReferences": [self.owner()],
            },
            "spec": spec,
        })
    }

    /// The Canary as an owner. Whether its deletion waits for what is owned is not said: some servers let only those say so who
    /// may change its finalizers.
    pub fn owner(&self) -> Value {
        json!({
            "apiVersion": "flagger.app/v1beta1",
            "kind": slipway_api::canary::KIND,
            "name": self.canary,
            "uid": self.uid,
            "controller": true,
        })
    }

    /// Whether there is A/B.
    pub(crate) fn is_matching(&self) -> bool {
        !self.written.is_empty()
    }
}
