//! Programs that nobody here wrote, at work: kube-controller-manager, kube-scheduler, KWOK, Flux and Flagger on `slipway
//! apiserver --no-controllers` and on a real kube-apiserver, driven by kubectl. Each test says what each program did.
//!
//! ```text
//! cargo xtask controlplane up --flux --flagger --embedded
//! SLIPWAY_EMBEDDED_FULL=kubeconfig cargo test -p slipway-e2e --test foreign     the embedded server
//! SLIPWAY_REAL_FULL=kubeconfig cargo test … --test foreign                      and the real one
//! ```
//!
//! Words after `--` choose runs by name: `embedded`, `real`, `flux`.

#[path = "foreign/budget.rs"]
mod budget;
#[path = "foreign/canary.rs"]
mod canary;
#[path = "foreign/flux.rs"]
mod flux;
#[path = "foreign/garbage.rs"]
mod garbage;
#[path = "foreign/stage.rs"]
mod stage;
#[path = "foreign/workloads.rs"]
mod workloads;

use std::process::ExitCode;

use slipway_e2e::suite::{Suite, Test};
use stage::Stage;

const TESTS: &[Test<Stage>] = &[
    ("flagger_promotes_a_canary_without_a_mesh", canary::promote),
    (
        "flux_applies_a_kustomization_with_post_build_and_prunes_it",
        flux::apply_and_prune,
    ),
    (
        "a_deployment_becomes_ready_and_rolls",
        workloads::deployment,
    ),
    (
        "a_statefulset_becomes_ready_and_rolls_in_order",
        workloads::statefulset,
    ),
    (
        "a_daemonset_covers_the_nodes_and_rolls",
        workloads::daemonset,
    ),
    (
        "dependents_go_with_their_owner_in_the_background",
        garbage::background,
    ),
    (
        "an_owner_deleted_in_the_foreground_goes_last",
        garbage::foreground,
    ),
    ("orphans_stay_and_forget_their_owner", garbage::orphan),
    (
        "a_disruption_budget_follows_its_pods_and_refuses_evictions",
        budget::status,
    ),
];

fn main() -> ExitCode {
    let suite = Suite {
        title: "foreign",
        alone: &[],
        tests: TESTS,
        lanes: 4,
        servers: 1,
        set: Stage::set,
        clear: |_| Ok(()),
    };
    suite.main_beside("SLIPWAY_EMBEDDED_FULL")
}
