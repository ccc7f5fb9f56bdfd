//! Numbers about groups, computed when they are asked for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_kernel::admission::Count;
use slipway_kernel::capability::{Gauge, ReconcileMetricNames, WatchEvent};
use slipway_kernel::identity::kinds;
use slipway_kernel::{ClusterId, Stores};

use crate::observe::{Hooks, World, ZONE_BUDGET};
use crate::zpdb::Observed;

/// What the metrics of requests begin with, as the original's dashboards have it.
pub const PREFIX: &str = "rollout_operator";

/// How passes over rollout groups are shown, as the original does. An alert of Mimir's looks at the last success.
pub const PASSES: ReconcileMetricNames = ReconcileMetricNames {
    label: "rollout_group",
    total: "rollout_operator_group_reconciles_total",
    failed: "rollout_operator_group_reconciles_failed_total",
    duration: "rollout_operator_group_reconcile_duration_seconds",
    last_success: "rollout_operator_last_successful_group_reconcile_timestamp_seconds",
};

/// What becomes of requests while no webhook answers, for each webhook of ours.
pub fn failure_policies(stores: &Stores, cluster: &ClusterId) -> Vec<Gauge> {
    let of = |kind, name: &'static str| {
        let all = stores.list::<Hooks>(cluster, &kind);
        let all: Vec<Hooks> = all.map(|entry| entry.body.clone()).collect();
        all.into_iter().flat_map(move |hooks| {
            let each = hooks.0.into_iter();
            each.flat_map(move |(webhook, policy)| {
                ["Fail", "Ignore"].map(|shown| Gauge {
                    name: "kube_validating_webhook_failure_policy",
                    help: "Whether a webhook fails or is ignored while nobody answers for it.",
                    labels: BTreeMap::from([
                        ("type", name.to_owned()),
                        ("webhook", webhook.clone()),
                        ("policy", shown.to_owned()),
                    ]),
                    value: f64::from(u8::from(shown == policy)),
                })
            })
        })
    };
    let validating = of(kinds::VALIDATING_WEBHOOKS, "ValidatingWebhook");
    let mutating = of(kinds::MUTATING_WEBHOOKS, "MutatingWebhook");
    validating.chain(mutating).collect()
}

/// How the arrival of a zone-aware budget is counted.
pub fn metric_for(arrival: &WatchEvent<'_>) -> Option<Count> {
    if *arrival.kind != ZONE_BUDGET {
        return None;
    }
    let observed = if arrival.is_deletion {
        Observed::of_deletion(arrival.is_new)
    } else {
        Observed::of(arrival.object, arrival.is_new)
    };
    Some(Count {
        name: "rollout_operator_zpdb_configurations_observed_total",
        help: "Zone-aware budgets that came, changed or went, by what was made of them",
        labels: vec![("result", observed.as_str().to_owned())],
    })
}

/// The numbers of one group.
pub fn gauges(world: &World, now: Timestamp) -> Vec<Gauge> {
    let mut all = Vec::new();
    for survey in world.surveys(now) {
        let labels = BTreeMap::from([
            ("namespace", world.namespace.clone()),
            ("rollout_group", world.group.clone()),
            ("statefulset", survey.name().to_owned()),
        ]);
        let mut gauge = |name: &'static str, help: &'static str, value: i64| {
            all.push(Gauge {
                name,
                help,
                labels: labels.clone(),
                value: f64::from(i32::try_from(value).unwrap_or(i32::MAX)),
            });
        };
        gauge(
            "slipway_zone_pods_unavailable",
            "Pods of a zone that are missing, terminating or not ready.",
            survey.unavailable(),
        );
        gauge(
            "slipway_zone_pods_outdated",
            "Pods of a zone that are of another revision than its template.",
            i64::try_from(survey.outdated()).unwrap_or(i64::MAX),
        );
    }
    all
}
