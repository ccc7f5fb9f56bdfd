//! The capabilities that there are, by name, and what the operator may do with them.

use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;
use slipway_api::names::RESTARTS_LEASE;
use slipway_kernel::Capability;
use slipway_kernel::permission::{Permission, Scope};
use slipway_restarts::Restarts;

use crate::exit::Usage;

/// What each capability is set up with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Of restarts.
    pub(crate) restarts: slipway_restarts::Settings,
}

/// The names of all capabilities.
pub(crate) const NAMES: &[&str] = &[slipway_restarts::NAME];

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
    let mut all: Vec<Arc<dyn Capability>> = Vec::new();
    if names.iter().any(|name| name == slipway_restarts::NAME) {
        all.push(Arc::new(Restarts::new(settings.restarts.clone())));
    }
    Ok(all)
}

/// What the operator itself does beside its capabilities.
const OWN: &[Permission] = &[
    Permission {
        group: "coordination.k8s.io",
        resource: "leases",
        verbs: &["get", "update"],
        names: &[RESTARTS_LEASE],
        scope: Scope::Own,
        why: "to agree with other replicas on who acts",
    },
    Permission {
        group: "coordination.k8s.io",
        resource: "leases",
        verbs: &["create"],
        names: &[],
        scope: Scope::Own,
        why: "to make the Lease by which replicas agree on who acts",
    },
    Permission {
        group: "events.k8s.io",
        resource: "events",
        verbs: &["create"],
        names: &[],
        scope: Scope::Watched,
        why: "to tell on an object what was done to it",
    },
];

/// All that an operator with these capabilities may do, each line once, in a stable order.
pub(crate) fn permissions(capabilities: &[Arc<dyn Capability>]) -> Vec<Permission> {
    let mut all: Vec<Permission> = capabilities
        .iter()
        .flat_map(|capability| capability.permissions())
        .chain(OWN.iter().copied())
        .collect();
    all.sort();
    all.dedup();
    all
}

/// The definitions of our kinds, as objects.
pub(crate) fn definitions() -> Result<Vec<Value>> {
    let definitions = slipway_api::crds::crds();
    Ok(definitions
        .iter()
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
            error.to_string().ends_with("there are: restarts"),
            "{error}"
        );
    }

    #[test]
    fn every_name_is_a_capability_of_that_name() {
        let names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
        let all = capabilities(&names, &Settings::default()).unwrap();
        let found: Vec<&str> = all.iter().map(|capability| capability.name()).collect();
        assert_eq!(found, NAMES);
    }
}
