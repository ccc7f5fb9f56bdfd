//! What shifts traffic, by the names that Flagger's users write.

use std::fmt;

use slipway_api::canary::{Canary, CanaryStatus, Phase};

use crate::router::{self, Router};

/// A router that is built, with the version of its API that was asked for.
#[derive(Clone, Copy)]
pub struct Provider {
    router: &'static Router,
    version: &'static str,
}

impl PartialEq for Provider {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.router, other.router) && self.version == other.version
    }
}

impl Eq for Provider {}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.version)
    }
}

/// Why a provider is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAProvider {
    /// Flagger knows it, and it is not built.
    #[error(
        "provider {0} is not supported; use gatewayapi:v1, istio, smi:v1alpha2, nginx, kubernetes:replicas or kubernetes"
    )]
    NotBuilt(String),
    /// Nobody knows it.
    #[error(
        "provider {0:?} does not exist; use gatewayapi:v1, istio, smi:v1alpha2, nginx, kubernetes:replicas or kubernetes"
    )]
    Unknown(String),
}

/// Those that Flagger knows and that are not built.
const NOT_BUILT: [&str; 9] = [
    "apisix",
    "appmesh",
    "appmesh:v1beta2",
    "contour",
    "gloo",
    "knative",
    "kuma",
    "skipper",
    "traefik",
];

impl Provider {
    /// What Flagger takes where nothing is said.
    pub const USUAL: &'static str = "istio";

    /// The provider of this name.
    pub fn of(name: &str) -> Result<Self, NotAProvider> {
        if let Some(found) = Self::all().find(|(known, _)| *known == name) {
            return Ok(found.1);
        }
        Err(if NOT_BUILT.contains(&name) {
            NotAProvider::NotBuilt(name.to_owned())
        } else {
            NotAProvider::Unknown(name.to_owned())
        })
    }

    /// What shifts the traffic of a Canary, where `usual` does if it does not say. In the middle of a run it is what it was
    /// when that began: whoever has the weights has to take them back. What is given back is what was taken last.
    pub fn of_canary(canary: &Canary, usual: Self) -> Result<Self, NotAProvider> {
        Self::said(canary).unwrap_or(Ok(usual))
    }

    /// The same; none if it does not say.
    pub fn said(canary: &Canary) -> Option<Result<Self, NotAProvider>> {
        let is_kept = canary.status.as_ref().is_some_and(is_busy);
        if let Some(kept) = Self::of_run(canary).filter(|_| is_kept) {
            return Some(Ok(kept));
        }
        let written = canary.spec.provider.as_deref();
        written.filter(|name| !name.is_empty()).map(Self::of)
    }

    /// What shifted the traffic of a Canary's last run, or of what was followed since.
    pub fn of_run(canary: &Canary) -> Option<Self> {
        let run = canary.status.as_ref()?.run.as_ref()?;
        Self::of(run.provider.as_deref()?).ok()
    }

    /// All that are built, by each of their names.
    pub fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let routers = router::ALL.iter().copied();
        routers.flat_map(|router| {
            let names = router.names.iter();
            names.map(move |&(name, version)| (name, Self { router, version }))
        })
    }

    /// The first name of its router.
    pub fn name(self) -> &'static str {
        self.router.names.first().map_or("", |(name, _)| *name)
    }

    /// A name that means it, with the version of its API.
    pub fn full_name(self) -> &'static str {
        let mut all = Self::all();
        let found = all.find(|(_, provider)| *provider == self);
        found.map_or("", |(name, _)| name)
    }

    /// What does it.
    pub fn router(self) -> &'static Router {
        self.router
    }

    /// The version of its API.
    pub fn version(self) -> &'static str {
        self.version
    }

    /// Whether it can shift traffic at all.
    pub fn shifts(self) -> bool {
        self.router.can.shift
    }

    /// Whether the weights are the numbers of replicas, because nobody divides requests.
    pub fn divides(self) -> bool {
        self.router.divides
    }

    /// Whether it can send some requests elsewhere by what is in them.
    pub fn matches(self) -> bool {
        self.router.can.match_requests
    }

    /// Whether it can copy requests.
    pub fn mirrors(self) -> bool {
        self.router.can.mirror
    }

    /// Whether it can keep a client at the version that it has seen.
    pub fn has_affinity(self) -> bool {
        self.router.can.keep_clients
    }
}

/// Whether a run goes on, has left weights behind, or is to be undone.
pub(crate) fn is_busy(status: &CanaryStatus) -> bool {
    let is_draining = status.run.as_ref().is_some_and(|run| run.draining);
    let phase = Phase::of(status.phase.as_deref());
    let is_ending = phase == Phase::Terminating;
    phase.is_running() || is_ending || status.canary_weight > 0 || is_draining
}

impl Default for Provider {
    fn default() -> Self {
        Self {
            router: &router::istio::ROUTER,
            version: "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NOT_BUILT, NotAProvider, Provider};

    #[test]
    fn d18_what_nobody_knows_is_not_taken_for_istio() {
        let unknown = Err(NotAProvider::Unknown("istoi".to_owned()));
        assert_eq!(Provider::of("istoi"), unknown);
        assert_eq!(Provider::of("istio"), Ok(Provider::default()));
        assert_eq!(Provider::of(Provider::USUAL), Ok(Provider::default()));
    }

    #[test]
    fn every_name_is_one_provider_s() {
        let names: Vec<&str> = Provider::all().map(|(name, _)| name).collect();
        let different: std::collections::BTreeSet<&&str> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        for name in NOT_BUILT {
            assert!(!names.contains(&name), "{name}");
        }
    }

    #[test]
    fn every_spelling_of_the_original_is_known() {
        let built = [
            "gatewayapi:v1",
            "gatewayapi:v1beta1",
            "istio",
            "kubernetes",
            "linkerd",
            "nginx",
            "osm",
            "smi:v1alpha1",
            "smi:v1alpha2",
            "smi:v1alpha3",
        ];
        for name in built {
            assert!(Provider::of(name).is_ok(), "{name}");
        }
        for name in NOT_BUILT {
            let refused = Err(NotAProvider::NotBuilt(name.to_owned()));
            assert_eq!(Provider::of(name), refused);
        }
    }
}
