//! What a Canary is about, by name: its workload, the Service that clients know, and a person's own route or Ingress.
//!
//! Whoever has weights has to take them back: in the middle of a run, and when all is given back, names are what they were when
//! the run began. A change of them counts from the next run on. Services that clients knew before still lead to the copy: they are
//! remembered until all is given back.

use std::collections::{BTreeMap, BTreeSet};

use slipway_api::canary::{Canary, CanarySpec, TargetRef};

use crate::kinds::DAEMON_SET;
use crate::provider::is_busy;
use crate::standalone::Names;
use crate::standalone::readiness::Workload;

/// What the names of former Services are remembered by, with commas between them.
const FORMER: &str = "former";

/// What things are called that traffic goes by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The workload.
    pub target: String,
    /// Its kind, where that is not looked at for every Canary: a `DaemonSet` has to be, for as long as something was taken of it.
    pub kind: Option<String>,
    /// The Service that clients know.
    pub apex: String,
    /// A person's own route that is changed in place.
    pub route: Option<String>,
    /// A person's own Ingress.
    pub ingress: Option<String>,
    /// The Services that clients knew before.
    pub former: BTreeSet<String>,
}

impl Places {
    /// As a Canary is written.
    pub fn of_spec(spec: &CanarySpec) -> Self {
        let is_http_route = |reference: &&TargetRef| reference.kind == "HTTPRoute";
        let route = spec.route_ref.as_ref().filter(is_http_route);
        let target = &spec.target_ref;
        Self {
            target: target.name.clone(),
            kind: (target.kind == DAEMON_SET.kind).then(|| target.kind.clone()),
            apex: spec.apex().to_owned(),
            route: route.map(|one| one.name.clone()),
            ingress: spec.ingress_ref.as_ref().map(|one| one.name.clone()),
            former: BTreeSet::new(),
        }
    }

    /// Those that count now.
    pub fn of_canary(canary: &Canary) -> Self {
        let written = Self::of_spec(&canary.spec);
        let Some(kept) = Self::of_run(canary) else {
            return written;
        };
        if canary.status.as_ref().is_some_and(is_busy) {
            return kept;
        }
        let mut former = kept.former;
        former.insert(kept.apex);
        former.remove(&written.apex);
        Self { former, ..written }
    }

    /// Those of the last run, or of what was followed since.
    pub fn of_run(canary: &Canary) -> Option<Self> {
        let run = canary.status.as_ref()?.run.as_ref()?;
        Self::read(&run.places)
    }

    /// The kind of the workload.
    pub fn workload(&self) -> Workload {
        let kept = self.kind.as_deref().and_then(Workload::of);
        kept.unwrap_or(Workload::Deployment)
    }

    /// What is called after them.
    pub fn names(&self) -> Names {
        Names::of(&self.target, &self.apex)
    }

    /// The kind of the workload that counts now: in the middle of a run that one's, where it is remembered.
    pub fn kind(canary: &Canary) -> &str {
        let kept = canary.status.as_ref().filter(|status| is_busy(status));
        let kept = kept.and_then(|status| status.run.as_ref()?.places.get("kind"));
        kept.unwrap_or(&canary.spec.target_ref.kind)
    }

    /// Whether these are as a Canary is written. A kind that is not remembered is the one that is written.
    pub fn is_of(&self, spec: &CanarySpec) -> bool {
        let (former, written) = (self.former.clone(), Self::of_spec(spec));
        let kind = self.kind.as_ref().and(written.kind.clone());
        let wanted = Self {
            kind,
            former,
            ..written
        };
        *self == wanted
    }

    /// Whether a Canary is about a `DaemonSet`, or was when it began what it has to give back.
    pub fn has_daemon_set(canary: &Canary) -> bool {
        let kept = Self::of_run(canary).into_iter();
        let mut all = kept.chain([Self::of_spec(&canary.spec)]);
        all.any(|places| places.kind.is_some())
    }

    /// As they were remembered; none if they were not.
    pub fn read(kept: &BTreeMap<String, String>) -> Option<Self> {
        let of = |name: &str| kept.get(name).cloned();
        Some(Self {
            target: of("target")?,
            kind: of("kind"),
            apex: of("apex")?,
            route: of("route"),
            ingress: of("ingress"),
            former: kept
                .get(FORMER)
                .into_iter()
                .flat_map(|names| names.split(','))
                .map(str::to_owned)
                .collect(),
        })
    }

    /// As they are remembered.
    pub fn kept(&self) -> BTreeMap<String, String> {
        let former: Vec<&str> = self.former.iter().map(String::as_str).collect();
        let former = former.join(",");
        let all = [
            ("target", Some(&self.target)),
            ("kind", self.kind.as_ref()),
            ("apex", Some(&self.apex)),
            ("route", self.route.as_ref()),
            ("ingress", self.ingress.as_ref()),
            (FORMER, Some(&former).filter(|names| !names.is_empty())),
        ];
        let each = all
            .into_iter()
            .filter_map(|(of, name)| Some((of.to_owned(), name?.clone())));
        each.collect()
    }
}
