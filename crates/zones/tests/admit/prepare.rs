//! §5.3, prepare-downscale: each in annotation and in zone-tracker mode.

use serde_json::{Value, json};
use slipway_kernel::admission::{Admission, Admit, Review, Verdict};
use slipway_kernel::fact::{Answer, Question};
use slipway_kernel::{Action, Facts, Stores};
use slipway_zones::admit::prepare_downscale::PrepareDownscale;

use crate::harness::*;
use crate::world::*;

const TRACKER: &str = "rollout-operator-zone-tracker";
const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const LAST: &str = "grafana.com/last-downscale";
const MIN_TIME: &str = "grafana.com/min-time-between-zones-downscale";

fn modes() -> [PrepareDownscale; 2] {
    let tracker = Some(TRACKER.to_owned());
    let tracking = PrepareDownscale {
        tracker,
        ..PrepareDownscale::default()
    };
    [PrepareDownscale::default(), tracking]
}

fn is_tracking(hook: &PrepareDownscale) -> bool {
    hook.tracker.is_some()
}

/// A cluster with an API: zones with everything that preparation needs, pods that answer.
struct Scenario {
    world: World,
    api: Cluster,
}

/// An API that also lists and annotates the zones of a world, and pods that answer.
struct Cluster {
    maps: Api,
    sets: Vec<Value>,
    pods: Answer,
    /// Pods that fail, by name.
    failing: Vec<String>,
    annotate: Answer,
    annotated: Vec<(String, Value)>,
}

impl Peer for Cluster {
    fn answer(&mut self, question: &Question) -> Answer {
        let Question { method, url, .. } = question;
        if url.starts_with("http://") {
            self.maps.log.push(format!("{method} {url}"));
            let host = url.trim_start_matches("http://").split('.').next().unwrap();
            assert_eq!(question.timeout.as_secs(), 5);
            if *method == "POST" && self.failing.iter().any(|name| name == host) {
                return said(500, &json!({}));
            }
            return self.pods.clone();
        }
        let fixed = self
            .maps
            .fixed
            .iter()
            .any(|(m, part, _)| m == method && url.contains(part.as_str()));
        if fixed || !url.starts_with(SETS) {
            return self.maps.answer(question);
        }
        self.maps.log.push(format!("{method} {url}"));
        let named = url.rsplit('/').next().unwrap();
        match *method {
            "GET" if url.ends_with("?labelSelector=rollout-group%3Dingester") => {
                said(200, &json!({"items": self.sets}))
            }
            "GET" => {
                let found = self
                    .sets
                    .iter()
                    .find(|set| set["metadata"]["name"] == *named);
                found.map_or_else(
                    || said(404, &json!({"message": "gone"})),
                    |set| said(200, set),
                )
            }
            "PATCH" => {
                self.annotated
                    .push((named.to_owned(), question.body.clone()));
                self.annotate.clone()
            }
            other => panic!("{other} {url}"),
        }
    }
}

impl Scenario {
    fn new() -> Self {
        let mut world = World::healthy(&["a", "b", "c"]);
        for letter in ["a", "b", "c"] {
            let set = world.set_mut(letter);
            set["metadata"]["labels"]["grafana.com/prepare-downscale"] = json!("true");
            set["metadata"]["annotations"] = json!({
                "grafana.com/prepare-downscale-http-path": "ingester/prepare-shutdown",
                "grafana.com/prepare-downscale-http-port": "8080",
            });
        }
        let api = Cluster {
            maps: Api::default(),
            sets: Vec::new(),
            pods: said(200, &json!({})),
            failing: Vec::new(),
            annotate: said(200, &json!({})),
            annotated: Vec::new(),
        };
        let mut scenario = Self { world, api };
        // The tracker is there, and knows of nothing.
        scenario
            .api
            .maps
            .put(TRACKER, json!({"metadata": {"name": TRACKER}, "data": {}}));
        scenario
    }

    fn review(&self, letter: &str, from: i64, to: i64) -> Review {
        let mut old = self.world.sets[&zone(letter)].clone();
        old["spec"]["replicas"] = json!(from);
        let mut new = old.clone();
        new["spec"]["replicas"] = json!(to);
        Review {
            uid: format!("review-{letter}"),
            ..update("statefulsets", "", &zone(letter), old, new)
        }
    }

    fn ask(&mut self, hook: &PrepareDownscale, review: &Review) -> Served {
        self.api.sets = self.world.sets.values().cloned().collect();
        serve(
            hook,
            review,
            &self.world.stores(),
            &Facts::default(),
            &mut self.api,
        )
    }

    fn down(&mut self, hook: &PrepareDownscale) -> Served {
        let review = self.review("a", 3, 1);
        self.ask(hook, &review)
    }

    /// Whether the time of a downscale of zone a was kept.
    fn is_kept(&self, hook: &PrepareDownscale) -> bool {
        if is_tracking(hook) {
            let map = self.api.maps.map(TRACKER);
            map["data"].get("ingester-zone-a").is_some()
        } else {
            !self.api.annotated.is_empty()
        }
    }

    fn is_locked(&self, hook: &PrepareDownscale) -> bool {
        let name = hook.tracker.as_deref().unwrap_or("slipway-downscale-locks");
        let map = self
            .api
            .maps
            .maps
            .get(&format!("/api/v1/namespaces/default/configmaps/{name}"));
        map.is_some_and(|map| {
            map["metadata"]["annotations"]
                .get("slipway.dev/downscale-locks")
                .is_some()
        })
    }

    fn posts(&self) -> usize {
        self.api.maps.count("POST http://")
    }

    fn deletes(&self) -> usize {
        self.api.maps.count("DELETE http://")
    }
}

fn denial(why: &str) -> String {
    format!(
        "downscale of statefulsets/ingester-zone-a in default from 3 to 1 replicas is not allowed because {why}"
    )
}

/// Each mode in a fresh scenario.
fn each(test: impl Fn(&PrepareDownscale, &mut Scenario)) {
    for hook in modes() {
        test(&hook, &mut Scenario::new());
    }
}

#[test]
fn upscale_and_no_change() {
    each(|hook, scenario| {
        for (from, to) in [(3, 5), (3, 3)] {
            let review = scenario.review("a", from, to);
            assert_eq!(scenario.ask(hook, &review).verdict, Verdict::allowed());
        }
        assert!(scenario.api.maps.log.is_empty());
    });
}

#[test]
fn valid_downscale_is_prepared_and_kept() {
    for code in [200, 204] {
        each(|hook, scenario| {
            scenario.api.pods = said(code, &Value::Null);
            let served = scenario.down(hook);
            let message = "downscale of statefulsets/ingester-zone-a in default from 3 to 1 replicas is allowed -- \
                           all pods successfully prepared for shutdown.";
            assert_eq!(
                served.verdict,
                Verdict::Allowed {
                    message: message.to_owned(),
                    warnings: Vec::new()
                }
            );
            assert!(scenario.is_kept(hook));
            assert!(!scenario.is_locked(hook));
            assert_eq!((scenario.posts(), scenario.deletes()), (2, 0));
        });
    }
}

#[test]
fn the_time_is_kept_as_the_original_reads_it() {
    let [annotating, tracking] = modes();
    let mut scenario = Scenario::new();
    scenario.down(&annotating);
    let body = json!({"metadata": {"annotations": {LAST: "2026-03-04T12:00:00Z"}}});
    assert_eq!(
        scenario.api.annotated,
        [("ingester-zone-a".to_owned(), body)]
    );
    let mut scenario = Scenario::new();
    scenario.down(&tracking);
    let data = &scenario.api.maps.map(TRACKER)["data"];
    assert_eq!(
        *data,
        json!({"ingester-zone-a": r#"{"lastDownscaled":"2026-03-04T12:00:00Z"}"#})
    );
    assert!(scenario.api.annotated.is_empty());
}

#[test]
fn endpoints_are_the_last_ordinals_in_falling_order() {
    let [hook, _] = modes();
    let mut scenario = Scenario::new();
    let review = scenario.review("a", 5, 3);
    scenario.ask(&hook, &review);
    let posts: Vec<&String> = scenario
        .api
        .maps
        .log
        .iter()
        .filter(|l| l.starts_with("POST http://"))
        .collect();
    let url = |ordinal: i64| {
        format!(
            "POST http://ingester-zone-a-{ordinal}.ingester-zone-a.default.svc.cluster.local.:8080/ingester/prepare-shutdown"
        )
    };
    assert_eq!(posts, [&url(4), &url(3)]);
}

#[test]
fn ordinals_may_start_elsewhere() {
    let [hook, _] = modes();
    let mut scenario = Scenario::new();
    scenario.world.set_mut("a")["spec"]["ordinals"] = json!({"start": 10});
    scenario.down(&hook);
    assert_eq!(
        scenario.api.maps.count("POST http://ingester-zone-a-12."),
        1
    );
    assert_eq!(
        scenario.api.maps.count("POST http://ingester-zone-a-11."),
        1
    );
}

#[test]
fn another_zone_was_downscaled_just_now() {
    each(|hook, scenario| {
        scenario.world.set_mut("b")["metadata"]["labels"][MIN_TIME] = json!("12h");
        let last = "2026-03-04T11:30:00Z";
        if is_tracking(hook) {
            let data = json!({"ingester-zone-b": format!("{{\"LastDownscaled\":\"{last}\"}}")});
            scenario.api.maps.put(
                TRACKER,
                json!({"metadata": {"name": TRACKER}, "data": data}),
            );
        } else {
            scenario.world.set_mut("b")["metadata"]["annotations"][LAST] = json!(last);
        }
        let why = "statefulset ingester-zone-b was downscaled at 2026-03-04 11:30:00 +0000 UTC and is labelled to wait \
                   12h0m0s between zone downscales";
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
        assert!(!scenario.is_kept(hook) && scenario.posts() == 0 && !scenario.is_locked(hook));
        // Its own last downscale is no matter, nor one of a zone that asks for no time, nor one long ago.
        let review = scenario.review("b", 3, 1);
        assert!(scenario.ask(hook, &review).is_allowed());
        scenario.world.set_mut("b")["metadata"]["labels"][MIN_TIME] = json!("10m");
        if !is_tracking(hook) {
            assert!(scenario.down(hook).is_allowed());
        }
    });
}

#[test]
fn times_that_cannot_be_read_stop_it() {
    each(|hook, scenario| {
        scenario.world.set_mut("b")["metadata"]["labels"][MIN_TIME] = json!("12h");
        let why = if is_tracking(hook) {
            let data = json!({"ingester-zone-b": "{\"lastDownscaled\":\"yesterday\"}"});
            scenario.api.maps.put(
                TRACKER,
                json!({"metadata": {"name": TRACKER}, "data": data}),
            );
            "parsing parsing downscale timestamps from the zone ConfigMap failed."
        } else {
            scenario.world.set_mut("b")["metadata"]["annotations"][LAST] = json!("yesterday");
            "parsing downscale annotations failed."
        };
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
    });
}

#[test]
fn a_failing_pod_stops_it_and_all_are_told_to_stay() {
    each(|hook, scenario| {
        scenario.api.failing.push("ingester-zone-a-1".to_owned());
        let served = scenario.down(hook);
        let why = "one or more pods failed to prepare for shutdown.";
        assert_eq!(served.denial(), (None, denial(why).as_str()));
        assert_eq!(scenario.deletes(), 2);
        assert!(!scenario.is_kept(hook) && !scenario.is_locked(hook));
        // The lock is given back only after that.
        let log = &scenario.api.maps.log;
        let told = log
            .iter()
            .rposition(|line| line.starts_with("DELETE"))
            .unwrap();
        assert!(
            log[told + 1..].iter().any(|line| line.starts_with("PUT")),
            "{log:?}"
        );
    });
}

#[test]
fn a_time_that_cannot_be_kept_stops_it_and_all_are_told_to_stay() {
    let [annotating, tracking] = modes();
    let mut scenario = Scenario::new();
    scenario.api.annotate = said(500, &json!({}));
    let why = "adding an annotation to the statefulset failed.";
    assert_eq!(
        scenario.down(&annotating).denial(),
        (None, denial(why).as_str())
    );
    assert_eq!(scenario.deletes(), 2);
    let mut scenario = Scenario::new();
    scenario.api.maps.fix("PUT", TRACKER, said(500, &json!({})));
    let why = "setting downscale timestamp in the zone ConfigMap failed.";
    assert_eq!(
        scenario.down(&tracking).denial(),
        (None, denial(why).as_str())
    );
    assert_eq!(
        (scenario.posts(), scenario.deletes()),
        (0, 0),
        "without a lock nobody is told"
    );
}

/// The map fails only once the pods have been told.
#[test]
fn a_tracker_that_fails_late_stops_it_and_all_are_told_to_stay() {
    struct Late(Cluster);
    impl Peer for Late {
        fn answer(&mut self, question: &Question) -> Answer {
            let is_late = self.0.maps.count("POST http://") > 0;
            if is_late && question.method == "PUT" {
                return said(500, &json!({"message": "boom"}));
            }
            self.0.answer(question)
        }
    }
    let [_, hook] = modes();
    let mut scenario = Scenario::new();
    let review = scenario.review("a", 3, 1);
    scenario.api.sets = scenario.world.sets.values().cloned().collect();
    let mut late = Late(scenario.api);
    let served = serve(
        &hook,
        &review,
        &scenario.world.stores(),
        &Facts::default(),
        &mut late,
    );
    let why = "setting downscale timestamp in the zone ConfigMap failed.";
    assert_eq!(served.denial(), (None, denial(why).as_str()));
    assert_eq!(late.0.maps.count("DELETE http://"), 2);
}

/// Defect 7 of §6.1 and W5: whatever says it is a dry run asks and writes nothing.
#[test]
fn dry_run_is_allowed_and_nothing_is_kept() {
    each(|hook, scenario| {
        let review = Review {
            is_dry_run: true,
            ..scenario.review("a", 3, 1)
        };
        assert_eq!(scenario.ask(hook, &review).verdict, Verdict::allowed());
        assert!(scenario.api.maps.log.is_empty());
    });
}

#[test]
fn another_zone_is_not_whole() {
    each(|hook, scenario| {
        scenario.world.set_mut("b")["status"]["updatedReplicas"] = json!(1);
        let why = "statefulset ingester-zone-b has 2 non-updated replicas and 0 non-ready replicas";
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
        scenario.world.set_mut("b")["status"]["updatedReplicas"] = json!(3);
        scenario.world.fail("b", 0);
        let why = "statefulset ingester-zone-b has 0 non-updated replicas and 1 non-ready replicas";
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
        assert_eq!(scenario.posts(), 0);
        assert!(!scenario.is_kept(hook));
    });
}

#[test]
fn its_own_zone_need_not_be_whole() {
    each(|hook, scenario| {
        scenario.world.set_mut("a")["status"]["updatedReplicas"] = json!(1);
        scenario.world.fail("a", 0);
        assert!(scenario.down(hook).is_allowed());
    });
}

#[test]
fn what_is_not_known_stops_it() {
    each(|hook, scenario| {
        let review = scenario.review("a", 3, 1);
        scenario.api.sets = scenario.world.sets.values().cloned().collect();
        let served = serve(
            hook,
            &review,
            &Stores::default(),
            &Facts::default(),
            &mut scenario.api,
        );
        let why = "an error occurred while checking whether StatefulSets have non-updated replicas";
        assert_eq!(served.denial(), (None, denial(why).as_str()));
        scenario
            .api
            .maps
            .fix("GET", "labelSelector", said(500, &json!({})));
        let why = "finding other statefulsets failed.";
        assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
    });
    let [_, hook] = modes();
    let mut scenario = Scenario::new();
    scenario.api.maps.fix("GET", TRACKER, said(403, &json!({})));
    assert_eq!(
        scenario.down(&hook).denial(),
        (None, denial("loading zones failed.").as_str())
    );
}

#[test]
fn annotations_and_service_must_be_set() {
    let table = [
        (
            "/metadata/annotations/grafana.com~1prepare-downscale-http-port",
            "the grafana.com/prepare-downscale-http-port annotation is not set or empty.",
        ),
        (
            "/metadata/annotations/grafana.com~1prepare-downscale-http-path",
            "the grafana.com/prepare-downscale-http-path annotation is not set or empty.",
        ),
        ("/spec/serviceName", "the serviceName is not set or empty."),
    ];
    for (path, why) in table {
        each(|hook, scenario| {
            for value in [json!(""), Value::Null] {
                *scenario.world.set_mut("a").pointer_mut(path).unwrap() = value;
                assert_eq!(scenario.down(hook).denial(), (None, denial(why).as_str()));
            }
            assert!(scenario.api.maps.log.is_empty());
        });
    }
}

#[test]
fn only_the_label_true_counts() {
    each(|hook, scenario| {
        for label in [json!("false"), json!("yes"), Value::Null] {
            scenario.world.set_mut("a")["metadata"]["labels"]["grafana.com/prepare-downscale"] =
                label;
            assert_eq!(scenario.down(hook).verdict, Verdict::allowed());
        }
        assert!(scenario.api.maps.log.is_empty());
    });
}

#[test]
fn a_scale_is_judged_by_its_parent() {
    let scale =
        |n: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": n}});
    each(|hook, scenario| {
        let review = update(
            "statefulsets",
            "scale",
            "ingester-zone-a",
            scale(3),
            scale(1),
        );
        assert!(scenario.ask(hook, &review).is_allowed());
        assert_eq!(scenario.posts(), 2);
        let gone = update("statefulsets", "scale", "nobody", scale(3), scale(1));
        assert_eq!(
            scenario.ask(hook, &gone).warnings(),
            ["gone, allowing the change"]
        );
        let other = update("daemonsets", "scale", "x", scale(3), scale(1));
        assert_eq!(scenario.ask(hook, &other).warnings().len(), 1);
    });
}

#[test]
fn a_deployment_is_none_of_its_business() {
    let object = |n: i64| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": n},
        "metadata": {"labels": {"grafana.com/prepare-downscale": "true"}}})
    };
    each(|hook, scenario| {
        let review = update("deployments", "", "x", object(3), object(1));
        assert_eq!(
            scenario.ask(hook, &review).warnings(),
            ["unsupported type Deployment, allowing the change"]
        );
    });
}

#[test]
fn addresses_lead_nowhere_else() {
    let [hook, _] = modes();
    for (path, value) in [
        ("/spec/serviceName", json!("evil.example.com/x?")),
        (
            "/metadata/annotations/grafana.com~1prepare-downscale-http-port",
            json!("80@evil"),
        ),
        (
            "/metadata/annotations/grafana.com~1prepare-downscale-http-path",
            json!("x y\r\n"),
        ),
    ] {
        let mut scenario = Scenario::new();
        *scenario.world.set_mut("a").pointer_mut(path).unwrap() = value;
        assert!(!scenario.down(&hook).is_allowed());
        assert!(scenario.api.maps.log.is_empty());
    }
    let mut scenario = Scenario::new();
    let review = scenario.review("a", 2_000_000_000, 0);
    assert!(!scenario.ask(&hook, &review).is_allowed());
}

/// Helpers of §5.3: 64 endpoints, all well, all failing, the last failing; 64 DELETEs are always all attempted.
#[test]
fn many_pods_in_batches() {
    each(|hook, scenario| {
        let review = scenario.review("a", 64, 0);
        assert!(scenario.ask(hook, &review).is_allowed());
        assert_eq!((scenario.posts(), scenario.deletes()), (64, 0));
    });
    each(|hook, scenario| {
        scenario.api.failing.push("ingester-zone-a-0".to_owned());
        let review = scenario.review("a", 64, 0);
        assert!(!scenario.ask(hook, &review).is_allowed());
        assert_eq!((scenario.posts(), scenario.deletes()), (64, 64));
    });
    each(|hook, scenario| {
        scenario.api.pods = said(500, &json!({}));
        let review = scenario.review("a", 64, 0);
        assert!(!scenario.ask(hook, &review).is_allowed());
        // No more than the first batch is asked in vain, but all are told.
        assert_eq!((scenario.posts(), scenario.deletes()), (32, 64));
    });
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

/// §6.2 item 8, and W4: while zone a is being prepared, zone b is refused, another group passes, and afterwards b does.
#[test]
fn d8_the_lock_of_a_group_is_real() {
    each(|hook, scenario| {
        scenario.api.sets = scenario.world.sets.values().cloned().collect();
        let stores = scenario.world.stores();
        let first = scenario.review("a", 3, 1);
        // Zone a is served until its pods are asked.
        let mut facts = Facts::default();
        let open = loop {
            let Admission::Need(needs) = hook.admit(&first, &stores, &facts, now()) else {
                panic!()
            };
            let questions: Vec<Question> = needs
                .into_iter()
                .map(|need| match need {
                    Action::Ask(question) => question,
                    other => panic!("{other:?}"),
                })
                .collect();
            if questions
                .iter()
                .any(|question| question.url.starts_with("http://"))
            {
                break questions;
            }
            for question in questions {
                let answer = scenario.api.answer(&question);
                facts.answers.insert(question.id, (now(), answer));
            }
        };
        assert!(scenario.is_locked(hook));
        let second = scenario.review("b", 3, 1);
        let why = "downscale of statefulsets/ingester-zone-b in default from 3 to 1 replicas is not allowed because \
                   statefulset ingester-zone-a is already in process of updating replicas";
        assert_eq!(scenario.ask(hook, &second).denial(), (None, why));
        let mut other = scenario.review("c", 3, 1);
        other.name = "compactor".to_owned();
        other.old["metadata"]["labels"]["rollout-group"] = json!("compactor");
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

/// A lock whose holder died ends by itself.
#[test]
fn a_lock_is_void_after_a_minute() {
    let [_, hook] = modes();
    for (until, is_free) in [
        ("2026-03-04T12:00:01Z", false),
        ("2026-03-04T12:00:00Z", true),
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
    for method in ["GET", "POST", "PUT"] {
        scenario
            .api
            .maps
            .fix(method, "configmaps", said(403, &json!({})));
    }
    assert!(scenario.down(&hook).is_allowed());
    assert_eq!(scenario.api.annotated.len(), 1);
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
            let admission = hook.admit(&review, &stores, &facts, now());
            let Admission::Need(needs) = admission else {
                break;
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
                    .filter(|question| question.method == method)
                    .count()
            };
            let posts = needs
                .iter()
                .any(|need| matches!(need, Action::Ask(q) if q.url.starts_with("http://")));
            if posts {
                assert_eq!(asks("DELETE"), 2);
                assert_eq!(undone.last().unwrap().method, "PUT", "the lock comes last");
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
