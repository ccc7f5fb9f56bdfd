//! What a Canary is about, by name: its workload, the Service that clients know, and a person's own route or Ingress.
//!
//! Whoever has weights has to take them back: in the middle of a run, and when all is given back, names are what they were when
//! the run began. A change of them counts from the next run on.

use std::collections::BTreeMap;

use slipway_api::canary::{Canary, CanarySpec, TargetRef};

use crate::provider::is_busy;

/// What things are called that traffic goes by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The workload.
    pub target: String,
    /// The Service that clients know.
    pub apex: String,
    /// A person's own route that is changed in place.
    pub route: Option<String>,
    /// A person's own Ingress.
    pub ingress: Option<String>,
}

impl Places {
    /// As a Canary is written.
    pub fn of_spec(spec: &CanarySpec) -> Self {
        let is_http_route = |reference: &&TargetRef| reference.kind == "HTTPRoute";
        let route = spec.route_ref.as_ref().filter(is_http_route);
        Self {
            target: spec.target_ref.name.clone(),
            apex: spec.apex().to_owned(),
            route: route.map(|one| one.name.clone()),
            ingress: spec.ingress_ref.as_ref().map(|one| one.name.clone()),
        }
    }

    /// Those that count now.
    pub fn of_canary(canary: &Canary) -> Self {
        let status = canary.status.as_ref().filter(|status| is_busy(status));
        let run = status.and_then(|status| status.run.as_ref());
        let kept = run.and_then(|run| Self::read(&run.places));
        kept.unwrap_or_else(|| Self::of_spec(&canary.spec))
    }

    /// As they were remembered; none if they were not.
    pub fn read(kept: &BTreeMap<String, String>) -> Option<Self> {
        let of = |name: &str| kept.get(name).cloned();
        Some(Self {
            target: of("target")?,
            apex: of("apex")?,
            route: of("route"),
            ingress: of("ingress"),
        })
    }

    /// As they are remembered.
    pub fn kept(&self) -> BTreeMap<String, String> {
        let all = [
            ("target", Some(&self.target)),
            ("apex", Some(&self.apex)),
            ("route", self.route.as_ref()),
            ("ingress", self.ingress.as_ref()),
        ];
        let each = all
            .into_iter()
            .filter_map(|(of, name)| Some((of.to_owned(), name?.clone())));
        each.collect()
    }
}
