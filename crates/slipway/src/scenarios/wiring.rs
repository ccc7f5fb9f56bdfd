//! The operator as scenarios want it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use slipway_kernel::duration;
use slipway_kernel::permission::Permission;
use slipway_sim::oracles::Oracles;
use slipway_sim::share::Share;
use slipway_sim::stage::{NAMESPACE, Probe, Setup, Wiring};

use crate::capabilities::{Common, Entry, Served};
use crate::registry::Registry;
use crate::{manifests, registry};

/// A scenario's `settings`, as far as they are about all capabilities.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Settings {
    /// Which capabilities there are; the first if nothing is said.
    controllers: Vec<String>,
    /// Whether their webhooks are registered and served.
    webhooks: bool,
    /// Whether it has no right to write anything down about evictions: the role of the program that zones replace.
    keeps_nothing: bool,
    /// Whether whoever starts the operator says that there is one replica.
    alone: bool,
    /// Only these namespaces are watched.
    namespaces: Vec<String>,
    /// After this time everything is listed again.
    relist: Option<String>,
    /// What is about single ones.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Sets operators up as scenarios say.
pub fn wiring() -> Wiring {
    wiring_of(&Registry::default())
}

/// The same, with these capabilities.
pub(crate) fn wiring_of(registry: &Registry) -> Wiring {
    // A definition that cannot be written down is found by a test of the registry.
    let definitions = registry::definitions(&registry.profiles()).unwrap_or_default();
    let specifics = registry.all().iter().map(|entry| entry.specifics);
    let oracles = Oracles::with(specifics.collect());
    let shares = registry.all().iter().map(|entry| {
        let scenarios = entry.scenarios.iter().map(|(name, _)| (*name).to_owned());
        Share::whole(entry.profile.name, scenarios.collect())
    });
    let shares = shares.collect();
    let registry = registry.clone();
    Wiring {
        operator: Arc::new(move |settings: &Value| setup(&registry, settings)),
        definitions: Arc::new(definitions),
        oracles,
        shares,
    }
}

/// What these capabilities do in other clusters, and what the runtime does there.
fn abroad(chosen: &[&'static Entry]) -> Vec<Permission> {
    let all = chosen.iter().flat_map(|entry| entry.abroad);
    all.copied().collect()
}

fn setup(registry: &Registry, settings: &Value) -> Result<Setup, String> {
    let mut asked: Settings = match settings {
        Value::Null => Settings::default(),
        other => Settings::deserialize(other).map_err(|error| error.to_string())?,
    };
    let chosen = match registry.all() {
        [first, ..] if asked.controllers.is_empty() => vec![*first],
        _ => {
            let named = registry.named(&asked.controllers);
            named.map_err(|error| error.to_string())?
        }
    };
    let common = Common {
        namespace: NAMESPACE,
        deployment: None,
        // Under a role without ConfigMaps there is one.
        is_alone: asked.alone || asked.keeps_nothing,
        webhooks: asked.webhooks.then_some(Served {
            selector: None,
            is_strict: false,
        }),
    };
    let (mut capabilities, mut hooks) = (Vec::new(), Vec::new());
    for entry in &chosen {
        let running = (entry.from_scenario)(&mut asked.rest, &common)?;
        capabilities.push(running.controller);
        hooks.extend(running.hooks);
    }
    if let Some(unknown) = asked.rest.keys().next() {
        return Err(format!("unknown field `{unknown}`"));
    }
    let profiles = registry::profiles(&chosen);
    let mut permissions = registry::permissions(&profiles, false);
    let mut registrations = Vec::new();
    if !hooks.is_empty() {
        // Nothing is served over TLS here, so nothing of that is needed.
        permissions.extend(profiles.iter().flat_map(|one| one.webhook_permissions));
        registrations = manifests::registrations(&profiles, NAMESPACE, &asked.namespaces);
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
        member_permissions: abroad(&chosen),
        tamper: None,
        feign: None,
        probe: Probe::default(),
        is_narrow: false,
        capabilities,
        hooks,
        registrations,
    })
}
