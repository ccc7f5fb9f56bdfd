//! Worlds in, plans out: each file in `tests/cases` is a world, its snapshot beside it the plan and the status.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use slipway_api::fleet::rollout::status::{Counts, RolloutStatus};
use slipway_fleet::decide;
use slipway_fleet::observe::{Cluster, Rollout, World};
use slipway_fleet::plan::{self, Decision};

use crate::stage::{carry_out, step};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    now: Timestamp,
    rollout: Rollout,
    revisions: std::collections::BTreeMap<String, Timestamp>,
    clusters: std::collections::BTreeMap<String, Cluster>,
}

/// A plan and a status as people read them.
#[derive(Serialize)]
struct Readable {
    decision: Decision,
    counts: Option<Counts>,
    clusters: Vec<String>,
    conditions: Vec<String>,
}

fn readable(decision: Decision, status: &RolloutStatus) -> Readable {
    let word = |text: &Option<String>| {
        text.as_ref()
            .map(|text| format!(" {text}"))
            .unwrap_or_default()
    };
    let clusters = status.clusters.iter();
    let clusters = clusters.map(|c| {
        format!(
            "{} {}{}{}",
            c.name,
            c.state,
            word(&c.revision),
            word(&c.reason)
        )
    });
    let conditions = status.conditions.iter();
    let conditions =
        conditions.map(|c| format!("{}={} {}: {}", c.type_, c.status, c.reason, c.message));
    Readable {
        counts: status.counts,
        clusters: clusters.collect(),
        conditions: conditions.collect(),
        decision,
    }
}

#[test]
fn worlds_and_their_plans() {
    insta::glob!("../cases", "*.yaml", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let case: Case = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let now = case.now;
        let mut world = World {
            rollout: case.rollout,
            revisions: case.revisions,
            clusters: case.clusters,
            ..World::default()
        };
        let decision = decide(&world, now);
        let status = plan::status(&world, &decision, now);
        carry_out(&mut world, &decision, now);
        insta::assert_yaml_snapshot!(readable(decision, &status));
        // Carried out, and with clusters that stay as they are, it comes to rest and then writes nothing.
        for _ in 0..4 {
            step(&mut world, now);
        }
        let before = world.clone();
        let again = step(&mut world, now);
        assert!(
            again.is_idle() || again.is_released,
            "{}: {again:#?}",
            path.display()
        );
        assert_eq!(world, before, "{}", path.display());
    });
}
