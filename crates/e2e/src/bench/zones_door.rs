//! The webhook server: how many downscales and evictions it decides, and whether a new certificate is noticed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use slipway_e2e::flood::{Connection, Question, Target};
use slipway_e2e::process::Folder;
use slipway_e2e::review;
use slipway_e2e::suite::say;
use slipway_e2e::zones::{GROUP, Place, ZONES};

use crate::Contender;

const SECRET: &str = "rollout-operator-self-signed-certificate";
/// Connections of a flood.
const CONNECTIONS: usize = 32;
/// How often it is asked for that long: two runs of one program were seen to differ by half.
const FLOODS: usize = 3;
/// How long a flood lasts, and what of it is not counted.
const FLOOD: Duration = Duration::from_secs(10);
/// Handshakes across a rotation.
const HANDSHAKES: usize = 10_000;
/// From one handshake to the next: all of them last longer than the certificate.
const PACE: Duration = Duration::from_millis(7);

/// Downscales that were refused.
pub(crate) struct Figures {
    /// In a second.
    pub(crate) rate: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) resident: u64,
}

/// Refused downscales, with one processor for the server and another for who asks.
pub(crate) fn measure(contender: &Contender, place: &Place<'_>) -> Result<Figures> {
    let operator = contender.start(place, &[], Some(0))?;
    let body = review::downscale(&place.name);
    let said = flooded(
        place,
        "/admission/no-downscale",
        &body,
        "is not allowed because",
    )?;
    let resident = operator.resident()?;
    operator.terminate()?;
    Ok(Figures {
        rate: said.rate,
        p50: said.p50,
        p99: said.p99,
        resident,
    })
}

/// Evictions decided in a second.
pub(crate) struct Evictions {
    /// Refused, because another zone has let a pod go.
    pub(crate) refused: f64,
    /// Let through, as dry runs: all zones are whole, and each verdict rests on a read of its own time.
    pub(crate) allowed: f64,
}

/// Evictions decided in a second: first all are let through, then one zone has let a pod go and another zone's are refused.
pub(crate) fn evictions(contender: &Contender, place: &Place<'_>) -> Result<Evictions> {
    let budget = json!({
        "apiVersion": "rollout-operator.grafana.com/v1",
        "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"name": "bench"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"rollout-group": GROUP}}},
    });
    place.apply(&[budget])?;
    let operator = contender.start(place, &[], None)?;
    std::thread::sleep(Duration::from_secs(1));
    let target = Target::new(
        place.cluster,
        &place.name,
        SECRET,
        "localhost",
        place.port.number(),
    )?;
    let path = "/admission/pod-eviction";
    // The original takes a dry run for a real one: after the first it has a pod away.
    let allowed = if contender.original.is_none() {
        let dry = review::dry_eviction(&place.name, &format!("{}-0", ZONES[1]));
        flooded(place, path, &dry, "\"allowed\":true")?.rate
    } else {
        0.0
    };
    let first = review::eviction(&place.name, &format!("{}-0", ZONES[0]));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let answer = runtime.block_on(async {
        let mut connection = target.connect().await?;
        let answer = connection.ask(&Connection::request(path, &first)).await?;
        anyhow::Ok(String::from_utf8_lossy(answer).into_owned())
    })?;
    ensure!(
        answer.contains("\"allowed\":true"),
        "the first eviction was not allowed: {answer}"
    );
    let second = review::eviction(&place.name, &format!("{}-0", ZONES[1]));
    let said = flooded(place, path, &second, "pod not ready in")?;
    place.kubectl(&["delete", "zoneawarepoddisruptionbudgets", "bench"])?;
    operator.terminate()?;
    Ok(Evictions {
        refused: said.rate,
        allowed,
    })
}

/// What the asking process said.
#[derive(Default)]
struct Said {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

/// Asks as fast as it is answered, several times; the run with the median rate.
fn flooded(place: &Place<'_>, path: &str, body: &str, answer: &str) -> Result<Said> {
    let runs: Result<Vec<Said>> = (0..FLOODS)
        .map(|_| flooded_once(place, path, body, answer))
        .collect();
    Ok(crate::median(runs?, |said| said.rate))
}

fn flooded_once(place: &Place<'_>, path: &str, body: &str, answer: &str) -> Result<Said> {
    let folder = Folder::new("flood")?;
    let file = folder.path().join("flood.json");
    let secret = place
        .cluster
        .json(&["get", "secret", SECRET, "-n", &place.name])?;
    let order = json!({"ca": secret["data"]["ca"], "port": place.port.number(), "path": path, "body": body, "answer": answer});
    std::fs::write(&file, order.to_string())?;
    let output = std::process::Command::new("taskset")
        .args(["-c", "1"])
        .arg(std::env::current_exe()?)
        .arg("--flood")
        .arg(&file)
        .output()
        .context("starting the flood")?;
    ensure!(
        output.status.success(),
        "the flood failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said: Value =
        serde_json::from_slice(&output.stdout).context("reading what the flood said")?;
    let failed = said["failed"].as_u64().unwrap_or_default();
    if failed > 0 {
        say(&format!("{failed} requests to {path} failed"));
    }
    let time = |key: &str| Duration::from_micros(said[key].as_u64().unwrap_or_default());
    Ok(Said {
        rate: said["rate"].as_f64().unwrap_or_default(),
        p50: time("p50"),
        p99: time("p99"),
    })
}

/// The asking process.
pub(crate) fn flood(file: &Path) -> Result<()> {
    let order: Value = serde_json::from_str(&crate::read(file)?)?;
    let text = |key: &str| order[key].as_str().unwrap_or_default();
    let port = u16::try_from(order["port"].as_u64().unwrap_or_default())?;
    let bundle = BASE64_STANDARD.decode(text("ca"))?;
    let target = Target::trusting(&bundle, "localhost", port)?;
    let question = Question {
        path: text("path"),
        body: text("body"),
        answer: text("answer"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let figures = runtime.block_on(async {
        // The first seconds are not counted.
        for (time, is_counted) in [(FLOOD / 5, false), (FLOOD, true)] {
            let stop = AtomicBool::new(false);
            let end = async {
                tokio::time::sleep(time).await;
                stop.store(true, Ordering::Relaxed);
            };
            let (figures, ()) = tokio::join!(
                slipway_e2e::flood::flood(&target, &question, CONNECTIONS, &stop),
                end
            );
            if is_counted {
                return figures;
            }
        }
        slipway_e2e::flood::Figures::default()
    });
    let micros =
        |percent: usize| u64::try_from(figures.percentile(percent).as_micros()).unwrap_or_default();
    say(&json!({"rate": figures.rate(), "p50": micros(50), "p99": micros(99), "failed": figures.failed}).to_string());
    Ok(())
}

/// Shakes hands again and again while the certificate is renewed, trusting what the API server would: the CA that is in the
/// registration now. How many failed, of how many.
pub(crate) fn handshakes(contender: &Contender, place: &Place<'_>) -> Result<(usize, usize)> {
    place.kubectl(&["delete", "secret", SECRET, "--ignore-not-found"])?;
    place.register(&["no-downscale"])?;
    let operator = contender.start(place, &["-server-tls.self-signed-cert.expiration=1m"], None)?;
    place.trusted(&["no-downscale"], Duration::from_secs(30))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (failed, certificates) = runtime.block_on(shake(place))?;
    place.cluster.kubectl(&[
        "delete",
        "validatingwebhookconfiguration",
        &format!("no-downscale-{}", place.name),
    ])?;
    place.kubectl(&["delete", "secret", SECRET])?;
    ensure!(
        certificates > 1,
        "the certificate was not renewed:\n{}",
        operator.log()
    );
    Ok((failed, HANDSHAKES))
}

/// How many handshakes failed, and how many certificates were seen.
async fn shake(place: &Place<'_>) -> Result<(usize, usize)> {
    use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
    let hooks: kube::Api<ValidatingWebhookConfiguration> =
        kube::Api::all(place.cluster.client().await?);
    let name = format!("no-downscale-{}", place.name);
    let start = tokio::time::Instant::now();
    let mut certificates = BTreeSet::new();
    let mut failed = 0;
    let mut target: Option<(Vec<u8>, Target)> = None;
    for number in 0..HANDSHAKES {
        tokio::time::sleep_until(start + PACE * u32::try_from(number)?).await;
        if number % 50 == 0 || target.is_none() {
            let hook = hooks.get(&name).await?;
            let first = hook.webhooks.and_then(|all| all.into_iter().next());
            let bundle = first
                .and_then(|hook| hook.client_config.ca_bundle)
                .unwrap_or_default()
                .0;
            if target.as_ref().is_none_or(|(known, _)| *known != bundle) {
                let fresh = Target::trusting(&bundle, "localhost", place.port.number())?;
                target = Some((bundle, fresh));
            }
        }
        let Some((_, target)) = &target else { continue };
        match target.connect().await {
            Ok(connection) => drop(certificates.insert(connection.certificate())),
            Err(error) => {
                failed += 1;
                say(&format!("handshake {number}: {error:#}"));
            }
        }
    }
    Ok((failed, certificates.len()))
}
