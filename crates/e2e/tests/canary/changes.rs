//! A version that comes in the middle of another's run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::stage::{Stage, Story};
use crate::weights::FEW;

/// How long the weight of a version that is no longer wanted may stay, on a loaded machine: less than what is left of the interval,
/// at the end of which somebody who waits for his tick would take it off.
const SOON: Duration = Duration::from_secs(6);

/// The weight is taken off at once, the new one is analysed from the beginning, and the one in between never serves.
pub(crate) fn middle(stage: &Stage) -> Result<()> {
    let analysis = json!({
        "interval": "10s", "threshold": 3, "stepWeights": [30, 60], "metrics": Story::success_rate(),
    });
    let story = Story::serving(stage, "canary-middle", |_| analysis)?;
    story.plane.ask(FEW);
    story.release_web("app:2")?;
    story.until("the first one gets its share", || {
        let step = story.plane.ledger.step();
        Ok((step.share == 30 && step.target > 0).then_some(()))
    })?;
    let start = Instant::now();
    story.release_web("app:3")?;
    story.until("its weight is taken off", || {
        Ok((story.plane.ledger.step().share == 0).then_some(()))
    })?;
    let took = start.elapsed();
    ensure!(took < SOON, "its weight was taken off after {took:?}");
    let former = story.plane.ledger.steps().len();
    story.until("what comes serves, and never what was in between", || {
        let serving = story.workload("web-primary")?;
        let image = slipway_e2e::canary::image(&serving);
        ensure!(image != "app:2", "what nobody wants any more was promoted");
        Ok((image == "app:3").then_some(()))
    })?;
    story.until_phase("Succeeded")?;
    let steps = story.plane.ledger.steps();
    let later: Vec<u32> = steps.iter().skip(former).map(|step| step.share).collect();
    ensure!(
        later == [30, 60, 0],
        "it was analysed from the beginning: {later:?}"
    );
    story.ended_with("app:3")
}
