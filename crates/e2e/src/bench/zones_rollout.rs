//! A rollout of three zones, by the watches and by the operator's own count of its requests.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use slipway_e2e::operator::Operator;
use slipway_e2e::zones::{Place, Trace, ZONES, zone};

use crate::{BUDGET, Contender};

/// How many rollouts are measured: a delay of a tenth of a second says little if it was seen once.
const ROLLOUTS: usize = 5;
/// How long anything may take.
const WITHIN: Duration = Duration::from_mins(10);

/// What rollouts took.
pub(crate) struct Figures {
    /// From the change of the first template to the first pod that goes: the median.
    pub(crate) first: Duration,
    /// From there to the last pod that came: the median.
    pub(crate) total: Duration,
    /// The most pods away at once, in any of them.
    pub(crate) most: usize,
    /// Requests about pods, for each pod that went.
    pub(crate) pods: f64,
    pub(crate) events: f64,
    /// Statuses of zones, and the `ConfigMap` of the group.
    pub(crate) statuses: f64,
    /// Claims, leases and the rest that was written.
    pub(crate) others: f64,
    /// Of the process, afterwards.
    pub(crate) resident: u64,
}

/// Gives each zone so many pods of this image, without anybody who rolls them: all are made anew.
pub(crate) fn fill(place: &Place<'_>, replicas: usize, image: &str) -> Result<()> {
    let zones: Vec<Value> = ZONES
        .iter()
        .map(|name| padded(name, replicas, image))
        .collect();
    place.kubectl(&[
        "delete",
        "statefulsets",
        "--all",
        "--cascade=foreground",
        "--wait=true",
    ])?;
    place.apply(&zones)?;
    place.settled(3 * replicas, image, WITHIN)
}

/// A zone whose pods are as large as those of Mimir: about 7 kB.
fn padded(name: &str, replicas: usize, image: &str) -> Value {
    let mut zone = zone(name, replicas, image, BUDGET);
    let arguments: Vec<String> = (0..60)
        .map(|index| format!("-ingester.option-{index:02}.with-a-long-name=value-{index}"))
        .collect();
    zone["spec"]["template"]["spec"]["containers"][0]["args"] = json!(arguments);
    zone
}

/// Changes all templates and watches until all pods are new, again and again.
pub(crate) fn measure(
    contender: &Contender,
    place: &Place<'_>,
    replicas: usize,
) -> Result<Figures> {
    let operator = contender.start(place, &["-server-tls.enabled=false"], None)?;
    // Whatever comes first is over.
    std::thread::sleep(Duration::from_secs(6));
    let before = requests(&operator)?;
    let (mut first, mut total, mut most) = (Vec::new(), Vec::new(), 0);
    for rollout in 0..ROLLOUTS {
        let image = format!("app:{}", rollout + 2);
        let trace = Trace::start(place)?;
        let start = change(place, &image)?;
        place.settled(3 * replicas, &image, WITHIN)?;
        let seen = trace.judge(BUDGET)?;
        let since = |at: Option<SystemTime>| {
            at.and_then(|at| at.duration_since(start).ok())
                .unwrap_or_default()
        };
        first.push(since(seen.first));
        total.push(since(seen.last));
        most = most.max(seen.most);
        // Events and statuses may come a little later, and the next one begins in peace.
        std::thread::sleep(Duration::from_secs(12));
    }
    let mut made = requests(&operator)?;
    for (request, count) in &mut made {
        *count -= before.get(request).copied().unwrap_or_default();
    }
    let count = |is_it: &dyn Fn(&str) -> bool| {
        ratio(
            made.iter()
                .filter(|(request, _)| is_it(request))
                .map(|(_, n)| n)
                .sum(),
            3 * replicas * ROLLOUTS,
        )
    };
    let is_event = |request: &str| request.contains("events");
    let is_status =
        |request: &str| request.contains("status subresource") || request.contains("configmaps");
    let is_pod = |request: &str| request.contains("core/v1/pods");
    let resident = operator.resident()?;
    // It lets its lease go: whoever comes next need not wait for it.
    operator.terminate()?;
    Ok(Figures {
        first: crate::median(first, |one| *one),
        total: crate::median(total, |one| *one),
        most,
        pods: count(&is_pod),
        events: count(&is_event),
        statuses: count(&is_status),
        others: count(&|request| !is_pod(request) && !is_event(request) && !is_status(request)),
        resident,
    })
}

/// Gives all zones this image, one right after another; when the first was asked for. Whoever asks is connected by then.
fn change(place: &Place<'_>, image: &str) -> Result<SystemTime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let sets: Api<StatefulSet> = Api::namespaced(place.cluster.client().await?, &place.name);
        let patch = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]);
        let patch: Patch<Value> = Patch::Json(serde_json::from_value(patch)?);
        sets.get(ZONES.first().context("there are no zones")?).await?;
        let start = SystemTime::now();
        for name in ZONES {
            sets.patch(name, &PatchParams::default(), &patch).await?;
        }
        Ok(start)
    })
}

/// Requests so far that were no lists and no watches, by what they were about.
fn requests(operator: &Operator) -> Result<BTreeMap<String, usize>> {
    let metrics = operator
        .get("/metrics")
        .context("the operator shows no metrics")?;
    let begin = "rollout_operator_kubernetes_api_client_request_duration_seconds_count{";
    let mut all = BTreeMap::new();
    for line in metrics.lines().filter_map(|line| line.strip_prefix(begin)) {
        let Some((labels, value)) = line.rsplit_once("} ") else {
            continue;
        };
        if labels.contains("method=\"GET\"") && !labels.contains(" object") {
            continue;
        }
        let value: f64 = value.trim().parse().unwrap_or_default();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small count"
        )]
        let count = value as usize;
        *all.entry(labels.to_owned()).or_default() += count;
    }
    Ok(all)
}

#[allow(clippy::cast_precision_loss, reason = "counts of a bench are small")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
