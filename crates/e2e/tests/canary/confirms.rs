//! Gates: nothing goes on before the people who were asked say so.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use slipway_e2e::canary::{phase, weight};

use crate::stage::{Stage, Story, WEB};
use crate::weights::FEW;

/// How long is looked that a gate holds: longer than an interval.
const HELD: Duration = Duration::from_secs(12);
const BEGIN: &str = "begin";
const TRAFFIC: &str = "traffic";
const PROMOTION: &str = "promotion";
const END: &str = "end";

/// Each gate holds the run where it is while it is closed, and lets it go on when it is opened.
pub(crate) fn gates(stage: &Stage) -> Result<()> {
    let story = Story::serving(stage, "canary-gates", |gates| {
        for gate in [BEGIN, TRAFFIC, PROMOTION] {
            gates.set(gate, false);
        }
        json!({
            "interval": "10s", "threshold": 3, "stepWeights": [30, 60], "metrics": Story::success_rate(),
            "webhooks": [
                gates.webhook("confirm-rollout", BEGIN),
                gates.webhook("confirm-traffic-increase", TRAFFIC),
                gates.webhook("confirm-promotion", PROMOTION),
                gates.webhook("post-rollout", END),
            ],
        })
    })?;
    story.plane.ask(FEW);
    story.release_web("app:2")?;
    story.until_phase("Waiting")?;
    story.throughout("it waits, without pods", HELD, || {
        let has_pods = story.workload(WEB)?["spec"]["replicas"] != 0;
        Ok(phase(&story.canary(WEB)?) == "Waiting" && !has_pods)
    })?;
    ensure!(story.plane.ledger.of("app:2").0 == 0, "it got requests");
    story.gates.set(BEGIN, true);
    story.until_phase("Progressing")?;
    story.throughout("it gets no traffic", HELD, || {
        Ok(weight(&story.canary(WEB)?) == 0 && story.plane.ledger.of("app:2").0 == 0)
    })?;
    story.gates.set(TRAFFIC, true);
    story.until_phase("WaitingPromotion")?;
    story.throughout("it keeps its weight, and is not promoted", HELD, || {
        let found = story.canary(WEB)?;
        let serving = story.workload("web-primary")?;
        let is_former = slipway_e2e::canary::image(&serving) == "app:1";
        Ok(phase(&found) == "WaitingPromotion" && weight(&found) == 60 && is_former)
    })?;
    story.gates.set(PROMOTION, true);
    story.until_phase("Succeeded")?;
    let told = story.until("the end is told", || {
        Ok(story.gates.calls(END).into_iter().next())
    })?;
    ensure!(
        told.body["phase"] == "Succeeded" && told.body["name"] == WEB,
        "{}",
        told.body
    );
    story.ended_with("app:2")
}
