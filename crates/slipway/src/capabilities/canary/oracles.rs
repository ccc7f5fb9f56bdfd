//! The oracles' own reading of Canaries: who serves, how traffic is divided, what was decided. Read from the history alone.

mod routing;
mod running;

pub(super) use routing::{ready, scaled, sent_back, sums};
pub(super) use running::{nothing_left, promoted, remembered};

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::Value;
use slipway_sim::history::{History, Image, Object};

pub(super) const CANARIES: &str = "flagger.app/canaries";
pub(super) const DEPLOYMENTS: &str = "apps/deployments";
pub(super) const SPLITS: &str = "split.smi-spec.io/trafficsplits";

/// How long a new decision may take to reach the data plane's objects where nothing goes wrong.
pub(super) const A_MOMENT: SignedDuration = SignedDuration::from_secs(10);

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

impl<'a> Scene<'a> {
    /// At a version.
    pub(super) fn at(history: &'a History, version: u64) -> Self {
        Self {
            canaries: history.states(CANARIES, version),
            history,
            version,
        }
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

    /// The share of the traffic that the new version has.
    pub(super) fn share(&self, canary: &Canary<'_>) -> i64 {
        let split = self.object(canary, SPLITS, &canary.apex());
        split.map_or(0, |split| {
            share(split, &format!("{}-canary", canary.apex()))
        })
    }
}

/// What a Service gets of a split, in percent.
pub(super) fn share(split: &Image, service: &str) -> i64 {
    let backends = split.at("/spec/backends").and_then(Value::as_array);
    let mut backends = backends.into_iter().flatten();
    let backend = backends.find(|one| one.get("service").and_then(Value::as_str) == Some(service));
    let weight = backend.and_then(|one| one.get("weight")?.as_i64());
    weight.unwrap_or_default()
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

    pub(super) fn apex(&self) -> String {
        let named = self.image.text("/spec/service/name");
        named.map_or_else(|| self.target(), str::to_owned)
    }

    pub(super) fn phase(&self) -> &str {
        self.text("/status/phase")
    }

    /// Whether an object is one that it may write.
    pub(super) fn is_about(&self, object: &Object) -> bool {
        let (resource, namespace, name) = object;
        if *namespace != self.object.1 {
            return false;
        }
        let is_one_of = |names: &[String]| names.iter().any(|one| **one == **name);
        let (target, apex) = (self.target(), self.apex());
        match &**resource {
            DEPLOYMENTS | "apps/daemonsets" => is_one_of(&[self.primary(), target]),
            "/services" => is_one_of(&[format!("{apex}-primary"), format!("{apex}-canary"), apex]),
            "autoscaling/horizontalpodautoscalers" => {
                let own = self.text("/spec/autoscalerRef/name");
                **name == *format!("{own}-primary")
            }
            SPLITS => is_one_of(&[apex]),
            _ => false,
        }
    }
}

/// Whether as many pods of a Deployment are available as are asked for, and there are some.
pub(super) fn is_ready(deployment: &Image) -> bool {
    let asked = deployment.number("/spec/replicas");
    let seen = deployment.number("/status/observedGeneration");
    asked > 0
        && deployment.number("/status/availableReplicas") >= asked
        && deployment.number("/status/updatedReplicas") >= asked
        && seen >= deployment.number("/metadata/generation")
}
