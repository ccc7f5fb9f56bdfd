//! The fleet, end to end: a hub and three leaves, each a real control plane with real Flux, and a git server. What is rolled
//! out is a real kustomization with tagged versions.
//!
//! ```text
//! SLIPWAY_REAL_FULL=kubeconfig SLIPWAY_REAL_MEMBERS=kubeconfig:… cargo test -p slipway-e2e --test fleet
//! ```
//!
//! The tests follow each other on the same clusters, as a fleet lives: what one rolls out the next finds there.

#[path = "fleet/bindings.rs"]
mod bindings;
#[path = "fleet/bootstrap.rs"]
mod bootstrap;
#[path = "fleet/leaf.rs"]
mod leaf;
#[path = "fleet/offline.rs"]
mod offline;
#[path = "fleet/rollouts.rs"]
mod rollouts;
#[path = "fleet/stage.rs"]
mod stage;
#[path = "fleet/third_party.rs"]
mod third_party;

use std::process::ExitCode;

use slipway_e2e::suite::{Suite, Test};
use stage::Stage;

const TESTS: &[Test<Stage>] = &[
    (
        "a_bootstrap_rollout_brings_the_agent_into_the_leaves",
        bootstrap::agents,
    ),
    (
        "a_version_goes_to_one_leaf_first_and_then_to_the_others_within_the_budget",
        rollouts::incremental,
    ),
    ("a_bad_version_stops_at_the_first_leaf", rollouts::stopped),
    (
        "bindings_of_every_kind_reach_what_is_applied",
        bindings::all,
    ),
    (
        "a_third_party_with_rights_to_assemblages_only_drives_an_external_rollout",
        third_party::drives,
    ),
    (
        "a_leaf_that_is_away_holds_nobody_up_and_catches_up",
        offline::leaf,
    ),
    ("a_leaf_goes_on_while_the_hub_is_away", offline::hub),
];

fn main() -> ExitCode {
    let suite = Suite {
        title: "fleet",
        alone: TESTS,
        tests: &[],
        lanes: 1,
        set: Stage::set,
        clear: |_| Ok(()),
    };
    // Where Flux runs on embedded servers, somebody says so.
    suite.main_beside("SLIPWAY_FLEET_EMBEDDED")
}
