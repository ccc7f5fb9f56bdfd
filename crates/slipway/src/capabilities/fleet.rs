//! The fleet, as this program runs, installs, plays and judges it.

mod oracles;
mod specifics;

use clap::Args;
use slipway_fleet::{CAPABILITY, Settings};
use slipway_kernel::permission::{Permission, Scope};

use super::{Entry, Running, scenarios};
pub(crate) use specifics::AGENT_SPECIFICS;

/// The fleet.
pub(crate) static ENTRY: Entry = Entry {
    profile: &CAPABILITY.profile,
    options: FleetOptions::augment_args,
    from_options: |_, _| Ok(running(&Settings::default())),
    from_scenario: |_, _| Ok(running(&Settings::default())),
    scenarios: scenarios![
        "fleet-canary",
        "fleet-replace",
        "fleet-bindings",
        "cluster-offline",
        "fleet-third-party",
        "fleet-bootstrap",
        "fleet-values",
        "fleet-two-hubs",
        "fleet-restored",
        "fleet-refused",
        "fleet-farewell",
        "fleet-late",
        "fleet-blind",
    ],
    specifics: &specifics::SPECIFICS,
    abroad: ABROAD,
};

fn running(settings: &Settings) -> Running {
    Running {
        controller: (CAPABILITY.controller)(settings),
        hooks: (CAPABILITY.webhooks)(settings),
        cluster_label: None,
    }
}

/// Options of the fleet: there are none.
#[derive(Debug, clap::Args)]
struct FleetOptions {}

const fn there(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> Permission {
    Permission {
        group,
        resource,
        verbs,
        names: &[],
        scope: Scope::Cluster,
        why,
    }
}

/// What it does in the clusters of the fleet: whoever gives out their kubeconfigs gives these rights.
const ABROAD: &[Permission] = &[
    there(
        "fleet.squaremo.dev",
        "assemblages",
        &["get", "list", "watch", "create", "patch", "delete"],
        "to tell a cluster what it is to have, and to see how far that is",
    ),
    there(
        "",
        "secrets",
        &["get", "list", "watch", "create", "patch", "delete"],
        "for values that are secret",
    ),
    there(
        "",
        "namespaces",
        &["get", "list", "watch", "create", "patch"],
        "to know which cluster it is, and to have the namespace of its assemblage",
    ),
];
