//! Zones, end to end: the release binary with the original's arguments and under the original's roles, on `slipway
//! apiserver --actors` and on a real control plane with KWOK, driven by kubectl.
//!
//! ```text
//! cargo test -p slipway-e2e --test zones                               the embedded server
//! SLIPWAY_REAL_FULL=kubeconfig cargo test … --test zones               and the real one
//! ```
//!
//! Words after `--` choose runs by name. `Test…` are the end-to-end tests of the original (T1 to T11 of
//! `docs/conformance/zones.md`).

#[path = "zones/drop_in.rs"]
mod drop_in;
#[path = "zones/evictions.rs"]
mod evictions;
#[path = "zones/happy.rs"]
mod happy;
#[path = "zones/installed.rs"]
mod installed;
#[path = "zones/late.rs"]
mod late;
#[path = "zones/outages.rs"]
mod outages;
#[path = "zones/rollouts.rs"]
mod rollouts;
#[path = "zones/scaling.rs"]
mod scaling;
#[path = "zones/stage.rs"]
mod stage;
#[path = "zones/trust.rs"]
mod trust;

use std::process::ExitCode;

use slipway_e2e::suite::{Suite, Test};
use stage::Stage;

/// Those that compare times, take a definition away, or act on all namespaces.
const ALONE: &[Test<Stage>] = &[
    (
        "a_flood_of_webhook_requests_does_not_slow_a_rollout",
        rollouts::flooded,
    ),
    (
        "the_documents_of_the_design_apply_and_work",
        drop_in::design,
    ),
    (
        "a_definition_applied_after_the_start_guards_from_then_on",
        late::definition,
    ),
    (
        "the_ca_of_another_operator_is_left_alone_in_cluster_wide_mode",
        trust::others,
    ),
];

/// Those that take longest come first.
const TESTS: &[Test<Stage>] = &[
    (
        "not_ready_while_the_api_server_is_away_and_ready_when_it_is_back",
        outages::long,
    ),
    (
        "not_ready_while_the_api_server_says_nothing",
        outages::silent,
    ),
    (
        "no_eviction_elsewhere_while_a_deletion_is_on_its_way",
        late::deletion,
    ),
    (
        "ready_again_after_five_seconds_without_the_api_server",
        outages::short,
    ),
    (
        "three_zones_roll_in_order_and_within_the_budget",
        rollouts::whole,
    ),
    (
        "no_violation_with_the_operator_killed_30_times",
        rollouts::killed,
    ),
    ("TestRolloutHappyCase", happy::plain),
    ("TestRolloutHappyCaseWithZpdb", happy::with_budget),
    ("TestWebHookInformer", trust::informer),
    (
        "TestZoneAwarePodDisruptionBudgetMaxUnavailableEq1",
        evictions::one,
    ),
    (
        "TestZoneAwarePodDisruptionBudgetMaxUnavailableEq2",
        evictions::two,
    ),
    (
        "TestZoneAwarePodDisruptionBudgetPartitionMode",
        evictions::partitions,
    ),
    (
        "TestZoneAwarePodDisruptionBudgetPartitionModeWithCrossZoneEvictionDelay",
        evictions::delay,
    ),
    (
        "kubectl_drain_waits_for_the_budget_and_then_passes",
        evictions::drain,
    ),
    (
        "TestNoDownscale_CanDownscaleUnrelatedResource",
        scaling::unrelated,
    ),
    (
        "TestNoDownscale_DownscaleUpdatingStatefulSet",
        scaling::update,
    ),
    ("TestNoDownscale_UpdatingScaleSubresource", scaling::scale),
    ("kubectl_delete_is_not_a_downscale", scaling::delete),
    (
        "prepare_downscale_asks_the_pods_and_records_the_time",
        scaling::prepare,
    ),
    (
        "slipway_run_under_its_own_role_serves_several_namespaces",
        drop_in::run,
    ),
    (
        "with_the_operator_stopped_only_labelled_zones_are_held",
        installed::stopped,
    ),
];

fn main() -> ExitCode {
    let suite = Suite {
        title: "zones",
        alone: ALONE,
        tests: TESTS,
        lanes: 3,
        servers: 8,
        set: Stage::set,
        clear: |_| Ok(()),
    };
    suite.main()
}
