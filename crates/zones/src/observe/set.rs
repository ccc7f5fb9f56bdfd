//! `StatefulSet`s: what a zone asks for, and what its controller says of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use slipway_api::{names, zones};
use slipway_kernel::fields::{integer, strings, text};
use slipway_kernel::instant::Written;
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::store::{Projection, Undecodable};

use crate::group::{self, MaxUnavailable, NotAShare};

/// What is kept of a `StatefulSet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// How many pods may be unavailable.
    pub max_unavailable: Result<MaxUnavailable, NotAShare>,
    /// Whether its pods are left alone.
    pub is_paused: bool,
    /// Who disrupts it now.
    pub claim: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Its update strategy.
    pub strategy: String,
    /// How many pods it should have, if that is said.
    pub replicas: Option<i64>,
    /// The ordinal of its first pod.
    pub start: i64,
    /// How long a pod must have been ready to count as available.
    pub min_ready: Duration,
    /// The service that its pods are addressed by.
    pub service: String,
    /// The template's label `name`.
    pub pod_name_label: Option<String>,
    /// What it says about its replicas.
    pub scaling: Scaling,
    /// What its controller says.
    pub status: Status,
}

/// What a `StatefulSet` says about where its replicas come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scaling {
    /// The zone whose replicas are followed.
    pub leader: Option<String>,
    /// Whether to scale up only when the leader is ready.
    pub only_when_leader_ready: bool,
    /// The least time between downscales, as written.
    pub min_time: Option<String>,
    /// When it was last scaled down.
    pub last_downscale: Written,
    /// Replicas that override others.
    pub force: Option<i64>,
    /// The resource whose replicas are mirrored.
    pub mirror: Option<Mirror>,
    /// Where its pods are told by the prepare-downscale webhook that they go or stay; the host stands for any.
    pub prepare: Option<String>,
    /// How long pods must have been prepared, and where they are asked to, as written; both are there.
    pub delay: Option<(String, String)>,
}

/// A resource whose replicas are mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Its API version, as written.
    pub api_version: String,
    /// Whether the replicas are written back.
    pub write_back: bool,
}

/// What a `StatefulSet`'s controller says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The generation that all this is about.
    pub observed_generation: i64,
    /// Pods there are.
    pub replicas: i64,
    /// Pods that are ready.
    pub ready: i64,
    /// The revision that pods were of.
    pub current_revision: String,
    /// The revision that pods are to be of.
    pub update_revision: String,
}

impl Projection for Set {
    const READS: Parts = Parts::NONE.and(Part::Status);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let annotations = object.pointer("/metadata/annotations");
        let annotation = |name: &str| annotations.and_then(|all| all.get(name)?.as_str());
        let labels = strings(object, "/metadata/labels");
        let seconds = integer(object, "/spec/minReadySeconds").unwrap_or_default();
        let strategy = text(object, "/spec/updateStrategy/type").unwrap_or("RollingUpdate");
        Ok(Self {
            max_unavailable: annotation(zones::MAX_UNAVAILABLE)
                .map_or(Ok(MaxUnavailable::DEFAULT), MaxUnavailable::read),
            is_paused: annotation(zones::PAUSED) == Some("true"),
            claim: annotation(names::DISRUPTION_CLAIM).map(str::to_owned),
            is_deleting: text(object, "/metadata/deletionTimestamp").is_some(),
            strategy: strategy.to_owned(),
            replicas: integer(object, "/spec/replicas"),
            start: integer(object, "/spec/ordinals/start").unwrap_or_default(),
            min_ready: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            service: owned(object, "/spec/serviceName"),
            pod_name_label: object
                .pointer("/spec/template/metadata/labels")
                .and_then(|all| Some(all.get(zones::NAME_LABEL)?.as_str()?.to_owned())),
            scaling: scaling(&annotation, labels.get(zones::MIN_TIME_BETWEEN_DOWNSCALES)),
            status: status(object),
            labels,
        })
    }
}

fn owned(object: &Value, path: &str) -> String {
    text(object, path).unwrap_or_default().to_owned()
}

fn scaling<'a>(
    annotation: &impl Fn(&str) -> Option<&'a str>,
    min_time: Option<&String>,
) -> Scaling {
    let filled = |name: &str| {
        annotation(name)
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
    };
    let mirror = || {
        Some(Mirror {
            name: filled(zones::MIRROR_NAME)?,
            kind: filled(zones::MIRROR_KIND)?,
            api_version: filled(zones::MIRROR_API_VERSION).unwrap_or_default(),
            write_back: group::write_back(annotation(zones::MIRROR_WRITE_BACK)),
        })
    };
    let delay = || {
        Some((
            filled(zones::DELAYED_DOWNSCALE)?,
            filled(zones::PREPARE_DELAYED_DOWNSCALE_URL)?,
        ))
    };
    let prepare = || {
        let port = filled(zones::PREPARE_DOWNSCALE_PORT)?;
        let path = filled(zones::PREPARE_DOWNSCALE_PATH)?;
        Some(format!(
            "http://pod:{port}/{}",
            path.trim_start_matches('/')
        ))
    };
    Scaling {
        prepare: prepare(),
        leader: annotation(zones::DOWNSCALE_LEADER).map(str::to_owned),
        only_when_leader_ready: annotation(zones::UPSCALE_ONLY_WHEN_LEADER_READY) == Some("true"),
        min_time: min_time.cloned(),
        last_downscale: Written::read(annotation(zones::LAST_DOWNSCALE)),
        force: group::force_replicas(annotation(zones::FORCE_REPLICAS)),
        mirror: mirror(),
        delay: delay(),
    }
}

fn status(object: &Value) -> Status {
    let number = |path: &str| integer(object, path).unwrap_or_default();
    Status {
        observed_generation: number("/status/observedGeneration"),
        replicas: number("/status/replicas"),
        ready: number("/status/readyReplicas"),
        current_revision: owned(object, "/status/currentRevision"),
        update_revision: owned(object, "/status/updateRevision"),
    }
}

impl Set {
    /// Its rollout group.
    pub fn group(&self) -> Option<&str> {
        self.labels.get(zones::ROLLOUT_GROUP).map(String::as_str)
    }

    /// How many pods it should have.
    pub fn desired(&self) -> i64 {
        self.replicas.unwrap_or(1)
    }

    /// How many of its pods may be unavailable: at least one, and no more than there should be.
    pub fn most_unavailable(&self) -> i64 {
        let share = self.max_unavailable.as_ref();
        let most = share.map_or(MaxUnavailable::DEFAULT, |share| *share);
        most.of(self.replicas).min(self.desired().max(1))
    }

    /// How many pods are not ready, by its status.
    pub fn gap(&self) -> i64 {
        (self.status.replicas - self.status.ready).max(0)
    }
}
