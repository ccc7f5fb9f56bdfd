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
#[path = "restarts/stage.rs"]
mod stage;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use slipway_e2e::client;
use slipway_e2e::score::Score;
use slipway_e2e::server::{Embedded, Real, Server};
use stage::Stage;

/// A named test.
type Test = (&'static str, fn(&Stage) -> Result<()>);

const TESTS: &[Test] = &[
    (
        "default_criteria_restart_mesh_deployments",
        criteria::default_criteria,
    ),
    (
        "a_flipper_changes_interval_labels_and_namespaces",
        criteria::flipper_changes,
    ),
    (
        "a_bad_interval_is_reported_on_itself_and_breaks_nothing",
        intervals::bad_intervals,
    ),
    (
        "never_more_than_max_concurrent_roll_at_once",
        crowd::max_concurrent,
    ),
    (
        "no_double_restart_with_the_leader_killed_20_times",
        leaders::leader_killed,
    ),
    ("sigterm_drains_and_releases_the_lease", leaders::drain),
];

fn main() -> ExitCode {
    match suite() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("e2e: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn suite() -> Result<bool> {
    let (options, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|word| word.starts_with("--"));
    if options.iter().any(|option| option == "--list") {
        return Ok(true);
    }
    let kubectl = client::all()?
        .into_iter()
        .next()
        .context("there is no kubectl")?
        .program;
    let real = std::env::var_os("SLIPWAY_REAL_FULL").map(PathBuf::from);
    let wanted = |name: &str| words.iter().all(|word| name.contains(word.as_str()));
    let run = |server: &dyn Server| -> Result<Score> {
        let stage = Stage::set(&kubectl, server)?;
        let mut score = Score::default();
        for (name, test) in TESTS {
            let full = format!("{} {name}", server.name());
            if !wanted(&full) {
                continue;
            }
            let start = Instant::now();
            let result = stage.clear().and_then(|()| test(&stage));
            score.ran += 1;
            score.held += usize::from(result.is_ok());
            let verdict = match &result {
                Ok(()) => "ok".to_owned(),
                Err(error) => format!("FAILED: {error:#}"),
            };
            say(&format!(
                "{full}: {verdict} in {:.1} s",
                start.elapsed().as_secs_f32()
            ));
        }
        Ok(score)
    };
    // Side by side: tests mostly wait.
    let (on_embedded, on_real) = std::thread::scope(|scope| -> Result<(Score, Score)> {
        let embedded = scope.spawn(|| -> Result<Score> {
            if !TESTS
                .iter()
                .any(|(name, _)| wanted(&format!("embedded {name}")))
            {
                return Ok(Score::default());
            }
            let server = Embedded::start(&["--actors"])?;
            let score = run(&server);
            server.stop()?;
            score
        });
        let real = scope.spawn(|| match &real {
            Some(kubeconfig) => run(&Real(kubeconfig.clone())),
            None => Ok(Score::default()),
        });
        Ok((joined(embedded)?, joined(real)?))
    })?;
    if real.is_none() {
        say("SLIPWAY_REAL_FULL is not set: nothing was run on a real control plane");
    }
    say(&format!("e2e: {on_embedded} embedded, {on_real} real"));
    Ok(on_embedded.held == on_embedded.ran && on_real.held == on_real.ran)
}

fn joined(thread: std::thread::ScopedJoinHandle<'_, Result<Score>>) -> Result<Score> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn say(text: &str) {
    // Whoever does not want to read it may go.
    let _ = writeln!(std::io::stdout(), "{text}");
}
