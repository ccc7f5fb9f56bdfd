//! no-downscale, and the original's table of replica changes.

use serde_json::{Value, json};
use slipway_kernel::admission::{Admit, Remarks, Review, Verdict};
use slipway_kernel::fact::Answer;
use slipway_kernel::{Facts, Stores};
use slipway_zones::admit::no_downscale::NoDownscale;

use crate::harness::*;

const KINDS: [(&str, &str); 3] = [
    ("StatefulSet", "statefulsets"),
    ("Deployment", "deployments"),
    ("ReplicaSet", "replicasets"),
];

const HOOK: NoDownscale = NoDownscale { strict: false };
const STRICT: NoDownscale = NoDownscale { strict: true };

fn object(kind: &str, replicas: &Value, label: Option<&str>) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x"},
        "spec": {"replicas": replicas}, "unknown": {"field": 1}});
    if let Some(label) = label {
        object["metadata"]["labels"] = json!({"grafana.com/no-downscale": label});
    }
    object
}

fn scale(replicas: i64) -> Value {
    // Go leaves a zero out.
    let spec = if replicas == 0 {
        json!({})
    } else {
        json!({"replicas": replicas})
    };
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}, "spec": spec})
}

fn ask(hook: NoDownscale, review: &Review, peer: &mut dyn Peer) -> Served {
    serve(&hook, review, &Stores::default(), &Facts::default(), peer)
}

fn quiet(review: &Review) -> Served {
    ask(HOOK, review, &mut Nobody)
}

#[test]
fn t10_a_labelled_object_is_not_scaled_down() {
    for (kind, resource) in KINDS {
        let old = object(kind, &json!(2), Some("true"));
        let review = update(
            resource,
            "",
            "x",
            old,
            object(kind, &json!(1), Some("true")),
        );
        let message = format!(
            "downscale of {resource}/x in default from 2 to 1 replicas is not allowed because it has the label \
             'grafana.com/no-downscale=true'"
        );
        assert_eq!(quiet(&review).verdict, Verdict::denied(message.clone()));
        let dry = Review {
            is_dry_run: true,
            ..review
        };
        let served = quiet(&dry);
        assert_eq!(served.verdict, Verdict::denied(message));
        assert_eq!(served.remarks, Remarks::default());
        assert!(served.actions.is_empty());
    }
}

#[test]
fn taking_the_label_away_in_the_same_change_does_not_help() {
    let old = object("StatefulSet", &json!(2), Some("true"));
    let review = update(
        "statefulsets",
        "",
        "x",
        old,
        object("StatefulSet", &json!(1), None),
    );
    assert!(!quiet(&review).is_allowed());
}

#[test]
fn t9_other_labels_and_no_label_are_free() {
    for label in [None, Some("false"), Some("True"), Some("")] {
        let old = object("StatefulSet", &json!(2), label);
        // Adding the label with the change does not count either.
        let new = object("StatefulSet", &json!(1), Some("true"));
        let review = update("statefulsets", "", "x", old, new);
        assert_eq!(quiet(&review).verdict, Verdict::allowed(), "{label:?}");
    }
}

#[test]
fn replica_change_table() {
    let warned = Verdict::warned("old/new replicas is nil, allowing the change");
    let table = [
        (json!(null), json!(null), Verdict::allowed()),
        (json!(null), json!(3), warned.clone()),
        (json!(3), json!(null), warned),
        (json!(3), json!(5), Verdict::allowed()),
        (json!(3), json!(3), Verdict::allowed()),
    ];
    for (old, new, verdict) in table {
        let review = update(
            "deployments",
            "",
            "x",
            object("Deployment", &old, Some("true")),
            object("Deployment", &new, Some("true")),
        );
        assert_eq!(quiet(&review).verdict, verdict, "{old} {new}");
    }
}

#[test]
fn t11_a_scale_is_judged_by_the_labels_of_its_parent() {
    for (kind, resource) in KINDS {
        let address = format!("GET /apis/apps/v1/namespaces/default/{resource}/x");
        for (label, allowed) in [(Some("true"), false), (Some("no"), true), (None, true)] {
            let parent = object(kind, &json!(2), label);
            let mut peer = Fixed([(address.clone(), said(200, &parent))].into());
            for to in [1, 0] {
                let review = update(resource, "scale", "x", scale(2), scale(to));
                assert_eq!(
                    ask(HOOK, &review, &mut peer).is_allowed(),
                    allowed,
                    "{label:?} {to}"
                );
            }
        }
        // No question where there is no downscale.
        assert!(quiet(&update(resource, "scale", "x", scale(2), scale(3))).is_allowed());
    }
}

#[test]
fn an_unreadable_parent_lets_the_change_pass_with_a_warning() {
    let review = update("statefulsets", "scale", "x", scale(2), scale(1));
    let address = "GET /apis/apps/v1/namespaces/default/statefulsets/x".to_owned();
    let prefix = "can't get statefulsets/x in namespace default, allowing the change: ";
    for (answer, error) in [
        (
            said(
                404,
                &json!({"message": "statefulsets.apps \"x\" not found"}),
            ),
            "statefulsets.apps \"x\" not found",
        ),
        (said(403, &json!({"message": "forbidden"})), "forbidden"),
        (Answer::timeout(), "context deadline exceeded"),
        (
            Answer::unreachable("connection refused"),
            "connection refused",
        ),
    ] {
        let mut peer = Fixed([(address.clone(), answer)].into());
        let served = ask(HOOK, &review, &mut peer);
        assert_eq!(served.warnings(), [format!("{prefix}{error}")]);
        assert_eq!(ask(STRICT, &review, &mut peer).denial().0, Some(503));
    }
    let other = update("daemonsets", "scale", "x", scale(2), scale(1));
    assert!(quiet(&other).warnings()[0].contains("unsupported resource daemonsets"));
    // Nothing in a request can lead the question elsewhere.
    let bent = update(
        "statefulsets",
        "scale",
        "../../secrets/x?",
        scale(2),
        scale(1),
    );
    assert_eq!(quiet(&bent).warnings().len(), 1);
}

#[test]
fn no_time_left_is_an_unreadable_parent() {
    let review = update("statefulsets", "scale", "x", scale(2), scale(1));
    let expiry = HOOK.expire(&review, &Stores::default(), &Facts::default(), now());
    assert_eq!(
        expiry.verdict,
        Verdict::warned(
            "can't get statefulsets/x in namespace default, allowing the change: context deadline exceeded"
        )
    );
    assert!(expiry.undo.is_empty());
}

#[test]
fn what_cannot_be_decoded_or_is_something_else_passes_with_a_warning() {
    let good = object("StatefulSet", &json!(1), Some("true"));
    let table = [
        (
            json!(null),
            "can't decode {} object, allowing the change, err: ",
        ),
        (
            json!({"kind": "StatefulSet"}),
            "can't decode {} object, allowing the change, err: ",
        ),
        (
            object("StatefulSet", &json!("two"), None),
            "can't decode {} object, allowing the change, err: ",
        ),
        (
            object("DaemonSet", &json!(2), None),
            "can't get {} replicas, allowing the change, err: unsupported type ",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod"}),
            "can't get {} replicas, allowing the change, err: ",
        ),
    ];
    for (bad, text) in table {
        let old = update("statefulsets", "", "x", bad.clone(), good.clone());
        assert!(
            quiet(&old).warnings()[0].starts_with(&text.replace("{}", "old")),
            "{bad}"
        );
        let new = update("statefulsets", "", "x", good.clone(), bad.clone());
        assert!(
            quiet(&new).warnings()[0].starts_with(&text.replace("{}", "new")),
            "{bad}"
        );
        assert_eq!(ask(STRICT, &new, &mut Nobody).denial().0, Some(503));
    }
}

/// W1: an absent number is one after defaulting, and a fall to it is refused where that is asked for.
#[test]
fn w1_strict_takes_null_as_one() {
    let from = |old: &Value, new: &Value| {
        let old = object("StatefulSet", old, Some("true"));
        let review = update(
            "statefulsets",
            "",
            "x",
            old,
            object("StatefulSet", new, None),
        );
        ask(STRICT, &review, &mut Nobody).is_allowed()
    };
    assert!(!from(&json!(3), &json!(null)));
    assert!(!from(&json!(null), &json!(0)));
    assert!(from(&json!(null), &json!(3)));
    assert!(from(&json!(null), &json!(null)));
}
