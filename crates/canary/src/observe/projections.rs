//! What is kept of each object. No projection fails: what is wrong with an object is kept beside the rest of it, so that it is
//! reported on that object and stops no other.

use std::collections::BTreeSet;
use std::fmt::Debug;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use slipway_api::alert_provider::AlertProvider;
use slipway_api::canary::{Canary, CanaryStatus};
use slipway_api::flagger::{FORMER, PRIMARY};
use slipway_api::metric_template::MetricTemplate;
use slipway_kernel::fields::list;
use slipway_kernel::finalizer::Finalizers;
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::store::{Projection, Seen, Undecodable};

use super::original;
use crate::NAME;
use crate::claims;
use crate::places::Places;
use crate::router;
use crate::standalone::configs::{Config, ConfigKind, Known, known, references};
use crate::standalone::{Names, scaler};

/// All of an object but who wrote it.
const WHOLE: Parts = Parts::ALL.without(Part::ManagedFields);

/// A Canary.
#[derive(Debug, Clone)]
pub struct CanarySeen {
    /// As it is meant, or why it cannot be read.
    pub read: Result<Canary, String>,
    /// Its status, as it is written.
    pub status: Value,
    /// By which it is kept.
    pub finalizers: Finalizers,
    /// When it was made.
    pub created: String,
    /// When Flagger wrote it last.
    pub written_by_original: Option<Timestamp>,
}

impl Projection for CanarySeen {
    const READS: Parts = Parts::NONE.and(Part::Status).and(Part::ManagedFields);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let created = object.pointer("/metadata/creationTimestamp");
        Ok(Self {
            read: serde_json::from_value(object.clone()).map_err(|error| error.to_string()),
            status: object.get("status").cloned().unwrap_or_default(),
            finalizers: Finalizers::of(object),
            created: created
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            written_by_original: original::written(object),
        })
    }
}

impl CanarySeen {
    /// Of one that cannot be read, what its status says, and what its last run was about: a run goes on whatever its spec says.
    pub fn unread(&self) -> Option<(CanaryStatus, Places)> {
        if self.read.is_ok() {
            return None;
        }
        let status: CanaryStatus = serde_json::from_value(self.status.clone()).ok()?;
        let places = Places::read(&status.run.as_ref()?.places)?;
        Some((status, places))
    }
}

/// The index of Canaries by the names of all objects that they may be about.
pub(super) const ABOUT: &str = "about";
/// The index of Canaries by the templates and alert providers that they name.
pub(super) const ASKS: &str = "asks";
/// The index of workloads by what they are configured with.
pub(super) const CONFIGS: &str = "configs";
/// The index of Canaries by what the version that serves is configured with: while it is taken back no template names that any more.
pub(super) const SERVES: &str = "serves";

/// Namespace and name, as indexes have it.
pub(super) fn place(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The names of all objects that a Canary may be about.
pub fn about(canary: &Canary) -> BTreeSet<String> {
    let spec = &canary.spec;
    let mut all = BTreeSet::new();
    let known = [Places::of_spec(spec), Places::of_canary(canary)];
    for places in known.into_iter().chain(Places::of_run(canary)) {
        all.extend(places.former);
        let names = Names::of(&places.target, &places.apex);
        all.extend([
            names.target,
            names.primary,
            names.apex,
            names.apex_primary,
            names.apex_canary,
        ]);
        all.extend(places.route);
        if let Some(ingress) = places.ingress {
            all.extend([router::nginx::name(&ingress), ingress]);
        }
    }
    if let Some(asked) = &spec.autoscaler_ref {
        all.extend([asked.name.clone(), scaler::name(asked)]);
    }
    all.extend(spec.route_ref.iter().map(|route| route.name.clone()));
    all
}

/// A Canary as an index is given it.
pub(super) fn read(seen: &Seen) -> Option<&Canary> {
    let canary = seen.body.as_ref().ok()?.downcast_ref::<CanarySeen>()?;
    canary.read.as_ref().ok()
}

/// What the last run of one was about that cannot be read.
pub(super) fn unread(seen: &Seen) -> Option<Places> {
    let canary = seen.body.as_ref().ok()?.downcast_ref::<CanarySeen>()?;
    canary.unread().map(|(_, places)| places)
}

/// What [`ABOUT`] finds a Canary by.
pub(super) fn index_about(seen: &Seen) -> Vec<String> {
    let workloads = || {
        let names = unread(seen)?.names();
        Some(BTreeSet::from([names.target, names.primary]))
    };
    let names: BTreeSet<String> = read(seen).map(about).or_else(workloads).unwrap_or_default();
    names
        .into_iter()
        .map(|name| place(&seen.meta.namespace, &name))
        .collect()
}

/// What [`ASKS`] finds a Canary by.
pub(super) fn index_asks(seen: &Seen) -> Vec<String> {
    let analysis = read(seen).and_then(|canary| canary.spec.analysis());
    let analysis = analysis.unwrap_or_default();
    let templates = analysis
        .metrics
        .iter()
        .filter_map(|one| one.template_ref.as_ref());
    let providers = analysis.alerts.iter().map(|one| &one.provider_ref);
    let all = templates.chain(providers);
    all.map(|one| {
        let namespace = one.namespace.as_deref().unwrap_or(&seen.meta.namespace);
        place(namespace, &one.name)
    })
    .collect()
}

/// An object of which anything may be needed: a workload, a Service, an autoscaler, an object of a router. It is kept as text,
/// which takes a fraction of the room; there are many, and few of them are any Canary's.
#[derive(Debug, Clone)]
pub struct Whole {
    text: Box<str>,
    /// What a workload is configured with, by name.
    configs: Vec<String>,
    is_original: bool,
    is_claimed: bool,
}

impl Whole {
    /// The object.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Whether it is a Deployment of Flagger.
    pub(super) fn is_original(&self) -> bool {
        self.is_original
    }

    /// Whether it bears a claim of ours, be it over or not.
    pub(super) fn is_claimed(&self) -> bool {
        self.is_claimed
    }
}

impl Projection for Whole {
    const READS: Parts = WHOLE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let template = object.pointer("/spec/template");
        let configs = template.map(references).unwrap_or_default();
        Ok(Self {
            text: object.to_string().into_boxed_str(),
            configs: configs.into_keys().map(|config| config.name).collect(),
            is_original: original::is_it(object),
            is_claimed: claims::read(object).is_some_and(|claim| claim.holder == NAME),
        })
    }
}

/// A workload as an index is given it.
pub(super) fn whole(seen: &Seen) -> Option<&Whole> {
    seen.body.as_ref().ok()?.downcast_ref::<Whole>()
}

/// What [`CONFIGS`] finds a workload by.
pub(super) fn index_configs(seen: &Seen) -> Vec<String> {
    let configs = whole(seen).map_or(&[][..], |one| one.configs.as_slice());
    // What a config of the copy was before, and while there is no copy what it will be configured with, is nobody's that a template
    // names.
    let each = configs.iter().flat_map(|name| {
        [
            name.clone(),
            format!("{name}{PRIMARY}"),
            format!("{name}{FORMER}"),
        ]
    });
    each.map(|name| place(&seen.meta.namespace, &name))
        .collect()
}

/// What the version that serves is configured with.
pub(super) fn served(canary: &Canary) -> Vec<Config> {
    let status = canary.status.as_ref();
    let run = status.and_then(|status| status.run.as_ref());
    let configs = run.and_then(|run| run.promoted_configs.as_ref());
    let keys = configs.into_iter().flatten().map(|(key, _)| key);
    keys.filter_map(|key| Config::of(key)).collect()
}

/// What [`SERVES`] finds a Canary by.
pub(super) fn index_serves(seen: &Seen) -> Vec<String> {
    let served = read(seen).map(served).unwrap_or_default();
    let each = served.iter().flat_map(|config| {
        let (copy, former) = (config.copy(), config.former());
        [config.name.clone(), copy.name, former.name]
    });
    each.map(|name| place(&seen.meta.namespace, &name))
        .collect()
}

/// What is kept of a `ConfigMap` or Secret: nothing of its values.
#[derive(Debug, Clone)]
pub struct ConfigSeen {
    /// What is known of it.
    pub known: Known,
    /// What its values are called.
    pub keys: BTreeSet<String>,
    /// Whose it is.
    pub owners: Vec<Value>,
}

impl ConfigSeen {
    fn of(kind: ConfigKind, object: &Value) -> Self {
        let data = object.get("data").and_then(Value::as_object);
        let keys = data.into_iter().flat_map(|data| data.keys().cloned());
        Self {
            known: known(kind, object),
            keys: keys.collect(),
            owners: list(object, "/metadata/ownerReferences").cloned().collect(),
        }
    }
}

/// A `ConfigMap`.
#[derive(Debug, Clone)]
pub struct MapSeen(pub ConfigSeen);

impl Projection for MapSeen {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self(ConfigSeen::of(ConfigKind::ConfigMap, object)))
    }
}

/// A Secret.
#[derive(Debug, Clone)]
pub struct SecretSeen(pub ConfigSeen);

impl Projection for SecretSeen {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self(ConfigSeen::of(ConfigKind::Secret, object)))
    }
}

/// An object that is kept as it is meant, or why it cannot be read.
#[derive(Debug, Clone)]
pub struct Meant<T>(pub Result<T, String>);

impl<T> Projection for Meant<T>
where
    T: DeserializeOwned + Debug + Send + Sync + 'static,
{
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let read = serde_json::from_value(object.clone());
        Ok(Self(read.map_err(|error| error.to_string())))
    }
}

/// A `MetricTemplate`.
pub type TemplateSeen = Meant<MetricTemplate>;
/// An `AlertProvider`.
pub type ProviderSeen = Meant<AlertProvider>;
