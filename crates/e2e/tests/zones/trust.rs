//! Who puts the CA into registrations of webhooks.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use slipway_e2e::install::printed;
use slipway_e2e::operator::Operator;
use slipway_e2e::zones::registrations;

use crate::rollouts::tail;
use crate::stage::{SOON, Stage};

/// Scenario 4: registrations from before and after the start get a CA, and one that a user took out is put back.
pub(crate) fn informer(stage: &Stage) -> Result<()> {
    let place = stage.place("trust")?;
    place.register(&["no-downscale"])?;
    let operator = place.operator(&[])?;
    place.trusted(&["no-downscale"], Duration::from_mins(1))?;
    place.register(&["prepare-downscale", "pod-eviction"])?;
    place.trusted(
        &["prepare-downscale", "pod-eviction"],
        Duration::from_secs(30),
    )?;
    let bundle = place.bundle("no-downscale")?;
    for name in ["no-downscale", "prepare-downscale"] {
        let kind = if name == "no-downscale" {
            "validatingwebhookconfiguration"
        } else {
            "mutatingwebhookconfiguration"
        };
        let object = format!("{name}-{}", place.name);
        let remove = r#"[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]"#;
        place
            .cluster
            .kubectl(&["patch", kind, &object, "--type=json", "-p", remove])?;
        place.trusted(&[name], Duration::from_secs(30))?;
        ensure!(
            place.bundle(name)? == bundle,
            "another CA was put into {name}"
        );
    }
    operator.terminate()
}

/// Without a list of namespaces: the CA goes into our own registrations, and never into those of another operator,
/// whatever labels they have.
pub(crate) fn others(stage: &Stage) -> Result<()> {
    let cluster = &stage.cluster;
    let home = stage.place("wide-home")?;
    let theirs = stage.place("wide-theirs")?;
    let manifests = printed(&[
        "manifests",
        "--controllers",
        "zones",
        "--webhooks",
        "--no-crds",
        "--operator-namespace",
        &home.name,
    ])?;
    for document in manifests {
        let kind = document["kind"].as_str().unwrap_or_default();
        // The program runs beside the cluster, and may not guard the whole of it.
        if kind != "Deployment" && !kind.ends_with("WebhookConfiguration") {
            cluster.apply(&document.to_string())?;
        }
    }
    let foreign = rcgen::generate_simple_self_signed(["another-operator".to_owned()])?;
    let foreign = STANDARD.encode(foreign.cert.pem());
    for mut document in registrations(&theirs.name, &["no-downscale", "prepare-downscale"])? {
        document["webhooks"][0]["clientConfig"]["caBundle"] = json!(foreign);
        cluster.create(&document.to_string())?;
    }
    for document in registrations(&home.name, &["no-downscale", "prepare-downscale"])? {
        cluster.create(&document.to_string())?;
    }
    let account = cluster.service_account(&home.name, "rollout-operator")?;
    let mut operator = Operator::start(
        &account,
        &[
            "--controllers",
            "zones",
            "--operator-namespace",
            &home.name,
            "--webhooks",
            "--webhooks-port",
            &home.port.to_string(),
        ],
    )?;
    operator.wait_until_ready(SOON)?;
    let hooks = ["no-downscale", "prepare-downscale"];
    home.trusted(&hooks, SOON)
        .with_context(|| tail(&operator))?;
    let during = Duration::from_mins(1);
    cluster
        .throughout("another operator's CA stays", during, |_| {
            for name in hooks {
                if theirs.bundle(name)? != foreign {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .with_context(|| tail(&operator))?;
    operator.terminate()
}
