//! The operator is killed again and again in the middle of a run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use slipway_e2e::canary::phase;

use crate::stage::{Stage, Story, WEB};
use crate::weights::FEW;

const KILLS: u64 = 20;

/// Killed twenty times, at other moments each time: the same end, and no request lost. How long each one lives is spread over what it
/// takes to start and to do a step.
pub(crate) fn twenty(stage: &Stage) -> Result<()> {
    let analysis = json!({
        "interval": "10s", "threshold": 3, "stepWeights": [20, 40, 60, 80], "stepWeightPromotion": 40,
        "metrics": Story::success_rate(),
    });
    let story = Story::serving(stage, "canary-kills", |_| analysis)?;
    story.plane.ask(FEW);
    story.release_web("app:2")?;
    let mut phases = Vec::new();
    for kill in 0..KILLS {
        let lives = Duration::from_millis(150 + 397 * (kill * 7 % 11));
        let start = Instant::now();
        while start.elapsed() < lives {
            note(&story, &mut phases)?;
            std::thread::sleep(Duration::from_millis(50));
        }
        ensure!(
            phases.last().is_none_or(|last| last != "Succeeded"),
            "the run was over after {kill} kills: {phases:?}"
        );
        story.kill()?;
        story.keep(story.start_ours()?);
    }
    story.until("the version is promoted", || {
        note(&story, &mut phases)?;
        Ok(phases
            .last()
            .is_some_and(|last| last == "Succeeded")
            .then_some(()))
    })?;
    story.say(&format!(
        "killed {KILLS} times, through {}",
        phases.join(", ")
    ));
    let shares: Vec<u32> = story.plane.ledger.steps().iter().map(|s| s.share).collect();
    ensure!(
        shares.starts_with(&[0, 20, 40, 60, 80]),
        "the steps were {shares:?}"
    );
    story.ended_with("app:2")
}

fn note(story: &Story<'_>, phases: &mut Vec<String>) -> Result<()> {
    let found = story.canary(WEB)?;
    let now = phase(&found);
    ensure!(now != "Failed", "{}", story.situation());
    if phases.last().is_none_or(|last| last != now) {
        phases.push(now.to_owned());
    }
    Ok(())
}
