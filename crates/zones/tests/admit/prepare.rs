//! prepare-downscale: each case in annotation and in zone-tracker mode.

#[path = "prepare/locks.rs"]
mod locks;
#[path = "prepare/pods.rs"]
mod pods;
#[path = "prepare/zones.rs"]
mod zones;

use serde_json::{Value, json};
use slipway_kernel::admission::{Collection, Reading, Review, Verdict};
use slipway_kernel::fact::{Answer, Question, Unseen};
use slipway_kernel::identity::kinds;
use slipway_kernel::{Facts, Stores};
use slipway_zones::admit::prepare_downscale::PrepareDownscale;

use crate::harness::*;
use crate::world::*;

const TRACKER: &str = "rollout-operator-zone-tracker";
const LOCKS: &str = "slipway-downscale-locks";
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
    /// Whether pods cannot be read.
    unread: bool,
}

impl Peer for Cluster {
    fn read(&mut self, _: &Collection, _: &Facts) -> Reading {
        if self.unread {
            return Reading::Failed("boom".to_owned());
        }
        Reading::Current
    }

    fn answer(&mut self, question: &Question) -> Answer {
        let (method, url) = (&question.method(), &*question.address());
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
                    .push((named.to_owned(), question.request.body().clone()));
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
            unread: false,
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
        self.know(review);
        serve(
            hook,
            review,
            &self.world.stores(),
            &Facts::default(),
            &mut self.api,
        )
    }

    /// The API has the zones of the world, and the one under review as the review says it is.
    fn know(&mut self, review: &Review) {
        let replicas = review.old["spec"]["replicas"].clone();
        if let Some(set) = self.world.sets.get_mut(&review.name) {
            set["spec"]["replicas"] = replicas;
        }
        self.api.sets = self.world.sets.values().cloned().collect();
    }

    fn forbid_maps(&mut self) {
        for method in ["GET", "POST", "PUT"] {
            let forbidden = Answer::NoRight("no".to_owned());
            self.api.maps.fix(method, "configmaps", forbidden);
        }
    }

    fn down(&mut self, hook: &PrepareDownscale) -> Served {
        let review = self.review("a", 3, 1);
        self.ask(hook, &review)
    }

    /// Whether the time of a downscale of zone a was kept.
    fn is_kept(&self, hook: &PrepareDownscale) -> bool {
        let name = if is_tracking(hook) { TRACKER } else { LOCKS };
        let map = self
            .api
            .maps
            .maps
            .iter()
            .find(|(path, _)| path.ends_with(name));
        map.is_some_and(|(_, map)| map["data"].get("ingester-zone-a").is_some())
    }

    /// What is kept in the map of locks.
    fn locks(&self, hook: &PrepareDownscale) -> Value {
        let name = hook.tracker.as_deref().unwrap_or("slipway-downscale-locks");
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        let map = self.api.maps.maps.get(&path).cloned().unwrap_or_default();
        let text = map["metadata"]["annotations"]["slipway.dev/downscale-locks"].clone();
        text.as_str()
            .map_or(json!({}), |text| serde_json::from_str(text).unwrap())
    }

    fn is_locked(&self, hook: &PrepareDownscale) -> bool {
        self.locks(hook).get("ingester").is_some()
    }

    /// Whether nothing was asked but how the zone is.
    fn is_untouched(&self) -> bool {
        let mut log = self.api.maps.log.iter();
        log.all(|line| line.starts_with("GET /apis/apps/"))
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
    let kept = json!({"ingester-zone-a": r#"{"lastDownscaled":"2026-03-04T12:00:00Z"}"#});
    for (hook, map) in modes().iter().zip([LOCKS, TRACKER]) {
        let mut scenario = Scenario::new();
        scenario.down(hook);
        assert_eq!(scenario.api.maps.map(map)["data"], kept);
        // Whoever scales it from a version that was read must not meet a conflict (upstream's #303).
        let annotated = &scenario.api.annotated;
        assert!(annotated.is_empty(), "the zone itself is not touched");
    }
}

/// Where no map may be kept, the time is written on the zone, as the original does.
#[test]
fn without_a_map_the_time_is_written_on_the_zone() {
    let [annotating, _] = modes();
    let mut scenario = Scenario::new();
    scenario.forbid_maps();
    assert!(scenario.down(&annotating).is_allowed());
    let body = json!({"metadata": {"annotations": {LAST: "2026-03-04T12:00:00Z"}}});
    let expected = [("ingester-zone-a".to_owned(), body)];
    assert_eq!(scenario.api.annotated, expected);
}

/// The Role that the original ships lets maps be written and not listed: then nobody would put the time on the zone later.
#[test]
fn where_maps_cannot_be_listed_the_time_is_written_on_the_zone_too() {
    let [annotating, _] = modes();
    let mut scenario = Scenario::new();
    let review = scenario.review("a", 3, 1);
    scenario.know(&review);
    let facts = without(Unseen::Absent, &kinds::CONFIG_MAP);
    let stores = scenario.world.stores();
    let served = serve(&annotating, &review, &stores, &facts, &mut scenario.api);
    assert!(served.is_allowed());
    let body = json!({"metadata": {"annotations": {LAST: "2026-03-04T12:00:00Z"}}});
    assert_eq!(
        scenario.api.annotated,
        [("ingester-zone-a".to_owned(), body)]
    );
    assert!(scenario.is_kept(&annotating) && !scenario.is_locked(&annotating));
}

/// D9: where no map may be kept, the annotation is a write to the object under review, so whoever named its version
/// is refused. The next attempt, by the API server or by an autoscaler 15 s later, finds the time written and writes nothing.
#[test]
fn d9_an_attempt_again_changes_nothing_under_review() {
    let [hook, _] = modes();
    for (last, writes) in [
        ("2026-03-04T11:59:30Z", 0),
        ("2026-03-04T12:00:00Z", 0),
        ("2026-03-04T11:59:00Z", 1),
        ("2026-03-04T12:00:30Z", 1),
        ("yesterday", 1),
    ] {
        let mut scenario = Scenario::new();
        scenario.forbid_maps();
        scenario.world.set_mut("a")["metadata"]["annotations"][LAST] = json!(last);
        assert!(scenario.down(&hook).is_allowed());
        assert_eq!(scenario.api.annotated.len(), writes, "{last}");
        assert_eq!((scenario.posts(), scenario.deletes()), (2, 0));
    }
}

#[test]
fn a_failing_pod_stops_it_and_all_are_told_to_stay() {
    each(|hook, scenario| {
        scenario.api.failing.push("ingester-zone-a-1".to_owned());
        let served = scenario.down(hook);
        let why =
            "one or more pods failed to prepare for shutdown. ingester-zone-a-1: answered 500";
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

/// Whoever is refused is told which pods to look at, and why, but never more than fits into a message.
#[test]
fn a_refusal_names_the_pods_and_the_cause() {
    let refused = Answer::unreachable(format!("connection\nrefused{}", "!".repeat(10_000)));
    for (answer, cause) in [
        (Answer::timeout(), "no answer in time".to_owned()),
        (
            refused,
            format!("connection refused{}", "!".repeat(200 - 18)),
        ),
    ] {
        each(|hook, scenario| {
            scenario.api.pods = answer.clone();
            let review = scenario.review("a", 6, 1);
            let served = scenario.ask(hook, &review);
            let named = [5, 4, 3].map(|n| format!("ingester-zone-a-{n}: {cause}; "));
            let why = format!(
                "one or more pods failed to prepare for shutdown. {}and 2 more",
                named.concat()
            );
            let expected = denial(&why).replace("from 3 to 1", "from 6 to 1");
            assert_eq!(served.denial(), (None, expected.as_str()));
        });
    }
}

#[test]
fn a_time_that_cannot_be_kept_stops_it_and_all_are_told_to_stay() {
    let [annotating, tracking] = modes();
    let mut scenario = Scenario::new();
    scenario.forbid_maps();
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

/// D7 and W5: whatever says it is a dry run asks and writes nothing.
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
            assert!(scenario.is_untouched());
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
    let scale = |n: i64| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"uid": "set-a"},
            "spec": {"replicas": n}})
    };
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

/// Whoever reaches the port can make a review up. What it says of the zone sends no request anywhere and takes no lock.
#[test]
fn a_review_that_was_made_up_reaches_no_pod_and_takes_no_lock() {
    each(|hook, scenario| {
        let mut forged = scenario.review("a", 3, 1);
        forged.old["spec"]["serviceName"] = json!("elsewhere");
        let annotations = json!({
            "grafana.com/prepare-downscale-http-path": "shutdown",
            "grafana.com/prepare-downscale-http-port": "1",
        });
        forged.old["metadata"]["annotations"] = annotations;
        assert!(scenario.ask(hook, &forged).is_allowed());
        let told = ".ingester-zone-a.default.svc.cluster.local.:8080/ingester/prepare-shutdown";
        let log = scenario.api.maps.log.clone();
        let posts: Vec<&String> = log.iter().filter(|l| l.starts_with("POST http")).collect();
        assert_eq!(posts.len(), 2);
        assert!(posts.iter().all(|line| line.ends_with(told)), "{posts:?}");
    });
    each(|hook, scenario| {
        let mut another = scenario.review("a", 3, 1);
        another.old["metadata"]["uid"] = json!("made-up");
        let mut unnamed = scenario.review("a", 3, 1);
        unnamed.old["metadata"]["uid"] = Value::Null;
        for forged in [another, unnamed] {
            let why = denial("the statefulset has changed meanwhile; try again.");
            assert_eq!(scenario.ask(hook, &forged).denial(), (None, why.as_str()));
            assert!(scenario.is_untouched());
        }
    });
    each(|hook, scenario| {
        let forged = scenario.review("a", 300, 1);
        scenario.api.sets = scenario.world.sets.values().cloned().collect();
        let (stores, facts) = (scenario.world.stores(), Facts::default());
        let served = serve(hook, &forged, &stores, &facts, &mut scenario.api);
        assert!(served.denial().1.contains("has changed meanwhile"));
        assert!(scenario.is_untouched());
    });
    each(|hook, scenario| {
        let forged = scenario.review("a", 3, 1);
        let labels = &mut scenario.world.set_mut("a")["metadata"]["labels"];
        labels["grafana.com/prepare-downscale"] = json!("false");
        assert!(scenario.ask(hook, &forged).is_allowed());
        assert!(scenario.is_untouched());
    });
}

/// A labelled zone that cannot be read is not scaled down: its pods could not be told.
#[test]
fn a_zone_that_cannot_be_read_is_not_scaled_down() {
    each(|hook, scenario| {
        let boom = said(500, &json!({"message": "boom"}));
        let path = "/statefulsets/ingester-zone-a";
        scenario.api.maps.fix("GET", path, boom);
        let why = denial("the statefulset could not be read: boom");
        assert_eq!(scenario.down(hook).denial(), (None, why.as_str()));
    });
}

/// The pods of other zones are looked at as they are now, with those that were let go or are being deleted.
#[test]
fn a_downscale_is_not_let_through_on_what_was_seen_before_it_was_asked_for() {
    each(|hook, scenario| {
        let review = scenario.review("a", 3, 1);
        scenario.know(&review);
        let seen = scenario.world.stores();
        scenario.world.fail("b", 0);
        let stores = (&seen, &scenario.world.stores());
        let served = serve_late(hook, &review, stores, &Facts::default(), &mut scenario.api);
        let why = "statefulset ingester-zone-b has 0 non-updated replicas and 1 non-ready replicas";
        assert_eq!(served.denial(), (None, denial(why).as_str()));
        assert_eq!(scenario.posts(), 0);
        let mut facts = Facts::default();
        facts
            .deletions
            .insert("pod-b-0".to_owned(), jiff::Timestamp::MAX);
        let served = serve(hook, &review, &seen, &facts, &mut scenario.api);
        assert_eq!(served.denial(), (None, denial(why).as_str()));
        // One that cannot be carried out any more is none.
        facts
            .deletions
            .insert("pod-b-0".to_owned(), jiff::Timestamp::UNIX_EPOCH);
        let served = serve(hook, &review, &seen, &facts, &mut scenario.api);
        assert!(served.is_allowed());
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
