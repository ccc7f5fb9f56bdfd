#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use serde_json::json;

use super::*;
use crate::identity::kinds;
use crate::interest::Interest;

#[derive(Debug, PartialEq)]
struct Colour(String);

impl Projection for Colour {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        match object.pointer("/spec/colour").and_then(Value::as_str) {
            Some("panic") => panic!("a defect"),
            Some(colour) => Ok(Self(colour.to_owned())),
            None => Err(Undecodable {
                field: "spec.colour".to_owned(),
                problem: "is missing".to_owned(),
            }),
        }
    }
}

fn object(name: &str, version: u64, colour: &str) -> Value {
    json!({
        "metadata": {"namespace": "n", "name": name, "uid": "u", "resourceVersion": version.to_string(), "generation": 1},
        "spec": {"colour": colour},
    })
}

fn by_colour(seen: &Seen) -> Vec<String> {
    let body = seen.body.as_ref().ok();
    let colour = body.and_then(|body| body.downcast_ref::<Colour>());
    colour.map(|colour| colour.0.clone()).into_iter().collect()
}

fn stores() -> (Stores, StoreKey) {
    let mut stores = Stores::default();
    let interest =
        Interest::of::<Colour>(kinds::POD, |_, _, _| Vec::new()).indexed("colour", by_colour);
    let key = stores.open(&ClusterId::local(), &interest);
    (stores, key)
}

fn names(stores: &Stores, colour: &str) -> Vec<String> {
    let (home, pods) = (ClusterId::local(), kinds::POD);
    let found = stores.indexed::<Colour>(&home, &pods, "colour", colour);
    let found: Vec<String> = found.map(|entry| entry.meta.name.clone()).collect();
    let count = stores.count_indexed::<Colour>(&home, &pods, "colour", colour);
    assert_eq!(count, found.len());
    found
}

fn colour(stores: &Stores, name: &str) -> Option<String> {
    let found = stores.get::<Colour>(&ClusterId::local(), &kinds::POD, "n", name);
    found.map(|entry| entry.body.0.clone())
}

#[test]
fn a_late_event_does_not_hide_a_newer_one() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    assert_eq!(store.observe(&object("a", 5, "red")), Change::Changed);
    assert_eq!(store.observe(&object("a", 7, "blue")), Change::Changed);
    assert_eq!(store.observe(&object("a", 6, "green")), Change::None);
    assert_eq!(store.observe(&object("a", 7, "blue")), Change::None);
    assert_eq!(store.version(), 7);
    assert_eq!(colour(&stores, "a").as_deref(), Some("blue"));
    assert_eq!(names(&stores, "blue"), ["a"]);
    assert!(names(&stores, "red").is_empty());
}

#[test]
fn what_was_deleted_does_not_come_back_with_a_late_event_but_a_new_one_does() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    store.observe(&object("a", 5, "red"));
    assert_eq!(
        store.observe_deletion(&object("a", 8, "red")),
        Change::Changed
    );
    assert_eq!(store.observe(&object("a", 6, "red")), Change::None);
    assert_eq!(store.observe(&object("a", 9, "blue")), Change::Changed);
    assert_eq!(store.observe_deletion(&object("a", 8, "red")), Change::None);
    assert_eq!(store.len(), 1);
    assert_eq!(store.observe_absence("n", "a", "other"), Change::None);
    assert_eq!(store.observe_absence("n", "a", "u"), Change::Changed);
    assert_eq!(store.observe(&object("a", 9, "blue")), Change::None);
    assert!(names(&stores, "blue").is_empty());
}

#[test]
fn the_memory_of_deleted_objects_is_bounded() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    for n in 0..3_000 {
        store.observe_deletion(&object(&n.to_string(), n + 1, "red"));
        store.observe_deletion(&object(&n.to_string(), n + 2, "red"));
    }
    assert_eq!(
        (store.gone.len(), store.gone_order.len()),
        (MAX_GONE, MAX_GONE)
    );
    assert_eq!(
        store.observe(&object("2999", 2_900, "red")),
        Change::None,
        "the newest are kept"
    );
    assert_eq!(store.observe(&object("1", 2, "red")), Change::Changed);
}

#[test]
fn a_list_removes_what_is_not_in_it_unless_it_is_newer() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    for (name, version) in [("a", 3), ("b", 4), ("c", 20)] {
        store.observe(&object(name, version, "red"));
    }
    let changed = store.observe_list(&[object("a", 3, "red"), object("d", 9, "blue")], "10");
    assert_eq!(
        changed,
        [
            ("n".to_owned(), "b".to_owned()),
            ("n".to_owned(), "d".to_owned())
        ]
    );
    assert!(store.is_synced());
    assert_eq!(
        store
            .objects()
            .map(|seen| seen.meta.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "c", "d"]
    );
    assert_eq!(names(&stores, "red"), ["a", "c"]);
}

#[test]
fn a_list_of_one_namespace_leaves_the_others_alone_and_keeps_what_we_wrote_meanwhile() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    store.observe(&object("a", 3, "red"));
    store.observe(&object("ours", 4, "red"));
    let mut elsewhere = object("a", 5, "red");
    elsewhere["metadata"]["namespace"] = json!("m");
    store.observe(&elsewhere);
    let kept = BTreeSet::from([("n".to_owned(), "ours".to_owned())]);
    let changed = store.retain_listed("n", &BTreeSet::new(), &kept);
    assert_eq!(changed.len(), 1);
    assert_eq!(
        (changed[0].name.as_str(), changed[0].uid.as_str()),
        ("a", "u"),
        "as it was"
    );
    assert_eq!(store.len(), 2);
    assert!(!store.is_synced(), "one part is not all");
}

#[test]
fn a_projection_that_fails_or_panics_is_about_one_object() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    store.observe(&object("a", 1, "red"));
    store.observe(&object("b", 2, "panic"));
    store.observe(&json!({"metadata": {"namespace": "n", "name": "c", "resourceVersion": "3"}}));
    let bad: Vec<String> = stores
        .undecodable::<Colour>(&ClusterId::local(), &kinds::POD)
        .map(|(meta, why)| format!("{}: {}", meta.name, why.field))
        .collect();
    assert_eq!(bad, ["b: object", "c: spec.colour"]);
    assert_eq!(colour(&stores, "a").as_deref(), Some("red"));
}

#[test]
fn a_clone_is_a_snapshot() {
    let (mut stores, key) = stores();
    stores
        .store_mut(&key)
        .unwrap()
        .observe(&object("a", 1, "red"));
    let snapshot = stores.clone();
    stores
        .store_mut(&key)
        .unwrap()
        .observe(&object("a", 2, "blue"));
    assert_eq!(colour(&snapshot, "a").as_deref(), Some("red"));
    assert_eq!(colour(&stores, "a").as_deref(), Some("blue"));
}

#[test]
fn an_index_that_comes_later_knows_what_was_there_before() {
    let (mut stores, key) = stores();
    stores
        .store_mut(&key)
        .unwrap()
        .observe(&object("a", 1, "red"));
    let by_length = |seen: &Seen| {
        by_colour(seen)
            .iter()
            .map(|c| c.len().to_string())
            .collect()
    };
    let other =
        Interest::of::<Colour>(kinds::POD, |_, _, _| Vec::new()).indexed("length", by_length);
    assert_eq!(stores.open(&ClusterId::local(), &other), key);
    let found = stores.indexed::<Colour>(&ClusterId::local(), &kinds::POD, "length", "3");
    assert_eq!(found.count(), 1);
    assert_eq!(names(&stores, "red"), ["a"]);
}

#[test]
fn a_mark_changes_with_what_people_change_not_with_status() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    store.observe(&object("a", 1, "red"));
    let before = store.mark("n", "a").unwrap();
    let mut later = object("a", 2, "red");
    later["status"] = json!({"ready": 1});
    store.observe(&later);
    assert_eq!(store.mark("n", "a"), Some(before));
    later["metadata"]["resourceVersion"] = json!("3");
    later["metadata"]["labels"] = json!({"x": "y"});
    store.observe(&later);
    assert_ne!(store.mark("n", "a"), Some(before));
    assert_eq!(store.mark("n", "b"), None);
}

#[derive(Debug, PartialEq)]
struct Owners(usize);

impl Projection for Owners {
    const READS: Parts = Parts::NONE.and(crate::parts::Part::ManagedFields);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let fields = object.pointer("/metadata/managedFields");
        Ok(Self(fields.and_then(Value::as_array).map_or(0, Vec::len)))
    }
}

#[derive(Debug, PartialEq)]
struct Careless(usize);

impl Projection for Careless {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Owners::project(object).map(|Owners(found)| Self(found))
    }
}

#[test]
fn a_projection_is_given_the_large_parts_that_it_declares_and_no_others() {
    let mut stores = Stores::default();
    let cluster = ClusterId::local();
    let mut owned = object("a", 1, "red");
    owned["metadata"]["managedFields"] = json!([{"manager": "x"}, {"manager": "y"}]);
    let declared = Interest::of::<Owners>(kinds::POD, |_, _, _| Vec::new());
    let undeclared = Interest::of::<Careless>(kinds::POD, |_, _, _| Vec::new());
    for interest in [&declared, &undeclared] {
        let key = stores.open(&cluster, interest);
        stores.store_mut(&key).unwrap().observe(&owned);
    }
    let seen = stores.get::<Owners>(&cluster, &kinds::POD, "n", "a");
    assert_eq!(seen.unwrap().body, &Owners(2));
    let seen = stores.get::<Careless>(&cluster, &kinds::POD, "n", "a");
    assert_eq!(seen.unwrap().body, &Careless(0));
}

#[test]
fn after_a_restore_the_newest_version_is_that_of_what_is_there_and_what_was_deleted_may_come_back()
{
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    store.observe(&object("a", 3, "red"));
    store.observe(&object("late", 90, "red"));
    store.observe_deletion(&object("deleted", 91, "red"));
    let listed = BTreeSet::from([("n".to_owned(), "a".to_owned())]);
    store.retain_listed("", &listed, &BTreeSet::new());
    store.rebase();
    assert_eq!(store.version(), 3);
    let back = store.observe(&object("deleted", 5, "red"));
    assert_eq!(back, Change::Changed);
}

#[test]
fn what_is_listed_after_a_restore_counts_also_where_it_has_the_version_that_was_known() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    store.observe(&object("same", 5, "red"));
    store.observe(&object("older", 90, "red"));
    store.observe_deletion(&object("back", 91, "red"));
    assert!(!store.is_past("n", "same", "5"));
    assert!(store.is_past("n", "older", "89"));
    assert!(store.is_past("n", "back", "91"));
    for (name, version) in [("same", 5), ("older", 4), ("back", 3)] {
        store.observe_restored(&object(name, version, "blue"));
    }
    assert_eq!(names(&stores, "blue"), ["back", "older", "same"]);
    assert_eq!(names(&stores, "red"), [""; 0]);
}

#[test]
fn a_late_answer_does_not_bring_back_what_a_list_did_not_have() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    store.observe(&object("a", 3, "red"));
    let gone = store.retain_listed("n", &BTreeSet::new(), &BTreeSet::new());
    assert_eq!(gone.len(), 1);
    assert_eq!(store.observe(&object("a", 3, "red")), Change::None);
    assert_eq!(store.observe(&object("a", 4, "red")), Change::Changed);
}

#[test]
fn what_could_not_be_seen_for_a_while_comes_back_as_it_was() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    store.observe(&object("a", 3, "red"));
    assert_eq!(store.forget_extent("n").len(), 1);
    assert!(store.is_empty());
    let (change, is_older) = store.observe_listed(&object("a", 3, "red"));
    assert_eq!((change, is_older), (Change::Changed, false));
}

fn interest() -> Interest {
    Interest::of::<Colour>(kinds::POD, |_, _, _| Vec::new())
}

#[test]
fn what_is_of_one_cluster_goes_with_it_and_what_is_in_a_slot_is_apart() {
    let (here, there) = (ClusterId::local(), ClusterId::remote("b"));
    let mut stores = Stores::default();
    let red = interest().labelled("color=red").in_slot("red");
    for cluster in [&here, &there] {
        for interest in [interest(), red.clone()] {
            let key = stores.open(cluster, &interest);
            let store = stores.store_mut(&key).unwrap();
            store.observe(&object("a", 1, "red"));
        }
    }
    assert_eq!(stores.of_kind(&there, &kinds::POD).count(), 2);
    assert_eq!(stores.of_kind(&there, &kinds::SECRET).count(), 0);
    assert!(stores.slot::<Colour>(&there, &kinds::POD, "red").is_some());
    assert!(stores.slot::<Colour>(&there, &kinds::POD, "blue").is_none());
    let snapshot = stores.clone();
    stores.close(&red.store(&there));
    assert!(stores.slot::<Colour>(&there, &kinds::POD, "red").is_none());
    assert!(stores.typed::<Colour>(&there, &kinds::POD).is_some());
    stores.drop_cluster(&there);
    assert_eq!(stores.clusters().collect::<Vec<_>>(), [&here]);
    assert_eq!(stores.iter().count(), 2);
    assert_eq!(snapshot.iter().count(), 4, "a snapshot stays as it is");
    assert_eq!(snapshot.only(&there).iter().count(), 2);
}

#[test]
fn what_cannot_be_understood_is_counted_as_it_comes_and_goes() {
    let (mut stores, key) = stores();
    let store = stores.store_mut(&key).unwrap();
    let bad = |version: &str| json!({"metadata": {"namespace": "n", "name": "x", "resourceVersion": version}});
    store.observe(&bad("1"));
    let is_bad = |store: &Store| store.objects().filter(|seen| seen.body.is_err()).count();
    assert_eq!(store.undecodable(), is_bad(store));
    store.observe(&object("x", 2, "red"));
    assert_eq!(store.undecodable(), 0);
    store.observe(&bad("3"));
    store.observe_deletion(&bad("4"));
    assert_eq!(store.undecodable(), 0);
}
