//! What has been applied: nothing that goes wrong elsewhere makes it less applied, and nobody else's source takes its place.

use serde_json::{Value, json};
use slipway_api::fleet::assemblage::SyncState;
use slipway_api::foreign::git_repository::GitRepositoryStatus;
use slipway_api::foreign::kustomization::KustomizationStatus;
use slipway_bindings::{Found, Known, Read, Reference};
use slipway_fleet::specialise::substitutions;
use slipway_fleet::{kinds as fleet, naming};
use slipway_kernel::{Kind, ObjectRef};

use crate::expansion::{Leaf, kinds, sync};

/// It cannot be fetched again; what was fetched before is kept.
fn failed(before: &GitRepositoryStatus) -> GitRepositoryStatus {
    GitRepositoryStatus::of(&json!({"status": {
        "observedGeneration": 1, "artifact": {"revision": before.revision},
        "conditions": [{"type": "Ready", "status": "False", "reason": "GitOperationFailed",
            "message": "connection refused", "observedGeneration": 1}],
    }}))
}

/// The git server is away, or the source controller begins anew: what is applied stays applied, and nobody is told anything.
#[test]
fn an_outage_of_git_is_none_of_what_is_applied() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    let before = leaf.world.before.clone();
    leaf.now += jiff::SignedDuration::from_mins(10);
    for is_lost in [false, true] {
        let source = leaf.world.sources.values_mut().next().unwrap();
        source.status = if is_lost {
            GitRepositoryStatus::default()
        } else {
            failed(&source.status)
        };
        let decision = leaf.step();
        assert!(decision.apply.is_empty(), "{decision:#?}");
        assert_eq!(leaf.world.before, before);
    }
    // Even if it is gone: then it is made again.
    leaf.world.sources.clear();
    assert_eq!(kinds(&leaf.step()), ["GitRepository"]);
    assert_eq!(leaf.world.before, before);
}

/// Whoever can write sources makes one by the name of ours, or edits one.
#[test]
fn a_source_that_is_not_what_its_name_says_is_put_right_and_never_followed() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.step();
    leaf.fetch();
    let name = leaf.world.sources.keys().next().unwrap().clone();
    let forged = |leaf: &mut Leaf| {
        let source = leaf.world.sources.get_mut(&name).unwrap();
        source.spec.url = "https://example.org/evil.git".to_owned();
    };
    forged(&mut leaf);
    let decision = slipway_fleet::assemblage::decide(&leaf.world, leaf.now);
    assert_eq!(kinds(&decision), ["GitRepository"]);
    assert_eq!(
        decision.apply[0].body["spec"]["url"],
        "https://example.com/a.git"
    );
    assert!(decision.apply[0].force);
    leaf.world.sources.clear();
    leaf.settle();
    assert_eq!(leaf.states()["a"], SyncState::Succeeded);
    forged(&mut leaf);
    let decision = slipway_fleet::assemblage::decide(&leaf.world, leaf.now);
    assert_eq!(kinds(&decision), ["GitRepository"]);
    assert_eq!(decision.syncs[0].state, SyncState::Updating);
}

/// A policy, or a controller, says something else of what is fetched, and says it again: nobody fights.
#[test]
fn a_source_that_somebody_else_writes_is_put_right_once() {
    let none = json!({});
    for otherwise in [
        json!({"url": "https://mirror.example.org/a.git"}),
        json!({"ref": {"tag": "v9"}}),
        json!({"url": "https://mirror.example.org/a.git", "interval": "30m"}),
    ] {
        let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
        leaf.settle();
        let name = name_of_source(&leaf);
        let patch = json!({ "spec": otherwise });
        leaf.tamper("GitRepository", &name, &patch);
        let decision = slipway_fleet::assemblage::decide(&leaf.world, leaf.now);
        assert_eq!(kinds(&decision), ["GitRepository"], "{otherwise}");
        let right = decision.apply[0].body.clone();
        leaf.tamper("GitRepository", &name, &right);
        assert_eq!(kinds(&leaf.step()), [""; 0]);
        assert_eq!(leaf.states()["a"], SyncState::Succeeded, "{otherwise}");
        leaf.tamper("GitRepository", &name, &patch);
        let left = leaf.step();
        assert!(left.mend.is_empty() && left.apply.is_empty(), "{left:#?}");
        let told = &leaf.world.before["a"];
        assert_eq!(
            (told.state, told.reason.as_deref()),
            (SyncState::Blocked, Some("OwnedByOther"))
        );
    }
    // How often it is looked at changes nothing of what is fetched.
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    let name = name_of_source(&leaf);
    leaf.tamper(
        "GitRepository",
        &name,
        &json!({"spec": {"interval": "30m"}}),
    );
    let quiet = leaf.step();
    assert!(
        quiet.mend.is_empty() && quiet.apply.is_empty(),
        "{quiet:#?}"
    );
    assert_eq!(leaf.states()["a"], SyncState::Succeeded);
}

/// A sync whose values are out of a Secret.
fn secretive(leaf: &mut Leaf, host: &str) {
    let bound = json!({
        "bindings": [
            {"name": "PASS", "objectFieldRef": {"kind": "Secret", "name": "s", "path": "/data/p"}},
            {"name": "DB", "objectFieldRef": {"kind": "ConfigMap", "name": "m", "path": "/data/db"}},
        ],
        "package": {"kustomize": {"substitute": {"URL": "pg://app:$(PASS)@$(DB)"}}},
    });
    let object = |kind: &str, name: &str, data: Value| {
        let reference = Reference::Object {
            api_version: None,
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        let whole = json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"uid": name, "resourceVersion": "1"}, "data": data,
        });
        (reference, Read::Found(Found::new(whole)))
    };
    let known = Known::from([
        object("Secret", "s", json!({"p": "aHVudGVyMg=="})),
        object("ConfigMap", "m", json!({"db": host})),
    ]);
    let one = sync("a", "v1", &bound);
    let values = substitutions(&one, &known);
    leaf.world.syncs = vec![(one, values)];
}

/// Flux says what it was refused, and that has the values in it.
#[test]
fn what_flux_says_of_a_sync_with_secret_values_is_not_repeated() {
    let mut leaf = Leaf::new(&[]);
    secretive(&mut leaf, "db");
    leaf.settle();
    leaf.step();
    leaf.settle();
    assert_eq!(leaf.states()["a"], SyncState::Succeeded);
    let quote =
        "Deployment.apps \"a\" is invalid: spec.replicas: Invalid value: \"pg://app:hunter2@db\"";
    for status in ["False", "Unknown"] {
        let seen = leaf.world.kustomizations.get_mut("berlin-a").unwrap();
        let attempted = seen.status.attempted.clone();
        seen.status = KustomizationStatus::of(&json!({"status": {
            "observedGeneration": seen.generation, "lastAppliedRevision": attempted, "lastAttemptedRevision": attempted,
            "conditions": [{"type": "Ready", "status": status, "reason": "ReconciliationFailed", "message": quote,
                "observedGeneration": seen.generation}],
        }}));
        leaf.step();
        let told = &leaf.world.before["a"];
        assert_eq!(told.state, SyncState::Failed);
        assert_eq!(told.reason.as_deref(), Some("ReconciliationFailed"));
        assert!(!format!("{told:?}").contains("hunter2"), "{told:?}");
        assert!(told.message.as_ref().unwrap().contains("Kustomization"));
    }
}

/// What is around a secret value is part of what is written.
#[test]
fn another_host_beside_the_same_password_is_another_secret() {
    let mut leaf = Leaf::new(&[]);
    secretive(&mut leaf, "old");
    leaf.step();
    leaf.fetch();
    leaf.step();
    let before = leaf.world.kustomizations["berlin-a"].spec.clone();
    secretive(&mut leaf, "new");
    let made = leaf.step();
    assert_eq!(kinds(&made)[0], "Secret");
    leaf.step();
    let after = &leaf.world.kustomizations["berlin-a"].spec;
    assert_ne!(&before, after, "Flux goes on with the old host");
}

/// It is deselected and selected again while Flux takes it away.
#[test]
fn a_kustomization_that_is_going_is_not_ready() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    let seen = leaf.world.kustomizations.get_mut("berlin-a").unwrap();
    seen.is_deleting = true;
    let decision = leaf.step();
    assert_eq!(leaf.states()["a"], SyncState::Updating);
    assert!(decision.apply.is_empty(), "{decision:#?}");
    leaf.world.kustomizations.clear();
    assert_eq!(kinds(&leaf.step()), ["Kustomization"]);
}

/// Somebody suspended it: that is theirs to end, and is said.
#[test]
fn a_suspended_kustomization_says_so_when_something_is_to_be_applied() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    let suspend = |leaf: &mut Leaf| {
        let seen = leaf.world.kustomizations.get_mut("berlin-a").unwrap();
        seen.is_suspended = true;
    };
    suspend(&mut leaf);
    leaf.step();
    assert_eq!(
        leaf.states()["a"],
        SyncState::Succeeded,
        "nothing is to be applied"
    );
    leaf.set(&[sync("a", "v2", &none)]);
    leaf.step();
    leaf.fetch();
    leaf.step();
    suspend(&mut leaf);
    leaf.step();
    let told = &leaf.world.before["a"];
    assert_eq!(
        (told.state, told.reason.as_deref()),
        (SyncState::Blocked, Some("Suspended"))
    );
    let name = naming::source(leaf.world.syncs[0].0.source.as_ref().unwrap());
    assert_eq!(
        leaf.world.kustomizations["berlin-a"].spec.source_ref.name,
        name
    );
}

fn name_of_source(leaf: &Leaf) -> String {
    leaf.world.sources.keys().next().unwrap().clone()
}

/// Flux prefers some of these to the tag, and others change what is fetched: each is taken out once. Whoever puts it in again is left
/// alone and told of, and what is not what its name says is not ready.
#[test]
fn what_others_add_to_a_source_is_taken_out_once() {
    let none = json!({});
    for added in [
        json!({"ref": {"commit": "0badc0de"}}),
        json!({"ref": {"name": "refs/heads/evil"}}),
        json!({"ref": {"semver": ">1"}}),
        json!({"ref": {"branch": "main"}}),
        json!({"include": [{"repository": {"name": "evil"}}]}),
        json!({"ignore": "*"}),
        json!({"sparseCheckout": ["one"]}),
        json!({"secretRef": {"name": "theirs"}}),
        json!({"recurseSubmodules": true}),
    ] {
        let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
        leaf.settle();
        let name = name_of_source(&leaf);
        let patch = json!({ "spec": added });
        leaf.tamper("GitRepository", &name, &patch);
        let mended = leaf.step();
        assert_eq!(leaf.states()["a"], SyncState::Updating, "{added}");
        assert_eq!((mended.mend.len(), mended.apply.len()), (1, 0), "{added}");
        let quiet = leaf.step();
        assert!(
            quiet.mend.is_empty() && quiet.apply.is_empty(),
            "{quiet:#?}"
        );
        assert_eq!(leaf.states()["a"], SyncState::Succeeded, "{added}");
        // Somebody insists.
        leaf.tamper("GitRepository", &name, &patch);
        let left = leaf.step();
        assert!(left.mend.is_empty() && left.apply.is_empty(), "{left:#?}");
        let told = &leaf.world.before["a"];
        assert_eq!(told.state, SyncState::Blocked);
        assert_eq!(told.reason.as_deref(), Some("OwnedByOther"));
    }
    // What changes nothing of what is fetched is everybody's.
    let mut leaf = Leaf::new(&[sync("a", "v1", &none)]);
    leaf.settle();
    let name = name_of_source(&leaf);
    let theirs = json!({"spec": {"timeout": "60s", "recurseSubmodules": false, "ignore": ""}});
    leaf.tamper("GitRepository", &name, &theirs);
    let quiet = leaf.step();
    assert!(
        quiet.mend.is_empty() && quiet.apply.is_empty(),
        "{quiet:#?}"
    );
    assert_eq!(leaf.states()["a"], SyncState::Succeeded);
}

/// Policies add a service account, and people variables of the cluster: that is theirs.
#[test]
fn what_others_add_to_a_kustomization_is_theirs() {
    let valued = json!({"package": {"kustomize": {"substitute": {"A": "1"}}}});
    let mut leaf = Leaf::new(&[sync("a", "v1", &valued)]);
    leaf.settle();
    for added in [
        json!({"serviceAccountName": "flux"}),
        json!({"postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-vars"}]}}),
        json!({"postBuild": {"substitute": {"B": "2"}}}),
        json!({"patches": [{"patch": "[]"}]}),
    ] {
        leaf.tamper("Kustomization", "berlin-a", &json!({ "spec": added }));
        let quiet = leaf.step();
        assert!(quiet.apply.is_empty(), "{added}: {quiet:#?}");
        assert_eq!(leaf.states()["a"], SyncState::Succeeded, "{added}");
    }
    // What we say ourselves is put right once.
    let patch = json!({"spec": {"path": "elsewhere"}});
    leaf.tamper("Kustomization", "berlin-a", &patch);
    assert_eq!(kinds(&leaf.step()), ["Kustomization"]);
    leaf.say("berlin-a", "True", "ReconciliationSucceeded", None);
    assert_eq!(kinds(&leaf.step()), [""; 0]);
    assert_eq!(leaf.states()["a"], SyncState::Succeeded);
    leaf.tamper("Kustomization", "berlin-a", &patch);
    assert_eq!(kinds(&leaf.step()), [""; 0]);
    let told = &leaf.world.before["a"];
    assert_eq!(
        (told.state, told.reason.as_deref()),
        (SyncState::Blocked, Some("OwnedByOther"))
    );
    // A value that is not wanted any more goes, also beside theirs.
    let fewer = json!({"revision": "a-v1", "package": {"kustomize": {"substitute": {"C": "1"}}}});
    leaf.set(&[sync("a", "v1", &fewer)]);
    assert_eq!(kinds(&leaf.step()), ["Kustomization"]);
}

/// What the API refuses is told on the sync that waits for it, with what the API says.
#[test]
fn what_the_api_refuses_is_told() {
    let none = json!({});
    let mut leaf = Leaf::new(&[sync("a", "v1", &none), sync("b", "v1", &none)]);
    let refuse = |leaf: &mut Leaf, kind: Kind, name: &str| {
        let object = ObjectRef::local(kind, "fleet", name);
        leaf.world.refusals = [(object, "spec.url in body should match".to_owned())].into();
    };
    let source = naming::source(leaf.world.syncs[0].0.source.as_ref().unwrap());
    refuse(&mut leaf, fleet::GIT_REPOSITORY, &source);
    let decision = slipway_fleet::assemblage::decide(&leaf.world, leaf.now);
    assert_eq!(decision.apply.len(), 2, "it is tried again in its time");
    let told = &decision.syncs[0];
    assert_eq!(
        (told.state, told.reason.as_deref()),
        (SyncState::Blocked, Some("RefusedByApi"))
    );
    assert!(told.message.as_ref().unwrap().contains("should match"));
    assert_eq!(decision.syncs[1].state, SyncState::Updating, "nobody else");
    leaf.world.refusals.clear();
    leaf.step();
    leaf.fetch();
    refuse(&mut leaf, fleet::KUSTOMIZATION, "berlin-b");
    let decision = slipway_fleet::assemblage::decide(&leaf.world, leaf.now);
    let states: Vec<SyncState> = decision.syncs.iter().map(|told| told.state).collect();
    assert_eq!(states, [SyncState::Updating, SyncState::Blocked]);
    // What is applied stays applied.
    leaf.world.refusals.clear();
    leaf.settle();
    refuse(&mut leaf, fleet::GIT_REPOSITORY, &source);
    leaf.world.sources.clear();
    leaf.step();
    assert_eq!(leaf.states()["a"], SyncState::Succeeded);
    // Secret values may be in what it says.
    let mut leaf = Leaf::new(&[]);
    secretive(&mut leaf, "db");
    leaf.step();
    leaf.fetch();
    let decision = slipway_fleet::assemblage::decide(&leaf.world, leaf.now);
    assert_eq!(kinds(&decision), ["Kustomization"]);
    refuse(&mut leaf, fleet::KUSTOMIZATION, "berlin-a");
    leaf.step();
    let told = &leaf.world.before["a"];
    assert_eq!(told.reason.as_deref(), Some("RefusedByApi"));
    assert!(!told.message.as_ref().unwrap().contains("should match"));
}
