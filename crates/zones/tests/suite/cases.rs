//! Worlds in, plans out: each file in `tests/cases` is a world, its snapshot beside it the plan.

use serde::Deserialize;
use serde_json::{Value, json};
use slipway_kernel::stage::Stage;
use slipway_kernel::{Action, Event, Plan};
use slipway_zones::Zones;

use crate::objects::{NS, pod};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    now: jiff::Timestamp,
    #[serde(default)]
    missing: Vec<String>,
    /// Pods by zone: one revision for each, in order of ordinals; `-` is missing, `!` not ready, `~` terminating.
    pods: std::collections::BTreeMap<String, Vec<String>>,
    objects: Vec<Value>,
}

fn set(case: Case) -> Stage<Zones> {
    let mut stage = Stage::new(Zones::default(), case.now);
    for (zone, revisions) in case.pods {
        for (ordinal, revision) in (0..).zip(revisions) {
            let mut made = pod(&zone, ordinal, revision.trim_end_matches(['!', '~']));
            if revision.ends_with('!') {
                made["status"]["conditions"][0]["status"] = json!("False");
            }
            if revision.ends_with('~') {
                made["metadata"]["deletionTimestamp"] = json!("2026-03-04T11:59:00Z");
            }
            if revision != "-" {
                stage.put(made);
            }
        }
    }
    for mut object in case.objects {
        object["metadata"]["namespace"] = json!(NS);
        stage.put(object);
    }
    stage.facts.missing.extend(case.missing);
    stage
}

fn event(event: &Event) -> Value {
    json!(format!(
        "{} {} on {} ({}): {}",
        event.severity.as_str(),
        event.reason,
        event.regarding,
        event.instance,
        event.note
    ))
}

fn body(action: &Action) -> Value {
    match action {
        Action::Patch { body, .. } | Action::Apply { body, .. } => body.clone(),
        Action::Delete { target, .. } => {
            json!({"preconditions": {"uid": target.uid(), "resourceVersion": target.version()}})
        }
        Action::Ask(question) => json!(format!("{} {}", question.method, question.url)),
    }
}

/// A plan as people read it.
fn readable(plan: &Plan) -> Value {
    let step = |step: &slipway_kernel::Step| {
        let object = step
            .action
            .object()
            .map(ToString::to_string)
            .unwrap_or_default();
        json!({
            "do": format!("{} {object}", step.action.purpose()),
            "body": body(&step.action),
            "tell": step.events.iter().map(event).collect::<Vec<_>>(),
        })
    };
    let status = |status: &slipway_kernel::plan::Status| json!({"of": status.target.object().to_string(), "body": status.body});
    let blocker = |b: &slipway_kernel::Blocker| json!({"reason": b.reason, "object": b.object.to_string(), "message": b.message, "until": b.until, "unblock": b.unblock});
    json!({
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "statuses": plan.statuses.iter().map(status).collect::<Vec<_>>(),
        "events": plan.events.iter().map(event).collect::<Vec<_>>(),
        "blockers": plan.blockers.iter().map(blocker).collect::<Vec<_>>(),
        "wake_at": plan.wake_at,
    })
}

#[test]
fn worlds_and_their_plans() {
    insta::glob!("../cases", "*.yaml", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let case: Case = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut stage = set(case);
        let first = stage.step();
        let second = stage.plan();
        insta::assert_yaml_snapshot!(json!({"first": readable(&first), "then": readable(&second)}));
    });
}
