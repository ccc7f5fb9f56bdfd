//! kubectl scale and kubectl delete, with the webhooks that guard them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use slipway_e2e::operator::Operator;
use slipway_e2e::zones::{Place, ZONES};

use crate::rollouts::tail;
use crate::stage::{SOON, Stage, zones};

const ZONE: &str = ZONES[0];
const DRY: &str = "--dry-run=server";

/// One zone of two pods with this label, under the webhook in use.
fn labelled<'a>(
    stage: &'a Stage,
    name: &str,
    label: Option<&str>,
) -> Result<(Place<'a>, Operator)> {
    let place = stage.place(name)?;
    let mut zone = zones(1, 2, "app:1", 1);
    if let (Some(label), Some(zone)) = (label, zone.first_mut()) {
        zone["metadata"]["labels"][label] = json!("true");
    }
    place.apply(&zone)?;
    place.settled(2, "app:1", SOON)?;
    let operator = place.guarded(&["no-downscale"])?;
    Ok((place, operator))
}

fn replicas(count: usize) -> String {
    json!({"spec": {"replicas": count}}).to_string()
}

/// Makes sure that this is refused with the original's words.
fn refused(place: &Place<'_>, arguments: &[&str], from: usize, to: usize) -> Result<()> {
    let said = place.refused(arguments)?;
    let namespace = &place.name;
    let message = format!(
        "admission webhook \"no-downscale-{namespace}.grafana.com\" denied the request: downscale of statefulsets/{ZONE} in \
         {namespace} from {from} to {to} replicas is not allowed because it has the label 'grafana.com/no-downscale=true'"
    );
    ensure!(said.ends_with(&message), "not the original's words: {said}");
    Ok(())
}

/// Scenario 9.
pub(crate) fn unrelated(stage: &Stage) -> Result<()> {
    let (place, operator) = labelled(stage, "unrelated", None)?;
    place.kubectl(&[
        "patch",
        "statefulset",
        ZONE,
        "--type=merge",
        "-p",
        &replicas(1),
    ])?;
    place.settled(1, "app:1", SOON)?;
    place.kubectl(&["scale", "statefulset", ZONE, "--replicas=2"])?;
    place.settled(2, "app:1", SOON)?;
    place.kubectl(&["scale", "statefulset", ZONE, "--replicas=1"])?;
    place.settled(1, "app:1", SOON)?;
    operator.terminate()
}

/// Scenario 10.
pub(crate) fn update(stage: &Stage) -> Result<()> {
    let (place, operator) = labelled(stage, "update", Some("grafana.com/no-downscale"))?;
    let down = replicas(1);
    let patch = ["patch", "statefulset", ZONE, "--type=merge", "-p", &down];
    refused(&place, &patch, 2, 1)?;
    let mut dry = patch.to_vec();
    dry.push(DRY);
    refused(&place, &dry, 2, 1)?;
    // Taking the label away in the same change does not help.
    let sly = json!({"metadata": {"labels": {"grafana.com/no-downscale": null}}, "spec": {"replicas": 0}});
    refused(
        &place,
        &[
            "patch",
            "statefulset",
            ZONE,
            "--type=merge",
            "-p",
            &sly.to_string(),
        ],
        2,
        0,
    )?;
    place.kubectl(&[
        "patch",
        "statefulset",
        ZONE,
        "--type=merge",
        "-p",
        &replicas(3),
    ])?;
    place.settled(3, "app:1", SOON)?;
    operator.terminate()
}

/// Scenario 11, by kubectl scale and by a patch of the subresource.
pub(crate) fn scale(stage: &Stage) -> Result<()> {
    let (place, operator) = labelled(stage, "scale", Some("grafana.com/no-downscale"))?;
    let down = replicas(1);
    let patch = [
        "patch",
        "statefulset",
        ZONE,
        "--subresource=scale",
        "--type=merge",
        "-p",
        &down,
    ];
    refused(&place, &patch, 2, 1)?;
    let mut dry = patch.to_vec();
    dry.push(DRY);
    refused(&place, &dry, 2, 1)?;
    refused(
        &place,
        &["scale", "statefulset", ZONE, "--replicas=0"],
        2,
        0,
    )?;
    refused(
        &place,
        &["scale", "statefulset", ZONE, "--replicas=1", DRY],
        2,
        1,
    )?;
    place.kubectl(&["scale", "statefulset", ZONE, "--replicas=3"])?;
    place.settled(3, "app:1", SOON)?;
    operator.terminate()
}

/// The webhooks are about updates and evictions: who may delete, deletes.
pub(crate) fn delete(stage: &Stage) -> Result<()> {
    let (place, operator) = labelled(stage, "delete", Some("grafana.com/no-downscale"))?;
    place.kubectl(&["delete", "pod", &format!("{ZONE}-0"), "--wait=true"])?;
    place.settled(2, "app:1", SOON)?;
    refused(
        &place,
        &["scale", "statefulset", ZONE, "--replicas=0"],
        2,
        0,
    )?;
    place.kubectl(&[
        "delete",
        "statefulset",
        ZONE,
        "--wait=true",
        "--cascade=foreground",
    ])?;
    place.cluster.eventually("no pod is left", SOON, |_| {
        Ok(place.list("/api/v1/pods")?.is_empty().then_some(()))
    })?;
    operator.terminate()
}

/// prepare-downscale in the mode of the shipped arguments: pods are asked, the time is kept in the tracker, the other zone waits; a
/// pod that refuses refuses the downscale, and is told that it stays.
pub(crate) fn prepare(stage: &Stage) -> Result<()> {
    let place = stage.place("prepare")?;
    let pods = Pods::start()?;
    let mut both = zones(2, 2, "app:1", 1);
    for zone in &mut both {
        zone["metadata"]["labels"]["grafana.com/prepare-downscale"] = json!("true");
        zone["metadata"]["labels"]["grafana.com/min-time-between-zones-downscale"] = json!("1h");
        zone["metadata"]["annotations"]["grafana.com/prepare-downscale-http-path"] =
            json!("prepare");
        zone["metadata"]["annotations"]["grafana.com/prepare-downscale-http-port"] =
            json!(pods.port.to_string());
    }
    place.apply(&both)?;
    place.settled(4, "app:1", SOON)?;
    // A new tracker would say that all zones were downscaled just now, as the original's does.
    let old = json!({"lastDownscaled": "2020-01-01T00:00:00Z"}).to_string();
    let data = ZONES
        .map(|zone| (zone.to_owned(), json!(old)))
        .into_iter()
        .collect::<serde_json::Map<_, _>>();
    place.apply(&[json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rollout-operator-zone-tracker"}, "data": data,
    })])?;
    place.register(&["prepare-downscale"])?;
    // Nobody resolves names of pods here: to HTTP all of the name is a user's, and all pods are this test.
    let operator = place.operator(&["-kubernetes.cluster-domain=x@127.0.0.1"])?;
    place.trusted(&["prepare-downscale"], SOON)?;
    place.reached(&operator, &["prepare-downscale"])?;
    let down = |zone: &str| {
        format!(
            "downscale of statefulsets/{zone} in prepare from 2 to 1 replicas is not allowed because "
        )
    };
    let to_one = |zone: &'static str| ["scale", "statefulset", zone, "--replicas=1"];

    place.kubectl(&["scale", "statefulset", ZONE, "--replicas=1", DRY])?;
    ensure!(pods.calls().is_empty(), "a dry run asked a pod");
    pods.answer(500);
    let said = place.refused(&to_one(ZONE))?;
    let why = format!(
        "{}one or more pods failed to prepare for shutdown. {ZONE}-1: answered 500",
        down(ZONE)
    );
    ensure!(said.ends_with(&why), "{said}\n{}", tail(&operator));
    place
        .cluster
        .eventually("the pod is told that it stays", SOON, |_| {
            Ok((pods.calls() == ["POST", "DELETE"]).then_some(()))
        })?;
    pods.answer(200);
    place
        .kubectl(&to_one(ZONE))
        .with_context(|| tail(&operator))?;
    ensure!(
        pods.calls() == ["POST", "DELETE", "POST"],
        "pods were asked {:?}",
        pods.calls()
    );
    place.settled(3, "app:1", SOON)?;
    let tracker = place.list("/api/v1/configmaps")?;
    let tracker = tracker
        .iter()
        .find(|map| map["metadata"]["name"] == "rollout-operator-zone-tracker");
    let entry = tracker
        .and_then(|map| map["data"][ZONE].as_str())
        .unwrap_or_default();
    ensure!(
        !entry.is_empty() && entry != old,
        "the time was not recorded: {entry:?}"
    );
    let said = place.refused(&to_one(ZONES[1]))?;
    let why = format!("{}statefulset {ZONE} was downscaled at ", down(ZONES[1]));
    ensure!(
        said.contains(&why)
            && said.ends_with("and is labelled to wait 1h0m0s between zone downscales"),
        "{said}"
    );
    operator.terminate()
}

/// All pods, on one port.
struct Pods {
    port: u16,
    seen: Arc<Mutex<(u16, Vec<String>)>>,
}

impl Pods {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let seen: Arc<Mutex<(u16, Vec<String>)>> = Arc::default();
        let sink = seen.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut head = [0; 2_048];
                let read = stream.read(&mut head).unwrap_or_default();
                let text =
                    String::from_utf8_lossy(head.get(..read).unwrap_or_default()).into_owned();
                let method = text.split(' ').next().unwrap_or_default().to_owned();
                let mut seen = sink.lock().unwrap_or_else(PoisonError::into_inner);
                seen.1.push(method);
                let _ = write!(
                    stream,
                    "HTTP/1.1 {} Answer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                    seen.0
                );
            }
        });
        Ok(Self { port, seen })
    }

    /// What they answer from now on.
    fn answer(&self, code: u16) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).0 = code;
    }

    /// The methods they were asked with.
    fn calls(&self) -> Vec<String> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .clone()
    }
}
