//! Traffic goes as the weights say: a good version gets more and more of it, a bad one loses it within the threshold.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::canary::{canary, deployment, phase, weight};
use slipway_e2e::gates::Gates;

use crate::ledger::Step;
use crate::stage::{Stage, Story, WEB};

/// How many requests each step is judged by, at least.
const ENOUGH: usize = 10_000;
/// How far the traffic may be from the weight, in points.
const POINTS: f64 = 3.0;
/// Requests in a second where every step is judged, and where it is only looked whether one is lost.
const MANY: u32 = 1_500;
pub(crate) const FEW: u32 = 150;
const STEPS: [u32; 3] = [20, 50, 80];
/// The gate that is opened when a step has been judged by enough requests.
const COUNTED: &str = "counted";

/// Steps that last until enough requests were counted. A machine that is loaded may keep Prometheus from its scrapes now and then.
fn counted(gates: &Gates) -> Value {
    json!({
        "interval": "10s", "threshold": 5, "stepWeights": STEPS,
        "metrics": Story::success_rate(),
        "webhooks": [gates.webhook("confirm-traffic-increase", COUNTED)],
    })
}

/// Waits for the end of a run, and lets each step go on when it was judged by enough requests.
fn counting(story: &Story<'_>) -> Result<()> {
    story.until("the version is promoted", || {
        let found = story.canary(WEB)?;
        ensure!(phase(&found) != "Failed", "{}", story.situation());
        let step = story.plane.ledger.step();
        let is_counted = step.share == 0 || step.total() >= ENOUGH;
        // Closed from when the next weight is decided, and not only when requests go by it: it may be asked for the one after that
        // at once then.
        let is_taken = weight(&found) == i64::from(step.share);
        story.gates.set(COUNTED, is_counted && is_taken);
        Ok((phase(&found) == "Succeeded").then_some(()))
    })
}

/// Each step had its share, and enough requests to tell.
fn judge(story: &Story<'_>) -> Result<()> {
    let steps = story.plane.ledger.steps();
    let shared: Vec<&Step> = steps.iter().filter(|step| step.share > 0).collect();
    let shares: Vec<u32> = shared.iter().map(|step| step.share).collect();
    ensure!(shares == STEPS, "the steps were {shares:?}");
    for step in shared {
        ensure!(
            step.total() >= ENOUGH && (step.seen() - f64::from(step.share)).abs() <= POINTS,
            "{} % of the traffic went to the new version of {} % in {} requests",
            step.seen(),
            step.share,
            step.total()
        );
    }
    Ok(())
}

/// A good version gets what the weights say at every step, and then everything.
pub(crate) fn good(stage: &Stage) -> Result<()> {
    let story = Story::serving(stage, "canary-good", counted)?;
    story.plane.ask(MANY);
    story.release_web("app:2")?;
    counting(&story)?;
    judge(&story)?;
    story.ended_with("app:2")
}

/// The same by annotations of ingress-nginx.
pub(crate) fn ingress(stage: &Stage) -> Result<()> {
    let story = Story::begin(stage, "canary-ingress")?;
    let mut analysis = counted(&story.gates);
    // What ingress-nginx says of itself is not played.
    analysis["metrics"] = json!([]);
    let mut made = canary(WEB, "nginx", &analysis);
    made["spec"]["ingressRef"] =
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": WEB});
    let backend = json!({"service": {"name": WEB, "port": {"number": 80}}});
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
    story.apply(&deployment(WEB, 2, "app:1"))?;
    story.apply(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": WEB},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": "web.example.com", "http": {"paths": paths}}]},
    }))?;
    story.apply(&made)?;
    story.operate()?;
    story.until_phase("Initialized")?;
    story.plane.ask(MANY);
    story.release_web("app:2")?;
    counting(&story)?;
    judge(&story)?;
    story.ended_with("app:2")
}

/// A bad version is sent back when as many checks have failed as may, and gets nothing from then on.
pub(crate) fn bad(stage: &Stage) -> Result<()> {
    const THRESHOLD: u32 = 2;
    let analysis = json!({
        "interval": "10s", "threshold": THRESHOLD, "stepWeights": STEPS, "metrics": Story::success_rate(),
    });
    let story = Story::serving(stage, "canary-bad", |_| analysis)?;
    story.plane.ask(FEW);
    story.release_web("app:bad")?;
    story.until("the bad version gets requests", || {
        Ok((story.plane.ledger.of("app:bad").0 > 0).then_some(()))
    })?;
    let exposed = Instant::now();
    let failed = story.until_phase("Failed")?;
    let took = exposed.elapsed();
    // As many intervals as checks may fail, and what a loaded machine takes beside; with one more check it would be longer.
    let most = Duration::from_secs(10) * THRESHOLD + Duration::from_secs(7);
    ensure!(took < most, "it was sent back after {took:?}");
    ensure!(
        failed["status"]["failedChecks"] == THRESHOLD && failed["status"]["canaryWeight"] == 0,
        "{}",
        failed["status"]
    );
    story.until("it gets nothing any more", || {
        let before = story.plane.ledger.of("app:bad").0;
        std::thread::sleep(Duration::from_secs(1));
        Ok((story.plane.ledger.of("app:bad").0 == before).then_some(()))
    })?;
    let (answers, failures) = story.plane.ledger.of("app:1");
    ensure!(
        answers > 0 && failures == 0,
        "{failures} of {answers} failed"
    );
    let shares: Vec<u32> = story.plane.ledger.steps().iter().map(|s| s.share).collect();
    ensure!(
        shares.iter().all(|share| *share <= 20),
        "it got more although it failed: {shares:?}"
    );
    story.until("its pods are gone", || {
        Ok((story.workload(WEB)?["spec"]["replicas"] == 0).then_some(()))
    })?;
    let serving = story.workload("web-primary")?;
    ensure!(slipway_e2e::canary::image(&serving) == "app:1", "{serving}");
    story.nothing_was_lost()
}
