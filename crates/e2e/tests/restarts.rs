//! Restarts, end to end: the release binary under its generated role, on `slipway apiserver --actors` and on a real
//! control plane with KWOK, driven by kubectl.
//!
//! ```text
//! cargo test -p slipway-e2e --test restarts                               the embedded server
//! SLIPWAY_REAL_FULL=kubeconfig cargo test … --test restarts               and the real one
//! ```
//!
//! Words after `--` choose runs by name: `embedded`, `real`, `leader_killed`.

#[path = "restarts/criteria.rs"]
mod criteria;
#[path = "restarts/crowd.rs"]
mod crowd;
#[path = "restarts/intervals.rs"]
mod intervals;
#[path = "restarts/leaders.rs"]
mod leaders;
#[path = "restarts/people.rs"]
mod people;
#[path = "restarts/stage.rs"]
mod stage;

use std::process::ExitCode;

use slipway_e2e::suite::{Suite, Test};
use stage::Stage;

/// Who takes longest comes first.
const TESTS: &[Test<Stage>] = &[
    (
        "kubectl_rollout_undo_begins_the_interval_again",
        people::undo,
    ),
    (
        "no_double_restart_with_the_leader_killed_20_times",
        leaders::leader_killed,
    ),
    (
        "a_flipper_changes_interval_labels_and_namespaces",
        criteria::flipper_changes,
    ),
    ("a_removed_stamp_is_not_fought_over", people::removed_stamp),
    (
        "never_more_than_max_concurrent_roll_at_once",
        crowd::max_concurrent,
    ),
    (
        "default_criteria_restart_mesh_deployments",
        criteria::default_criteria,
    ),
    (
        "a_bad_interval_is_reported_on_itself_and_breaks_nothing",
        intervals::bad_intervals,
    ),
    ("sigterm_drains_and_releases_the_lease", leaders::drain),
];

fn main() -> ExitCode {
    let suite = Suite {
        title: "e2e",
        alone: &[],
        tests: TESTS,
        lanes: 1,
        servers: 4,
        set: Stage::set,
        clear: Stage::clear,
    };
    suite.main()
}
