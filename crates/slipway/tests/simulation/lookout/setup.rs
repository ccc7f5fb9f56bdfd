//! The scenarios of the lookout, and the operator with it.

use std::sync::Arc;

use serde_json::Value;
use slipway_kernel::Controller;
use slipway_kernel::permission::{Permission, Scope};
use slipway_runtime::Settings;
use slipway_sim::scenario::Scenario;
use slipway_sim::share::Share;
use slipway_sim::stage::{Probe, Setup, Wiring};

use super::oracles::SPECIFICS;
use super::{LEASE, Lookout, NAME};

/// Names and texts.
const FILES: &[(&str, &str)] = &[
    ("lookout-passage", include_str!("lookout-passage.yaml")),
    ("lookout-failover", include_str!("lookout-failover.yaml")),
];

/// All of them.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let all = FILES.iter();
    all.map(|(name, text)| Scenario::read(name, text).unwrap())
        .collect()
}

/// A scenario by its name.
pub(crate) fn find(name: &str) -> Option<Scenario> {
    scenarios().into_iter().find(|one| one.name == name)
}

const fn right(
    (group, resource): (&'static str, &'static str),
    verbs: &'static [&'static str],
    names: &'static [&'static str],
    scope: Scope,
) -> Permission {
    Permission {
        group,
        resource,
        verbs,
        names,
        scope,
        why: "to play",
    }
}

/// What it may do.
const AT_HOME: &[Permission] = &[
    right(
        ("", "configmaps"),
        &["get", "list", "watch", "patch"],
        &[],
        Scope::Watched,
    ),
    right(("", "secrets"), &["get"], &["gate"], Scope::Watched),
    right(
        ("coordination.k8s.io", "leases"),
        &["create"],
        &[],
        Scope::Own,
    ),
    right(
        ("coordination.k8s.io", "leases"),
        &["get", "update"],
        &[LEASE],
        Scope::Own,
    ),
];

/// The operator with the lookout.
fn setup() -> Setup {
    let capability: Arc<dyn Controller> = Arc::new(Lookout::default());
    Setup {
        settings: Settings::default(),
        capabilities: vec![capability],
        hooks: Vec::new(),
        registrations: Vec::new(),
        permissions: AT_HOME.to_vec(),
        member_permissions: Vec::new(),
        tamper: None,
        feign: None,
        probe: Probe::default(),
        is_narrow: false,
    }
}

fn is_asked_for(settings: &Value) -> bool {
    settings.pointer("/controllers/0").and_then(Value::as_str) == Some(NAME)
}

/// The program's wiring, and the lookout where a scenario asks for it.
pub(crate) fn wiring(program: Wiring) -> Wiring {
    let others = program.operator;
    let operator = move |settings: &Value| {
        if is_asked_for(settings) {
            return Ok(setup());
        }
        others(settings)
    };
    let mut shares = program.shares;
    let own = scenarios().into_iter().map(|one| one.name);
    shares.push(Share::whole(NAME, own.collect()));
    Wiring {
        operator: Arc::new(operator),
        definitions: program.definitions,
        oracles: program.oracles.and(&SPECIFICS),
        shares,
    }
}
