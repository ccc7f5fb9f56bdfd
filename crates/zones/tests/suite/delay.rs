//! `TestRolloutController_ReconcileStatefulsetWithDownscaleDelay` of the original: one hour of delay, mirrored replicas.

use serde_json::{Value, json};
use slipway_kernel::fact::Answer;
use slipway_kernel::stage::Stage;
use slipway_kernel::{Action, Plan};
use slipway_zones::Zones;

use crate::mirror::{answer, mirroring, reference};
use crate::objects::*;

const A: &str = "ingester-zone-a";
const B: &str = "ingester-zone-b";

fn delayed(name: &str, replicas: i64) -> Value {
    let mut set = mirroring(name, replicas, Some("false"));
    let annotations = &mut set["metadata"]["annotations"];
    annotations["grafana.com/rollout-delayed-downscale"] = json!("1h");
    annotations["grafana.com/rollout-prepare-delayed-downscale-url"] =
        json!("http://pod:8080/prepare");
    set
}

fn forced(mut set: Value, value: &str) -> Value {
    set["metadata"]["annotations"]["grafana.com/rollout-force-replicas"] = json!(value);
    set
}

/// A pod that was prepared so many minutes ago.
fn since(minutes: i64) -> Answer {
    let at = noon().as_second() - minutes * 60;
    Answer::Said {
        code: 200,
        body: json!({"timestamp": at}).to_string(),
    }
}

fn short(asked: &str) -> String {
    let asked = asked.replace(".ingester.mimir.svc.cluster.local.:8080/prepare", "");
    asked.replace("http://", "")
}

/// Plans until nothing more is asked; what was asked of pods, and the last plan.
fn drive(zones: &[Value], wanted: i64, pod: impl Fn(&str, &str) -> Answer) -> (Vec<String>, Plan) {
    let mut stage = stage(zones);
    let mut asked = Vec::new();
    for _ in 0..5 {
        let plan = stage.plan();
        let now = answer(&mut stage, &plan, |method, url| {
            if url.starts_with("scale:") {
                return reference(url, wanted, wanted);
            }
            pod(method, &short(url))
        });
        if now.is_empty() || !scaled(&plan).is_empty() {
            return (asked, plan);
        }
        asked.extend(
            now.iter()
                .filter(|a| !a.starts_with("GET"))
                .map(|a| short(a)),
        );
    }
    panic!("no end: {asked:?}")
}

fn ordinal(pod: &str) -> i64 {
    pod.rsplit_once('-').unwrap().1.parse().unwrap()
}

#[test]
fn all_prepared_long_ago_the_others_are_called_off_and_it_is_scaled() {
    let (mut asked, plan) = drive(&[delayed(A, 5)], 3, |_, _| since(70));
    asked.sort();
    let want = [
        "DELETE ingester-zone-a-0",
        "DELETE ingester-zone-a-1",
        "DELETE ingester-zone-a-2",
        "POST ingester-zone-a-3",
        "POST ingester-zone-a-4",
    ];
    assert_eq!(asked, want);
    assert_eq!(scaled(&plan), [(A.to_owned(), 3)]);
}

#[test]
fn none_old_enough_no_scaling_and_the_exact_end_is_waited_for() {
    let (_, plan) = drive(&[delayed(A, 5)], 3, |_, _| since(50));
    assert_eq!(scaled(&plan), []);
    let blocker = plan
        .blockers
        .iter()
        .find(|b| b.reason == "DelayNotReached")
        .unwrap();
    assert_eq!(blocker.until, Some(at("2026-03-04T12:10:00Z")));
}

#[test]
fn the_last_too_young_no_scaling_though_another_is_old() {
    let (_, plan) = drive(&[delayed(A, 5)], 3, |_, pod| {
        since(if ordinal(pod) == 4 { 5 } else { 70 })
    });
    assert_eq!(scaled(&plan), []);
}

#[test]
fn the_tail_alone_may_go() {
    let (_, plan) = drive(&[delayed(A, 5)], 1, |_, pod| {
        since(if ordinal(pod) == 2 { 5 } else { 70 })
    });
    assert_eq!(scaled(&plan), [(A.to_owned(), 3)]);
}

#[test]
fn a_pod_that_fails_in_any_way_no_scaling() {
    for failure in [
        Answer::Said {
            code: 500,
            body: String::new(),
        },
        Answer::unreachable("connection refused"),
        Answer::Said {
            code: 200,
            body: "OK".to_owned(),
        },
        Answer::Said {
            code: 200,
            body: json!({"timestamp": 0}).to_string(),
        },
        Answer::timeout(),
    ] {
        let (_, plan) = drive(&[delayed(A, 5)], 3, |method, pod| {
            if method == "POST" && ordinal(pod) == 3 {
                failure.clone()
            } else {
                since(70)
            }
        });
        assert_eq!(scaled(&plan), [], "{failure:?}");
        assert!(reasons(&plan).contains(&"PrepareFailed"));
    }
}

#[test]
fn zone_a_not_allowed_zone_b_allowed_only_b_is_scaled() {
    let (_, plan) = drive(&[delayed(A, 5), delayed(B, 5)], 3, |_, pod| {
        since(if pod.starts_with(A) { 5 } else { 70 })
    });
    assert_eq!(scaled(&plan), [(B.to_owned(), 3)]);
}

#[test]
fn up_calls_all_off_and_scales_also_when_they_answer_with_a_conflict() {
    for code in [200, 409, 500] {
        let (asked, plan) = drive(&[delayed(A, 2)], 5, |_, _| Answer::Said {
            code,
            body: String::new(),
        });
        assert_eq!(
            asked,
            ["DELETE ingester-zone-a-0", "DELETE ingester-zone-a-1"],
            "{code}"
        );
        assert_eq!(scaled(&plan), [(A.to_owned(), 5)], "{code}");
    }
}

#[test]
fn equal_calls_all_off() {
    let (asked, plan) = drive(&[delayed(A, 3)], 3, |_, _| since(0));
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|a| a.starts_with("DELETE")));
    assert_eq!(scaled(&plan), []);
}

#[test]
fn force_respects_the_delay() {
    let (_, plan) = drive(&[forced(delayed(A, 5), "2")], 10, |_, _| since(70));
    assert_eq!(scaled(&plan), [(A.to_owned(), 2)]);
    let (asked, plan) = drive(&[forced(delayed(A, 3), "0")], 10, |_, _| since(5));
    assert_eq!(
        asked,
        [
            "POST ingester-zone-a-0",
            "POST ingester-zone-a-1",
            "POST ingester-zone-a-2"
        ]
    );
    assert_eq!(scaled(&plan), []);
    let (asked, plan) = drive(&[forced(delayed(A, 3), "3")], 10, |_, _| since(5));
    assert!(asked.iter().all(|a| a.starts_with("DELETE")) && asked.len() == 3);
    assert_eq!(scaled(&plan), []);
}

/// D11: the original's warning about a delay that cannot be read can never be reached.
#[test]
fn defect_11_a_delay_that_cannot_be_read_is_told_and_nothing_is_scaled() {
    for (name, value) in [
        ("grafana.com/rollout-delayed-downscale", "soon"),
        ("grafana.com/rollout-delayed-downscale", "-1h"),
        (
            "grafana.com/rollout-prepare-delayed-downscale-url",
            "/prepare",
        ),
    ] {
        let mut set = delayed(A, 5);
        set["metadata"]["annotations"][name] = json!(value);
        let (asked, plan) = drive(&[set], 3, |_, _| since(70));
        assert!(asked.is_empty(), "{asked:?}");
        assert_eq!(scaled(&plan), [], "{value}");
        let blocker = plan.blockers.iter().find(|b| b.message.contains(name));
        assert_eq!(blocker.unwrap().reason, "InvalidAnnotation", "{value}");
    }
    // Either of them empty, or no time at all: at once.
    for (name, value) in [
        ("grafana.com/rollout-delayed-downscale", "0"),
        ("grafana.com/rollout-delayed-downscale", ""),
        ("grafana.com/rollout-prepare-delayed-downscale-url", ""),
    ] {
        let mut set = delayed(A, 5);
        set["metadata"]["annotations"][name] = json!(value);
        let (_, plan) = drive(&[set], 3, |_, _| since(5));
        assert_eq!(scaled(&plan), [(A.to_owned(), 3)], "{name} {value}");
    }
}

/// D9: what was prepared and is wanted again is called off, also shortly after an earlier call.
#[test]
fn ten_nine_ten_leaves_no_pod_prepared() {
    let mut stage = stage(&[delayed(A, 3)]);
    for (minutes, wanted) in [(0, 3), (0, 3), (1, 2), (1, 2), (2, 3), (2, 3)] {
        stage.now = noon() + jiff::SignedDuration::from_mins(minutes);
        let plan = stage.plan();
        let asked = answer(&mut stage, &plan, |_, url| {
            if url.starts_with("scale:") {
                reference(url, wanted, wanted)
            } else {
                since(0)
            }
        });
        if minutes == 2 && !asked[0].starts_with("GET") {
            assert_eq!(short(&asked[0]), "DELETE ingester-zone-a-2");
            assert_eq!(asked.len(), 1, "{asked:?}");
            return;
        }
    }
    panic!("it was never called off");
}

/// Pods are addressed by their own ordinals.
#[test]
fn ordinals_may_start_elsewhere() {
    let mut set = delayed(A, 2);
    set["spec"]["ordinals"] = json!({"start": 7});
    let (asked, _) = drive(&[set], 1, |_, _| since(5));
    assert_eq!(
        asked,
        ["DELETE ingester-zone-a-7", "POST ingester-zone-a-8"]
    );
}

/// A zone whose pods a webhook prepares.
fn prepared(replicas: i64) -> Value {
    let mut set = zone(A);
    set["spec"]["replicas"] = json!(replicas);
    set["status"]["replicas"] = json!(replicas);
    set["status"]["readyReplicas"] = json!(replicas);
    set["metadata"]["annotations"]["grafana.com/prepare-downscale-http-path"] = json!("/prepare");
    set["metadata"]["annotations"]["grafana.com/prepare-downscale-http-port"] = json!("8080");
    set
}

fn locking(locks: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "namespace": NS, "name": "slipway-downscale-locks",
            "labels": {"app.kubernetes.io/managed-by": "slipway"},
            "annotations": {"slipway.dev/downscale-locks": locks},
        },
    })
}

/// What is locked in the map.
fn locked(stage: &Stage<Zones>) -> Vec<String> {
    let map = stage
        .get("ConfigMap", NS, "slipway-downscale-locks")
        .unwrap();
    let text = map["metadata"]["annotations"]["slipway.dev/downscale-locks"].as_str();
    let locks: Value = text.map_or(json!({}), |text| serde_json::from_str(text).unwrap());
    locks.as_object().unwrap().keys().cloned().collect()
}

/// A step that does all but the report, with pods that answer with this code; what they were asked.
fn told(stage: &mut Stage<Zones>, code: u16) -> Vec<String> {
    let plan = stage.step();
    let asked = answer(stage, &plan, |_, _| Answer::Said {
        code,
        body: String::new(),
    });
    asked.iter().map(|asked| short(asked)).collect()
}

/// The note of a downscale from 3 to 2 that a webhook let through, and whose time is over at noon.
fn announced() -> String {
    let note =
        json!({"holder": "1", "statefulset": A, "from": 3, "to": 2, "until": noon().to_string()});
    json!({format!("allowed/{A}"): note}).to_string()
}

/// D9: another webhook refused the downscale, or somebody took it back (10→9→10). The pod is told that it stays,
/// under the lock of the group, so that no webhook tells it otherwise meanwhile.
#[test]
fn d9_a_downscale_that_came_to_nothing_has_its_pods_told_that_they_stay() {
    let mut stage = stage(&[prepared(3)]);
    stage.put(locking(&announced()));
    let note = format!("allowed/{A}");
    stage.now = noon() - jiff::SignedDuration::from_secs(1);
    assert!(told(&mut stage, 200).is_empty(), "it may still come");
    assert_eq!(locked(&stage), std::slice::from_ref(&note));
    stage.now = noon() + jiff::SignedDuration::from_secs(1);
    assert!(told(&mut stage, 200).is_empty(), "first the lock");
    assert_eq!(locked(&stage), [note.clone(), "ingester".to_owned()]);
    assert_eq!(told(&mut stage, 500), ["DELETE ingester-zone-a-2"]);
    // It did not answer well: the lock is given back until it is told again.
    assert!(told(&mut stage, 200).is_empty());
    assert_eq!(locked(&stage), std::slice::from_ref(&note));
    assert!(told(&mut stage, 200).is_empty());
    assert_eq!(locked(&stage), [note]);
    stage.now = noon() + jiff::SignedDuration::from_secs(31);
    assert!(told(&mut stage, 200).is_empty());
    assert_eq!(told(&mut stage, 200), ["DELETE ingester-zone-a-2"]);
    assert!(told(&mut stage, 200).is_empty());
    assert!(locked(&stage).is_empty(), "{:?}", locked(&stage));
    assert!(told(&mut stage, 200).is_empty());
}

/// After a downscale that came about nobody is told, and a webhook that is at work is not disturbed.
#[test]
fn a_downscale_that_came_about_is_left_alone_and_so_is_one_under_way() {
    let mut done = stage(&[prepared(2)]);
    done.put(locking(&announced()));
    let mut busy = stage(&[prepared(3)]);
    let mut locks: Value = serde_json::from_str(&announced()).unwrap();
    locks["ingester"] = json!({"holder": "2", "statefulset": A, "from": 3, "to": 2, "until": "2026-03-04T12:00:30Z"});
    busy.put(locking(&locks.to_string()));
    for second in [1, 5, 29] {
        for stage in [&mut done, &mut busy] {
            stage.now = noon() + jiff::SignedDuration::from_secs(second);
            assert!(told(stage, 200).is_empty());
        }
        assert!(locked(&done).is_empty(), "the note is of no use any more");
        assert_eq!(locked(&busy).len(), 2);
    }
}

/// Z11: a webhook that died in the middle leaves its lock behind. When that is void, the pods that stay are told.
#[test]
fn a_lock_that_was_left_behind_has_its_pods_told_that_they_stay() {
    let set = prepared(3);
    let lock = |zone: &str| json!({"holder": "1", "statefulset": zone, "from": 3, "to": 1, "until": noon().to_string()});
    let locks = json!({"ingester": lock(A), "other": lock(B)}).to_string();
    let mut stage = stage(&[set]);
    stage.put(locking(&locks));
    let map = |locks: &str| locking(locks);
    let asked = |stage: &mut Stage<Zones>| {
        let plan = stage.plan();
        let asked = answer(stage, &plan, |_, url| {
            let code = if url.contains("zone-a-2") { 500 } else { 200 };
            Answer::Said {
                code,
                body: String::new(),
            }
        });
        let asked: Vec<String> = asked.iter().map(|asked| short(asked)).collect();
        let taken = plan.steps.iter().find_map(|step| match &step.action {
            Action::Patch {
                purpose: slipway_zones::render::purpose::TAKE_OVER,
                body,
                ..
            } => body["metadata"]["annotations"]["slipway.dev/downscale-locks"].as_str(),
            _ => None,
        });
        if let Some(locks) = taken {
            stage.put(map(locks));
        }
        (asked, names(&plan, "unlock"), taken.is_some())
    };
    let nothing = (vec![], vec![], false);
    stage.now = noon() - jiff::SignedDuration::from_secs(1);
    assert_eq!(asked(&mut stage), nothing, "it may still come");
    stage.now = noon() + jiff::SignedDuration::from_secs(1);
    let taken = (vec![], vec![], true);
    assert_eq!(
        asked(&mut stage),
        taken,
        "nobody is told before the lock is ours"
    );
    let told = [
        "DELETE ingester-zone-a-1".to_owned(),
        "DELETE ingester-zone-a-2".to_owned(),
    ];
    assert_eq!(asked(&mut stage).0, told);
    assert_eq!(
        asked(&mut stage),
        nothing,
        "the one that failed is told later"
    );
    stage.now = noon() + jiff::SignedDuration::from_secs(31);
    assert_eq!(asked(&mut stage).0, ["DELETE ingester-zone-a-2"]);
    stage.now = noon() + jiff::SignedDuration::from_secs(55);
    assert_eq!(
        asked(&mut stage),
        taken,
        "before others may take it, it is kept for longer"
    );
    stage.now = noon() + jiff::SignedDuration::from_mins(31);
    assert_eq!(asked(&mut stage).1, ["slipway-downscale-locks"], "given up");
}

/// What the webhook wrote down is put on the zone, once, and only if it is newer than what stands there.
#[test]
fn the_time_of_a_downscale_is_put_on_the_zone() {
    let mut stage = stage(&[zone(A), zone(B)]);
    let entry = json!({"lastDownscaled": noon().to_string()}).to_string();
    let (a, b) = ("ingester-zone-a", "ingester-zone-b");
    let mut newer = zone(B);
    newer["metadata"]["annotations"]["grafana.com/last-downscale"] =
        json!((noon() + jiff::SignedDuration::from_secs(1)).to_string());
    stage.put(newer);
    stage.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "namespace": NS, "name": "slipway-downscale-locks",
            "labels": {"app.kubernetes.io/managed-by": "slipway"},
        },
        "data": {a: entry, b: entry},
    }));
    let plan = stage.plan();
    let marked = plan
        .steps
        .iter()
        .find(|s| s.action.purpose().as_str() == "downscaled");
    let Some(Action::Patch { target, body, .. }) = marked.map(|step| &step.action) else {
        panic!("{plan:?}")
    };
    assert_eq!(names(&plan, "downscaled"), [a]);
    assert!(
        !target.version().is_empty(),
        "from the version that was seen"
    );
    let stamp = noon().to_string();
    assert_eq!(
        *body,
        json!({"metadata": {"annotations": {"grafana.com/last-downscale": stamp}}})
    );
    let mut done = zone(A);
    done["metadata"]["annotations"]["grafana.com/last-downscale"] = json!(stamp);
    stage.put(done);
    assert!(names(&stage.plan(), "downscaled").is_empty());
}

/// However many pods there are, their last answers are kept, and those of pods that are gone are not.
#[test]
fn the_last_answer_of_each_pod_is_kept_and_no_other() {
    let mut stage = stage(&[delayed(A, 5_000)]);
    let say = |_: &str, url: &str| {
        if url.starts_with("scale:") {
            reference(url, 5_000, 5_000)
        } else {
            since(70)
        }
    };
    let plan = stage.plan();
    answer(&mut stage, &plan, say);
    let plan = stage.plan();
    assert_eq!(answer(&mut stage, &plan, say).len(), 5_000, "each is told");
    let plan = stage.plan();
    assert_eq!(answer(&mut stage, &plan, say).len(), 0, "once");
    assert_eq!(plan.keeps.len(), 5_001);
    // With the next heartbeat all are told again, and the first answers are of no use any more.
    stage.now = noon() + jiff::SignedDuration::from_mins(5);
    for _ in 0..3 {
        let plan = stage.plan();
        answer(&mut stage, &plan, say);
    }
    let plan = stage.plan();
    assert_eq!(plan.keeps.len(), 5_001);
    assert!(plan.keeps.iter().all(|id| id.due >= stage.now));
    // Ten pods are left.
    stage.patch("StatefulSet", NS, A, &json!({"spec": {"replicas": 10}}));
    assert_eq!(stage.plan().keeps.len(), 11);
}
