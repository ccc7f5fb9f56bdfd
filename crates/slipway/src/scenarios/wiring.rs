//! The operator as scenarios want it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use slipway_kernel::duration;
use slipway_restarts::{DefaultCriteria, Scope};
use slipway_sim::stage::{NAMESPACE, Probe, Setup, Wiring};
use slipway_zones::admit::Switches;

use crate::{manifests, registry};

/// A scenario's `settings`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches, as a person writes them"
)]
struct Settings {
    /// Which capabilities there are; restarts if nothing is said.
    controllers: Vec<String>,
    /// Whether their webhooks are registered and served.
    webhooks: bool,
    /// Whether the times of downscales are kept in the zone tracker.
    tracks_zones: bool,
    /// Whether it has no right to write anything down about evictions: the role of the program that zones replace.
    keeps_nothing: bool,
    /// Only these namespaces are watched.
    namespaces: Vec<String>,
    /// After this time everything is listed again.
    relist: Option<String>,
    /// Whether the default criteria are on.
    default_criteria: bool,
    /// The interval of the default criteria.
    default_interval: Option<String>,
    /// Whether Flippers reach all namespaces.
    cluster_wide: bool,
    /// Namespaces that are left alone unless a policy names them.
    protected_namespaces: Option<BTreeSet<String>>,
    /// How many workloads may be rolling at once, over all policies.
    max_concurrent: Option<usize>,
}

/// Sets operators up as scenarios say.
pub fn wiring() -> Wiring {
    Wiring {
        operator: Arc::new(setup),
        definitions: Arc::new(definitions()),
    }
}

/// Those of all capabilities.
fn definitions() -> Vec<Value> {
    let definitions = slipway_api::crds::crds();
    let values = definitions.iter().map(serde_json::to_value);
    values.filter_map(Result::ok).collect()
}

fn setup(settings: &Value) -> Result<Setup, String> {
    let asked: Settings = match settings {
        Value::Null => Settings::default(),
        other => Settings::deserialize(other).map_err(|error| error.to_string())?,
    };
    let settings = registry::Settings {
        restarts: restarts(&asked)?,
        webhooks: asked.webhooks.then_some(Switches {
            tracks_zones: asked.tracks_zones,
            is_strict: false,
        }),
        ..registry::Settings::default()
    };
    let names = if asked.controllers.is_empty() {
        vec![slipway_restarts::NAME.to_owned()]
    } else {
        asked.controllers.clone()
    };
    let capabilities =
        registry::capabilities(&names, &settings).map_err(|error| error.to_string())?;
    let hooks = registry::webhooks(&capabilities, &settings);
    let mut permissions = registry::permissions(&capabilities, false);
    let mut registrations = Vec::new();
    if !hooks.is_empty() {
        // Nothing is served over TLS here, so nothing of that is needed.
        permissions.extend(slipway_zones::admit::access::PERMISSIONS);
        registrations = manifests::registrations(NAMESPACE, &asked.namespaces);
    }
    if asked.keeps_nothing {
        permissions.retain(|permission| permission.resource != "configmaps");
    }
    let defaults = slipway_runtime::Settings::default();
    let relist = match &asked.relist {
        None => defaults.relist,
        Some(text) => duration::parse(text).map_err(|error| format!("relist: {error}"))?,
    };
    Ok(Setup {
        settings: slipway_runtime::Settings {
            namespaces: asked.namespaces,
            relist,
            ..defaults
        },
        permissions,
        tamper: None,
        feign: None,
        probe: Probe::default(),
        capabilities,
        hooks,
        registrations,
    })
}

fn restarts(asked: &Settings) -> Result<slipway_restarts::Settings, String> {
    let interval = match &asked.default_interval {
        None => slipway_restarts::settings::DEFAULT_INTERVAL,
        Some(text) => duration::parse(text).map_err(|error| format!("defaultInterval: {error}"))?,
    };
    let usual = slipway_restarts::Settings::default();
    let protected = asked.protected_namespaces.clone();
    Ok(slipway_restarts::Settings {
        default_criteria: asked.default_criteria.then(|| criteria(interval)),
        scope: if asked.cluster_wide {
            Scope::Cluster
        } else {
            Scope::OwnNamespace
        },
        protected_namespaces: protected.unwrap_or(usual.protected_namespaces),
        operator_namespace: Some(NAMESPACE.to_owned()),
        max_concurrent: asked.max_concurrent,
        ..usual
    })
}

fn criteria(interval: Duration) -> DefaultCriteria {
    DefaultCriteria {
        interval,
        labels: BTreeMap::from([("mesh".to_owned(), "true".to_owned())]),
        ..DefaultCriteria::default()
    }
}
