//! An assemblage, expanded to Flux objects: what is made when, and what is told.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::fleet::assemblage::SyncState;
use slipway_api::fleet::sync::NamedSync;
use slipway_api::foreign::git_repository::GitRepositoryStatus;
use slipway_api::foreign::kustomization::KustomizationStatus;
use slipway_bindings::Known;
use slipway_fleet::assemblage::{Decision, KustomizationSeen, Mended, SourceSeen, World, decide};
use slipway_fleet::naming;
use slipway_fleet::render::Applied;
use slipway_fleet::specialise::substitutions;
use slipway_kernel::fields::merge;

use crate::stage::noon;

/// A namespace with one assemblage in it, and what Flux says.
pub(crate) struct Leaf {
    pub(crate) world: World,
    pub(crate) now: Timestamp,
    /// The objects of Flux as the API has them, by kind and name.
    objects: BTreeMap<(String, String), Value>,
}

pub(crate) fn sync(name: &str, tag: &str, rest: &Value) -> NamedSync {
    let mut whole = json!({
        "name": name, "revision": format!("{name}-{tag}"),
        "source": {"git": {"url": format!("https://example.com/{name}.git"), "version": {"tag": tag}}},
    });
    whole
        .as_object_mut()
        .unwrap()
        .extend(rest.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

impl Leaf {
    pub(crate) fn new(syncs: &[NamedSync]) -> Self {
        let world = World {
            namespace: "fleet".to_owned(),
            name: "berlin".to_owned(),
            ..World::default()
        };
        let mut leaf = Self {
            world,
            now: noon(),
            objects: BTreeMap::new(),
        };
        leaf.set(syncs);
        leaf
    }

    pub(crate) fn set(&mut self, syncs: &[NamedSync]) {
        let known = Known::new();
        let with = |sync: &NamedSync| (sync.clone(), substitutions(sync, &known));
        self.world.syncs = syncs.iter().map(with).collect();
    }

    /// Plans and carries it out.
    pub(crate) fn step(&mut self) -> Decision {
        let decision = decide(&self.world, self.now);
        for applied in &decision.apply {
            self.apply(applied);
        }
        for mended in &decision.mend {
            self.mend(mended);
        }
        for name in &decision.delete_kustomizations {
            self.world.kustomizations.remove(name);
        }
        for name in &decision.delete_sources {
            self.world.sources.remove(name);
        }
        for name in &decision.delete_secrets {
            self.world.secrets.remove(name);
        }
        let named = decision
            .syncs
            .iter()
            .map(|status| (status.name.clone(), status.clone()));
        self.world.before = named.collect();
        decision
    }

    /// Somebody changes an object of Flux, by a merge patch, and Flux looks at it.
    pub(crate) fn tamper(&mut self, kind: &str, name: &str, patch: &Value) {
        let key = (kind.to_owned(), name.to_owned());
        let object = self.objects.get_mut(&key).unwrap();
        merge(object, patch);
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(1) + 1;
        object["metadata"]["generation"] = generation.into();
        let object = object.clone();
        if kind == "GitRepository" {
            let seen = SourceSeen::of(&object);
            self.world.sources.insert(name.to_owned(), seen);
            self.fetch();
        } else {
            let seen = KustomizationSeen::of(&object);
            self.world.kustomizations.insert(name.to_owned(), seen);
            self.say(name, "True", "ReconciliationSucceeded", None);
        }
    }

    fn mend(&mut self, mended: &Mended) {
        self.tamper("GitRepository", &mended.name, &mended.body);
    }

    fn apply(&mut self, applied: &Applied) {
        self.keep(applied);
        let name = applied.object.name.clone();
        match applied.object.kind.kind.as_ref() {
            "GitRepository" => {
                let before = self.world.sources.insert(
                    name,
                    SourceSeen {
                        generation: 1,
                        ..SourceSeen::of(&applied.body)
                    },
                );
                assert_eq!(before, None, "a source never changes");
            }
            "Kustomization" => {
                let before = self.world.kustomizations.remove(&name).unwrap_or_default();
                // As the API would give it back.
                let mut object = self.object(applied);
                object["metadata"]["generation"] = (before.generation + 1).into();
                object["spec"]["force"] = false.into();
                let seen = KustomizationSeen {
                    status: before.status,
                    ..KustomizationSeen::of(&object)
                };
                assert_eq!(seen.made_for.as_deref(), Some("berlin"));
                self.world.kustomizations.insert(name, seen);
            }
            "Secret" => drop(self.world.secrets.insert(name)),
            kind => panic!("{kind}"),
        }
    }

    /// What the API makes of what is applied: what others have added stays.
    fn keep(&mut self, applied: &Applied) {
        let kind = applied.object.kind.kind.to_string();
        let key = (kind, applied.object.name.clone());
        let object = self.objects.entry(key).or_default();
        merge(object, &applied.body);
    }

    fn object(&self, applied: &Applied) -> Value {
        let kind = applied.object.kind.kind.to_string();
        let key = (kind, applied.object.name.clone());
        self.objects[&key].clone()
    }

    /// Flux fetches all sources.
    pub(crate) fn fetch(&mut self) {
        for (name, source) in &mut self.world.sources {
            let generation = source.generation;
            source.status = GitRepositoryStatus::of(&json!({"status": {
                "observedGeneration": generation, "artifact": {"revision": format!("{name}@sha1:1")},
                "conditions": [{"type": "Ready", "status": "True", "observedGeneration": generation}],
            }}));
        }
    }

    /// Flux says this of a Kustomization, at its own generation unless another one is given.
    pub(crate) fn say(&mut self, name: &str, status: &str, reason: &str, observed: Option<i64>) {
        let seen = &self.world.kustomizations[name];
        let tried = format!("{}@sha1:1", seen.spec.source_ref.name);
        self.say_of(name, &tried, (status, reason), observed);
    }

    /// The same of an attempt at this revision of a source.
    fn say_of(&mut self, name: &str, tried: &str, said: (&str, &str), observed: Option<i64>) {
        let seen = self.world.kustomizations.get_mut(name).unwrap();
        seen.status = KustomizationStatus::of(&json!({"status": {
            "observedGeneration": observed.unwrap_or(seen.generation),
            "lastAppliedRevision": tried, "lastAttemptedRevision": tried,
            "conditions": [{"type": "Ready", "status": said.0, "reason": said.1, "message": "m", "observedGeneration": seen.generation}],
        }}));
    }

    /// Until it is applied and healthy.
    pub(crate) fn settle(&mut self) {
        self.step();
        self.fetch();
        self.step();
        let names: Vec<String> = self.world.kustomizations.keys().cloned().collect();
        for name in names {
            self.say(&name, "True", "ReconciliationSucceeded", None);
        }
        self.step();
    }

    pub(crate) fn states(&self) -> BTreeMap<&str, SyncState> {
        let all = self.world.before.iter();
        all.map(|(name, status)| (name.as_str(), status.state))
            .collect()
    }
}

pub(crate) fn kinds(decision: &Decision) -> Vec<String> {
    let kinds = decision
        .apply
        .iter()
        .map(|applied| applied.object.kind.kind.to_string());
    kinds.collect()
}

#[test]
fn a_switch_is_one_write_and_only_when_the_new_source_is_there() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("app", "v1", &none)]);
    assert_eq!(kinds(&leaf.step()), ["GitRepository"]);
    assert_eq!(kinds(&leaf.step()), [""; 0]);
    leaf.fetch();
    assert_eq!(kinds(&leaf.step()), ["Kustomization"]);
    leaf.settle();
    assert_eq!(leaf.states()["app"], SyncState::Succeeded);
    let before = leaf.world.kustomizations["berlin-app"].clone();
    let v2 = json!({"package": {"kustomize": {"path": "new"}}});
    leaf.set(&[sync("app", "v2", &v2)]);
    let made = leaf.step();
    assert_eq!(kinds(&made), ["GitRepository"]);
    assert_eq!(
        leaf.world.kustomizations["berlin-app"], before,
        "the old version stays"
    );
    assert!(made.delete_sources.is_empty());
    leaf.step();
    assert_eq!(leaf.world.kustomizations["berlin-app"], before);
    leaf.fetch();
    let switch = leaf.step();
    assert_eq!(kinds(&switch), ["Kustomization"]);
    let after = &leaf.world.kustomizations["berlin-app"];
    assert_eq!(after.spec.path, "new");
    assert_ne!(after.spec.source_ref, before.spec.source_ref);
    assert_eq!(leaf.states()["app"], SyncState::Updating);
    leaf.say("berlin-app", "True", "ReconciliationSucceeded", None);
    let last = leaf.step();
    assert_eq!(leaf.states()["app"], SyncState::Succeeded);
    let old = before.spec.source_ref.name;
    assert!(last.delete_sources.contains(&old) || switch.delete_sources.contains(&old));
    let quiet = leaf.step();
    assert!(
        quiet.apply.is_empty() && quiet.delete_sources.is_empty(),
        "{quiet:#?}"
    );
}

#[test]
fn syncs_do_not_touch_each_other() {
    let none = json!({});
    let mut leaf = Leaf::new(&[
        sync("a", "v1", &none),
        sync("b", "v1", &none),
        sync("c", "v1", &none),
    ]);
    leaf.settle();
    let before = leaf.world.kustomizations.clone();
    // Another order, and one fewer.
    leaf.set(&[sync("c", "v1", &none), sync("b", "v1", &none)]);
    let decision = leaf.step();
    assert_eq!(decision.delete_kustomizations, ["berlin-a"]);
    assert!(decision.apply.is_empty());
    for name in ["berlin-b", "berlin-c"] {
        assert_eq!(leaf.world.kustomizations[name], before[name]);
    }
    assert_eq!(leaf.step().delete_sources.len(), 1);
}

#[test]
fn what_fails_for_one_sync_stops_no_other() {
    let none = json!({});
    let blocked = json!({"bindings": [{"name": "A", "value": "$(B)"}]});
    let mut leaf = Leaf::new(&[sync("a", "v1", &blocked), sync("b", "v1", &none)]);
    leaf.settle();
    let expected = BTreeMap::from([("a", SyncState::Blocked), ("b", SyncState::Succeeded)]);
    assert_eq!(leaf.states(), expected);
    let told = &leaf.world.before["a"];
    assert_eq!(told.reason.as_deref(), Some("UnknownName"));
    assert!(
        told.message.as_ref().unwrap().contains("binding B"),
        "{told:?}"
    );
}

/// A tag that there is not.
#[test]
fn a_source_that_cannot_be_fetched_is_a_failure_and_the_old_version_stays() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    let before = leaf.world.kustomizations.clone();
    leaf.set(&[sync("a", "v9", &none)]);
    leaf.step();
    let name = naming::source(leaf.world.syncs[0].0.source.as_ref().unwrap());
    leaf.world.sources.get_mut(&name).unwrap().status = GitRepositoryStatus::of(
        &json!({"status": {
            "observedGeneration": 1, "conditions": [{"type": "Ready", "status": "False", "reason": "GitOperationFailed",
                "message": "couldn't find remote ref v9", "observedGeneration": 1}],
        }}),
    );
    leaf.step();
    assert_eq!(leaf.states()["a"], SyncState::Failed);
    assert_eq!(
        leaf.world.before["a"].reason.as_deref(),
        Some("GitOperationFailed")
    );
    assert_eq!(leaf.world.kustomizations, before);
}

/// What Flux was seen to say, and what that is.
#[test]
fn states_are_what_flux_means() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    let since = leaf.world.before["a"].since.clone();
    leaf.now += jiff::SignedDuration::from_mins(10);
    // It looks again at every interval.
    leaf.say("berlin-a", "Unknown", "Progressing", None);
    leaf.step();
    assert_eq!(leaf.states()["a"], SyncState::Succeeded);
    assert_eq!(leaf.world.before["a"].since, since, "nothing has happened");
    // After a failure the observed generation stays old.
    leaf.set(&[sync("a", "v2", &none)]);
    leaf.step();
    leaf.fetch();
    leaf.step();
    leaf.say("berlin-a", "False", "HealthCheckFailed", Some(1));
    leaf.step();
    assert_eq!(leaf.states()["a"], SyncState::Failed);
    leaf.say("berlin-a", "Unknown", "Progressing", Some(1));
    leaf.step();
    assert_eq!(leaf.states()["a"], SyncState::Failed, "it only tries again");
    for (status, reason, observed, expected) in [
        ("False", "ReconciliationFailed", None, SyncState::Failed),
        ("False", "BuildFailed", None, SyncState::Failed),
        ("False", "DependencyNotReady", None, SyncState::Updating),
        ("False", "ArtifactFailed", None, SyncState::Updating),
        (
            "True",
            "ReconciliationSucceeded",
            Some(1),
            SyncState::Updating,
        ),
        (
            "True",
            "ReconciliationSucceeded",
            None,
            SyncState::Succeeded,
        ),
    ] {
        leaf.say("berlin-a", status, reason, observed);
        leaf.step();
        assert_eq!(leaf.states()["a"], expected, "{status} {reason}");
    }
}

/// Flux works on one attempt at a time, and what it says at its end has the generation that the object has then.
#[test]
fn a_failure_of_the_version_before_is_none_of_this_one() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    let old = leaf.world.kustomizations["berlin-a"].status.applied.clone();
    let old = old.unwrap();
    leaf.set(&[sync("a", "v2", &none)]);
    leaf.step();
    leaf.fetch();
    leaf.step();
    for reason in ["HealthCheckFailed", "ReconciliationFailed", "BuildFailed"] {
        leaf.say_of("berlin-a", &old, ("False", reason), Some(1));
        leaf.step();
        assert_eq!(leaf.states()["a"], SyncState::Updating, "{reason}");
    }
    leaf.say("berlin-a", "False", "HealthCheckFailed", Some(1));
    leaf.step();
    assert_eq!(leaf.states()["a"], SyncState::Failed);
}

/// Flux has one word for a source that is not there yet and for a folder that never will be.
#[test]
fn a_folder_that_is_not_there_is_a_failure() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    for (is_retrying, expected) in [(false, SyncState::Updating), (true, SyncState::Failed)] {
        leaf.say("berlin-a", "False", "ArtifactFailed", None);
        let seen = leaf.world.kustomizations.get_mut("berlin-a").unwrap();
        seen.status.is_retrying = is_retrying;
        leaf.step();
        assert_eq!(leaf.states()["a"], expected);
    }
}

#[test]
fn a_condition_about_an_older_generation_says_nothing() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    leaf.set(&[sync("a", "v2", &none)]);
    leaf.step();
    leaf.fetch();
    // Switched, and what Flux says is still of the version before.
    leaf.step();
    leaf.step();
    assert_eq!(leaf.states()["a"], SyncState::Updating);
}

#[test]
fn a_kustomization_of_somebody_else_is_left_alone() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    let theirs = KustomizationSeen::default();
    leaf.world
        .kustomizations
        .insert("berlin-a".to_owned(), theirs.clone());
    leaf.step();
    leaf.fetch();
    let decision = leaf.step();
    assert!(decision.delete_kustomizations.is_empty());
    assert_eq!(leaf.world.kustomizations["berlin-a"], theirs);
    assert_eq!(
        leaf.world.before["a"].reason.as_deref(),
        Some("OwnedByOther")
    );
}

#[test]
fn a_source_that_another_assemblage_wants_stays() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    let shared: BTreeSet<String> = leaf.world.sources.keys().cloned().collect();
    leaf.set(&[]);
    leaf.world.wanted_by_others.clone_from(&shared);
    leaf.step();
    assert!(leaf.step().delete_sources.is_empty());
    leaf.world.wanted_by_others.clear();
    assert_eq!(leaf.step().delete_sources.len(), shared.len());
}
