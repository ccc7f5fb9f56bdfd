//! The capabilities that there are, by name, and what the operator may do with them.

use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;
use slipway_api::names::RESTARTS_LEASE;
use slipway_api::zones::LEASE as ZONES_LEASE;
use slipway_kernel::Capability;
use slipway_kernel::admission::Admit;
use slipway_kernel::permission::{Permission, Scope};
use slipway_restarts::Restarts;
use slipway_zones::Zones;
use slipway_zones::admit::{self, Switches};

use crate::exit::Usage;

/// What each capability is set up with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Of restarts.
    pub(crate) restarts: slipway_restarts::Settings,
    /// Of zones.
    pub(crate) zones: slipway_zones::Settings,
    /// How webhooks judge; none where none are served.
    pub(crate) webhooks: Option<Switches>,
}

/// The names of all capabilities.
pub(crate) const NAMES: &[&str] = &[slipway_restarts::NAME, slipway_zones::NAME];

/// The Secret of the certificate that webhooks are served with.
pub(crate) const SECRET: &str = "rollout-operator-self-signed-certificate";

/// The capabilities of these names, each once, in the order of [`NAMES`].
pub(crate) fn capabilities(
    names: &[String],
    settings: &Settings,
) -> Result<Vec<Arc<dyn Capability>>> {
    if let Some(unknown) = names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        let known = NAMES.join(", ");
        return Err(Usage(format!(
            "--controllers: there is no controller {unknown:?}; there are: {known}"
        ))
        .into());
    }
    let is_named = |name: &str| names.iter().any(|named| named == name);
    let mut all: Vec<Arc<dyn Capability>> = Vec::new();
    if is_named(slipway_restarts::NAME) {
        all.push(Arc::new(Restarts::new(settings.restarts.clone())));
    }
    if is_named(slipway_zones::NAME) {
        all.push(Arc::new(Zones::new(settings.zones.clone())));
    }
    Ok(all)
}

/// The webhooks of these capabilities, if webhooks are served.
pub(crate) fn webhooks(
    capabilities: &[Arc<dyn Capability>],
    settings: &Settings,
) -> Vec<Arc<dyn Admit>> {
    let mut all: Vec<Arc<dyn Admit>> = Vec::new();
    if let Some(switches) = settings.webhooks
        && has(capabilities, slipway_zones::NAME)
    {
        let hooks = admit::webhooks(&settings.zones, switches);
        all.extend(hooks.into_iter().map(Arc::from));
    }
    all
}

fn has(capabilities: &[Arc<dyn Capability>], name: &str) -> bool {
    capabilities.iter().any(|c| c.name() == name)
}

const fn own(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    names: &'static [&'static str],
    why: &'static str,
) -> Permission {
    Permission {
        group,
        resource,
        verbs,
        names,
        scope: Scope::Own,
        why,
    }
}

const AGREES: &str = "to agree with other replicas on who acts";

/// The Lease of each capability.
const LEASES: &[(&str, Permission)] = &[
    (
        slipway_restarts::NAME,
        own(
            "coordination.k8s.io",
            "leases",
            &["get", "update"],
            &[RESTARTS_LEASE],
            AGREES,
        ),
    ),
    (
        slipway_zones::NAME,
        own(
            "coordination.k8s.io",
            "leases",
            &["get", "update"],
            &[ZONES_LEASE],
            AGREES,
        ),
    ),
];

/// What the operator itself does beside its capabilities.
const OWN: &[Permission] = &[
    own(
        "coordination.k8s.io",
        "leases",
        &["create"],
        &[],
        "to make the Lease by which replicas agree on who acts",
    ),
    Permission {
        group: "events.k8s.io",
        resource: "events",
        verbs: &["create"],
        names: &[],
        scope: Scope::Watched,
        why: "to tell on an object what was done to it",
    },
];

const fn hooks(resource: &'static str) -> Permission {
    Permission {
        group: "admissionregistration.k8s.io",
        resource,
        verbs: &["list", "watch", "patch"],
        names: &[],
        scope: Scope::Cluster,
        why: "to have our certificate trusted where webhooks are registered",
    }
}

/// What serving webhooks needs besides what they do themselves.
const SERVING: &[Permission] = &[
    own(
        "",
        "secrets",
        &["create"],
        &[],
        "to keep the certificate of the webhooks",
    ),
    own(
        "",
        "secrets",
        &["get", "update"],
        &[SECRET],
        "to keep the certificate of the webhooks, and to renew it",
    ),
    hooks("validatingwebhookconfigurations"),
    hooks("mutatingwebhookconfigurations"),
];

/// All that an operator with these capabilities may do, each line once, in a stable order; also what webhooks do, if
/// they are served.
pub(crate) fn permissions(
    capabilities: &[Arc<dyn Capability>],
    serves_webhooks: bool,
) -> Vec<Permission> {
    let leases = LEASES.iter().filter(|(name, _)| has(capabilities, name));
    let mut all: Vec<Permission> = capabilities
        .iter()
        .flat_map(|capability| capability.permissions())
        .chain(OWN.iter().copied())
        .chain(leases.map(|(_, permission)| *permission))
        .collect();
    if serves_webhooks && has(capabilities, slipway_zones::NAME) {
        all.extend(admit::access::PERMISSIONS);
        all.extend(SERVING);
    }
    all.sort();
    all.dedup();
    all
}

/// The API group of each capability's own kinds.
const GROUPS: &[(&str, &str)] = &[
    (slipway_restarts::NAME, "flipper.io.github.com"),
    (slipway_zones::NAME, "rollout-operator.grafana.com"),
];

/// The definitions of these capabilities' kinds, as objects.
pub(crate) fn definitions(capabilities: &[Arc<dyn Capability>]) -> Result<Vec<Value>> {
    let is_wanted = |group: &str| {
        let owner = GROUPS.iter().find(|(_, owned)| *owned == group);
        owner.is_none_or(|(name, _)| has(capabilities, name))
    };
    let definitions = slipway_api::crds::crds();
    Ok(definitions
        .iter()
        .filter(|definition| is_wanted(&definition.spec.group))
        .map(serde_json::to_value)
        .collect::<serde_json::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_controller_is_wrong_usage_and_the_known_ones_are_named() {
        let names = ["restarts".to_owned(), "restart".to_owned()];
        let Err(error) = capabilities(&names, &Settings::default()) else {
            panic!("there is no such controller");
        };
        assert!(error.is::<Usage>());
        assert!(
            error.to_string().ends_with("there are: restarts, zones"),
            "{error}"
        );
    }

    #[test]
    fn every_kind_is_some_capability_s_own() {
        for definition in slipway_api::crds::crds() {
            let group = definition.spec.group;
            assert!(GROUPS.iter().any(|(_, owned)| *owned == group), "{group}");
        }
    }

    #[test]
    fn every_name_is_a_capability_of_that_name() {
        let names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
        let all = capabilities(&names, &Settings::default()).unwrap();
        let found: Vec<&str> = all.iter().map(|capability| capability.name()).collect();
        assert_eq!(found, NAMES);
    }
}
