//! Canary, end to end: `slipway` shifts the traffic of a real data plane. nginx is configured from the `HTTPRoute` or the Ingress that
//! slipway writes, with upstreams from `EndpointSlice`s; behind it there is a real HTTP server for each Ready pod, which a real
//! Prometheus scrapes; and a client counts every request. And Flagger is stopped in each of its phases, and ours goes on, and back.
//!
//! On the embedded server with its actors, and on a real one with kube-controller-manager, kube-scheduler and KWOK:
//!
//! ```text
//! cargo xtask test --only "end to end, canary"
//! ```
//!
//! Words after `--` choose runs by name: `embedded`, `real`, `weights`.

#[path = "canary/changes.rs"]
mod changes;
#[path = "canary/client.rs"]
mod client;
#[path = "canary/confirms.rs"]
mod confirms;
#[path = "canary/kills.rs"]
mod kills;
#[path = "canary/ledger.rs"]
mod ledger;
#[path = "canary/moving.rs"]
mod moving;
#[path = "canary/nginx.rs"]
mod nginx;
#[path = "canary/plane.rs"]
mod plane;
#[path = "canary/pods.rs"]
mod pods;
#[path = "canary/prometheus.rs"]
mod prometheus;
#[path = "canary/stage.rs"]
mod stage;
#[path = "canary/weights.rs"]
mod weights;

use std::process::ExitCode;

use slipway_e2e::suite::{Suite, Test};
use stage::Stage;

const TESTS: &[Test<Stage>] = &[
    (
        "a_good_version_gets_what_the_weights_say_and_then_everything",
        weights::good,
    ),
    (
        "flagger_is_stopped_in_each_of_its_phases_and_ours_goes_on",
        moving::over,
    ),
    (
        "ours_is_stopped_in_each_of_its_phases_and_flagger_goes_on",
        moving::back,
    ),
    (
        "by_annotations_of_ingress_nginx_traffic_goes_as_the_weights_say",
        weights::ingress,
    ),
    (
        "an_operator_that_is_killed_twenty_times_comes_to_the_same_end",
        kills::twenty,
    ),
    ("gates_hold_a_run_until_they_are_opened", confirms::gates),
    (
        "a_version_in_the_middle_of_a_run_is_analysed_from_the_beginning",
        changes::middle,
    ),
    (
        "a_bad_version_is_sent_back_within_the_threshold",
        weights::bad,
    ),
    ("with_its_flags_ours_stands_in_for_flagger", moving::drop_in),
];

fn main() -> ExitCode {
    let suite = Suite {
        title: "canary",
        alone: &[],
        tests: TESTS,
        lanes: 3,
        servers: 1,
        set: Stage::set,
        clear: |_| Ok(()),
    };
    suite.main()
}
