//! Numbers about Canaries under Flagger's names, computed when they are asked for.

use std::collections::BTreeMap;

use slipway_api::canary::{Canary, CanaryStatus, Phase};
use slipway_kernel::capability::Gauge;

use crate::provider::Provider;

/// What runs.
pub fn about(provider: Provider) -> Gauge {
    Gauge {
        name: "flagger_info",
        help: "The version that runs, and what shifts traffic where a Canary does not say.",
        labels: BTreeMap::from([
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("mesh_provider", provider.name().to_owned()),
        ]),
        value: 1.0,
    }
}

/// The numbers of all Canaries.
pub fn gauges<'a>(canaries: impl Iterator<Item = &'a Canary>) -> Vec<Gauge> {
    let mut all = Vec::new();
    let mut total: BTreeMap<String, u32> = BTreeMap::new();
    for canary in canaries {
        let namespace = canary.metadata.namespace.clone().unwrap_or_default();
        *total.entry(namespace.clone()).or_default() += 1;
        all.extend(of_one(canary, &namespace));
    }
    all.extend(total.into_iter().map(|(namespace, number)| Gauge {
        name: "flagger_canary_total",
        help: "How many Canaries there are in a namespace.",
        labels: BTreeMap::from([("namespace", namespace)]),
        value: f64::from(number),
    }));
    all
}

fn of_one(canary: &Canary, namespace: &str) -> Vec<Gauge> {
    let target = &canary.spec.target_ref.name;
    let status = canary.status.clone().unwrap_or_default();
    let phase = Phase::of(status.phase.as_deref());
    let value = match phase {
        Phase::Progressing => 0,
        Phase::Failed => 2,
        _ => 1,
    };
    let mut all = vec![Gauge {
        name: "flagger_canary_status",
        help: "Last known canary analysis result: 0 running, 1 successful, 2 failed.",
        labels: BTreeMap::from([
            ("name", target.clone()),
            ("namespace", namespace.to_owned()),
        ]),
        value: f64::from(value),
    }];
    let weight = i32::try_from(status.canary_weight.clamp(0, 100)).unwrap_or_default();
    let sides = [
        (target.clone(), weight),
        (format!("{target}-primary"), 100 - weight),
    ];
    all.extend(sides.into_iter().map(|(workload, weight)| Gauge {
        name: "flagger_canary_weight",
        help: "The share of the traffic that a workload gets, in percent.",
        labels: BTreeMap::from([("workload", workload), ("namespace", namespace.to_owned())]),
        value: f64::from(weight),
    }));
    all.extend(ends(&status, target, namespace));
    let measured = status
        .checks
        .iter()
        .filter_map(|check| Some((&check.name, check.value?)));
    all.extend(measured.map(|(metric, value)| Gauge {
        name: "flagger_canary_metric_analysis",
        help: "What a check measured last.",
        labels: BTreeMap::from([
            ("name", target.clone()),
            ("namespace", namespace.to_owned()),
            ("metric", metric.clone()),
        ]),
        value,
    }));
    all
}

/// How runs ended, by how they went. It is in the status, and not lost with a process.
fn ends(status: &CanaryStatus, target: &str, namespace: &str) -> Vec<Gauge> {
    let ends = status.run.iter().flat_map(|run| &run.ends);
    let each = ends.filter_map(|(end, number)| {
        let mut parts = end.splitn(3, '/');
        let (end, way, analysis) = (parts.next()?, parts.next()?, parts.next()?);
        let (name, help) = if end == "failed" {
            ("flagger_canary_failures_total", "Runs that failed.")
        } else {
            ("flagger_canary_successes_total", "Runs that succeeded.")
        };
        let number = u32::try_from(*number).unwrap_or_default();
        Some(Gauge {
            name,
            help,
            labels: BTreeMap::from([
                ("name", target.to_owned()),
                ("namespace", namespace.to_owned()),
                ("deployment_strategy", way.to_owned()),
                ("analysis_status", analysis.to_owned()),
            ]),
            value: f64::from(number),
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use serde_json::json;
    use slipway_api::canary::Canary;

    use super::gauges;

    #[test]
    fn names_and_values_are_the_originals() {
        let canary = |phase: &str, weight: i64| -> Canary {
            serde_json::from_value(json!({
                "metadata": {"name": "c", "namespace": "shop"},
                "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
                "status": {"phase": phase, "canaryWeight": weight,
                    "run": {"ends": {"succeeded/canary/completed": 3, "failed/canary/skipped": 1}},
                    "checks": [
                    {"name": "errors", "verdict": "Passed", "value": 0.5, "at": "2026-01-01T00:00:00Z"}]},
            }))
            .unwrap()
        };
        let all = gauges([canary("Progressing", 30), canary("Failed", 0)].iter());
        let values = |name: &str| -> Vec<f64> {
            all.iter()
                .filter(|one| one.name == name)
                .map(|one| one.value)
                .collect()
        };
        assert_eq!(values("flagger_canary_status"), [0.0, 2.0]);
        assert_eq!(values("flagger_canary_weight"), [30.0, 70.0, 0.0, 100.0]);
        assert_eq!(values("flagger_canary_total"), [2.0]);
        assert_eq!(values("flagger_canary_successes_total"), [3.0, 3.0]);
        assert_eq!(values("flagger_canary_failures_total"), [1.0, 1.0]);
        let labels = all.iter().find(|one| one.name.ends_with("failures_total"));
        let labels = &labels.unwrap().labels;
        assert_eq!(labels["deployment_strategy"], "canary");
        assert_eq!(labels["analysis_status"], "skipped");
        assert_eq!(values("flagger_canary_metric_analysis"), [0.5, 0.5]);
    }
}
