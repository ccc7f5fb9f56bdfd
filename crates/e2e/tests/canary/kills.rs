//! The operator is killed again and again in the middle of a run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use slipway_e2e::canary::phase;

use crate::stage::{Stage, Story, WEB};
use crate::weights::FEW;

const KILLS: u64 = 20;
/// How many of them come before the version may take over; the others come while it does.
const BEFORE: u64 = 14;
const PROMOTION: &str = "promotion";
const STEPS: [u32; 5] = [0, 20, 40, 60, 80];

/// Killed twenty times, at other moments each time: the same end, and no request lost. How long each one lives is spread over what it
/// takes to start and to do a step. However slow a machine is, most are killed in the analysis and the others in the promotion.
pub(crate) fn twenty(stage: &Stage) -> Result<()> {
    let story = Story::serving(stage, "canary-kills", |gates| {
        gates.set(PROMOTION, false);
        json!({
            "interval": "10s", "threshold": 10, "stepWeights": [20, 40, 60, 80], "stepWeightPromotion": 20,
            "metrics": Story::success_rate(),
            "webhooks": [gates.webhook("confirm-promotion", PROMOTION)],
        })
    })?;
    story.plane.ask(FEW);
    story.release_web("app:2")?;
    let mut phases = Vec::new();
    for kill in 0..KILLS {
        if kill == BEFORE {
            story.until_phase("WaitingPromotion")?;
            note(&story, &mut phases)?;
            story.gates.set(PROMOTION, true);
            story.until_phase("Promoting")?;
        }
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
    let back = shares.strip_prefix(&STEPS).unwrap_or_default();
    ensure!(
        back.is_sorted_by(|one, next| one > next) && back.last() == Some(&0),
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
