//! Histories of a fleet that never happened.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use slipway_kernel::identity::ClusterId;
use slipway_sim::history::{Change, ChangeKind, Ending, Event, Image, Mark, Object};
use slipway_sim::spell::{Disturbance, Spell};

use super::made::{Made, merge, object};

const ROLLOUTS: &str = "fleet.squaremo.dev/rollouts";
const REMOTES: &str = "fleet.squaremo.dev/remoteassemblages";
const ASSEMBLAGES: &str = "fleet.squaremo.dev/assemblages";
const SOURCES: &str = "source.toolkit.fluxcd.io/gitrepositories";
const KUSTOMIZATIONS: &str = "kustomize.toolkit.fluxcd.io/kustomizations";

/// The path of an object, by whom it is written.
fn uri(resource: &str, name: &str, manager: &str) -> String {
    let (group, plural) = resource.split_once('/').unwrap();
    let version = if group.starts_with("fleet") {
        "v1alpha1"
    } else {
        "v1"
    };
    format!("/apis/{group}/{version}/namespaces/shop/{plural}/{name}?fieldManager={manager}")
}

impl Made {
    fn apply(
        &mut self,
        cluster: &ClusterId,
        (resource, name, manager): (&str, &str, &str),
        body: Value,
    ) -> u64 {
        let number = self.request("PATCH", &uri(resource, name, manager), body);
        let there = self.version_in(cluster);
        let request = self.last_request();
        "application/apply-patch+yaml".clone_into(&mut request.media);
        "fleet".clone_into(&mut request.context.controller);
        request.cluster = cluster.clone();
        request.versions = (there, there + 1);
        if !cluster.is_local() {
            request.replica = format!("slipway@{cluster}-0-0");
            "agent".clone_into(&mut request.context.controller);
        }
        number
    }

    fn version_in(&self, cluster: &ClusterId) -> u64 {
        self.history
            .changes_in(cluster)
            .last()
            .map_or(0, |change| change.version)
    }

    /// An object in another cluster as it is now.
    fn there(&self, cluster: &ClusterId, object: &Object) -> Option<Arc<Image>> {
        let mut changes = self.history.changes_in(cluster).iter();
        let last = changes.rfind(|change| change.object == *object);
        last?.after.clone()
    }

    /// An object changes in another cluster.
    fn put_there(
        &mut self,
        cluster: &ClusterId,
        object: Object,
        value: Option<Value>,
        by: Option<u64>,
    ) {
        let before = self.there(cluster, &object);
        let (at, version) = (self.now(), self.version_in(cluster) + 1);
        let kind = match (&before, &value) {
            (_, None) => ChangeKind::Deleted,
            (None, _) => ChangeKind::Added,
            _ => ChangeKind::Modified,
        };
        let after = value.map(|value| Arc::new(Image::made(value)));
        let course = self.history.members.entry(cluster.clone()).or_default();
        course.changes.push(Change {
            at,
            version,
            kind,
            object,
            before,
            after,
            by,
        });
    }

    fn change_there(
        &mut self,
        cluster: &ClusterId,
        object: &Object,
        change: &Value,
        by: Option<u64>,
    ) {
        let now = self.there(cluster, object);
        let mut value = now.map_or(json!({}), |image| image.value().clone());
        merge(&mut value, change);
        self.put_there(cluster, object.clone(), Some(value), by);
    }

    /// A replica asks for all assemblages of a cluster.
    fn look(&mut self, cluster: &ClusterId, replica: &str, code: u16) {
        let all = "/apis/fleet.squaremo.dev/v1alpha1/assemblages";
        self.request("GET", all, json!(null));
        let request = self.last_request();
        request.cluster = cluster.clone();
        replica.clone_into(&mut request.replica);
        request.ending = Ending::Answered(code);
        request.versions.1 = request.versions.0;
    }

    fn cluster(&mut self, name: &str) {
        let secret = json!({"metadata": {"name": name, "labels": {"fleet.squaremo.dev/cluster": "", "env": "prod"}}});
        self.put(object("/secrets", name), secret, None);
    }

    fn rollout(&mut self, spec: &Value) {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let value = json!({
            "metadata": {"name": "web", "generation": 1}, "spec": spec,
            "status": {"observedGeneration": 1, "conditions": ready},
        });
        self.put(object(ROLLOUTS, "web"), value, None);
    }

    /// A cluster is assigned entries by the operator, in the name of `Rollout/web`.
    fn assign(&mut self, cluster: &str, syncs: &Value) {
        let spec = json!({"kubeconfigRef": {"name": cluster}, "assemblage": {"syncs": syncs}});
        let manager = "slipway-fleet%2FRollout%2Fweb";
        let by = self.apply(
            &ClusterId::local(),
            (REMOTES, cluster, manager),
            json!({ "spec": spec }),
        );
        let remote = object(REMOTES, cluster);
        let mut value = self.current(&remote);
        value["spec"] = spec;
        self.put(remote, value, Some(by));
        // Home's own numbers are one for all.
        let version = self
            .history
            .changes
            .last()
            .map_or(0, |change| change.version);
        self.last_request().versions = (version - 1, version);
    }

    /// A cluster is told, and switches to a revision of its one sync; the source has been fetched.
    fn switch(&mut self, cluster: &str, revision: &str) {
        self.assign(cluster, &json!([entry(revision)]));
        let there = ClusterId::remote(cluster);
        let source = object(SOURCES, revision);
        let spec = json!({"url": "https://git.example/web", "ref": {"tag": revision}});
        let by = self.apply(
            &there,
            (SOURCES, revision, "slipway"),
            json!({ "spec": spec }),
        );
        let label = json!({"fleet.squaremo.dev/assemblage": "shared"});
        self.put_there(
            &there,
            source.clone(),
            Some(json!({"metadata": {"labels": label}, "spec": spec})),
            Some(by),
        );
        let status = json!({"status": {"artifact": {"revision": revision}, "conditions": [{"type": "Ready", "status": "True"}]}});
        self.change_there(&there, &source, &status, None);
        self.told(cluster, &json!([entry(revision)]));
        self.switched(cluster, "web", revision);
    }

    /// The assemblage in a cluster says so.
    fn told(&mut self, cluster: &str, syncs: &Value) {
        let there = ClusterId::remote(cluster);
        let by = self.apply(
            &there,
            (ASSEMBLAGES, cluster, "slipway"),
            json!({"spec": {"syncs": syncs}}),
        );
        let mut value = json!({"metadata": {"name": cluster}, "spec": {}});
        value["spec"]["syncs"] = syncs.clone();
        self.put_there(&there, object(ASSEMBLAGES, cluster), Some(value), Some(by));
    }

    /// The Kustomization of a sync is switched.
    fn switched(&mut self, cluster: &str, sync: &str, revision: &str) {
        let there = ClusterId::remote(cluster);
        let name = format!("{cluster}-{sync}");
        let by = self.apply(&there, (KUSTOMIZATIONS, &name, "slipway"), json!({}));
        let kustomization = object(KUSTOMIZATIONS, &name);
        let now = self.there(&there, &kustomization);
        let generation = now.map_or(0, |image| image.number("/metadata/generation"));
        let change = json!({
            "metadata": {
                "uid": name, "generation": generation + 1,
                "labels": {"fleet.squaremo.dev/assemblage": cluster, "fleet.squaremo.dev/sync": sync},
                "annotations": {"fleet.squaremo.dev/applied-revision": revision},
            },
            "spec": {"sourceRef": {"name": revision}},
        });
        self.change_there(&there, &kustomization, &change, Some(by));
    }

    /// Flux has applied it, and all is healthy.
    fn ready(&mut self, cluster: &str) {
        self.says(cluster, "True");
    }

    /// Flux says of a cluster's one Kustomization that it is ready, or not.
    fn says(&mut self, cluster: &str, ready: &str) {
        let there = ClusterId::remote(cluster);
        let kustomization = object(KUSTOMIZATIONS, &format!("{cluster}-web"));
        let now = self.there(&there, &kustomization).unwrap();
        let generation = now.number("/metadata/generation");
        let status = json!({"observedGeneration": generation, "conditions": [{"type": "Ready", "status": ready}]});
        self.change_there(&there, &kustomization, &json!({ "status": status }), None);
        self.pass(10);
    }

    /// Somebody asks for another version, and the operator tells that it brings it, and who is left for later.
    fn begin(&mut self, revision: &str, skipped: &[&str]) {
        let rollout = object(ROLLOUTS, "web");
        let mut value = self.current(&rollout);
        value["spec"]["template"] = json!({ "tag": revision });
        self.put(rollout.clone(), value.clone(), None);
        self.pass(1);
        let started = self.now().to_string();
        value["status"]["run"] =
            json!({"revision": revision, "started": started, "skipped": skipped});
        self.put(rollout, value, None);
        self.pass(1);
    }
}

fn entry(revision: &str) -> Value {
    json!({"name": "web", "assignedBy": "Rollout/web", "revision": revision, "source": {"git": {"url": revision}}})
}

/// A version goes to one of three clusters first, and then to the others one at a time.
pub(super) fn good_rollout() -> Made {
    let mut made = Made::new();
    for cluster in ["a", "b", "c"] {
        made.cluster(cluster);
    }
    made.rollout(&json!({"selector": {"matchLabels": {"env": "prod"}}, "strategy": "Incremental", "rollout": {"maxUnreadyClusters": 1}}));
    for cluster in ["a", "b", "c"] {
        made.switch(cluster, "v1");
        made.ready(cluster);
    }
    made
}

/// One cluster is ill before a change begins: it gets it as soon as one is ready with it, and while it is not ready the others do.
pub(super) fn with_one_that_was_ill() -> Made {
    let mut made = good_rollout();
    made.says("c", "False");
    made.begin("v2", &["c"]);
    made.switch("a", "v2");
    made.ready("a");
    made.switch("c", "v2");
    made.pass(5);
    made.switch("b", "v2");
    made.ready("b");
    made
}

/// The operator only says so: it was well, and is not ready with the change.
pub(super) fn with_one_that_is_said_to_have_been_ill() -> Made {
    let mut made = good_rollout();
    made.begin("v2", &["c"]);
    made.switch("a", "v2");
    made.ready("a");
    made.switch("c", "v2");
    made.pass(5);
    made.switch("b", "v2");
    made.ready("b");
    made
}

/// It was ill, but it was well again before it got the change.
pub(super) fn with_one_that_was_well_again() -> Made {
    let mut made = good_rollout();
    made.says("c", "False");
    made.begin("v2", &["c"]);
    made.switch("a", "v2");
    made.ready("a");
    made.ready("c");
    made.switch("c", "v2");
    made.pass(5);
    made.switch("b", "v2");
    made.ready("b");
    made
}

/// It fell ill while a change was tried that nobody was ready with, so that it may be because of that.
pub(super) fn with_one_that_fell_ill_in_a_change_that_was_stopped() -> Made {
    let mut made = good_rollout();
    made.begin("v2", &[]);
    made.switch("a", "v2");
    made.pass(5);
    made.says("c", "False");
    made.begin("v3", &["c"]);
    made.switch("a", "v3");
    made.ready("a");
    made.switch("c", "v3");
    made.pass(5);
    made.switch("b", "v3");
    made.ready("b");
    made
}

/// It could not be reached when the change began, and got it when it was back.
pub(super) fn with_one_that_is_back() -> Made {
    let mut made = good_rollout();
    let away = Spell::new(Disturbance::Outage, Duration::ZERO, Duration::from_secs(10));
    let at = made.now();
    let what = Event::Spell(away.within("c"));
    made.history.marks.push(Mark { at, what });
    made.begin("v2", &["c"]);
    made.switch("a", "v2");
    made.ready("a");
    made.pass(20);
    made.switch("c", "v2");
    made.pass(5);
    made.switch("b", "v2");
    made.ready("b");
    made
}

/// The control plane is put back to a time before it assigned something, and takes away what it knows nothing of.
pub(super) fn with_one_that_forgets() -> Made {
    let mut made = good_rollout();
    let (there, remote) = (ClusterId::remote("a"), object(REMOTES, "a"));
    let earlier = made.current(&remote);
    let both = json!([entry("v1"), {"name": "extra", "source": {"git": {"url": "x"}}}]);
    let mut value = earlier.clone();
    value["spec"]["assemblage"]["syncs"] = both.clone();
    made.put(remote.clone(), value, None);
    made.told("a", &both);
    made.pass(30);
    let at = made.now();
    made.put(remote, earlier, None);
    let what = Event::Restored;
    made.history.marks.push(Mark { at, what });
    made.pass(30);
    assert!(made.there(&there, &object(ASSEMBLAGES, "a")).is_some());
    made.told("a", &json!([entry("v1")]));
    made
}

/// One bad history for each oracle of the fleet.
pub(super) fn bad(id: &str) -> Option<Made> {
    let mut made = good_rollout();
    let there = ClusterId::remote("a");
    match id {
        "F1" => made.assign("a", &json!([])),
        "F2" => {
            let name = "a-web";
            let by = made.apply(&there, (KUSTOMIZATIONS, name, "slipway"), json!({}));
            let request = made.last_request();
            "DELETE".clone_into(&mut request.method);
            request.body = json!({"preconditions": {"uid": name, "resourceVersion": "1"}});
            made.put_there(&there, object(KUSTOMIZATIONS, name), None, Some(by));
        }
        "F3" => {
            let change = json!({"spec": {"path": "elsewhere"}});
            let by = made.apply(&there, (KUSTOMIZATIONS, "a-web", "slipway"), change.clone());
            made.change_there(&there, &object(KUSTOMIZATIONS, "a-web"), &change, Some(by));
        }
        "F4" => {
            let theirs = json!({"name": "extra", "source": {"git": {"url": "x"}}});
            let remote = object(REMOTES, "a");
            let mut value = made.current(&remote);
            value["spec"]["assemblage"]["syncs"] = json!([entry("v1"), theirs]);
            made.put(remote, value, None);
            let mut changed = theirs;
            changed["source"]["git"]["url"] = json!("y");
            made.assign("a", &json!([entry("v1"), changed]));
        }
        "F5" => {
            made.switch("a", "v2");
            made.pass(5);
            made.switch("b", "v2");
        }
        "F6" => {
            made.switch("a", "v2");
            made.ready("a");
            made.switch("b", "v2");
            made.pass(5);
            made.switch("c", "v2");
        }
        "F7" => {
            let change = json!({"spec": {"ref": {"tag": "v2"}}});
            let by = made.apply(&there, (SOURCES, "v1", "slipway"), change.clone());
            made.change_there(&there, &object(SOURCES, "v1"), &change, Some(by));
        }
        "F8" => {
            made.assign("a", &json!([entry("v2")]));
            made.told("a", &json!([entry("v2")]));
            made.switched("a", "web", "v2");
        }
        "F9" => {
            made.apply(
                &ClusterId::local(),
                (REMOTES, "a", "slipway-fleet%2FRollout%2Fweb"),
                json!({}),
            );
            let request = made.last_request();
            request.versions.1 = request.versions.0;
        }
        "F10" => {
            let secret = json!({"kind": "Secret", "stringData": {"token": "open-sesame"}});
            made.scenario.objects.push(secret);
            let mut told = entry("v2");
            told["bindings"] = json!([{"name": "token", "value": "open-sesame"}]);
            made.assign("a", &json!([told]));
        }
        "F11" => {
            let remote = object(REMOTES, "a");
            let mut value = made.current(&remote);
            let told = json!([{"type": "Reachable", "status": "True"}]);
            value["status"]["conditions"] = told;
            made.put(remote, value, None);
            // One that saw what was there, and has died since.
            made.look(&there, "slipway-1-0", 200);
            made.mark(Event::Crashed("slipway-1-0".to_owned()), 0);
            made.pass(301);
            for _ in 0..2 {
                made.look(&there, "slipway-0-0", 403);
                made.pass(60);
            }
        }
        _ => return None,
    }
    Some(made)
}
