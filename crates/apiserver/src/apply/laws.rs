//! What holds for all sets, values and owners.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

use super::compare::compare;
use super::fields::field_set;
use super::merge::merge;
use super::owners::Owners;
use super::step::{Item, Step, same};
use super::tests::widget;
use super::*;

fn any_step() -> impl Strategy<Value = Step> {
    let scalar = prop_oneof![
        (0..3i64).prop_map(Value::from),
        "[a<\"é]{0,2}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(json!(1.5)),
    ];
    prop_oneof![
        "[ab.:]{0,2}".prop_map(Step::Field),
        btree_map("[kl]", scalar.clone().prop_map(Item), 1..3)
            .prop_map(|keys| Step::Key(keys.into_iter().collect())),
        scalar.prop_map(|value| Step::Value(Item(value))),
        (0..3i64).prop_map(Step::Index),
    ]
}

fn any_set() -> impl Strategy<Value = Set> {
    vec(vec(any_step(), 1..4), 0..8).prop_map(|paths| {
        let mut set = Set::default();
        for path in paths {
            set.insert(&path);
        }
        set
    })
}

fn word() -> impl Strategy<Value = Value> {
    select(vec!["x", "y", "z"]).prop_map(Value::from)
}

fn words() -> impl Strategy<Value = Value> {
    subsequence(vec!["x", "y", "z"], 0..3).prop_map(Value::from)
}

fn texts() -> impl Strategy<Value = Value> {
    btree_map("[ab]", word(), 0..3).prop_map(|map| json!(map))
}

fn items() -> impl Strategy<Value = Value> {
    let port = (select(vec![9, 80]), select(vec!["TCP", "UDP"]), word());
    let ports = btree_map(0..4u8, port, 0..3).prop_map(|ports| {
        let mut seen = std::collections::BTreeMap::new();
        for (port, protocol, name) in ports.into_values() {
            let item = json!({ "port": port, "protocol": protocol, "name": name });
            seen.insert((port, protocol), item);
        }
        json!(seen.into_values().collect::<Vec<_>>())
    });
    let item = (word(), words(), proptest::option::of(ports));
    btree_map("[abc]", item, 0..3).prop_map(|items| {
        let items: Vec<Value> = items
            .into_iter()
            .map(|(name, (value, tags, ports))| {
                let mut item = json!({ "name": name, "value": value, "tags": tags });
                if let Some(ports) = ports {
                    value::put(&mut item, "ports", ports);
                }
                item
            })
            .collect();
        json!(items)
    })
}

/// Some of the fields of a widget's spec.
fn any_spec() -> impl Strategy<Value = Map<String, Value>> {
    let fields = vec![
        ("name", word().boxed()),
        ("replicas", (0..3i64).prop_map(Value::from).boxed()),
        ("labels", texts().boxed()),
        ("atomicMap", texts().boxed()),
        (
            "deep",
            btree_map("[ab]", texts(), 0..2)
                .prop_map(|m| json!(m))
                .boxed(),
        ),
        ("items", items().boxed()),
        ("names", words().boxed()),
        ("plain", words().boxed()),
        ("any", texts().boxed()),
    ];
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, strategy)| {
            proptest::option::of(strategy).prop_map(move |value| Some((name.to_owned(), value?)))
        })
        .collect();
    fields.prop_map(|fields| fields.into_iter().flatten().collect())
}

fn config(spec: &Map<String, Value>) -> Value {
    json!({
        "apiVersion": "applyx.dev/v1", "kind": "Widget", "metadata": { "name": "w" },
        "spec": spec,
    })
}

fn owner(manager: &str, operation: Operation) -> Owner<'_> {
    Owner {
        manager,
        operation,
        api_version: "applyx.dev/v1",
        subresource: "",
        now: Timestamp::from_second(1_800_000_000).unwrap(),
    }
}

fn applied(live: Option<&Value>, spec: &Map<String, Value>, manager: &str) -> Value {
    let owner = owner(manager, Operation::Apply);
    apply(&widget(), live, &config(spec), &owner, true, &[]).unwrap()
}

fn fields_of(object: &Value) -> Set {
    let mut object = object.clone();
    value::take(&mut object, "metadata");
    field_set(Place::root(&widget()), &object)
}

/// Lists by key in the order of their keys, so that objects can be compared regardless of order.
fn in_order(object: &Value) -> Value {
    let mut object = object.clone();
    let sort = |items: &mut [Value]| items.sort_by_key(ToString::to_string);
    for item in value::items_mut(&mut object, "spec.items") {
        sort(value::items_mut(item, "tags"));
        sort(value::items_mut(item, "ports"));
    }
    sort(value::items_mut(&mut object, "spec.items"));
    sort(value::items_mut(&mut object, "spec.names"));
    object
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_are_sets(a in any_set(), b in any_set(), c in any_set()) {
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.is_within(&b), a.difference(&b).is_empty());
        prop_assert!(a.is_within(&a.union(&b)));
        prop_assert_eq!(a.outside(&b).difference(&a.difference(&b)), Set::default());
        for path in a.paths() {
            prop_assert!(a.has(&path));
            let below = (1..=path.len()).any(|n| b.has(&path[..n]));
            prop_assert_eq!(a.outside(&b).has(&path), !below);
        }
    }

    #[test]
    fn sets_survive_their_wire_form(a in any_set()) {
        let wire = a.encode();
        prop_assert_eq!(Set::decode(&wire).unwrap(), a);
        prop_assert_eq!(Set::decode(&wire).unwrap().encode(), wire);
    }

    #[test]
    fn comparing_backwards_swaps_added_and_removed(a in any_spec(), b in any_spec()) {
        let schema = widget();
        let place = Place::root(&schema);
        let (a, b) = (config(&a), config(&b));
        let (there, back) = (compare(place, &a, &b), compare(place, &b, &a));
        prop_assert_eq!(&there.added, &back.removed);
        prop_assert_eq!(&there.removed, &back.added);
        prop_assert_eq!(&there.modified, &back.modified);
        prop_assert_eq!(compare(place, &a, &a), compare::Comparison::default());
    }

    #[test]
    fn applying_twice_changes_nothing(a in any_spec(), b in any_spec()) {
        let live = applied(None, &a, "a");
        let once = applied(Some(&live), &b, "b");
        prop_assert_eq!(applied(Some(&once), &b, "b"), once);
    }

    /// So it is not pruned then.
    #[test]
    fn nothing_goes_when_all_that_was_applied_is_applied_again(a in any_spec(), b in any_spec(), c in any_spec()) {
        let live = applied(Some(&applied(None, &a, "a")), &b, "b");
        let is_empty = b.is_empty();
        let more: Map<String, Value> = c.into_iter().chain(b).collect();
        let mut owners = Owners::decode(&live).unwrap();
        let (live, more) = (without_entries(&live), config(&more));
        let schema = widget();
        let place = Place::root(&schema);
        let merged = merge(place, &live, &more);
        let claimed = Entry {
            api_version: "applyx.dev/v1".to_owned(),
            time: None,
            fields: field_set(place, &more),
        };
        let owner = owner("b", Operation::Apply);
        let identity = Identity::of(&owner, owner.manager, Operation::Apply);
        let last = owners.0.insert(identity, claimed.clone());
        let last = last.map(|last| last.fields).unwrap_or_default();
        // An object without anything in it is owned as a whole, and one with something in it is not.
        prop_assert!(last.is_within(&claimed.fields) || is_empty);
        let ground = Ground { place, reset: &Set::default(), others: &[] };
        if last.is_within(&claimed.fields) {
            prop_assert_eq!(ground.prune(&merged, &owners, &last), merged);
        }
    }

    #[test]
    fn what_is_applied_is_there_and_owned(a in any_spec(), b in any_spec()) {
        let live = applied(Some(&applied(None, &a, "a")), &b, "b");
        let claimed = fields_of(&config(&b));
        let owners = Owners::decode(&live).unwrap();
        let owned = owners.0.iter().find(|(identity, _)| identity.manager == "b");
        let owned = owned.map(|(_, entry)| entry.fields.clone()).unwrap_or_default();
        let server = Set::of_paths(["apiVersion", "kind"]);
        prop_assert_eq!(claimed.difference(&server).difference(&owned), Set::default());
        let schema = widget();
        let changes = compare(Place::root(&schema), &config(&b), &live);
        prop_assert_eq!(changes.modified.intersection(&claimed), Set::default());
    }

    #[test]
    fn ownership_is_never_lost(a in any_spec(), b in any_spec(), c in any_spec()) {
        let before = applied(Some(&applied(None, &a, "a")), &b, "b");
        let mut after = before.clone();
        value::put(&mut after, "spec", Value::Object(c));
        track_update(&widget(), Some(&before), &mut after, &owner("u", Operation::Update), &[]);
        let schema = widget();
        let changes = compare(Place::root(&schema), &before, &after);
        let had = Owners::decode(&before).unwrap().all_fields();
        let has = Owners::decode(&after).unwrap().all_fields();
        let spec = Set::of_paths(["metadata"]);
        prop_assert_eq!(had.difference(&changes.removed).difference(&has), Set::default());
        prop_assert_eq!(changes.added.outside(&spec).difference(&has), Set::default());
    }

    #[test]
    fn disjoint_owners_commute(spec in any_spec(), mask in any::<u16>()) {
        // An object of which nobody owns anything is one that nobody recorded: both own something from the start.
        let (mut a, mut b) = (Map::new(), Map::new());
        a.insert("on".to_owned(), true.into());
        b.insert("ratio".to_owned(), 1.5.into());
        for (i, (name, value)) in spec.into_iter().enumerate() {
            let part = if mask >> i & 1 == 0 { &mut a } else { &mut b };
            part.insert(name, value);
        }
        let ab = applied(Some(&applied(None, &a, "a")), &b, "b");
        let ba = applied(Some(&applied(None, &b, "b")), &a, "a");
        prop_assert!(same(&in_order(&ab)["spec"], &in_order(&ba)["spec"]));
        let fields = |object: &Value| -> Vec<Set> {
            Owners::decode(object).unwrap().0.into_values().map(|entry| entry.fields).collect()
        };
        prop_assert_eq!(fields(&ab), fields(&ba));
    }

    #[test]
    fn what_only_one_applied_goes_when_it_stops(a in any_spec(), b in any_spec()) {
        let alone = applied(None, &a, "a");
        let both = applied(Some(&alone), &b, "b");
        let back = applied(Some(&both), &Map::new(), "b");
        let added = fields_of(&both).difference(&fields_of(&alone));
        prop_assert_eq!(fields_of(&back).intersection(&added), Set::default());
    }
}
