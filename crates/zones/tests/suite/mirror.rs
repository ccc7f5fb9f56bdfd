//! Mirrored replicas, as the original tests them.

use serde_json::{Value, json};
use slipway_kernel::fact::{Answer, QuestionId, ScaleOf};
use slipway_kernel::stage::Stage;
use slipway_kernel::{Action, Plan};
use slipway_zones::Zones;

use crate::objects::*;

/// A zone that mirrors the resource `ref-<zone>`.
pub(crate) fn mirroring(name: &str, replicas: i64, write_back: Option<&str>) -> Value {
    let mut set = zone(name);
    set["spec"]["replicas"] = json!(replicas);
    set["status"]["replicas"] = json!(replicas);
    set["status"]["readyReplicas"] = json!(replicas);
    let annotations = &mut set["metadata"]["annotations"];
    annotations["grafana.com/rollout-mirror-replicas-from-resource-name"] =
        json!(format!("ref-{name}"));
    annotations["grafana.com/rollout-mirror-replicas-from-resource-kind"] =
        json!("ReplicaTemplate");
    annotations["grafana.com/rollout-mirror-replicas-from-resource-api-version"] =
        json!("rollout-operator.grafana.com/v1");
    if let Some(value) = write_back {
        annotations["grafana.com/rollout-mirror-replicas-from-resource-write-back"] = json!(value);
    }
    set
}

/// Answers to the questions of a plan: the method and URL of each give what is said.
pub(crate) fn answer(
    stage: &mut Stage<Zones>,
    plan: &Plan,
    say: impl Fn(&str, &str) -> Answer,
) -> Vec<String> {
    let mut asked = Vec::new();
    for step in &plan.steps {
        if let Action::Ask(question) = &step.action {
            asked.push(format!("{} {}", question.method(), question.address()));
            let id: QuestionId = question.id.clone();
            let said = say(question.method(), &question.address());
            stage.facts.answers.insert(id, (stage.now, said));
        }
    }
    asked
}

/// Whose scale was asked for.
fn scale_of(url: &str) -> ScaleOf {
    let parts: Vec<&str> = url.strip_prefix("scale://").unwrap().split('/').collect();
    let &[group, kind, namespace, name] = parts.as_slice() else {
        panic!("{url} names no resource");
    };
    ScaleOf {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// A reference with these replicas in spec and status.
pub(crate) fn reference(url: &str, wanted: i64, has: i64) -> Answer {
    let of = scale_of(url);
    assert_eq!(
        (of.group.as_str(), of.namespace.as_str()),
        ("rollout-operator.grafana.com", NS)
    );
    let body = json!({
        "group": of.group, "version": "v1", "kind": of.kind, "plural": "replicatemplates",
        "scale": {
            "metadata": {"name": of.name, "namespace": NS, "uid": "ref-uid", "resourceVersion": "7"},
            "spec": {"replicas": wanted}, "status": {"replicas": has},
        },
    });
    Answer::Said {
        code: 200,
        body: body.to_string(),
    }
}

/// The second plan of a group whose references have these replicas, by zone.
fn second(zones: &[Value], references: &[(&str, i64, i64)]) -> Plan {
    let mut stage = stage(zones);
    let plan = stage.step();
    answer(&mut stage, &plan, |_, url| {
        let (_, wanted, has) = references
            .iter()
            .find(|(zone, _, _)| url.ends_with(zone))
            .unwrap();
        reference(url, *wanted, *has)
    });
    stage.plan()
}

const A: &str = "ingester-zone-a";

fn written(name: &str, replicas: i64) -> (String, Value) {
    (format!("ref-{name}"), json!({"replicas": replicas}))
}

#[test]
fn up_and_down_with_and_without_write_back() {
    for (from, to) in [(2, 5), (3, 2)] {
        let plan = second(&[mirroring(A, from, None)], &[(A, to, from)]);
        assert_eq!(scaled(&plan), [(A.to_owned(), to)]);
        assert_eq!(statuses(&plan), [written(A, to)]);
        let object = plan.statuses[0].target.object();
        assert_eq!(
            object.kind.path(NS),
            "/apis/rollout-operator.grafana.com/v1/namespaces/mimir/replicatemplates"
        );
        let plan = second(&[mirroring(A, from, Some("false"))], &[(A, to, from)]);
        assert_eq!(scaled(&plan), [(A.to_owned(), to)]);
        assert_eq!(statuses(&plan), []);
    }
}

#[test]
fn equal_but_the_status_differs_only_the_status_is_written() {
    let plan = second(&[mirroring(A, 3, None)], &[(A, 3, 2)]);
    assert_eq!(
        (scaled(&plan), statuses(&plan)),
        (vec![], vec![written(A, 3)])
    );
    let plan = second(&[mirroring(A, 3, Some("false"))], &[(A, 3, 2)]);
    assert_eq!((scaled(&plan), statuses(&plan)), (vec![], vec![]));
}

#[test]
fn all_equal_nothing() {
    let plan = second(&[mirroring(A, 3, None)], &[(A, 3, 3)]);
    assert_eq!((scaled(&plan), statuses(&plan)), (vec![], vec![]));
    assert!(plan.blockers.is_empty());
    // It is asked again with the next period.
    assert_eq!(plan.wake_at, Some(at("2026-03-04T12:00:05Z")));
}

#[test]
fn an_unknown_kind_or_a_failing_scale_is_told_and_does_not_fail_the_pass() {
    for said in [
        Answer::unreachable("no matches for kind"),
        Answer::Said {
            code: 500,
            body: "broken".to_owned(),
        },
        Answer::Said {
            code: 200,
            body: "no json".to_owned(),
        },
        Answer::timeout(),
    ] {
        let mut outdated_b = outdated("ingester-zone-b");
        outdated_b["metadata"]["annotations"]["rollout-max-unavailable"] = json!("1");
        let mut stage = stage(&[mirroring(A, 3, None), outdated_b]);
        let plan = stage.step();
        answer(&mut stage, &plan, |_, _| said.clone());
        let plan = pass(&mut stage);
        assert!(reasons(&plan).contains(&"ReferenceUnknown"), "{said:?}");
        assert_eq!(deleted(&plan), ["ingester-zone-b-0"]);
    }
}

#[test]
fn a_kind_alone_is_no_reference() {
    let mut set = mirroring(A, 3, None);
    set["metadata"]["annotations"]["grafana.com/rollout-mirror-replicas-from-resource-name"] =
        json!("");
    assert!(
        stage(&[set])
            .plan()
            .steps
            .iter()
            .all(|s| s.action.verb() != "ask")
    );
}

#[test]
fn four_zones_one_without_two_right_one_to_scale() {
    for (write_back, patched) in [(None, 3), (Some("false"), 1), (Some("bad value"), 1)] {
        let zones = [
            zone("test-a"),
            mirroring("test-b", 3, write_back),
            mirroring("test-c", 3, write_back),
            mirroring("test-d", 2, None),
        ];
        let references = [("test-b", 3, 0), ("test-c", 3, 0), ("test-d", 5, 0)];
        let plan = second(&zones, &references);
        assert_eq!(scaled(&plan), [("test-d".to_owned(), 5)], "{write_back:?}");
        assert_eq!(statuses(&plan).len(), patched, "{write_back:?}");
    }
}

#[test]
fn force_in_one_of_three_mirrored_zones_only_that_one() {
    let mut forced = mirroring("test-b", 3, None);
    forced["metadata"]["annotations"]["grafana.com/rollout-force-replicas"] = json!("0");
    let zones = [
        mirroring("test-a", 3, None),
        forced,
        mirroring("test-c", 3, None),
    ];
    let references = [("test-a", 3, 3), ("test-b", 3, 3), ("test-c", 3, 3)];
    assert_eq!(
        scaled(&second(&zones, &references)),
        [("test-b".to_owned(), 0)]
    );
}
