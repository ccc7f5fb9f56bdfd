//! A `RemoteAssemblage` and the Assemblage in its cluster.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_api::fleet::assemblage::{AssemblageStatus, SyncState, SyncStatus};
use slipway_api::fleet::sync::NamedSync;
use slipway_bindings::{Given, Known};
use slipway_fleet::remote::fill::fill;
use slipway_fleet::remote::{Decision, Leaf, World, decide, decide_writes, unreadable};
use slipway_fleet::specialise::Specialised;

use crate::stage::noon;

fn sync(whole: Value) -> NamedSync {
    serde_json::from_value(whole).unwrap()
}

pub(crate) fn plain(name: &str, tag: &str) -> NamedSync {
    sync(json!({
        "name": name, "revision": tag,
        "source": {"git": {"url": "https://example.com/a.git", "version": {"tag": tag}}},
    }))
}

pub(crate) fn world(syncs: &[NamedSync]) -> World {
    World {
        namespace: "fleet".to_owned(),
        name: "berlin".to_owned(),
        uid: "one".to_owned(),
        hub: "hub".to_owned(),
        syncs: syncs.iter().map(|sync| (sync.into(), None)).collect(),
        is_reachable: true,
        ..World::default()
    }
}

/// At home it is told first which syncs there are.
pub(crate) fn remember(world: &mut World) {
    let known = |world: &World, name: &str| world.before.syncs.iter().any(|one| one.name == name);
    let names: Vec<String> = world
        .syncs
        .iter()
        .map(|(one, _)| one.name().to_owned())
        .collect();
    for name in names {
        if !known(world, &name) {
            world.before.syncs.push(SyncStatus {
                name,
                ..SyncStatus::default()
            });
        }
    }
}

/// Whoever writes into the cluster decides as whoever tells of it, without knowing what the cluster tells, nor what was told here but of
/// which syncs.
fn agrees(world: &World, decision: &Decision) {
    let mut untold = world.clone();
    if let Some(leaf) = &mut untold.leaf {
        leaf.status = AssemblageStatus::default();
    }
    let named = world.before.syncs.iter().map(|told| SyncStatus {
        name: told.name.clone(),
        ..SyncStatus::default()
    });
    untold.before = AssemblageStatus {
        syncs: named.collect(),
        ..AssemblageStatus::default()
    };
    let writes = decide_writes(&untold);
    let told = Decision {
        followed: decision.followed.clone(),
        syncs: decision.syncs.clone(),
        summary: decision.summary.clone(),
        look_at: decision.look_at,
        ..writes
    };
    assert_eq!(told, *decision);
}

/// Plans, and carries it out.
pub(crate) fn step(world: &mut World) -> Decision {
    remember(world);
    let decision = decide(world, noon());
    agrees(world, &decision);
    let made = decision.make.iter().map(|made| made.object.name.clone());
    let written: Vec<String> = decision.copy.iter().cloned().chain(made).collect();
    world.copied.extend(written.iter().cloned());
    world.own.extend(written);
    let applied = decision.apply.as_ref().map(|applied| &applied.body);
    if let Some(body) = applied.or(decision.take_away.as_ref()) {
        let before = world.leaf.take().unwrap_or_default();
        world.leaf = Some(Leaf {
            status: before.status,
            generation: before.generation + 1,
            ..Leaf::of(body)
        });
    }
    let is_kept = |name: &String| !decision.delete_secrets.contains(name);
    world.copied.retain(is_kept);
    world.own.retain(is_kept);
    world.before.syncs.clone_from(&decision.syncs);
    decision
}

pub(crate) fn report(leaf: &mut Leaf, name: &str, state: SyncState) {
    let revision = leaf
        .syncs
        .iter()
        .find(|sync| sync.name() == name)
        .unwrap()
        .revision()
        .map(str::to_owned);
    leaf.status.observed_generation = Some(leaf.generation);
    leaf.status.syncs.retain(|known| known.name != name);
    leaf.status.syncs.push(SyncStatus {
        name: name.to_owned(),
        observed_revision: revision,
        observed_sync: leaf.hash_of(name).map(str::to_owned),
        state,
        ..SyncStatus::default()
    });
}

pub(crate) fn states(decision: &Decision) -> BTreeMap<&str, SyncState> {
    decision
        .syncs
        .iter()
        .map(|sync| (sync.name.as_str(), sync.state))
        .collect()
}

#[test]
fn all_syncs_are_written_together_and_once() {
    let mut world = world(&[plain("a", "v1"), plain("b", "v1")]);
    let first = step(&mut world);
    assert_eq!(first.apply.unwrap().object.name, "berlin");
    assert_eq!(
        world.leaf.as_ref().unwrap().syncs,
        [plain("a", "v1"), plain("b", "v1")]
    );
    assert_eq!(
        step(&mut world).apply,
        None,
        "nothing is written when nothing is to be done"
    );
    world.syncs[0].0 = plain("a", "v2").into();
    assert!(step(&mut world).apply.is_some());
    // One that is gone is taken away, which only the hash can tell.
    world.syncs.remove(1);
    assert!(step(&mut world).take_away.is_some());
    assert_eq!(world.leaf.as_ref().unwrap().syncs, [plain("a", "v2")]);
    assert_eq!(step(&mut world).apply, None);
}

#[test]
fn what_the_cluster_tells_is_of_a_revision() {
    let mut world = world(&[plain("a", "v1")]);
    step(&mut world);
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Succeeded);
    assert_eq!(states(&step(&mut world))["a"], SyncState::Succeeded);
    world.syncs[0].0 = plain("a", "v2").into();
    let changed = step(&mut world);
    assert_eq!(
        states(&changed)["a"],
        SyncState::Updating,
        "that was of the version before"
    );
    assert_eq!((changed.summary.total, changed.summary.updating), (1, 1));
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Failed);
    assert_eq!(step(&mut world).summary.failed, 1);
}

#[test]
fn a_cluster_that_cannot_be_reached_is_not_written_to_and_what_was_known_stays() {
    let mut world = world(&[plain("a", "v1")]);
    step(&mut world);
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Succeeded);
    let before = step(&mut world);
    world.is_reachable = false;
    let lost = step(&mut world);
    assert_eq!(lost.syncs, before.syncs);
    world.syncs[0].0 = plain("a", "v2").into();
    let lost = step(&mut world);
    assert_eq!(
        (lost.apply.is_none(), states(&lost)["a"]),
        (true, SyncState::Updating)
    );
}

fn module(tag: &str) -> Value {
    json!({"spec": {
        "controlPlaneBindings": [{"name": "C", "value": "$(CLUSTER_NAME)"}],
        "sync": {"source": {"git": {"url": "https://example.com/a.git", "version": {"tag": tag}}}},
    }})
}

fn filled(
    sync: &NamedSync,
    module: Option<&Value>,
) -> Specialised<slipway_fleet::specialise::Assigned> {
    let given = Given::cluster("fleet", "berlin", &BTreeMap::new(), &BTreeMap::new());
    let reference = sync.module.clone().unwrap();
    fill("berlin", sync, &reference, module, &given, &Known::new())
}

/// A third party names a module's revision, and no more.
#[test]
fn a_reference_is_filled_in_on_the_way_and_never_here() {
    let entry = sync(json!({"name": "a", "module": {"name": "m"}}));
    let one = filled(&entry, Some(&module("v1")));
    let mut world = world(&[]);
    world.syncs = vec![(entry.clone().into(), Some(one))];
    let decision = step(&mut world);
    let there = world.leaf.as_ref().unwrap().syncs[0].read();
    assert_eq!(
        there.source.as_ref().unwrap().git.version.tag.as_deref(),
        Some("v1")
    );
    assert_eq!(
        serde_json::to_value(&there.bindings).unwrap(),
        json!([{"name": "C", "value": "berlin"}])
    );
    assert_eq!(
        (there.module.clone(), there.assigned_by.clone()),
        (None, None)
    );
    assert_eq!(decision.syncs[0].observed_revision, there.revision);
    assert_eq!(world.syncs[0].0, entry);
    // The module goes: what was applied stays, and it is told.
    world.syncs[0].1 = Some(filled(&entry, None));
    let gone = step(&mut world);
    assert_eq!(gone.apply, None);
    assert_eq!(states(&gone)["a"], SyncState::Blocked);
    assert_eq!(gone.syncs[0].reason.as_deref(), Some("RevisionGone"));
}

#[test]
fn a_module_of_another_revision_is_not_taken() {
    let entry = sync(json!({"name": "a", "module": {"name": "m", "revision": "0000000000"}}));
    let told = filled(&entry, Some(&module("v1")));
    assert!(
        matches!(
            told,
            Specialised::Blocked {
                reason: "RevisionGone",
                ..
            }
        ),
        "{told:?}"
    );
}

#[test]
fn secrets_are_copied_before_and_collected_after() {
    let with = |secret: &str| {
        let mut one = plain("a", secret);
        one.bindings = serde_json::from_value(json!([
            {"name": "P", "objectFieldRef": {"apiVersion": "v1", "kind": "Secret", "name": secret, "fieldPath": "/data/P"}},
            {"name": "L", "objectFieldRef": {"kind": "Secret", "name": "of-the-cluster-itself", "fieldPath": "/data/P"}},
        ]))
        .unwrap();
        one
    };
    let mut world = world(&[with("s1")]);
    world.secrets.extend(["s1".to_owned(), "s2".to_owned()]);
    let first = step(&mut world);
    assert_eq!(
        (first.copy, first.apply.is_none()),
        (vec!["s1".to_owned()], true)
    );
    assert!(step(&mut world).apply.is_some());
    world.syncs[0].0 = with("s2").into();
    assert_eq!(step(&mut world).copy, ["s2"]);
    let switch = step(&mut world);
    assert!(switch.apply.is_some() && switch.delete_secrets.is_empty());
    assert_eq!(step(&mut world).delete_secrets, ["s1"]);
    let quiet = step(&mut world);
    assert!(quiet.copy.is_empty() && quiet.apply.is_none() && quiet.delete_secrets.is_empty());
}

/// Several assemblages may be for one cluster, and the cluster may be the control plane itself, in which the originals are.
#[test]
fn secrets_of_others_are_neither_copied_again_nor_deleted() {
    let mut world = world(&[plain("a", "v1")]);
    world.secrets.insert("s1".to_owned());
    world.copied.extend(["s1".to_owned(), "theirs".to_owned()]);
    step(&mut world);
    let quiet = step(&mut world);
    assert!(
        quiet.delete_secrets.is_empty(),
        "{:?}",
        quiet.delete_secrets
    );
    let mut bound = plain("a", "v1");
    bound.bindings = serde_json::from_value(json!([
        {"name": "P", "objectFieldRef": {"apiVersion": "v1", "kind": "Secret", "name": "s1", "fieldPath": "/data/P"}},
    ]))
    .unwrap();
    world.syncs[0].0 = bound.into();
    assert!(step(&mut world).copy.is_empty(), "it is there already");
    world.syncs[0].0 = plain("a", "v1").into();
    step(&mut world);
    assert!(step(&mut world).delete_secrets.is_empty());
    assert_eq!(world.copied.len(), 2);
}

/// What a later version of ours wrote stays as it is, in what is asked for and in the cluster.
#[test]
fn a_sync_that_cannot_be_read_stays_as_it_was_and_is_told() {
    let odd = json!({"name": "b", "revision": "v9", "source": {"bucket": {"name": "later"}}});
    let error = serde_json::from_value::<NamedSync>(odd.clone()).unwrap_err();
    let (named, blocked) = unreadable(&odd, &error).unwrap();
    let mut world = world(&[plain("a", "v1")]);
    world.syncs.push((named.into(), Some(blocked)));
    world.leaf = Some(Leaf {
        syncs: vec![plain("a", "v0").into()],
        unread: vec![odd.clone()],
        ..Leaf::default()
    });
    let first = step(&mut world);
    let written = first.apply.unwrap().body["spec"]["syncs"].clone();
    assert_eq!(written[0]["revision"], "v1", "others go on");
    assert_eq!(written[1], odd);
    assert_eq!(first.syncs[1].reason.as_deref(), Some("SyncUnreadable"));
    let quiet = step(&mut world);
    assert_eq!(quiet.apply, None);
    // It is taken away: then it goes.
    world.syncs.pop();
    let gone = step(&mut world).take_away.unwrap()["spec"]["syncs"].clone();
    assert_eq!(gone.as_array().unwrap().len(), 1);
}

/// Whoever added a sync of theirs in the cluster keeps it when ours all go.
#[test]
fn it_is_known_whether_all_syncs_in_the_cluster_are_ours() {
    let mut world = world(&[plain("b", "v1"), plain("a", "v1")]);
    step(&mut world);
    let leaf = world.leaf.as_mut().unwrap();
    leaf.syncs.reverse();
    let leaf = world.leaf.clone();
    world.syncs.clear();
    let emptied = decide(&world, noon());
    assert!(
        emptied.take_away.is_some() && emptied.apply.is_none(),
        "the API has an order of its own"
    );
    world.leaf = leaf;
    world
        .leaf
        .as_mut()
        .unwrap()
        .syncs
        .push(plain("theirs", "v1").into());
    let emptied = decide(&world, noon());
    assert!(emptied.apply.is_some() && emptied.take_away.is_none());
}

/// What goes and what changes are two writes: what is taken away is written by a patch, which leaves no trace of who wrote the rest.
#[test]
fn what_goes_goes_before_the_rest_changes() {
    let mut world = world(&[plain("a", "v1"), plain("b", "v1")]);
    step(&mut world);
    set(&mut world, &[plain("a", "v2")]);
    assert!(step(&mut world).take_away.is_some());
    assert_eq!(world.leaf.as_ref().unwrap().syncs, [plain("a", "v1")]);
    assert!(step(&mut world).apply.is_some());
    assert_eq!(world.leaf.as_ref().unwrap().syncs, [plain("a", "v2")]);
    assert!(!step(&mut world).is_pending());
}

fn names(world: &World) -> Vec<String> {
    let syncs = &world.leaf.as_ref().unwrap().syncs;
    syncs.iter().map(|sync| sync.name().to_owned()).collect()
}

pub(crate) fn set(world: &mut World, syncs: &[NamedSync]) {
    world.syncs = syncs.iter().map(|sync| (sync.into(), None)).collect();
    world.generation += 1;
}

/// A cluster was forgotten and is known again, or its control plane was built anew: what it had stays until somebody gives it something
/// anew, or a person says that it may go.
#[test]
fn a_new_assemblage_takes_nothing_away_that_it_does_not_know() {
    let mut world = world(&[plain("a", "v1"), plain("b", "v1"), plain("c", "v1")]);
    step(&mut world);
    assert_eq!(names(&world), ["a", "b", "c"]);
    world.uid = "two".to_owned();
    set(&mut world, &[plain("a", "v1")]);
    let kept = step(&mut world).kept;
    assert_eq!(kept, ["b", "c"].map(str::to_owned).into());
    assert_eq!(names(&world), ["a", "b", "c"]);
    assert_eq!(step(&mut world).apply, None, "it rests");
    // Somebody assigns one of them again, and takes it away again.
    set(&mut world, &[plain("a", "v1"), plain("b", "v2")]);
    assert_eq!(step(&mut world).kept, ["c".to_owned()].into());
    set(&mut world, &[plain("b", "v2")]);
    step(&mut world);
    assert_eq!(
        names(&world),
        ["b", "c"],
        "from now on what is taken away goes"
    );
    // A person has not seen that many, and then has.
    world.may_unassign = 0;
    assert_eq!(step(&mut world).apply, None);
    world.may_unassign = 1;
    let cleared = step(&mut world);
    assert!(cleared.followed.is_empty(), "not before it is done");
    assert_eq!(names(&world), ["b"]);
    assert_eq!(
        step(&mut world).followed,
        ["fleet.squaremo.dev/confirm-unassign"]
    );
}

/// The control plane was put back to an earlier state: what was assigned since is in the clusters, and nobody knows it.
#[test]
fn an_assemblage_that_was_put_back_takes_nothing_away() {
    let mut world = world(&[plain("a", "v1")]);
    world.generation = 3;
    step(&mut world);
    set(&mut world, &[plain("a", "v1"), plain("b", "v1")]);
    step(&mut world);
    world.generation = 3;
    world.syncs.truncate(1);
    step(&mut world);
    assert_eq!(names(&world), ["a", "b"]);
    assert_eq!(step(&mut world).apply, None);
    // It goes on from there.
    set(&mut world, &[plain("a", "v2")]);
    step(&mut world);
    assert_eq!(names(&world), ["a", "b"]);
    let decision = step(&mut world);
    assert_eq!((decision.apply, decision.kept.len()), (None, 1));
}

/// It was put back, and changed as often since as it had been before: how often, says nothing of what.
#[test]
fn an_assemblage_that_was_put_back_and_changed_takes_nothing_away_that_it_has_forgotten() {
    let mut world = world(&[plain("a", "v1")]);
    world.generation = 3;
    step(&mut world);
    let earlier = world.before.clone();
    set(&mut world, &[plain("a", "v1"), plain("b", "v1")]);
    step(&mut world);
    world.generation = 3;
    world.before = earlier;
    // Nobody has reached the cluster meanwhile.
    set(&mut world, &[plain("a", "v2")]);
    let decision = step(&mut world);
    assert_eq!(decision.kept, ["b".to_owned()].into());
    assert_eq!(names(&world), ["a", "b"]);
    assert!(has(&world, "a", "v2"), "the rest goes on");
    assert_eq!(step(&mut world).apply, None, "it rests");
    // Somebody assigns it again: from then on it is taken away as any.
    set(&mut world, &[plain("a", "v2"), plain("b", "v1")]);
    assert!(step(&mut world).kept.is_empty());
    set(&mut world, &[plain("a", "v2")]);
    step(&mut world);
    assert_eq!(names(&world), ["a"]);
}

/// What is taken away is remembered until the cluster has been seen without it, however long that takes.
#[test]
fn what_was_taken_away_while_a_cluster_was_lost_goes_when_it_is_back() {
    let mut world = world(&[plain("a", "v1"), plain("b", "v1")]);
    step(&mut world);
    world.is_reachable = false;
    set(&mut world, &[plain("a", "v1")]);
    for _ in 0..3 {
        let decision = step(&mut world);
        let going = decision.syncs.iter().find(|one| one.name == "b").unwrap();
        assert_eq!(going.reason.as_deref(), Some("Unassigning"));
        assert_eq!(decision.summary.total, 2);
    }
    world.is_reachable = true;
    assert!(step(&mut world).take_away.is_some());
    assert_eq!(names(&world), ["a"]);
    let decision = step(&mut world);
    assert_eq!((decision.syncs.len(), decision.kept.len()), (1, 0));
}

/// The cluster may know of a sync only what is remembered here.
#[test]
fn a_sync_is_named_in_the_status_before_it_is_written() {
    let mut world = world(&[plain("a", "v1")]);
    let first = decide(&world, noon());
    assert!(!first.is_pending());
    assert_eq!(first.syncs.len(), 1);
    world.before.syncs = first.syncs;
    let second = decide(&world, noon());
    let body = second.apply.unwrap().body;
    assert_eq!(body["spec"]["syncs"].as_array().unwrap().len(), 1);
}

fn has(world: &World, name: &str, tag: &str) -> bool {
    let syncs = &world.leaf.as_ref().unwrap().syncs;
    syncs.contains(&plain(name, tag).into())
}

#[test]
fn another_control_planes_cluster_is_not_written_to_before_a_person_says_so() {
    let mut world = world(&[plain("a", "v1"), plain("b", "v1")]);
    step(&mut world);
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Succeeded);
    let theirs = world.leaf.clone();
    world.hub = "another".to_owned();
    world.uid = "two".to_owned();
    world.before = AssemblageStatus::default();
    set(&mut world, &[plain("a", "v1"), plain("mine", "v1")]);
    world.secrets.insert("s".to_owned());
    world.own.insert("unused".to_owned());
    let decision = step(&mut world);
    assert_eq!((decision.apply, decision.copy.len()), (None, 0));
    assert!(decision.delete_secrets.is_empty());
    assert_eq!(world.leaf, theirs);
    assert_eq!(
        decision.summary.succeeded, 0,
        "that is told to somebody else"
    );
    // The word is about another one.
    world.takes_over = Some("a third".to_owned());
    assert_eq!(step(&mut world).apply, None);
    world.takes_over = Some("hub".to_owned());
    assert!(step(&mut world).apply.is_some());
    assert_eq!(names(&world), ["a", "mine", "b"]);
    let decision = step(&mut world);
    assert_eq!(decision.apply, None);
    assert_eq!(decision.followed, ["fleet.squaremo.dev/take-over"]);
}

/// Third parties name revisions as they like, and people edit what is under one.
#[test]
fn a_word_for_a_revision_is_not_what_is_there() {
    let prod = |tag: &str| NamedSync {
        revision: Some("prod".to_owned()),
        ..plain("a", tag)
    };
    let mut world = world(&[prod("v1"), plain("b", "v1")]);
    step(&mut world);
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Succeeded);
    report(world.leaf.as_mut().unwrap(), "b", SyncState::Succeeded);
    assert_eq!(step(&mut world).summary.succeeded, 2);
    set(&mut world, &[prod("v2"), plain("b", "v1")]);
    // Before it is written, and after, until the cluster has seen exactly that; also if nobody looked in between.
    let before = world.before.clone();
    assert_eq!(states(&step(&mut world))["a"], SyncState::Updating);
    world.before = before;
    let written = step(&mut world);
    assert_eq!(states(&written)["a"], SyncState::Updating);
    assert_eq!(
        states(&written)["b"],
        SyncState::Succeeded,
        "that is as it was"
    );
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Succeeded);
    assert_eq!(step(&mut world).summary.succeeded, 2);
}

/// A version is taken back and comes again while the agent is away: what it said the first time is not said of the second.
#[test]
fn what_was_told_before_a_version_was_taken_back_does_not_count() {
    let mut world = world(&[plain("a", "v2")]);
    step(&mut world);
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Succeeded);
    step(&mut world);
    set(&mut world, &[plain("a", "v1")]);
    step(&mut world);
    step(&mut world);
    set(&mut world, &[plain("a", "v2")]);
    step(&mut world);
    assert_eq!(states(&step(&mut world))["a"], SyncState::Updating);
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Succeeded);
    assert_eq!(states(&step(&mut world))["a"], SyncState::Succeeded);
}

/// What the API of the cluster refuses is told on what waits for it.
#[test]
fn what_the_cluster_refuses_is_told() {
    let mut world = world(&[plain("a", "v1")]);
    step(&mut world);
    report(world.leaf.as_mut().unwrap(), "a", SyncState::Succeeded);
    step(&mut world);
    set(&mut world, &[plain("a", "v1"), plain("b", "v1")]);
    world.refused = Some("spec.syncs: too many".to_owned());
    remember(&mut world);
    let decision = decide(&world, noon());
    assert!(decision.is_pending());
    let told = states(&decision);
    assert_eq!(
        (told["a"], told["b"]),
        (SyncState::Succeeded, SyncState::Blocked)
    );
    assert_eq!(decision.syncs[1].reason.as_deref(), Some("RefusedByApi"));
    world.refused = None;
    assert_eq!(states(&step(&mut world))["b"], SyncState::Updating);
}
