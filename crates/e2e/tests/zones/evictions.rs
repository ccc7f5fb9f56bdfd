//! Evictions under a zone-aware budget, answered through the API server.

use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::EvictParams;
use serde_json::json;
use slipway_e2e::zones::Place;

use crate::stage::{NODES, SOON, Stage, budget};

const HOOKS: &[&str] = &["pod-eviction", "zpdb-validation"];

/// Asks for an eviction; what the API server says to it, and with which code, if it does not let the pod go.
pub(crate) fn evict(place: &Place<'_>, pod: &str) -> Result<Result<(), (u16, String)>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let pods: Api<Pod> = Api::namespaced(place.cluster.client().await?, &place.name);
        match pods.evict(pod, &EvictParams::default()).await {
            Ok(_) => Ok(Ok(())),
            Err(kube::Error::Api(status)) => Ok(Err((status.code, status.message.clone()))),
            Err(error) => Err(error).context("asking for an eviction"),
        }
    })
}

pub(crate) fn allowed(place: &Place<'_>, pod: &str) -> Result<()> {
    match evict(place, pod)? {
        Ok(()) => Ok(()),
        Err((code, why)) => bail!("{pod} was not let go: {code} {why}"),
    }
}

/// An eviction must be refused with the original's message and 429.
fn denied(place: &Place<'_>, pod: &str, message: &str) -> Result<()> {
    let mut answer = evict(place, pod)?;
    // Between a pod's end and its successor it is unknown rather than not ready; then nobody may go either.
    for _ in 0..50 {
        let early = matches!(&answer, Err((429, said)) if said.contains(" unknown in "));
        if !early || message.contains("unknown") {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
        answer = evict(place, pod)?;
    }
    let Err((code, said)) = answer else {
        bail!("{pod} was let go");
    };
    let namespace = &place.name;
    let whole = format!(
        r#"admission webhook "pod-eviction-{namespace}.grafana.com" denied the request: {message}"#
    );
    ensure!(said == whole, "not {message:?}: {said}");
    // What kubectl drain tries again after.
    ensure!(code == 429, "not with 429: {code}");
    Ok(())
}

/// An eviction becomes allowed.
pub(crate) fn allowed_within(place: &Place<'_>, pod: &str, within: Duration) -> Result<()> {
    let mut last = String::new();
    let outcome = place
        .cluster
        .eventually(&format!("{pod} is let go"), within, |_| {
            match evict(place, pod)? {
                Ok(()) => Ok(Some(())),
                Err((_, why)) => {
                    last = why;
                    Ok(None)
                }
            }
        });
    outcome.with_context(|| last)
}

/// Two zones of two pods under a budget. Whoever goes does not come back until the nodes are opened.
fn prepare<'a>(
    stage: &'a Stage,
    name: &str,
    fields: &serde_json::Value,
) -> Result<(Place<'a>, slipway_e2e::operator::Operator)> {
    let place = stage.zones(name, 2, 2)?;
    let operator = place.guarded(HOOKS)?;
    place.apply(&[budget(fields)])?;
    stage.close(&place)?;
    Ok((place, operator))
}

/// Scenario 5.
pub(crate) fn one(stage: &Stage) -> Result<()> {
    let (place, operator) = prepare(stage, "zpdb-one", &json!({"maxUnavailable": 1}))?;
    let bad = place.apply(&[budget(&json!({"maxUnavailable": -1}))]);
    let said = bad
        .err()
        .map(|error| format!("{error:#}"))
        .unwrap_or_default();
    ensure!(
        said.contains("is invalid"),
        "a budget of -1 was taken: {said}"
    );
    allowed(&place, "mock-zone-a-0")?;
    denied(&place, "mock-zone-a-1", "1 pod not ready in mock-zone-a")?;
    denied(&place, "mock-zone-b-0", "1 pod not ready in mock-zone-a")?;
    stage.open(&place, &NODES)?;
    place.settled(4, "app:1", SOON)?;
    allowed_within(&place, "mock-zone-b-0", SOON)?;
    operator.terminate()
}

/// Scenario 6.
pub(crate) fn two(stage: &Stage) -> Result<()> {
    let (place, operator) = prepare(stage, "zpdb-two", &json!({"maxUnavailable": 2}))?;
    allowed(&place, "mock-zone-a-0")?;
    denied(&place, "mock-zone-b-0", "1 pod not ready in mock-zone-a")?;
    allowed(&place, "mock-zone-a-1")?;
    denied(&place, "mock-zone-b-0", "2 pods not ready in mock-zone-a")?;
    operator.terminate()
}

const PARTITIONS: &str = "[a-z\\-]+-zone-[a-z]-([0-9]+)";

/// Scenario 7.
pub(crate) fn partitions(stage: &Stage) -> Result<()> {
    let fields = json!({"maxUnavailable": 1, "podNamePartitionRegex": PARTITIONS});
    let (place, operator) = prepare(stage, "zpdb-partitions", &fields)?;
    let before = uid(&place, "mock-zone-a-0")?;
    allowed(&place, "mock-zone-a-0")?;
    denied(&place, "mock-zone-b-0", "1 pod not ready in partition 0")?;
    // A zone's missing pod is unknown in every partition, as with the original, until its successor is there.
    replaced(&place, "mock-zone-a-0", &before)?;
    allowed(&place, "mock-zone-b-1")?;
    denied(&place, "mock-zone-a-1", "1 pod not ready in partition 1")?;
    stage.open(&place, &NODES)?;
    place.settled(4, "app:1", SOON)?;
    allowed_within(&place, "mock-zone-b-0", SOON)?;
    operator.terminate()
}

fn uid(place: &Place<'_>, pod: &str) -> Result<String> {
    place.kubectl(&["get", "pod", pod, "-o", "jsonpath={.metadata.uid}"])
}

/// Waits for the successor of a pod that goes.
fn replaced(place: &Place<'_>, pod: &str, before: &str) -> Result<()> {
    let what = format!("{pod} has a successor");
    place.cluster.eventually(&what, SOON, |_| {
        // Between the two there is none.
        let now = uid(place, pod).unwrap_or_default();
        Ok((!now.is_empty() && now != before).then_some(()))
    })
}

/// Scenario 8.
pub(crate) fn delay(stage: &Stage) -> Result<()> {
    // Long enough for what is asked meanwhile, also on a loaded machine.
    let delay = SignedDuration::from_secs(20);
    let fields = json!({
        "maxUnavailable": 1,
        "podNamePartitionRegex": PARTITIONS,
        "crossZoneEvictionDelay": "20s",
    });
    let (place, operator) = prepare(stage, "zpdb-delay", &fields)?;
    stage.open(&place, &NODES)?;
    allowed_within(&place, "mock-zone-a-0", SOON)?;
    denied(&place, "mock-zone-b-0", "1 pod not ready in partition 0")?;
    place.settled(4, "app:1", SOON)?;
    let back = ready_since(&place, "mock-zone-a-0")?;
    // The other partition waits for nobody but its own pods, which may have become ready a little later than those asked for first.
    allowed_within(&place, "mock-zone-b-1", SOON)?;
    denied(&place, "mock-zone-b-0", "1 pod not ready in partition 0")?;
    allowed_within(&place, "mock-zone-b-0", SOON)?;
    // Readiness is stamped in whole seconds.
    let waited = Timestamp::now().duration_since(back) + SignedDuration::from_secs(1);
    ensure!(waited >= delay, "the delay was not waited for: {waited}");
    operator.terminate()
}

/// Since when a pod is ready, by its own status.
fn ready_since(place: &Place<'_>, pod: &str) -> Result<Timestamp> {
    let path = r#"jsonpath={.status.conditions[?(@.type=="Ready")].lastTransitionTime}"#;
    let text = place.kubectl(&["get", "pod", pod, "-o", path])?;
    text.parse()
        .with_context(|| format!("{pod} is ready since {text:?}"))
}

/// kubectl drain is refused while another zone is not whole, goes on asking, and passes when it is.
pub(crate) fn drain(stage: &Stage) -> Result<()> {
    let (place, operator) = prepare(stage, "drain", &json!({"maxUnavailable": 1}))?;
    // A pod that is deleted, not evicted: nobody is asked, and it counts.
    place.kubectl(&["delete", "pod", "mock-zone-b-1", "--wait=true"])?;
    denied(&place, "mock-zone-a-0", "1 pod not ready in mock-zone-b")?;
    let node = place.kubectl(&[
        "get",
        "pod",
        "mock-zone-a-0",
        "-o",
        "jsonpath={.spec.nodeName}",
    ])?;
    let asked = operator.answered("pod-eviction");
    let mut drain = drained(&place, &node)?;
    place
        .cluster
        .eventually("the drain was told no, and asks again", SOON, |_| {
            Ok((operator.answered("pod-eviction") > asked + 1).then_some(()))
        })?;
    ensure!(drain.try_wait()?.is_none(), "the drain did not wait");
    ensure!(
        place.ready()?.iter().any(|(pod, _)| pod == "mock-zone-a-0"),
        "the drain took a pod"
    );
    let others: Vec<&str> = NODES.into_iter().filter(|other| *other != node).collect();
    stage.open(&place, &others)?;
    let start = std::time::Instant::now();
    while drain.try_wait()?.is_none() && start.elapsed() < 2 * SOON {
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = drain.kill();
    let output = drain.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "the drain failed: {said}");
    let message = format!(
        r#"admission webhook "pod-eviction-{}.grafana.com" denied the request: 1 pod not ready in mock-zone-b"#,
        place.name
    );
    ensure!(
        said.contains(&message),
        "the drain was not told why: {said}"
    );
    place.settled(4, "app:1", SOON)?;
    place.cluster.kubectl(&["uncordon", &node])?;
    operator.terminate()
}

fn drained(place: &Place<'_>, node: &str) -> Result<Child> {
    place
        .cluster
        .command()
        .args([
            "drain",
            node,
            "--ignore-daemonsets",
            "--force",
            "--delete-emptydir-data",
            "--timeout=180s",
        ])
        .args(["--pod-selector=place=drain,name=mock-zone-a"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting kubectl drain")
}
