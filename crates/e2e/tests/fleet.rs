//! The fleet, end to end: a hub and three leaves, each with real Flux, and a git server. What is rolled out is a real
//! kustomization with tagged versions. All of it on real control planes, and again on embedded API servers that the programs of
//! a control plane have joined.
//!
//! ```text
//! SLIPWAY_REAL_FULL=kubeconfig SLIPWAY_REAL_MEMBERS=kubeconfig:… cargo test -p slipway-e2e --test fleet
//! SLIPWAY_EMBEDDED_FULL=kubeconfig SLIPWAY_EMBEDDED_MEMBERS=kubeconfig:… cargo test … --test fleet
//! ```
//!
//! The tests follow each other on the same clusters, as a fleet lives: what one rolls out the next finds there.

#[path = "fleet/bindings.rs"]
mod bindings;
#[path = "fleet/bootstrap.rs"]
mod bootstrap;
#[path = "fleet/files.rs"]
mod files;
#[path = "fleet/leaf.rs"]
mod leaf;
#[path = "fleet/mistakes.rs"]
mod mistakes;
#[path = "fleet/offline.rs"]
mod offline;
#[path = "fleet/recipes.rs"]
mod recipes;
#[path = "fleet/registry.rs"]
mod registry;
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
    ("recipe_a_property_of_the_cluster", recipes::property),
    (
        "recipe_someone_elses_configuration_as_a_submodule",
        recipes::adapted,
    ),
    ("recipe_a_field_from_within_the_cluster", recipes::field),
    ("recipe_a_value_from_another_module", recipes::module),
    (
        "a_third_party_with_rights_to_assemblages_only_drives_an_external_rollout",
        third_party::drives,
    ),
    (
        "a_kubeconfig_that_does_not_parse_stops_nobody",
        mistakes::kubeconfig,
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
        servers: 1,
        set: Stage::set,
        clear: |_| Ok(()),
    };
    // Flux runs on embedded servers, too, where somebody has started it.
    suite.main_beside("SLIPWAY_EMBEDDED_FULL")
}
