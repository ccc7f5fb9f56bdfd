//! What both are asked: reviews as an API server sends them, and some as it never would.

use serde_json::{Value, json};
use slipway_e2e::review;
use slipway_e2e::zones::{GROUP, ZONES, zone};

/// One call, for a namespace.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) body: fn(&str) -> String,
}

const fn call(name: &'static str, path: &'static str, body: fn(&str) -> String) -> Call {
    Call { name, path, body }
}

const NO_DOWNSCALE: &str = "/admission/no-downscale";
const EVICTION: &str = "/admission/pod-eviction";
const PREPARE: &str = "/admission/prepare-downscale";
const BUDGETS: &str = "/admission/zpdb-validation";

/// The budget of both places.
pub(crate) fn budget() -> Value {
    json!({
        "apiVersion": "rollout-operator.grafana.com/v1",
        "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"name": "peer"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"rollout-group": GROUP}}},
    })
}

/// All of them, in their order: an eviction that was let through is remembered by the next.
pub(crate) fn all() -> Vec<Call> {
    vec![
        call(
            "a downscale of a labelled zone",
            NO_DOWNSCALE,
            review::downscale,
        ),
        call(
            "a downscale of a zone without the label",
            NO_DOWNSCALE,
            |ns| scaled(ns, 3, 1, &json!({})),
        ),
        call("an upscale of a labelled zone", NO_DOWNSCALE, |ns| {
            scaled(ns, 3, 5, &labelled())
        }),
        call("a labelled zone that stays as it is", NO_DOWNSCALE, |ns| {
            scaled(ns, 3, 3, &labelled())
        }),
        call("a label of another value", NO_DOWNSCALE, |ns| {
            scaled(ns, 3, 1, &json!({"grafana.com/no-downscale": "false"}))
        }),
        call("a downscale to none", NO_DOWNSCALE, |ns| {
            scaled(ns, 3, 0, &labelled())
        }),
        call("a downscale through scale", NO_DOWNSCALE, |ns| {
            through_scale(ns, 1)
        }),
        call("an upscale through scale", NO_DOWNSCALE, |ns| {
            through_scale(ns, 5)
        }),
        call("a kind that nobody knows", NO_DOWNSCALE, |ns| {
            let text = scaled(ns, 3, 1, &labelled());
            text.replace("StatefulSet", "Gadget")
                .replace("statefulsets", "gadgets")
        }),
        call("a downscale without preparation", PREPARE, |ns| {
            scaled(ns, 3, 1, &json!({}))
        }),
        call("an upscale that needs no preparation", PREPARE, |ns| {
            scaled(ns, 3, 5, &json!({"grafana.com/prepare-downscale": "true"}))
        }),
        call("a budget of two kinds", BUDGETS, |ns| {
            stored(
                ns,
                &json!({"maxUnavailable": 1, "maxUnavailablePercentage": 10}),
            )
        }),
        call("a budget of one", BUDGETS, |ns| {
            stored(ns, &json!({"maxUnavailable": 1}))
        }),
        call("a budget of less than none", BUDGETS, |ns| {
            stored(ns, &json!({"maxUnavailable": -1}))
        }),
        call("a budget of too many percent", BUDGETS, |ns| {
            stored(ns, &json!({"maxUnavailablePercentage": 101}))
        }),
        call("a budget without a selector", BUDGETS, |ns| {
            stored(ns, &json!({"maxUnavailable": 1, "selector": null}))
        }),
        call("an eviction of a pod that is not there", EVICTION, |ns| {
            review::eviction(ns, "nobody-0")
        }),
        call("an eviction", EVICTION, |ns| {
            review::eviction(ns, &format!("{}-0", ZONES[0]))
        }),
        call("an eviction of another zone after it", EVICTION, |ns| {
            review::eviction(ns, &format!("{}-0", ZONES[1]))
        }),
        call("a second eviction of the same zone", EVICTION, |ns| {
            review::eviction(ns, &format!("{}-1", ZONES[0]))
        }),
        call("no JSON", NO_DOWNSCALE, |_| "{".to_owned()),
        call("nothing", NO_DOWNSCALE, |_| String::new()),
    ]
}

fn labelled() -> Value {
    json!({"grafana.com/no-downscale": "true"})
}

/// The first zone, from so many replicas to so many, with these labels more.
fn scaled(namespace: &str, from: usize, to: usize, labels: &Value) -> String {
    let set = |replicas: usize| {
        let mut set = zone(ZONES[0], replicas, "app:1", 1);
        set["metadata"]["namespace"] = json!(namespace);
        for (name, value) in labels.as_object().into_iter().flatten() {
            set["metadata"]["labels"][name] = value.clone();
        }
        set
    };
    changed(namespace, |request| {
        request["object"] = set(to);
        request["oldObject"] = set(from);
    })
}

fn through_scale(namespace: &str, to: usize) -> String {
    let scale = |replicas: usize| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": ZONES[0], "namespace": namespace},
            "spec": {"replicas": replicas},
        })
    };
    changed(namespace, |request| {
        request["kind"] = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        request["subResource"] = json!("scale");
        request["object"] = scale(to);
        request["oldObject"] = scale(3);
    })
}

/// A budget with these fields in its spec, as it is created.
fn stored(namespace: &str, fields: &Value) -> String {
    let mut object = budget();
    object["metadata"]["namespace"] = json!(namespace);
    object["spec"] = json!({"selector": {"matchLabels": {"rollout-group": GROUP}}});
    for (name, value) in fields.as_object().into_iter().flatten() {
        object["spec"][name] = value.clone();
    }
    changed(namespace, |request| {
        let kind = "ZoneAwarePodDisruptionBudget";
        let group = "rollout-operator.grafana.com";
        request["kind"] = json!({"group": group, "version": "v1", "kind": kind});
        request["resource"] =
            json!({"group": group, "version": "v1", "resource": "zoneawarepoddisruptionbudgets"});
        request["name"] = json!("peer");
        request["operation"] = json!("CREATE");
        request["oldObject"] = Value::Null;
        request["object"] = object;
    })
}

/// A review with another request in it.
fn changed(namespace: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut review: Value = serde_json::from_str(&review::downscale(namespace)).unwrap_or_default();
    change(&mut review["request"]);
    review.to_string()
}
