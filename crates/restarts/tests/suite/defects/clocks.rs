//! What another clock wrote.

use serde_json::json;
use slipway_kernel::{Action, Plan};
use slipway_restarts::{DefaultCriteria, Settings};

use crate::objects::*;

fn writes_status(plan: &Plan) -> bool {
    let mut steps = plan.steps.iter();
    steps.any(|step| matches!(&step.action, Action::Apply { object, .. } if object.name == "slipway-restarts"))
}

/// The clock of a former leader was ahead, or somebody wrote it: that is no reason to say nothing for years.
#[test]
fn a_status_from_the_future_is_brought_up_to_date() {
    for (updated, is_written) in [
        ("2031-01-01T00:00:00Z", true),
        ("2026-03-04T12:00:09Z", true),
        ("2026-03-04T11:59:56Z", false),
        ("2026-03-04T11:59:40Z", true),
        ("soon", true),
    ] {
        let mut stage = stage_with(Settings {
            operator_namespace: Some("rollout".to_owned()),
            default_criteria: Some(DefaultCriteria::default()),
            ..Settings::default()
        });
        stage.put(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "rollout", "name": "slipway-restarts"},
            "data": {"active": "false", "updatedAt": updated},
        }));
        stage.put(deployment("d", "a", MESH, Some(&ago(5))));
        assert_eq!(writes_status(&stage.plan()), is_written, "{updated}");
    }
}

/// What a policy tells of a restart does not change when this clock comes to the time that another one wrote.
#[test]
fn a_restart_from_the_future_is_told_as_it_is_written() {
    let mut stage = stage();
    let spec = json!({"interval": "10m", "match": {"labels": {"mesh": "true"}}});
    stage.put(flipper("default", "f", &spec));
    stage.put(deployment("d", "a", MESH, Some("2026-03-04T12:00:02Z")));
    stage.step();
    stage.step();
    stage.now += jiff::SignedDuration::from_secs(5);
    let statuses = stage.plan().statuses;
    assert!(statuses.is_empty(), "{statuses:?}");
}
