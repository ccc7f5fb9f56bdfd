//! Numbers about all Rollouts together. No object's name is a label.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_api::fleet::assemblage::SyncState;
use slipway_kernel::capability::Gauge;
use slipway_kernel::fields::{integer, list, text};

/// The numbers of now, over all Rollouts: as their statuses tell them. Whoever asks every few seconds looks at no cluster.
pub fn gauges<'a>(rollouts: impl IntoIterator<Item = &'a Value>) -> Vec<Gauge> {
    let mut sums: BTreeMap<&'static str, i64> =
        STATES.iter().map(|(state, _)| (*state, 0)).collect();
    let (mut known, mut running) = (0_u32, 0_u32);
    let mut held: BTreeMap<&str, u32> = BTreeMap::new();
    for rollout in rollouts {
        known += 1;
        running += u32::from(rollout.pointer("/status/run").is_some());
        for (state, path) in STATES {
            let part = integer(rollout, path).unwrap_or_default();
            *sums.entry(state).or_default() += part;
        }
        for waiting in list(rollout, "/status/waitingFor") {
            let reason = text(waiting, "/reason").unwrap_or_default();
            *held.entry(reason).or_default() += 1;
        }
    }
    let mut all = vec![
        gauge("slipway_fleet_rollouts", "Rollouts", None, known),
        gauge(
            "slipway_fleet_rollouts_in_progress",
            "Rollouts that bring a change to clusters",
            None,
            running,
        ),
    ];
    for (state, sum) in sums {
        let value = u32::try_from(sum).unwrap_or(u32::MAX);
        all.push(gauge(
            "slipway_fleet_clusters",
            "Clusters of all rollouts, by how far they are",
            Some(("state", state)),
            value,
        ));
    }
    for (reason, count) in held {
        all.push(gauge(
            "slipway_fleet_held",
            "Rollouts that wait for something, by reason",
            Some(("reason", reason)),
            count,
        ));
    }
    all
}

/// The numbers of an agent: its syncs by how far they are.
pub fn syncs(all: &BTreeMap<SyncState, u32>) -> Vec<Gauge> {
    let made = all.iter().map(|(state, count)| {
        let word = match state {
            SyncState::Succeeded => "succeeded",
            SyncState::Failed => "failed",
            SyncState::Updating => "updating",
            SyncState::Blocked => "blocked",
        };
        gauge(
            "slipway_agent_syncs",
            "Syncs of this cluster, by how far they are",
            Some(("state", word)),
            *count,
        )
    });
    made.collect()
}

/// What clusters are counted as, and where a status says how many.
const STATES: [(&str, &str); 7] = [
    ("selected", "/status/counts/total"),
    ("updated", "/status/counts/updated"),
    ("ready", "/status/counts/ready"),
    ("unready", "/status/counts/unready"),
    ("failed", "/status/counts/failed"),
    ("skipped", "/status/counts/skipped"),
    ("blocked", "/status/counts/blocked"),
];

fn gauge(
    name: &'static str,
    help: &'static str,
    label: Option<(&'static str, &str)>,
    value: u32,
) -> Gauge {
    let labels = label
        .into_iter()
        .map(|(name, value)| (name, value.to_owned()));
    Gauge {
        name,
        help,
        labels: labels.collect(),
        value: f64::from(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::gauges;

    #[test]
    fn statuses_are_summed_up() {
        let told = json!({"status": {
            "counts": {"total": 3, "updated": 2, "ready": 1, "unready": 1, "failed": 0, "skipped": 1, "blocked": 0},
            "run": {"revision": "a"}, "waitingFor": [{"reason": "CanaryPending"}, {"reason": "Unreachable"}],
        }});
        let untold = json!({"metadata": {}});
        let all = gauges([&told, &told, &untold]);
        let value = |name: &str, label: Option<&str>| {
            let found = all.iter().find(|gauge| {
                gauge.name == name && gauge.labels.values().next().map(String::as_str) == label
            });
            found.map(|gauge| gauge.value)
        };
        assert_eq!(value("slipway_fleet_rollouts", None), Some(3.0));
        assert_eq!(value("slipway_fleet_rollouts_in_progress", None), Some(2.0));
        assert_eq!(value("slipway_fleet_clusters", Some("selected")), Some(6.0));
        assert_eq!(value("slipway_fleet_clusters", Some("blocked")), Some(0.0));
        assert_eq!(value("slipway_fleet_held", Some("Unreachable")), Some(2.0));
    }
}
