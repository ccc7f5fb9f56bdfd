//! What real programs asked of a real kube-apiserver, asked again of the embedded one, in the same order.
//!
//! The recording (`recordings/foreign.jsonl.gz`, made by `cargo xtask record`) holds the requests and answers of
//! kube-controller-manager, kube-scheduler, KWOK, Flux, Flagger and kubectl during the tests of `foreign`. Every answer is
//! compared whole, but for what is masked; ids and versions that a server draws are put in the place of the recorded
//! ones. Differences are counted by kind, and one that nobody has explained fails the test. So does one more of those that
//! somebody has. Then the same is asked of servers that are wrong on purpose: the replay must object to each.

#[path = "replay/binary.rs"]
mod binary;
#[path = "replay/compare.rs"]
mod compare;
#[path = "replay/drawn.rs"]
mod drawn;
#[path = "replay/explained.rs"]
mod explained;
#[path = "replay/planted.rs"]
mod planted;
#[path = "replay/report.rs"]
mod report;
#[path = "replay/selected.rs"]
mod selected;
#[path = "replay/server.rs"]
mod server;
#[path = "replay/start.rs"]
mod start;
#[path = "replay/watches.rs"]
mod watches;

use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use compare::Difference;
use drawn::Drawn;
use planted::{FLAWS, Flaw};
use report::Report;
use server::Embedded;
use slipway_e2e::record::{Content, Pair, kept};
use slipway_e2e::suite::say;
use watches::Watches;

/// So many pairs the recording has: none goes missing unseen.
const AT_LEAST: usize = 5_910;

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(replay()));
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("replay: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The recording whose explained differences are pinned.
const PINNED: &str = "foreign.jsonl.gz";

async fn replay() -> Result<bool> {
    let name = std::env::var("SLIPWAY_RECORDING").unwrap_or_else(|_| PINNED.to_owned());
    let pairs = kept::read(&kept::folder().join(&name))?;
    let origin = origin(&pairs).context("the recording does not say which real server it is of")?;
    ensure!(
        report::is_noticed(),
        "a rule that explains more or fewer differences than it is pinned to would pass"
    );
    let report = play(&pairs, None).await?;
    let moved = if name == PINNED {
        report.moved(&Report::pinned())
    } else {
        Vec::new()
    };
    let unseen = unseen(&pairs, &report).await?;
    say(&format!("recorded of {origin}"));
    say(&report.table());
    for line in &moved {
        say(&format!("replay: a rule for known differences, {line}"));
    }
    for flaw in &unseen {
        say(&format!(
            "replay: nothing objects to a server that is wrong on purpose: {flaw:?}"
        ));
    }
    say(&format!(
        "{}, {} rules moved, {}/{} servers that are wrong on purpose found",
        report.line(),
        moved.len(),
        FLAWS.len() - unseen.len(),
        FLAWS.len()
    ));
    ensure!(
        pairs.len() >= AT_LEAST,
        "the recording has {} pairs, fewer than {AT_LEAST}",
        pairs.len()
    );
    Ok(report.unexplained() == 0 && moved.is_empty() && unseen.is_empty())
}

/// The real server that a recording is of, by what it said of its version.
fn origin(pairs: &[Pair]) -> Option<String> {
    let mut versions = pairs
        .iter()
        .filter(|pair| pair.path.split('?').next() == Some("/version"));
    versions.find_map(|pair| match &pair.answer {
        Content::Json(version) => slipway_apiserver::origin::of_real(version).ok(),
        _ => None,
    })
}

/// Servers that are wrong on purpose and look like the `sound` one, whichever recording it is. Where something about that is
/// unexplained, nothing is said of them: all would differ by the same.
async fn unseen(pairs: &[Pair], sound: &Report) -> Result<Vec<Flaw>> {
    if sound.unexplained() > 0 {
        say("replay: the server itself differs, so none is wrong on purpose");
        return Ok(FLAWS.to_vec());
    }
    let mut all = Vec::new();
    for flaw in FLAWS {
        let report = play(pairs, Some(*flaw)).await?;
        match report.first(sound) {
            Some(kind) => say(&format!("wrong on purpose: {flaw:?}: {kind}")),
            None => all.push(*flaw),
        }
    }
    Ok(all)
}

/// Asks a server everything again, in the recorded order.
async fn play(pairs: &[Pair], flaw: Option<Flaw>) -> Result<Report> {
    let server = Embedded::start(flaw);
    let mut drawn = Drawn::default();
    let mut watches = Watches::default();
    let mut report = Report::default();
    for (index, pair) in pairs.iter().enumerate() {
        report.count(pair);
        if pair.program() == start::AGENT {
            start::prepare(&server, pair, &mut drawn).await?;
        } else if pair.is_watch() {
            watches.open(&server, index, pair, &drawn).await?;
        } else {
            if drawn.lacks(pair) {
                watches.learn(pairs, &mut drawn).await;
            }
            one(&server, index, pair, &mut drawn, &mut report).await?;
        }
        if flaw.is_some() && report.unexplained() > 0 {
            // It is found.
            return Ok(report);
        }
        // Watches see what happened before the next request.
        tokio::task::yield_now().await;
    }
    watches.compare(pairs, &mut report).await;
    Ok(report)
}

/// Asks again, learns what the server drew, and compares the answers.
async fn one(
    server: &Embedded,
    index: usize,
    pair: &Pair,
    drawn: &mut Drawn,
    report: &mut Report,
) -> Result<()> {
    let path = drawn.path(&pair.path);
    let body = drawn.body(pair);
    let (code, answer) = server.ask(pair, &path, body).await?;
    let differences = if code == pair.code {
        told_apart(pair, &answer, drawn)
    } else {
        let found = format!("{code} {}", compare::message(&answer));
        vec![Difference::new("code", pair.code, found)]
    };
    for difference in differences {
        report.add(index, pair, &difference);
    }
    Ok(())
}

fn told_apart(pair: &Pair, answer: &Content, drawn: &mut Drawn) -> Vec<Difference> {
    match (&pair.answer, answer) {
        (Content::Json(recorded), Content::Json(found)) => {
            drawn.learn(recorded, found);
            compare::differences(&drawn.translated(recorded), found, drawn)
        }
        (recorded, found) => {
            let difference = compare::bodies(&pair.path, recorded, found);
            difference.into_iter().collect()
        }
    }
}
