//! Numbers about all Rollouts together. No object's name is a label.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_api::fleet::assemblage::SyncState;
use slipway_kernel::capability::Gauge;

use crate::observe::World;
use crate::plan;

/// The numbers of now, over all Rollouts.
pub fn gauges<'a>(worlds: impl IntoIterator<Item = &'a World>, now: Timestamp) -> Vec<Gauge> {
    let mut sums: BTreeMap<&'static str, i64> = STATES.iter().map(|state| (*state, 0)).collect();
    let (mut rollouts, mut running) = (0_u32, 0_u32);
    let mut held: BTreeMap<&'static str, u32> = BTreeMap::new();
    for world in worlds {
        let decision = plan::decide(world, now);
        let counts = plan::status(world, &decision, now)
            .counts
            .unwrap_or_default();
        rollouts += 1;
        running += u32::from(decision.run.is_some());
        let parts = [
            counts.total,
            counts.updated,
            counts.ready,
            counts.unready,
            counts.failed,
            counts.skipped,
            counts.blocked,
        ];
        for (state, part) in STATES.iter().zip(parts) {
            *sums.entry(*state).or_default() += part;
        }
        for hold in &decision.holds {
            *held.entry(hold.reason).or_default() += 1;
        }
    }
    let mut all = vec![
        gauge("slipway_fleet_rollouts", "Rollouts", None, rollouts),
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
            "What rollouts wait for, by reason",
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

/// What clusters are counted as, in the order of the counts of a status.
const STATES: [&str; 7] = [
    "selected", "updated", "ready", "unready", "failed", "skipped", "blocked",
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
