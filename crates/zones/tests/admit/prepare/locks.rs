//! Locks of groups, the zone tracker, and what happens when time is up.

use slipway_kernel::Action;
use slipway_kernel::admission::{Admission, Admit};

use super::*;

/// The map fails only once the pods have been told.
#[test]
fn a_map_that_fails_late_stops_it_and_all_are_told_to_stay() {
    struct Late(Cluster);
    impl Peer for Late {
        fn answer(&mut self, question: &Question) -> Answer {
            let is_late = self.0.maps.count("POST http://") > 0;
            if is_late && question.method() == "PUT" {
                return said(500, &json!({"message": "boom"}));
            }
            self.0.answer(question)
        }
    }
    let whys = [
        "adding an annotation to the statefulset failed.",
        "setting downscale timestamp in the zone ConfigMap failed.",
    ];
    for (hook, why) in modes().iter().zip(whys) {
        let mut scenario = Scenario::new();
        let review = scenario.review("a", 3, 1);
        scenario.api.sets = scenario.world.sets.values().cloned().collect();
        let mut late = Late(scenario.api);
        let stores = scenario.world.stores();
        let served = serve(hook, &review, &stores, &Facts::default(), &mut late);
        assert_eq!(served.denial(), (None, denial(why).as_str()));
        assert_eq!(late.0.maps.count("DELETE http://"), 2);
    }
}

/// Zone tracker: made with the present moment for every zone, so that those with a least time wait for it.
#[test]
fn a_missing_tracker_is_made() {
    let [_, hook] = modes();
    let mut scenario = Scenario::new();
    scenario.api.maps.maps.clear();
    assert!(scenario.down(&hook).is_allowed());
    let data = scenario.api.maps.map(TRACKER)["data"]
        .as_object()
        .unwrap()
        .clone();
    assert_eq!(data.len(), 3);
    let mut scenario = Scenario::new();
    scenario.api.maps.maps.clear();
    scenario.world.set_mut("c")["metadata"]["labels"][MIN_TIME] = json!("1h");
    assert!(
        scenario
            .down(&hook)
            .denial()
            .1
            .contains("statefulset ingester-zone-c was downscaled at")
    );
}

/// Serves a review until pods are to be told; gives what is known by then, and what is to be asked.
fn until_told(
    hook: &PrepareDownscale,
    review: &Review,
    stores: &Stores,
    api: &mut Cluster,
) -> (Facts, Vec<Question>) {
    let mut facts = Facts::default();
    loop {
        let needs = match hook.judge(review, stores, &facts, now()).0 {
            Admission::Need(needs) => needs,
            Admission::Read(collections) => {
                read(&mut facts, collections, api);
                continue;
            }
            decided @ Admission::Decide(..) => panic!("{decided:?}"),
        };
        let questions: Vec<Question> = needs
            .into_iter()
            .map(|need| match need {
                Action::Ask(question) => question,
                other => panic!("{other:?}"),
            })
            .collect();
        let mut all = questions.iter();
        if all.any(|question| question.address().starts_with("http://")) {
            return (facts, questions);
        }
        for question in questions {
            let answer = api.answer(&question);
            facts.answers.insert(question.id, (now(), answer));
        }
    }
}

/// Another zone breaks while the pods of this one are told, with and without the right to keep locks.
#[test]
fn a_zone_that_breaks_late_stops_it_and_all_are_told_to_stay() {
    for is_forbidden in [false, true] {
        let [hook, _] = modes();
        let mut scenario = Scenario::new();
        if is_forbidden {
            scenario.forbid_maps();
        }
        let review = scenario.review("a", 3, 1);
        scenario.know(&review);
        let stores = scenario.world.stores();
        let (mut facts, open) = until_told(&hook, &review, &stores, &mut scenario.api);
        for question in open {
            let answer = scenario.api.answer(&question);
            facts.answers.insert(question.id, (now(), answer));
        }
        scenario.world.fail("b", 0);
        let stores = scenario.world.stores();
        let served = serve(&hook, &review, &stores, &facts, &mut scenario.api);
        let why = "statefulset ingester-zone-b has 0 non-updated replicas and 1 non-ready replicas";
        assert_eq!(served.denial(), (None, denial(why).as_str()));
        assert_eq!((scenario.posts(), scenario.deletes()), (2, 2));
    }
}

/// D8, and W4: while zone a is being prepared, zone b is refused, another group passes, and afterwards b does.
#[test]
fn d8_the_lock_of_a_group_is_real() {
    each(|hook, scenario| {
        scenario.api.sets = scenario.world.sets.values().cloned().collect();
        let stores = scenario.world.stores();
        let first = scenario.review("a", 3, 1);
        let (mut facts, open) = until_told(hook, &first, &stores, &mut scenario.api);
        assert!(scenario.is_locked(hook));
        let second = scenario.review("b", 3, 1);
        let why = "downscale of statefulsets/ingester-zone-b in default from 3 to 1 replicas is not allowed because \
                   statefulset ingester-zone-a is already in process of updating replicas";
        assert_eq!(scenario.ask(hook, &second).denial(), (None, why));
        let mut other = scenario.review("c", 3, 1);
        other.name = "compactor".to_owned();
        let mut compactor = other.old.clone();
        compactor["metadata"]["name"] = json!("compactor");
        compactor["metadata"]["labels"]["rollout-group"] = json!("compactor");
        scenario
            .api
            .maps
            .fix("GET", "/statefulsets/compactor", said(200, &compactor));
        scenario
            .api
            .maps
            .fix("GET", "%3Dcompactor", said(200, &json!({"items": []})));
        assert!(scenario.ask(hook, &other).is_allowed());
        for question in open {
            let answer = scenario.api.answer(&question);
            facts.answers.insert(question.id, (now(), answer));
        }
        // The other group has changed the map meanwhile: the end of zone a finds that, and still is one.
        assert!(serve(hook, &first, &stores, &facts, &mut scenario.api).is_allowed());
        assert!(scenario.is_kept(hook) && !scenario.is_locked(hook));
        assert!(scenario.ask(hook, &second).is_allowed());
    });
}

/// A lock whose holder died is the planner's to take over; where there is none it ends by itself.
#[test]
fn a_lock_that_is_void_for_a_minute_is_free() {
    let [_, hook] = modes();
    for (until, is_free) in [
        ("2026-03-04T12:00:01Z", false),
        ("2026-03-04T11:59:01Z", false),
        ("2026-03-04T11:59:00Z", true),
    ] {
        let mut scenario = Scenario::new();
        let locks = json!({"ingester": {"holder": "x", "statefulset": "ingester-zone-b", "from": 3, "to": 1,
            "until": until}});
        let annotations = json!({"slipway.dev/downscale-locks": locks.to_string()});
        scenario.api.maps.put(
            TRACKER,
            json!({"metadata": {"name": TRACKER, "annotations": annotations}}),
        );
        assert_eq!(scenario.down(&hook).is_allowed(), is_free);
    }
}

#[test]
fn without_the_right_to_keep_locks_annotations_still_work() {
    let [hook, _] = modes();
    let mut scenario = Scenario::new();
    scenario.forbid_maps();
    assert!(scenario.down(&hook).is_allowed());
    assert_eq!(scenario.api.annotated.len(), 1);
}

/// A quota keeps the lock from being written, and with it two webhooks from each other: a downscale that is not guarded
/// is not let through.
#[test]
fn a_quota_is_no_missing_right_to_keep_locks() {
    each(|hook, scenario| {
        for method in ["POST", "PUT"] {
            let quota = said(403, &json!({"message": "exceeded quota: objects"}));
            scenario.api.maps.fix(method, "configmaps", quota);
        }
        assert!(!scenario.down(hook).is_allowed());
        assert_eq!(scenario.api.annotated.len(), 0);
    });
}

/// Time is up while pods are being asked: the verdict is no, and what is undone covers every pod, then the lock.
#[test]
fn expiry_undoes_what_may_have_been_done() {
    each(|hook, scenario| {
        scenario.api.sets = scenario.world.sets.values().cloned().collect();
        let stores = scenario.world.stores();
        let review = scenario.review("a", 3, 1);
        let mut facts = Facts::default();
        let mut steps = 0;
        loop {
            let expiry = hook.expire(&review, &stores, &facts, now());
            let (admission, _) = hook.judge(&review, &stores, &facts, now());
            let needs = match admission {
                Admission::Need(needs) => needs,
                Admission::Read(collections) => {
                    read(&mut facts, collections, &mut scenario.api);
                    continue;
                }
                Admission::Decide(..) => break,
            };
            let Verdict::Denied { .. } = &expiry.verdict else {
                panic!("{:?}", expiry.verdict)
            };
            let undone: Vec<&Question> = expiry
                .undo
                .iter()
                .map(|action| match action {
                    Action::Ask(question) => question,
                    other => panic!("{other:?}"),
                })
                .collect();
            let asks = |method: &str| {
                undone
                    .iter()
                    .filter(|question| question.method() == method)
                    .count()
            };
            let posts = needs
                .iter()
                .any(|need| matches!(need, Action::Ask(q) if q.address().starts_with("http://")));
            if posts {
                assert_eq!(asks("DELETE"), 2);
                assert_eq!(
                    undone.last().unwrap().method(),
                    "PUT",
                    "the lock comes last"
                );
            }
            for need in needs {
                let Action::Ask(question) = need else {
                    panic!()
                };
                let answer = scenario.api.answer(&question);
                facts.answers.insert(question.id, (now(), answer));
            }
            steps += 1;
            if posts {
                break;
            }
        }
        assert!(steps >= 4);
        // From here on only the keeping of the time is open: without it the pods are told to stay as well.
        let expiry = hook.expire(&review, &stores, &facts, now());
        assert!(matches!(expiry.verdict, Verdict::Denied { .. }));
        assert_eq!(expiry.undo.len(), 3);
    });
}

/// Before it is known that pods have to be told, no time left lets the change pass.
#[test]
fn expiry_without_a_parent_is_open() {
    let scale =
        |n: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": n}});
    for hook in modes() {
        let review = update("statefulsets", "scale", "x", scale(3), scale(1));
        let expiry = hook.expire(&review, &Stores::default(), &Facts::default(), now());
        assert_eq!(
            expiry.verdict,
            Verdict::warned("context deadline exceeded, allowing the change")
        );
        assert!(expiry.undo.is_empty());
    }
}

/// The answer to the write of a lock is lost: it is looked up, and the downscale goes on under it.
#[test]
fn a_lock_whose_answer_was_lost_is_known_again() {
    struct Lossy(Cluster, bool);
    impl Peer for Lossy {
        fn answer(&mut self, question: &Question) -> Answer {
            let answer = self.0.answer(question);
            let is_lock = question.id.purpose.as_str() == "lock";
            if is_lock && !std::mem::replace(&mut self.1, true) {
                return Answer::timeout();
            }
            answer
        }
    }
    for hook in modes() {
        let mut scenario = Scenario::new();
        let review = scenario.review("a", 3, 1);
        scenario.api.sets = scenario.world.sets.values().cloned().collect();
        let mut lossy = Lossy(scenario.api, false);
        let stores = scenario.world.stores();
        let served = serve(&hook, &review, &stores, &Facts::default(), &mut lossy);
        assert!(served.is_allowed() && lossy.1, "{served:?}");
        assert_eq!(lossy.0.maps.count("POST http://"), 2);
    }
}

/// Zone tracker: the time of a zone that has one is replaced, those of others stay.
#[test]
fn the_time_of_a_known_zone_is_replaced() {
    let [_, hook] = modes();
    let mut scenario = Scenario::new();
    let entry = |at: &str| format!("{{\"lastDownscaled\":\"{at}\"}}");
    let data = json!({"ingester-zone-a": entry("2026-01-01T00:00:00Z"), "ingester-zone-b": entry("2026-01-02T00:00:00Z")});
    scenario.api.maps.put(
        TRACKER,
        json!({"metadata": {"name": TRACKER}, "data": data}),
    );
    assert!(scenario.down(&hook).is_allowed());
    let data = &scenario.api.maps.map(TRACKER)["data"];
    assert_eq!(data["ingester-zone-a"], entry("2026-03-04T12:00:00Z"));
    assert_eq!(data["ingester-zone-b"], entry("2026-01-02T00:00:00Z"));
}

/// Zone tracker: where the list of zones is empty, the new map knows of the one that is scaled down only.
#[test]
fn a_tracker_that_is_made_for_no_zones_is_empty() {
    let [_, hook] = modes();
    let mut scenario = Scenario::new();
    scenario.api.maps.maps.clear();
    let nobody = said(200, &json!({"items": []}));
    scenario.api.maps.fix("GET", "labelSelector", nobody);
    assert!(scenario.down(&hook).is_allowed());
    let made = scenario
        .api
        .maps
        .asked
        .iter()
        .find(|q| q.method() == "POST");
    assert_eq!(made.unwrap().request.body().get("data"), None);
    let data = &scenario.api.maps.map(TRACKER)["data"];
    assert_eq!(data.as_object().unwrap().len(), 1);
}

/// D9: the webhook does not learn whether another one refuses; what it let through is noted for the planner.
#[test]
fn d9_a_downscale_that_is_let_through_is_noted_and_locks_nobody() {
    each(|hook, scenario| {
        assert!(scenario.down(hook).is_allowed());
        let noted = json!({"holder": "", "statefulset": "ingester-zone-a", "from": 3, "to": 1,
            "until": "2026-03-04T12:01:00Z"});
        assert_eq!(
            scenario.locks(hook),
            json!({"allowed/ingester-zone-a": noted})
        );
        let review = scenario.review("b", 3, 2);
        assert!(scenario.ask(hook, &review).is_allowed());
        // What comes on top of it is noted together with it.
        let review = scenario.review("a", 1, 0);
        assert!(scenario.ask(hook, &review).is_allowed());
        let noted = &scenario.locks(hook)["allowed/ingester-zone-a"];
        assert_eq!((&noted["from"], &noted["to"]), (&json!(3), &json!(0)));
        assert_eq!(scenario.locks(hook).as_object().unwrap().len(), 2);
    });
    each(|hook, scenario| {
        scenario.api.failing.push("ingester-zone-a-1".to_owned());
        assert!(!scenario.down(hook).is_allowed());
        assert_eq!(scenario.locks(hook), json!({}));
    });
}

/// What has been looked at for half an hour is forgotten with the next write.
#[test]
fn old_notes_are_swept_out() {
    let [_, hook] = modes();
    let mut scenario = Scenario::new();
    let note = |set: &str, until: &str| json!({"holder": "x", "statefulset": set, "from": 3, "to": 1, "until": until});
    let locks = json!({
        "allowed/ingester-zone-b": note("ingester-zone-b", "2026-03-04T11:30:00Z"),
        "allowed/ingester-zone-c": note("ingester-zone-c", "2026-03-04T11:31:00Z"),
    });
    let annotations = json!({"slipway.dev/downscale-locks": locks.to_string()});
    scenario.api.maps.put(
        TRACKER,
        json!({"metadata": {"name": TRACKER, "annotations": annotations}}),
    );
    assert!(scenario.down(&hook).is_allowed());
    let kept = scenario.locks(&hook);
    let kept: Vec<&String> = kept.as_object().unwrap().keys().collect();
    assert_eq!(kept, ["allowed/ingester-zone-a", "allowed/ingester-zone-c"]);
}
