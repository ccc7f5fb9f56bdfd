//! Whatever the body: no panic, an end, and "allowed" only where the original allows it.

use proptest::prelude::*;
use serde_json::{Value, json};
use slipway_kernel::admission::{Admit, Review, Verdict};
use slipway_kernel::fact::{Answer, Question};
use slipway_kernel::parts::Parts;
use slipway_kernel::{Facts, Stores};
use slipway_zones::Settings;
use slipway_zones::admit::no_downscale::NoDownscale;
use slipway_zones::admit::pod_eviction::PodEviction;
use slipway_zones::admit::prepare_downscale::PrepareDownscale;
use slipway_zones::admit::review::{Version, parse, render};
use slipway_zones::admit::{Switches, webhooks};

use crate::harness::*;
use crate::world::{Api, World};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(word(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("kind"),
        Just("apiVersion"),
        Just("spec"),
        Just("metadata"),
        Just("labels"),
        Just("annotations"),
        Just("replicas"),
        Just("request"),
        Just("object"),
        Just("oldObject"),
        Just("selector"),
        Just("serviceName"),
    ]
    .prop_map(str::to_owned)
}

/// An object that is almost a workload.
fn workload() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        Just("StatefulSet"),
        Just("Deployment"),
        Just("Scale"),
        Just("Pod")
    ];
    let version = prop_oneof![Just("apps/v1"), Just("autoscaling/v1"), Just("v1")];
    let replicas = prop_oneof![
        (0_i64..6).prop_map(Value::from),
        Just(Value::Null),
        any_json()
    ];
    let label = prop_oneof![Just(json!("true")), Just(Value::Null), any_json()];
    let broken = proptest::option::weighted(0.2, any_json());
    (kind, version, replicas, label, broken).prop_map(|(kind, version, replicas, label, broken)| {
        let mut object = json!({"apiVersion": version, "kind": kind, "spec": {"replicas": replicas, "serviceName": "s"},
            "metadata": {"labels": {"grafana.com/no-downscale": label, "grafana.com/prepare-downscale": label},
                "annotations": {"grafana.com/prepare-downscale-http-port": "80",
                    "grafana.com/prepare-downscale-http-path": "p"}}});
        if let Some(broken) = broken {
            object["metadata"] = broken;
        }
        object
    })
}

fn review() -> impl Strategy<Value = Review> {
    let resource = prop_oneof![
        Just("statefulsets"),
        Just("deployments"),
        Just("pods"),
        Just("x/../y")
    ];
    let subresource = prop_oneof![Just(""), Just("scale"), Just("eviction")];
    let name = prop_oneof![
        Just("ingester-zone-a-0"),
        Just("ingester-zone-a"),
        Just(""),
        Just("../?")
    ];
    let object = || prop_oneof![workload(), any_json()];
    (
        resource,
        subresource,
        name,
        object(),
        object(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(resource, subresource, name, old, object, is_dry_run, is_create)| Review {
                is_dry_run,
                operation: if is_create { "CREATE" } else { "UPDATE" }.to_owned(),
                ..update(resource, subresource, name, old, object)
            },
        )
}

/// Answers everything in one way.
struct Always(Answer);

impl Peer for Always {
    fn answer(&mut self, _: &Question) -> Answer {
        self.0.clone()
    }
}

fn answers() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::timeout()),
        Just(Answer::unreachable("refused")),
        (100_u16..600, prop_oneof![workload(), any_json()])
            .prop_map(|(code, body)| said(code, &body)),
        (200_u16..210, ".{0,10}").prop_map(|(code, body)| Answer::Said { code, body }),
    ]
}

/// All webhooks, however they are switched.
fn hooks() -> Vec<Box<dyn Admit>> {
    let with = |is_strict, tracks_zones| {
        let switches = Switches {
            tracks_zones,
            is_strict,
        };
        webhooks(&Settings::default(), switches)
    };
    let mut all = with(false, false);
    all.extend(with(true, true));
    all
}

#[test]
fn paths_are_the_originals() {
    let hooks = webhooks(&Settings::default(), Switches::default());
    let paths: Vec<&str> = hooks.iter().map(|hook| hook.path()).collect();
    assert_eq!(
        paths,
        [
            "/admission/no-downscale",
            "/admission/pod-eviction",
            "/admission/prepare-downscale",
            "/admission/zpdb-validation"
        ]
    );
}

/// The number of replicas, written anew here as the oracle.
fn number(object: &Value) -> Option<i64> {
    let spec = &object["spec"];
    // A spec that is no object says nothing, and is not a scale to none.
    let is_left_out = (spec.is_null() || spec.is_object()) && spec["replicas"].is_null();
    let is_scale = object["kind"] == "Scale";
    let replicas = spec["replicas"].as_i64();
    // What is no 32-bit integer cannot be read.
    let replicas = replicas.filter(|number| i32::try_from(*number).is_ok());
    replicas.or((is_scale && is_left_out).then_some(0))
}

fn is_known(object: &Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    matches!(
        (version, object["kind"].as_str().unwrap_or_default()),
        ("apps/v1", "StatefulSet" | "Deployment" | "Scale") | ("autoscaling/v1", "Scale")
    )
}

fn is_scale(object: &Value) -> bool {
    object["kind"] == "Scale"
}

/// Three zones, some of whose pods are not ready, under any number of budgets.
fn ailing() -> impl Strategy<Value = World> {
    let ailing = proptest::collection::vec(proptest::bool::weighted(0.15), 9);
    let budgets = proptest::collection::vec(0_i64..4, 0..3);
    (ailing, budgets).prop_map(|(ailing, budgets)| {
        let mut world = World::healthy(&["a", "b", "c"]);
        for (pod, _) in world
            .pods
            .values_mut()
            .zip(ailing)
            .filter(|(_, ails)| *ails)
        {
            pod["status"]["containerStatuses"][0]["ready"] = json!(false);
        }
        for most in budgets {
            world.budget(&json!({"maxUnavailable": most}));
        }
        world
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(refusal) = parse(&body, "application/json", Parts::NONE) {
            prop_assert_eq!(refusal.code, 400);
        }
    }

    #[test]
    fn any_json_is_read_or_refused_and_answered(request in any_json(), uid in ".{0,10}") {
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        if let Ok((version, review)) = parse(body.to_string().as_bytes(), "application/json", Parts::NONE) {
            prop_assert_eq!(version, Version::V1);
            for hook in hooks() {
                serve(&*hook, &review, &Stores::default(), &Facts::default(), &mut Always(Answer::timeout()));
            }
        }
        // W6: the answer names the request, whatever that calls itself.
        let answer = render(Version::V1, &uid, &Verdict::refused(429, format!("no {uid}")));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        prop_assert_eq!(&answer["response"]["uid"], &json!(uid));
        prop_assert_eq!(&answer["response"]["status"]["message"], &json!(format!("no {uid}")));
    }

    #[test]
    fn every_review_ends(review in review(), answer in answers()) {
        let stores = World::healthy(&["a", "b"]).stores();
        for hook in hooks() {
            serve(&*hook, &review, &stores, &Facts::default(), &mut Always(answer.clone()));
            hook.expire(&review, &stores, &Facts::default(), now());
        }
    }

    /// A labelled object that is seen to be scaled down is never let through.
    #[test]
    fn no_downscale_lets_through_only_what_is_listed(review in review(), answer in answers()) {
        let hook = NoDownscale { strict: false };
        let served = serve(&hook, &review, &Stores::default(), &Facts::default(), &mut Always(answer.clone()));
        let is_seen = is_known(&review.old) && is_known(&review.object);
        let falls = number(&review.old).zip(number(&review.object)).is_some_and(|(old, new)| new < old);
        let label = |object: &Value| object["metadata"]["labels"]["grafana.com/no-downscale"] == "true";
        if is_seen && falls && !is_scale(&review.old) {
            prop_assert_eq!(served.is_allowed(), !label(&review.old));
        }
        // Where it cannot be seen there is a warning.
        if !is_seen && served.is_allowed() {
            prop_assert_eq!(served.warnings().len(), 1);
        }
        if !falls {
            prop_assert!(served.is_allowed());
        }
    }

    /// Fail-closed: with nothing known, and nothing answered, an eviction is never let through.
    #[test]
    fn evictions_are_stopped_where_nothing_is_known(review in review()) {
        let served = serve(&PodEviction::default(), &review, &Stores::default(), &Facts::default(), &mut Nobody);
        prop_assert!(!served.is_allowed());
    }

    /// W10: what is in a namespace has no say in another, though it is called the same.
    #[test]
    fn another_namespace_has_no_say(own in ailing(), other in ailing(), ordinal in 0_i64..3) {
        let name = format!("ingester-zone-a-{ordinal}");
        let kind = json!({"kind": "Eviction"});
        let review = Review {
            operation: "CREATE".to_owned(),
            group: String::new(),
            ..update("pods", "eviction", &name, Value::Null, kind)
        };
        let ask = |world: &World| {
            let mut api = Api::default();
            api.fix("GET", &format!("/pods/{name}"), said(200, &own.pods[&name]));
            serve(&PodEviction::default(), &review, &world.stores(), &Facts::default(), &mut api).verdict
        };
        prop_assert_eq!(ask(&own), ask(&own.beside(&other, "elsewhere")));
    }

    /// From the moment that pods have to be told, only the yes of every pod lets a downscale through.
    #[test]
    fn nobody_is_scaled_away_untold(code in 0_u16..600, from in 1_i64..5, to in 0_i64..5) {
        let mut world = World::healthy(&["a"]);
        let set = world.set_mut("a");
        set["metadata"]["labels"] = json!({"grafana.com/prepare-downscale": "true"});
        set["metadata"]["annotations"] = json!({"grafana.com/prepare-downscale-http-port": "80",
            "grafana.com/prepare-downscale-http-path": "p"});
        let (mut old, mut new) = (set.clone(), set.clone());
        old["spec"]["replicas"] = json!(from);
        new["spec"]["replicas"] = json!(to);
        let review = update("statefulsets", "", "ingester-zone-a", old, new);
        let answer = said(code, &json!({"metadata": {"name": "m", "resourceVersion": "1"}}));
        let hook = PrepareDownscale::default();
        let served = serve(&hook, &review, &world.stores(), &Facts::default(), &mut Always(answer));
        let is_well = (200..300).contains(&code);
        prop_assert_eq!(served.is_allowed(), to >= from || is_well);
    }
}
