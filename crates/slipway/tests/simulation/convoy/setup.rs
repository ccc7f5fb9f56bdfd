//! The scenarios of the convoy, and the operator with it.

use std::sync::Arc;

use serde_json::Value;
use slipway_kernel::Controller;
use slipway_kernel::permission::{Permission, Scope};
use slipway_runtime::Settings;
use slipway_sim::scenario::Scenario;
use slipway_sim::share::Share;
use slipway_sim::stage::{Probe, Setup, Wiring};

use super::oracles::SPECIFICS;
use super::{Convoy, LEASE, NAME};

/// The convoy is there for what it shows of the runtime: a quarter of what a capability gets.
const WEIGHT: u32 = Share::WHOLE / 4;

/// Names and texts.
const FILES: &[(&str, &str)] = &[
    ("members-quiet", include_str!("members-quiet.yaml")),
    ("members-apart", include_str!("members-apart.yaml")),
    ("member-lost", include_str!("member-lost.yaml")),
    ("member-replaced", include_str!("member-replaced.yaml")),
    ("member-confirmed", include_str!("member-confirmed.yaml")),
    ("member-rotated", include_str!("member-rotated.yaml")),
    ("member-forbidden", include_str!("member-forbidden.yaml")),
    ("members-failover", include_str!("members-failover.yaml")),
    ("members-fenced", include_str!("members-fenced.yaml")),
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

/// What it may do at home.
const AT_HOME: &[Permission] = &[
    right(
        ("", "configmaps"),
        &["get", "list", "watch", "patch"],
        &[],
        Scope::Watched,
    ),
    right(
        ("", "secrets"),
        &["get", "list", "watch"],
        &[],
        Scope::Watched,
    ),
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

/// What it may do in members.
const IN_MEMBERS: &[Permission] = &[
    right(("", "configmaps"), &["list", "watch"], &[], Scope::Watched),
    right(
        ("apps", "deployments"),
        &["get", "list", "watch", "patch"],
        &[],
        Scope::Watched,
    ),
    right(
        ("flipper.io.github.com", "flippers"),
        &["list", "watch"],
        &[],
        Scope::Watched,
    ),
    right(
        ("", "namespaces"),
        &["get"],
        &["kube-system"],
        Scope::Cluster,
    ),
];

/// The operator with the convoy.
fn setup() -> Setup {
    let capability: Arc<dyn Controller> = Arc::new(Convoy::default());
    Setup {
        settings: Settings::default(),
        capabilities: vec![capability],
        hooks: Vec::new(),
        registrations: Vec::new(),
        permissions: AT_HOME.to_vec(),
        member_permissions: IN_MEMBERS.to_vec(),
        tamper: None,
        feign: None,
        probe: Probe::default(),
        is_narrow: false,
    }
}

fn is_asked_for(settings: &Value) -> bool {
    settings.pointer("/controllers/0").and_then(Value::as_str) == Some(NAME)
}

/// The program's wiring, and the convoy where a scenario asks for it.
pub(crate) fn wiring(program: Wiring) -> Wiring {
    let others = program.operator;
    let operator = move |settings: &Value| {
        if is_asked_for(settings) {
            return Ok(setup());
        }
        others(settings)
    };
    let mut shares = program.shares;
    shares.push(Share {
        weight: WEIGHT,
        ..Share::whole(NAME, scenarios().into_iter().map(|one| one.name).collect())
    });
    Wiring {
        operator: Arc::new(operator),
        definitions: program.definitions,
        oracles: program.oracles.and(&SPECIFICS),
        shares,
    }
}
