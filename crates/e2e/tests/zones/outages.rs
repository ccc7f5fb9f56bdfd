//! The API server is away for a while, and nothing changes afterwards: readiness is measured by contact, not by news.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use slipway_e2e::operator::Operator;
use slipway_e2e::wire::Relay;
use slipway_e2e::zones::Place;

use crate::rollouts::tail;
use crate::stage::{SOON, Stage, zones};

/// Within which time contact makes ready again, and what a loaded machine may take beside.
const BACK: Duration = Duration::from_secs(10 + 5);

/// After which time without contact an operator is not ready, and what a loaded machine may take beside.
const LOST: Duration = Duration::from_secs(30 + 15);

/// What is said of zones is written every ten seconds at most: after this time nothing is left to be said.
const STILL: Duration = Duration::from_secs(13);

/// One zone of two pods that are ready and stay as they are, and an operator behind a relay that may see everything: a kind
/// that is hidden from it would be asked for again and again, and be contact by itself.
fn quiet<'a>(stage: &'a Stage, name: &str) -> Result<(Place<'a>, Relay, Operator)> {
    let place = stage.zones(name, 1, 2)?;
    let relay = Relay::start(&place.cluster.kubeconfig)?;
    let here = ["--namespace", name, "--operator-namespace", name];
    let alone = ["--controllers", "zones", "--no-leader-elect"];
    let mut operator = Operator::start(relay.kubeconfig(), &[&here[..], &alone].concat())?;
    operator.wait_until_ready(SOON)?;
    settles(&place)?;
    Ok((place, relay, operator))
}

/// Waits until the operator has said what it has to say of its zones, and nothing changes any more: what is under way when the relay is
/// cut is done when it opens again. That is news, and a quiet place has none.
fn settles(place: &Place<'_>) -> Result<()> {
    let versions =
        "jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion} {end}";
    let kinds = "configmaps,statefulsets,pods";
    let name = place.name.as_str();
    let mut before = (String::new(), Instant::now());
    place
        .cluster
        .at_length("nothing changes any more", SOON + STILL, |cluster| {
            let now = cluster.kubectl(&["get", kinds, "-n", name, "-o", versions])?;
            if now != before.0 || !now.contains("ConfigMap/slipway-zones") {
                before = (now, Instant::now());
            }
            Ok((before.1.elapsed() >= STILL).then_some(()))
        })
}

/// The relay is open: ready within the promised time, and from then on.
fn comes_back(place: &Place<'_>, operator: &Operator) -> Result<()> {
    let cluster = place.cluster;
    cluster
        .eventually("ready again after the API server came back", BACK, |_| {
            Ok(operator.is_ready().then_some(()))
        })
        .with_context(|| tail(operator))?;
    // An outage that is over is not remembered against it.
    cluster
        .throughout("ready with the API server", LOST, |_| {
            Ok(operator.is_ready())
        })
        .with_context(|| tail(operator))
}

/// The relay is closed: not ready any more at the promised time.
fn goes(place: &Place<'_>, operator: &Operator) -> Result<()> {
    place
        .cluster
        .eventually("not ready without the API server", LOST, |_| {
            Ok((!operator.is_ready()).then_some(()))
        })
        .with_context(|| tail(operator))
}

/// Five seconds without an API server.
pub(crate) fn short(stage: &Stage) -> Result<()> {
    let (place, relay, operator) = quiet(stage, "outage-short")?;
    relay.cut();
    std::thread::sleep(Duration::from_secs(5));
    relay.open();
    comes_back(&place, &operator)?;
    // It works, too.
    place.apply(&zones(1, 2, "app:2", 1))?;
    place
        .settled(2, "app:2", SOON)
        .with_context(|| tail(&operator))?;
    operator.terminate()
}

/// No API server for longer than may be, then one again.
pub(crate) fn long(stage: &Stage) -> Result<()> {
    let (place, relay, operator) = quiet(stage, "outage-long")?;
    relay.cut();
    goes(&place, &operator)?;
    relay.open();
    comes_back(&place, &operator)?;
    operator.terminate()
}

/// Connections that stay open and say nothing: the same.
pub(crate) fn silent(stage: &Stage) -> Result<()> {
    let (place, relay, operator) = quiet(stage, "outage-silent")?;
    relay.freeze();
    goes(&place, &operator)?;
    ensure!(
        operator.get("/healthz").is_some(),
        "an API server that says nothing is no reason to be restarted"
    );
    relay.open();
    comes_back(&place, &operator)?;
    operator.terminate()
}
