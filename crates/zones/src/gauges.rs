//! Numbers about groups, computed when they are asked for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_kernel::capability::Gauge;

use crate::observe::World;

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
