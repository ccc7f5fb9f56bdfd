//! What cannot be followed: it is told on the object that it is about, in words that say what to mend, and nothing else stops.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use slipway_kernel::address::AllowedHosts;
use slipway_kernel::member::Member;
use slipway_runtime::Channel;
use slipway_runtime::connect::{Connect, Unconnected};
use slipway_runtime::link::Link;
use slipway_runtime::member::ByKubeconfig;

use crate::line::Lines;
use crate::stage::{
    ADMIN, CLUSTERS, DEFINITIONS, Fleet, is_ready, module, of_cluster, rollout, secs, virtually,
};

const SECRETS: &str = "/api/v1/namespaces/fleet/secrets";
const REMOTES: &str = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/remoteassemblages";

/// Reads what is in a Secret as the program does, unless it is what the lines of these tests go by.
struct Strict(Lines);

impl Connect for Strict {
    fn connect(&self, member: &Member, credentials: &[u8]) -> Result<Channel, Unconnected> {
        if credentials == ADMIN.as_bytes() {
            return self.0.connect(member, credentials);
        }
        let link = Link {
            request_timeout: Duration::from_secs(10),
            agent: "test",
        };
        ByKubeconfig::new(AllowedHosts::any(), link).connect(member, credentials)
    }
}

fn condition(object: &Value, name: &str) -> Value {
    let all = object["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|one| one["type"] == name));
    found.cloned().unwrap_or_default()
}

async fn put(fleet: &Fleet, secret: &str, kubeconfig: &str) {
    let patch = json!({"data": {"value": STANDARD.encode(kubeconfig)}});
    let path = format!("{SECRETS}/{secret}");
    fleet.hub.patch(&path, &patch).await;
}

#[test]
fn a_kubeconfig_that_does_not_parse_is_told_and_stops_nobody() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        for name in CLUSTERS {
            fleet.register(name).await;
        }
        put(&fleet, "rome", "{no kubeconfig").await;
        fleet.start_by(Arc::new(Strict(fleet.lines.of("one"))));
        for (name, strategy) in [("web", "Replace"), ("app", "Incremental")] {
            let spec = rollout(strategy, "v1");
            fleet.make("rollouts", name, &spec).await;
            fleet
                .until("the others have it", 120, async |fleet: &Fleet| {
                    let found = fleet.get("rollouts", name).await?;
                    let is = |cluster| of_cluster(&found, cluster)["state"] == "Ready";
                    let told = of_cluster(&found, "rome")["state"].clone();
                    let is_told = (told == "Skipped" || told == "Unready") && !is_ready(&found);
                    (is("berlin") && is("paris") && is_told).then_some(())
                })
                .await;
        }
        let remote = fleet.get("remoteassemblages", "rome").await.unwrap();
        let told = condition(&remote, "Reachable");
        assert_eq!(told["status"], "False", "{told:#}");
        assert_eq!(told["reason"], "CredentialsMissing", "{told:#}");
        let message = told["message"].as_str().unwrap();
        assert!(
            message.contains("the kubeconfig cannot be read"),
            "{message}"
        );
        // It is mended, and nobody has to do anything else.
        put(&fleet, "rome", ADMIN).await;
        fleet.until_ready("web", 180).await;
        fleet.until_ready("app", 180).await;
        assert_eq!(fleet.with_tag("app", "v1").await, 3);
    });
}

/// What the schema refuses today may have been stored before it did.
async fn loosen(fleet: &Fleet) {
    let path = format!("{DEFINITIONS}/rollouts.fleet.squaremo.dev");
    let mut versions = fleet.hub.get(&path).await["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let patch = json!({"spec": {"versions": versions}});
    fleet.hub.patch(&path, &patch).await;
    secs(2).await;
}

/// Rollouts that nobody can follow, with what is to be read in what is told of each.
fn unfollowable() -> Vec<(&'static str, Value, &'static str)> {
    let changed = |change: fn(&mut Value)| {
        let mut spec = rollout("Incremental", "v1");
        change(&mut spec);
        spec
    };
    vec![
        ("operator", changed(break_selector), "\"Is\" is none of"),
        (
            "strategy",
            changed(|spec| spec["strategy"] = json!("BlueGreen")),
            "\"BlueGreen\" is none of",
        ),
        (
            "nowhere",
            changed(|spec| spec["template"]["spec"]["sync"] = json!({"package": {}})),
            "source",
        ),
        (
            "unversioned",
            changed(|spec| {
                spec["template"]["spec"]["sync"]["source"]["git"]["version"] = json!({});
            }),
            "neither tag nor revision",
        ),
        (
            "everybody",
            changed(|spec| spec["rollout"] = json!({"maxUnreadyClusters": 0})),
            "maxUnreadyClusters",
        ),
    ]
}

fn break_selector(spec: &mut Value) {
    spec["selector"] =
        json!({"matchExpressions": [{"key": "env", "operator": "Is", "values": ["prod"]}]});
}

#[test]
fn rollouts_that_cannot_be_followed_say_what_is_wrong_and_stop_no_other() {
    virtually(async {
        let fleet = Fleet::new().await;
        loosen(&fleet).await;
        for (name, spec, _) in unfollowable() {
            fleet.make("rollouts", name, &spec).await;
        }
        let spec = rollout("Incremental", "v1");
        fleet.make("rollouts", "web", &spec).await;
        fleet.until_ready("web", 120).await;
        for (name, _, words) in unfollowable() {
            let found = fleet.get("rollouts", name).await.unwrap();
            let stalled = condition(&found, "Stalled");
            assert_eq!(stalled["status"], "True", "{name}: {found:#}");
            assert_eq!(stalled["reason"], "InvalidRollout", "{name}: {found:#}");
            let message = stalled["message"].as_str().unwrap();
            assert!(message.contains(words), "{name}: {message}");
            assert!(!is_ready(&found), "{name}: {found:#}");
            for cluster in CLUSTERS {
                assert_eq!(fleet.assigned(cluster, name).await, None, "{name}");
            }
        }
    });
}

/// A mistake in a Rollout that works takes nothing away.
#[test]
fn a_selector_that_is_broken_later_takes_nothing_away() {
    virtually(async {
        let fleet = Fleet::new().await;
        loosen(&fleet).await;
        let spec = rollout("Incremental", "v1");
        fleet.make("rollouts", "web", &spec).await;
        fleet.until_ready("web", 120).await;
        let mut patch = json!({"spec": rollout("Incremental", "v2")});
        break_selector(&mut patch["spec"]);
        patch["spec"]["selector"]["matchLabels"] = Value::Null;
        fleet.change("rollouts", "web", &patch).await;
        fleet
            .until("told", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                (condition(&found, "Stalled")["reason"] == "InvalidRollout").then_some(())
            })
            .await;
        secs(120).await;
        assert_eq!(fleet.with_tag("web", "v1").await, 3);
        let selector = json!({"matchLabels": {"env": "prod"}, "matchExpressions": null});
        let patch = json!({"spec": {"selector": selector}});
        fleet.change("rollouts", "web", &patch).await;
        fleet.until_ready("web", 180).await;
        assert_eq!(fleet.with_tag("web", "v2").await, 3);
    });
}

/// A source that is not there: what is applied stays, the Rollout stops at the first cluster, and others go on.
#[test]
fn a_source_that_is_not_there_is_told_and_stops_no_other() {
    virtually(async {
        let fleet = Fleet::new().await;
        let spec = rollout("Incremental", "missing");
        fleet.make("rollouts", "nowhere", &spec).await;
        let spec = rollout("Incremental", "v1");
        fleet.make("rollouts", "web", &spec).await;
        fleet.until_ready("web", 120).await;
        let found = fleet
            .until("told", 120, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "nowhere").await?;
                let waits = &found["status"]["waitingFor"][0];
                (waits["reason"] == "CanaryFailed").then_some(found)
            })
            .await;
        let status = &found["status"];
        assert!(
            status.to_string().contains("couldn't find the tag"),
            "{status:#}"
        );
        assert_eq!(fleet.with_tag("nowhere", "missing").await, 1);
        assert!(!is_ready(&found));
    });
}

/// Syncs that somebody else assigns, each of a module that is not there: so many are looked at, and none is made.
fn crowd(cluster: &str, count: usize) -> Value {
    let syncs = (0..count)
        .map(|number| json!({"name": format!("other-{number}"), "module": {"name": "none"}}));
    let syncs: Vec<Value> = syncs.collect();
    json!({
        "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "RemoteAssemblage", "metadata": {"name": cluster},
        "spec": {"kubeconfigRef": {"name": format!("{cluster}-kubeconfig")}, "assemblage": {"syncs": syncs}},
    })
}

#[test]
fn a_cluster_with_a_thousand_syncs_gets_no_other_and_says_so() {
    virtually(async {
        let fleet = Fleet::new().await;
        let path = format!("{REMOTES}/berlin");
        fleet
            .hub
            .apply(&path, "pipeline", &crowd("berlin", 1_000))
            .await;
        let spec = rollout("Incremental", "v1");
        fleet.make("rollouts", "web", &spec).await;
        let found = fleet
            .until("the others have it", 180, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                (found["status"]["counts"]["ready"] == 2).then_some(found)
            })
            .await;
        let told = of_cluster(&found, "berlin");
        assert_eq!(told["state"], "Blocked", "{told:#}");
        assert_eq!(told["reason"], "AssemblageFull", "{told:#}");
        let message = told["message"].as_str().unwrap();
        assert!(message.contains("1000 syncs already"), "{message}");
        assert!(!is_ready(&found));
        assert_eq!(fleet.assigned("berlin", "web").await, None);
        // A place becomes free, and it is the thousandth.
        fleet
            .hub
            .apply(&path, "pipeline", &crowd("berlin", 999))
            .await;
        fleet.until_ready("web", 180).await;
        let remote = fleet.get("remoteassemblages", "berlin").await.unwrap();
        let syncs = remote["spec"]["assemblage"]["syncs"].as_array().unwrap();
        assert_eq!(syncs.len(), 1_000);
    });
}

/// As long as the name of an object may be.
fn long(beginning: &str) -> String {
    format!("{beginning}{}", "x".repeat(253 - beginning.len()))
}

/// A cluster with a name of that length, which leads to rome.
async fn register_long(fleet: &Fleet) -> String {
    let name = long("rome-");
    let rome = &fleet.leaves["rome"].cluster;
    fleet.lines.lead(&format!("fleet/{name}"), rome);
    let labels = json!({"env": "prod", "fleet.squaremo.dev/cluster": "true"});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
        "data": {"value": STANDARD.encode(ADMIN)},
    });
    fleet.hub.create(SECRETS, &secret).await;
    name
}

#[test]
fn names_as_long_as_may_be_are_cut_for_what_is_made() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        let far = register_long(&fleet).await;
        fleet.start();
        let names = [("Incremental", long("web-")), ("Replace", long("app-"))];
        for (strategy, name) in &names {
            let spec = rollout(strategy, "v1");
            fleet.make("rollouts", name, &spec).await;
            fleet.until_ready(name, 180).await;
            fleet.roll(name, "v2").await;
            fleet
                .until("both have the next", 180, async |fleet: &Fleet| {
                    let berlin = fleet.tag("berlin", name).await;
                    let rome = fleet.tag(&far, name).await;
                    let is_next = |tag: Option<String>| tag.as_deref() == Some("v2");
                    (is_next(berlin) && is_next(rome)).then_some(())
                })
                .await;
            fleet.until_ready(name, 180).await;
        }
        let spec = module("v1");
        let mut selecting = spec.clone();
        selecting["selector"] = json!({});
        let own = long("mod-");
        fleet.make("modules", &own, &selecting).await;
        for cluster in ["berlin", "rome"] {
            let path = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/fleet/kustomizations";
            let made = fleet
                .until("all is made", 120, async |fleet: &Fleet| {
                    let made = fleet.leaves[cluster].list(path).await;
                    (made.len() == 3).then_some(made)
                })
                .await;
            for one in made {
                let name = one["metadata"]["name"].as_str().unwrap();
                assert!(name.len() <= 63, "{name}");
            }
        }
        for name in names.iter().map(|(_, name)| name) {
            fleet.delete("rollouts", name).await;
            fleet
                .until("gone", 120, async |fleet: &Fleet| {
                    fleet.get("rollouts", name).await.is_none().then_some(())
                })
                .await;
        }
    });
}

/// What is applied from the control plane is in an object that is called `<cluster>-bootstrap`: where that is too long, it is told.
#[test]
fn a_cluster_whose_bootstrap_could_not_be_named_is_told_and_stops_nobody() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        let far = register_long(&fleet).await;
        fleet.start();
        let mut spec = rollout("Replace", "v1");
        spec["targetKind"] = json!("BootstrapModule");
        let name = long("agent-");
        fleet.make("rollouts", &name, &spec).await;
        let web = rollout("Incremental", "v1");
        fleet.make("rollouts", "web", &web).await;
        fleet.until_ready("web", 180).await;
        let found = fleet
            .until("told", 180, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", &name).await?;
                let is_there = of_cluster(&found, "berlin")["state"] == "Ready";
                let is_told = of_cluster(&found, &far)["state"] == "Blocked";
                (is_there && is_told).then_some(found)
            })
            .await;
        let told = of_cluster(&found, &far);
        assert_eq!(told["reason"], "RefusedByApi", "{told:#}");
        let message = told["message"].as_str().unwrap();
        // The end of the API's words does not fit.
        let words = "metadata.name: Invalid value";
        assert!(message.contains(words), "{message}");
    });
}
