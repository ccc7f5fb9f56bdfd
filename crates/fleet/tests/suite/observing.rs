//! Objects as the API has them, read into the world of a Rollout.

use serde_json::{Value, json};
use slipway_api::fleet::assemblage::SyncState;
use slipway_api::fleet::names::{CLUSTER, CONFIRM_UNASSIGN, FINALIZER};
use slipway_api::fleet::rollout::TemplateSpec;
use slipway_bindings::revision;
use slipway_fleet::kinds;
use slipway_fleet::observe::assemblage::{entry, others};
use slipway_fleet::observe::cluster::{Registered, registered};
use slipway_fleet::observe::gather::assigner;
use slipway_fleet::observe::kept::Kept;
use slipway_fleet::observe::rollout::{Asked, Rollout, of_module};
use slipway_fleet::observe::{Strategy, Wanted};

fn template() -> Value {
    json!({"spec": {"sync": {"source": {"git": {"url": "https://example.com/a.git", "version": {"tag": "v1"}}}}}})
}

fn wanted(spec: Value) -> Result<Wanted, String> {
    let object = json!({"metadata": {"namespace": "fleet", "name": "web"}, "spec": spec});
    match Rollout::of(&object).wanted {
        Asked::For(wanted) => Ok(wanted),
        Asked::Invalid(problem) => Err(problem),
    }
}

#[test]
fn a_rollout_asks_for_what_it_says() {
    let plain = wanted(json!({"template": template()})).unwrap();
    assert_eq!(plain.strategy, Strategy::Incremental);
    assert_eq!(
        (
            plain.min_ready_seconds,
            plain.history_limit,
            plain.is_paused
        ),
        (0, 10, false)
    );
    assert_eq!(plain.target.len(), 10);
    let mut other = template();
    other["spec"]["sync"]["source"]["git"]["version"]["tag"] = "v2".into();
    assert_ne!(
        wanted(json!({"template": other})).unwrap().target,
        plain.target
    );
    let same =
        wanted(json!({"template": template(), "paused": true, "strategy": "Replace"})).unwrap();
    assert_eq!(
        same.target, plain.target,
        "only the template is the revision"
    );
    assert!(same.is_paused && same.strategy == Strategy::Replace);
}

/// What the schema refuses may have been stored before it did.
#[test]
fn what_cannot_be_followed_says_why() {
    let with = |field: &str, value: Value| {
        wanted(json!({"template": template(), field: value})).unwrap_err()
    };
    assert!(with("strategy", json!("Waves")).contains("none of Replace, Incremental and External"));
    let selector = json!({"matchExpressions": [{"key": "env", "operator": "In"}]});
    assert!(with("selector", selector).contains("env: In and NotIn need values"));
    let told = with("rollout", json!({"maxUnreadyClusters": 0}));
    assert!(
        told.contains("rollout.maxUnreadyClusters") && told.contains("use paused instead"),
        "{told}"
    );
    assert!(with("rollout", json!({"maxUnreachable": "some"})).contains("maxUnreachable"));
    assert!(
        wanted(json!({"strategy": "Replace"}))
            .unwrap_err()
            .contains("template")
    );
    let mut odd = template();
    odd["spec"]["sync"]["package"] = json!({"kustomize": {"substitute": "A=a"}});
    assert!(
        wanted(json!({"template": odd}))
            .unwrap_err()
            .contains("neither a map nor a list")
    );
    let mut none = template();
    none["spec"]["sync"]["source"]["git"]["version"] = json!({});
    assert!(
        wanted(json!({"template": none}))
            .unwrap_err()
            .contains("neither tag nor revision")
    );
}

#[test]
fn a_module_with_a_selector_replaces() {
    let module =
        |spec: Value| json!({"metadata": {"namespace": "fleet", "name": "web"}, "spec": spec});
    let spec = template()["spec"].clone();
    let read = |spec: Value| {
        let rollout = of_module(&kinds::MODULE, &module(spec))?;
        assert_eq!(assigner(&rollout), "Module/web");
        Some(Rollout::of(&rollout))
    };
    assert_eq!(read(spec.clone()), None);
    let mut selecting = spec;
    selecting["selector"] = json!({});
    let asked = read(selecting.clone()).unwrap();
    let Asked::For(wanted) = asked.wanted else {
        panic!("{:?}", asked.wanted);
    };
    assert_eq!(wanted.strategy, Strategy::Replace);
    let plain: TemplateSpec = serde_json::from_value(template()["spec"].clone()).unwrap();
    assert_eq!(wanted.target, revision::of_template(&plain));
    selecting["selector"] = json!({"matchExpressions": [{"key": "a", "operator": "Is"}]});
    let broken = read(selecting).unwrap();
    assert!(matches!(broken.wanted, Asked::Invalid(_)));
}

#[test]
fn a_persons_word_is_a_number() {
    let with = |word: &str| {
        let object = json!({"metadata": {"annotations": {CONFIRM_UNASSIGN: word}}, "spec": {"template": template()}});
        Rollout::of(&object).confirmed
    };
    assert_eq!(with("12"), Some(12));
    assert_eq!(with(" 12 "), Some(12));
    assert_eq!(with("all"), None);
}

#[test]
fn assignments_are_told_from_those_of_others() {
    let object = Kept::remote(&json!({
        "spec": {"assemblage": {"syncs": [
            {"name": "web", "revision": "r-1", "assignedBy": "Rollout/web"},
            {"name": "db", "module": {"name": "db-x", "revision": "x"}},
        ]}},
        "status": {"syncs": [{"name": "web", "observedRevision": "r-1", "state": "succeeded", "since": "2026-03-04T12:00:00Z"}]},
    }));
    let web = entry(&object, "web", "Rollout/web").unwrap();
    assert!(web.is_ours && web.is_ready());
    assert_eq!(web.status.unwrap().state, SyncState::Succeeded);
    assert!(!entry(&object, "web", "Rollout/other").unwrap().is_ours);
    let db = entry(&object, "db", "Rollout/db").unwrap();
    assert!(!db.is_ours && !db.is_ready());
    assert_eq!(db.revision.as_deref(), Some("x"));
    assert_eq!(entry(&object, "none", "Rollout/none"), None);
    assert_eq!((others(&object, "web"), others(&object, "new")), (1, 2));
}

#[test]
fn clusters_are_those_of_cluster_api_and_labelled_secrets() {
    let cluster = |name: &str, status: Value| json!({"metadata": {"namespace": "fleet", "name": name, "labels": {"env": "prod"}}, "status": status});
    let secret = |name: &str, labels: Value| json!({"metadata": {"namespace": "fleet", "name": name, "labels": labels}});
    let clusters = [
        cluster("new", json!({})),
        cluster("old", json!({"controlPlaneReady": true})),
        cluster(
            "both",
            json!({"initialization": {"controlPlaneInitialized": true}}),
        ),
    ];
    let secrets = [
        secret("plain", json!({CLUSTER: "", "env": "edge"})),
        secret("both", json!({CLUSTER: ""})),
        secret("other", json!({})),
    ];
    let all = registered(&clusters, &secrets);
    let names: Vec<&String> = all.keys().collect();
    assert_eq!(names, ["both", "new", "old", "plain"]);
    assert!(!all["new"].is_initialized && all["old"].is_initialized && all["both"].is_initialized);
    assert_eq!(
        all["both"].kubeconfig, "both-kubeconfig",
        "a Cluster wins over a Secret of its name"
    );
    assert_eq!(all["plain"].kubeconfig, "plain");
    assert_eq!(all["plain"].labels["env"], "edge");
}

/// Whoever names a module without a revision means whatever it is, and which that is, is told when it has been looked at.
#[test]
fn a_module_without_a_revision_is_what_is_told_of_it() {
    let assemblage = |observed: i64| {
        Kept::remote(&json!({
            "metadata": {"generation": 2},
            "spec": {"assemblage": {"syncs": [{"name": "web", "assignedBy": "Rollout/web", "module": {"name": "next"}}]}},
            "status": {
                "observedGeneration": observed,
                "syncs": [{"name": "web", "observedRevision": "b", "state": "succeeded"}],
            },
        }))
    };
    let told = entry(&assemblage(2), "web", "Rollout/web").unwrap();
    assert!(told.is_ready());
    assert_eq!(told.revision.as_deref(), Some("b"));
    let late = entry(&assemblage(1), "web", "Rollout/web").unwrap();
    assert!(!late.is_ready(), "what is told is of what was there before");
}

/// An entry that names a revision of a module is told of with its values.
#[test]
fn a_module_with_values_is_ready_when_what_is_told_is_of_its_revision() {
    let assemblage = |told: &str, observed: i64| {
        Kept::remote(&json!({
            "metadata": {"generation": 2},
            "spec": {"assemblage": {"syncs": [
                {"name": "web", "assignedBy": "Rollout/web", "module": {"name": "web-t", "revision": "t"}},
            ]}},
            "status": {
                "observedGeneration": observed,
                "syncs": [{"name": "web", "observedRevision": told, "state": "succeeded"}],
            },
        }))
    };
    // Somebody has changed another entry of the same assemblage: that says nothing of this one.
    for observed in [2, 1] {
        let told = entry(&assemblage("t-v", observed), "web", "Rollout/web").unwrap();
        assert!(told.is_ready(), "{observed}");
        assert_eq!(told.revision.as_deref(), Some("t-v"));
    }
    for observed in [2, 1] {
        let other = entry(&assemblage("u-v", observed), "web", "Rollout/web").unwrap();
        assert!(!other.is_ready(), "{observed}");
        assert_eq!(other.revision.as_deref(), Some("t"));
    }
}

/// A module without a selector selects nothing, which is to be followed where it once selected something.
#[test]
fn a_module_that_lost_its_selector_selects_nothing_until_nothing_is_left() {
    let module = |finalizers: Value| {
        json!({
            "metadata": {"namespace": "fleet", "name": "web", "finalizers": finalizers},
            "spec": template()["spec"],
        })
    };
    let guarded = of_module(&kinds::MODULE, &module(json!([FINALIZER]))).unwrap();
    assert!(matches!(Rollout::of(&guarded).wanted, Asked::For(_)));
    assert_eq!(guarded["spec"]["selector"], Value::Null);
    assert_eq!(of_module(&kinds::MODULE, &module(json!(["other"]))), None);
}

/// A Secret that has lost its label is the same cluster, and nobody's to select.
#[test]
fn a_secret_without_its_label_is_a_cluster_that_nobody_selects() {
    let secret = |labels: Value| json!({"metadata": {"namespace": "fleet", "name": "rome", "uid": "u", "labels": labels}});
    let former = Registered::of_former(&secret(json!({"env": "prod"}))).unwrap();
    assert!(!former.is_listed && former.uid == "u");
    assert_eq!(Registered::of_secret(&secret(json!({"env": "prod"}))), None);
    assert!(
        Registered::of_secret(&secret(json!({CLUSTER: ""})))
            .unwrap()
            .is_listed
    );
}
