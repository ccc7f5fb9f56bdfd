//! What shifts traffic, by the names that Flagger's users write.

/// A router that is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// Plain Services: the target never has live traffic.
    Kubernetes,
    /// Gateway API, by its version.
    Gateway(&'static str),
    /// Istio.
    Istio,
    /// SMI, by its version.
    Smi(&'static str),
    /// ingress-nginx.
    Nginx,
}

/// Why a provider is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAProvider {
    /// Flagger knows it, and it is not built.
    #[error(
        "provider {0} is not supported; use gatewayapi:v1, istio, smi:v1alpha2, nginx or kubernetes"
    )]
    NotBuilt(String),
    /// Nobody knows it.
    #[error(
        "provider {0:?} does not exist; use gatewayapi:v1, istio, smi:v1alpha2, nginx or kubernetes"
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
    /// The provider of this name.
    pub fn of(name: &str) -> Result<Self, NotAProvider> {
        Ok(match name {
            "kubernetes" => Self::Kubernetes,
            "gatewayapi" | "gatewayapi:v1" => Self::Gateway("v1"),
            "gatewayapi:v1beta1" => Self::Gateway("v1beta1"),
            "istio" => Self::Istio,
            "smi:v1alpha1" => Self::Smi("v1alpha1"),
            "smi" | "smi:v1alpha2" | "linkerd" | "osm" => Self::Smi("v1alpha2"),
            "smi:v1alpha3" => Self::Smi("v1alpha3"),
            "nginx" => Self::Nginx,
            name if NOT_BUILT.contains(&name) => {
                return Err(NotAProvider::NotBuilt(name.to_owned()));
            }
            name => return Err(NotAProvider::Unknown(name.to_owned())),
        })
    }

    /// All that are built, each version once.
    pub const ALL: [Self; 8] = [
        Self::Kubernetes,
        Self::Gateway("v1"),
        Self::Gateway("v1beta1"),
        Self::Istio,
        Self::Smi("v1alpha1"),
        Self::Smi("v1alpha2"),
        Self::Smi("v1alpha3"),
        Self::Nginx,
    ];

    /// Whether it can shift traffic at all.
    pub fn shifts(self) -> bool {
        self != Self::Kubernetes
    }

    /// Whether it can send some requests elsewhere by what is in them.
    pub fn matches(self) -> bool {
        matches!(self, Self::Gateway(_) | Self::Istio | Self::Nginx)
    }

    /// Whether it can copy requests.
    pub fn mirrors(self) -> bool {
        matches!(self, Self::Gateway(_) | Self::Istio)
    }

    /// Whether it can keep a client at the version that it has seen.
    pub fn has_affinity(self) -> bool {
        matches!(self, Self::Gateway(_) | Self::Istio)
    }
}

#[cfg(test)]
mod tests {
    use super::{NOT_BUILT, NotAProvider, Provider};

    #[test]
    fn d18_what_nobody_knows_is_not_taken_for_istio() {
        let unknown = Err(NotAProvider::Unknown("istoi".to_owned()));
        assert_eq!(Provider::of("istoi"), unknown);
        assert_eq!(Provider::of("istio"), Ok(Provider::Istio));
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
