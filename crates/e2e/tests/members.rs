//! Members, end to end: an operator with one small capability, on a home and three further clusters. One of them is stopped,
//! one gets other credentials, one is replaced by another cluster; the others go on.
//!
//! ```text
//! cargo test -p slipway-e2e --test members                                                       embedded servers
//! SLIPWAY_REAL_FULL=kubeconfig SLIPWAY_REAL_MEMBERS=kubeconfig:… cargo test … --test members     and real ones
//! ```
//!
//! Words after `--` choose runs by name: `embedded`, `real`, `stopped`. The operator is this program in another process.

#[path = "../src/bench/clusters_flotilla.rs"]
mod flotilla;
#[path = "../src/bench/clusters_operator.rs"]
mod operator;
#[allow(dead_code, reason = "the bench asks more of it")]
#[path = "../src/bench/clusters_role.rs"]
mod role;
#[path = "members/secrecy.rs"]
mod secrecy;
#[path = "members/ship.rs"]
mod ship;
#[path = "members/stage.rs"]
mod stage;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use slipway_e2e::suite::{Suite, Test, say};

use ship::Ship;
use stage::Stage;

/// The word by which this program is the operator.
const OPERATOR: &str = "--operator";
/// The word by which it tells everything that it could log.
const LOGGED: &str = "--logged";
/// How long something may take that nothing delays.
const SOON: Duration = Duration::from_secs(10);
/// How long the first writes may take: an operator that was killed is waited for until its Lease has run out, and until no
/// request of it can be on its way.
const BEGIN: Duration = Duration::from_secs(90);
/// How long it may take to come back to a member that was away: it is asked every 30 s at least.
const BACK: Duration = Duration::from_mins(1);
/// For how long is looked that nothing happens.
const QUIET: Duration = Duration::from_secs(12);

const TESTS: &[Test<Stage>] = &[
    ("a_member_that_is_stopped_delays_no_other", stopped),
    (
        "credentials_that_are_rotated_are_used_and_the_former_ones_are_not",
        rotated,
    ),
    (
        "what_is_secret_of_a_member_is_in_no_log_event_status_metric_or_core",
        secrecy::kept,
    ),
    (
        "another_cluster_of_the_same_name_gets_no_write_before_somebody_confirms_it",
        replaced,
    ),
];

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(OPERATOR) {
        let is_logged = std::env::args().nth(2).as_deref() == Some(LOGGED);
        return match secrecy::prepare(is_logged).and_then(|()| operator::run()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!("the operator failed: {error:#}"));
                ExitCode::FAILURE
            }
        };
    }
    let suite = Suite {
        title: "members",
        alone: &[],
        tests: TESTS,
        lanes: 1,
        servers: 1,
        set: Stage::set,
        clear: Stage::clear,
    };
    suite.main()
}

fn stopped(stage: &Stage) -> Result<()> {
    let [lost, others @ ..] = stage.ships() else {
        anyhow::bail!("there are no members");
    };
    stage.operated(|| {
        stage.all_get("1", BEGIN)?;
        lost.stop()?;
        // Whatever becomes of this, those who come after it find it answering.
        let went_on = go_on(others, &["2", "3", "4"]);
        lost.start()?;
        went_on?;
        lost.wants("4")?;
        lost.gets("4", BACK)
    })
}

fn rotated(stage: &Stage) -> Result<()> {
    let [first, turned, others @ ..] = stage.ships() else {
        anyhow::bail!("there are no two members");
    };
    let before = turned.account("before")?;
    stage.name(turned, &before)?;
    stage.operated(|| {
        stage.all_get("1", BEGIN)?;
        let after = turned.account("after")?;
        stage.name(turned, &after)?;
        turned.dismiss("before")?;
        for ship in others.iter().chain([first]) {
            ship.wants("2")?;
            ship.gets("2", SOON)?;
        }
        turned.wants("2")?;
        turned.gets("2", BACK)
    })
}

fn replaced(stage: &Stage) -> Result<()> {
    let [others @ .., last] = stage.ships() else {
        anyhow::bail!("there are no members");
    };
    stage.operated(|| {
        stage.all_get("1", BEGIN)?;
        let before = last.uid()?;
        let address = last.replace()?;
        if let Some(address) = address {
            stage.name_as(last, &address, &before)?;
        }
        let after = last.uid()?;
        anyhow::ensure!(before != after, "{} is the same cluster still", last.name);
        last.wants("2")?;
        go_on(others, &["2"])?;
        last.never_gets("2", QUIET)?;
        stage.confirm(last, &after)?;
        last.gets("2", BACK)
    })
}

/// These want one thing after the other, and soon get it.
fn go_on(ships: &[Ship], rounds: &[&str]) -> Result<()> {
    for round in rounds {
        for ship in ships {
            ship.wants(round)?;
        }
        for ship in ships {
            ship.gets(round, SOON)?;
        }
    }
    Ok(())
}
