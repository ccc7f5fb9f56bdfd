//! The design's documents, and our own manifests.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::documents::documents;
use slipway_e2e::install::printed;
use slipway_e2e::operator::Operator;
use slipway_e2e::ports::Port;
use slipway_e2e::zones::{Place, Trace, ZONES, definitions};

use crate::rollouts::tail;
use crate::stage::{SOON, Stage, budget, zones};

const DESIGN: &str = include_str!("manifests/design.yaml");

pub(crate) const BUDGETS: &str = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";

/// All webhooks of zones.
const HOOKS: &[&str] = &[
    "no-downscale",
    "pod-eviction",
    "zpdb-validation",
    "prepare-downscale",
];

/// What the design leaves to the reader: the account, and who has its first Role.
fn left_out() -> String {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "rollout-operator", "namespace": "default"},
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "rollout-operator-rolebinding", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "rollout-operator-role"},
        "subjects": [{"kind": "ServiceAccount", "name": "rollout-operator", "namespace": "default"}],
    });
    documents([&account, &binding])
}

/// Under the design's Roles: no patch of anything but registrations, no `ConfigMaps`, no Leases, no Events.
pub(crate) fn design(stage: &Stage) -> Result<()> {
    let cluster = &stage.cluster;
    // The design knows no budgets. Where they are defined and may not be seen, nothing is let go.
    cluster.kubectl(&["delete", "crd", BUDGETS, "--wait=true"])?;
    cluster.apply(&left_out())?;
    cluster.apply(DESIGN)?;
    let place = Place {
        cluster,
        name: "default".to_owned(),
        account: cluster.service_account("default", "rollout-operator")?,
        port: Port::draw()?,
    };
    let played = documents_work(&place);
    // The namespace stays; what was put into it goes.
    place.kubectl(&[
        "delete",
        "validatingwebhookconfiguration",
        "no-downscale-default",
    ])?;
    place.kubectl(&["delete", "statefulsets", "--all", "--wait=true"])?;
    std::mem::forget(place);
    cluster.apply(&definitions()?)?;
    played
}

fn documents_work(place: &Place<'_>) -> Result<()> {
    let arguments = [
        "-kubernetes-namespace=default".to_owned(),
        "-server-tls.enabled=true".to_owned(),
        format!("-server-tls.port={}", place.port),
        "-server-tls.self-signed-cert.dns-name=localhost".to_owned(),
    ];
    let mut operator = Operator::rollout_operator(None, &place.account, &arguments, None)?;
    operator.wait_until_ready(SOON)?;
    // Nothing routes to a Service's address here, and the CA comes to what is called by the certificate's name.
    let reach = json!([
        {"op": "remove", "path": "/webhooks/0/clientConfig/service"},
        {"op": "add", "path": "/webhooks/0/clientConfig/url", "value": place.client_config("/admission/no-downscale")["url"]},
    ]);
    let object = [
        "patch",
        "validatingwebhookconfiguration",
        "no-downscale-default",
    ];
    place.kubectl(&[&object[..], &["--type=json", "-p", &reach.to_string()]].concat())?;
    place.trusted(&["no-downscale"], SOON)?;
    let guarded = |image: &str| {
        let mut all = zones(3, 2, image, 1);
        for zone in &mut all {
            zone["metadata"]["labels"]["grafana.com/no-downscale"] = json!("true");
        }
        all
    };
    place.apply(&guarded("app:1"))?;
    place.settled(6, "app:1", SOON)?;
    place.reached(&operator, &["no-downscale"])?;
    let trace = Trace::start(place)?;
    place.apply(&guarded("app:2"))?;
    place
        .settled(6, "app:2", SOON)
        .with_context(|| tail(&operator))?;
    let seen = trace.judge(1)?;
    ensure!(
        seen.order == ZONES,
        "zones went in the order {:?}",
        seen.order
    );
    let said = place.refused(&["scale", "statefulset", ZONES[2], "--replicas=1"])?;
    ensure!(
        said.ends_with("because it has the label 'grafana.com/no-downscale=true'"),
        "{said}"
    );
    let metrics = operator.get("/metrics").unwrap_or_default();
    ensure!(
        metrics
            .contains("rollout_operator_group_reconciles_failed_total{rollout_group=\"mock\"} 0"),
        "passes failed under the design's Role:\n{}",
        tail(&operator)
    );
    operator.terminate()
}

/// `slipway run --controllers zones --webhooks` under the role that `slipway manifests` prints, two replicas, for two
/// namespaces: both roll, webhooks answer, no right is missing.
pub(crate) fn run(stage: &Stage) -> Result<()> {
    let cluster = &stage.cluster;
    let places = [stage.zones("run-one", 2, 2)?, stage.zones("run-two", 2, 2)?];
    let home = stage.place("run-home")?;
    let watched = "run-one,run-two";
    let manifests = printed(&[
        "manifests",
        "--controllers",
        "zones",
        "--webhooks",
        "--no-crds",
        "-n",
        watched,
        "--operator-namespace",
        "run-home",
    ])?;
    for mut document in manifests {
        if document["kind"] == "Deployment" {
            continue;
        }
        let hooks = document.get_mut("webhooks").and_then(Value::as_array_mut);
        for hook in hooks.into_iter().flatten() {
            let path = hook["clientConfig"]["service"]["path"].as_str();
            let path = path.unwrap_or_default().to_owned();
            hook["clientConfig"] = home.client_config(&path);
        }
        cluster.apply(&document.to_string())?;
    }
    let account = cluster.service_account("run-home", "rollout-operator")?;
    let others = Port::draw()?;
    let start = |name: &str, port: &Port| -> Result<Operator> {
        let port = port.to_string();
        let mut operator = Operator::start(
            &account,
            &[
                "--controllers",
                "zones",
                "--namespace",
                watched,
                "--operator-namespace",
                "run-home",
                "--replica",
                name,
                "--webhooks",
                "--webhooks-port",
                &port,
                "--tls-self-signed-dns-name",
                "localhost",
                "--webhooks-drain",
                "0s",
                "--lease-duration",
                "5s",
            ],
        )?;
        operator.wait_until_ready(SOON)?;
        Ok(operator)
    };
    let replicas = [start("first", &home.port)?, start("second", &others)?];
    home.trusted(HOOKS, SOON)?;
    for place in &places {
        place.reached(&replicas[0], HOOKS)?;
        place.apply(&[budget(&json!({"maxUnavailable": 1}))])?;
        let trace = Trace::start(place)?;
        place.apply(&zones(2, 2, "app:2", 1))?;
        place
            .settled(4, "app:2", SOON)
            .with_context(|| replicas.each_ref().map(tail).join("\n\n"))?;
        trace.judge(1)?;
        let bad = place.apply(&[budget(
            &json!({"maxUnavailable": 1, "maxUnavailablePercentage": 10}),
        )]);
        let said = bad
            .err()
            .map(|error| format!("{error:#}"))
            .unwrap_or_default();
        let why =
            "invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set";
        ensure!(
            said.contains(why),
            "a budget of two kinds was taken: {said}"
        );
    }
    for operator in replicas {
        let metrics = operator.get("/metrics").unwrap_or_default();
        let off: Vec<&str> = metrics
            .lines()
            .filter(|line| line.starts_with("slipway_feature_off{") && line.ends_with(" 1"))
            .collect();
        ensure!(off.is_empty(), "the generated role is not enough: {off:?}");
        operator.terminate()?;
    }
    Ok(())
}
