//! Server-side apply: the laws of ownership, read off what clients see.

mod owned;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use slipway_apiserver::apply::{self, Operation, Owner, apply, track_update};
use slipway_apiserver::crd;
use slipway_apiserver::schema::Schema;
use slipway_apiserver::status::Outcome;

use self::owned::{Paths, exists, is_below, owned_by, owned_by_all, text_of};
use super::{law, told};
use crate::fuzz::corpus::corpus;
use crate::fuzz::generate::{any_json, damage, disturb, has_twins, size, thinned};
use crate::fuzz::tape::Tape;

/// A kind, and what to begin with.
struct Ground {
    schema: &'static Schema,
    api_version: String,
    kind: String,
    seed: Value,
}

/// Custom resources with one field for each way in which things merge.
fn widget() -> &'static Schema {
    static WIDGET: LazyLock<Schema> = LazyLock::new(|| {
        let text = json!({"type": "string"});
        let texts = json!({"type": "object", "additionalProperties": text});
        let set = |items: Value| json!({"type": "array", "x-kubernetes-list-type": "set", "items": items});
        let port = json!({"type": "object", "properties": {
            "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": text}});
        let item = json!({"type": "object", "properties": {"name": text, "value": text, "tags": set(text.clone()), "ports": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": port}}});
        let mut atomic = texts.clone();
        atomic["x-kubernetes-map-type"] = json!("atomic");
        crd::build::schema(Some(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "name": text, "replicas": {"type": "integer"}, "on": {"type": "boolean"}, "size": {"x-kubernetes-int-or-string": true},
                "labels": texts, "atomicMap": atomic, "deep": {"type": "object", "additionalProperties": texts},
                "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item},
                "names": set(text.clone()), "nums": set(json!({"type": "integer"})),
                "plain": {"type": "array", "items": text}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}}}),
        ))
    });
    &WIDGET
}

fn widget_seed() -> Value {
    json!({"apiVersion": "fuzz.dev/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"a": "1", "b": "2"}}, "spec": {
        "name": "x", "replicas": 1, "on": true, "size": "10%", "labels": {"a": "1", "b": "2"}, "atomicMap": {"a": "1", "b": "2"},
        "deep": {"a": {"x": "1", "y": "2"}, "b": {"x": "1"}},
        "items": [
            {"name": "a", "value": "1", "tags": ["x", "y"], "ports": [{"port": 80, "protocol": "TCP", "name": "http"}, {"port": 80, "protocol": "UDP"}]},
            {"name": "b", "value": "2", "tags": ["z"]}, {"name": "c"}],
        "names": ["x", "y", "z"], "nums": [1, 2], "plain": ["x", "y"], "any": {"a": {"b": [1, {"c": 2}]}},
    }})
}

fn ground(tape: &mut Tape<'_>) -> Ground {
    let custom = || Ground {
        schema: widget(),
        api_version: "fuzz.dev/v1".to_owned(),
        kind: "Widget".to_owned(),
        seed: widget_seed(),
    };
    if !tape.once_in(3) {
        return custom();
    }
    let object = tape.pick_ref(&corpus().objects);
    if size(&object.value) > 150 {
        return custom();
    }
    let resource = &corpus().resources[object.resource];
    let mut seed = object.value.clone();
    if let Some(metadata) = seed["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    Ground {
        schema: &resource.version(&object.version).unwrap().schema,
        api_version: resource.api_version(&object.version),
        kind: resource.names.kind.clone(),
        seed,
    }
}

impl Ground {
    /// A configuration: some of the seed, with other values here and there.
    fn config(&self, tape: &mut Tape<'_>, most: usize) -> Value {
        let mut config = thinned(tape, &self.seed);
        for _ in 0..tape.below(4) {
            revalue(tape, &mut config["spec"]);
        }
        disturb(tape, &mut config, most);
        if !config.is_object() {
            config = json!({});
        }
        config["apiVersion"] = json!(self.api_version);
        config["kind"] = json!(self.kind);
        config
    }

    fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
    ) -> Outcome<Value> {
        apply(
            self.schema,
            live,
            config,
            &self.owner(manager, Operation::Apply),
            force,
            &[],
        )
    }

    fn owner<'a>(&'a self, manager: &'a str, operation: Operation) -> Owner<'a> {
        Owner {
            manager,
            operation,
            api_version: &self.api_version,
            subresource: "",
            now: Timestamp::constant(1_800_000_000, 0),
        }
    }
}

/// Gives a leaf another value of its type.
fn revalue(tape: &mut Tape<'_>, value: &mut Value) {
    let here = crate::fuzz::generate::part(tape, value);
    match here {
        Value::String(text) => tape.pick(&["x", "y", "z", "a", "b"]).clone_into(text),
        Value::Number(_) => *here = json!(tape.below(3)),
        Value::Bool(on) => *on = !*on,
        _ => {}
    }
}

/// Applies for three managers, one after the other, and asks after each step what the laws say.
fn laws(tape: &mut Tape<'_>) {
    let ground = ground(tape);
    let [a, b, c] =
        [0, 1, 2].map(|most| with_contents(ground.config(tape, most)).unwrap_or_default());
    told(|| format!("a {a}\n  b {b}\n  c {c}"));
    let Ok(alone) = ground.apply(None, &a, "a", false) else {
        return;
    };
    if owned_by_all(&alone).is_empty() {
        // An object of which nobody owns anything is one that nobody recorded.
        return;
    }
    assert_eq!(
        ground.apply(Some(&alone), &a, "a", false).as_ref(),
        Ok(&alone),
        "applying twice changes nothing"
    );
    let Some(both) = second(&ground, &alone, &b) else {
        return;
    };
    law();
    let twice = ground.apply(Some(&both), &b, "b", false);
    assert_eq!(
        twice.as_ref(),
        Ok(&both),
        "applying twice changes nothing, beside another"
    );
    withdraw(&ground, &both);
    nothing(&ground, &both);
    update(&ground, &both, &c);
}

pub(super) fn owners(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    if tape.once_in(4) {
        commute(tape);
    } else {
        laws(tape);
    }
}

/// Without what is null or empty: that is neither there nor gone, and who takes the last thing out of a map takes the
/// map, whoever sent it empty.
fn with_contents(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(map) => {
            let kept: Map<String, Value> = map
                .into_iter()
                .filter_map(|(k, v)| Some((k, with_contents(v)?)))
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let kept: Vec<Value> = items.into_iter().filter_map(with_contents).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        other => Some(other),
    }
}

/// The second manager's apply: conflicts are exactly what force takes away.
fn second(ground: &Ground, alone: &Value, b: &Value) -> Option<Value> {
    let before = owned_by(alone, "a");
    let lost =
        |after: &Value| -> Paths { before.difference(&owned_by(after, "a")).cloned().collect() };
    match ground.apply(Some(alone), b, "b", false) {
        Ok(both) => {
            assert!(
                lost(&both).is_empty(),
                "ownership is lost without a conflict: {:?}",
                lost(&both)
            );
            let forced = ground.apply(Some(alone), b, "b", true);
            assert_eq!(
                forced.as_ref(),
                Ok(&both),
                "force changes nothing where nothing conflicts"
            );
            Some(both)
        }
        Err(status) if status.code == 409 => {
            let causes = status.details.unwrap().causes;
            let conflicts: BTreeSet<String> = causes.into_iter().map(|cause| cause.field).collect();
            let forced = ground.apply(Some(alone), b, "b", true).unwrap();
            let lost: BTreeSet<String> = lost(&forced).iter().map(|path| text_of(path)).collect();
            // What was in a field goes with it.
            let is_inside = |path: &str| {
                conflicts.iter().any(|above| {
                    let rest = path.strip_prefix(above.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                })
            };
            assert!(
                conflicts.is_subset(&lost),
                "force leaves some of {conflicts:?}: {lost:?}"
            );
            assert!(
                lost.iter().all(|path| is_inside(path)),
                "force takes more than {conflicts:?}: {lost:?}"
            );
            Some(forced)
        }
        Err(status) => {
            let text = &status.message;
            assert!(
                status.code == 400 || text.contains("failed to create typed"),
                "{status:?}"
            );
            None
        }
    }
}

/// When a manager applies nothing any more, what it alone owned is gone, and nobody else loses anything.
fn withdraw(ground: &Ground, both: &Value) {
    let mut bare = json!({"apiVersion": ground.api_version, "kind": ground.kind});
    if let Some(name) = both.pointer("/metadata/name") {
        bare["metadata"]["name"] = name.clone();
    }
    let left = ground.apply(Some(both), &bare, "b", true).unwrap();
    let (ours, theirs) = (owned_by(both, "b"), owned_by(both, "a"));
    // A field that nobody has declared is owned beside what is in it.
    let is_filled = |path: &[String]| {
        ours.iter()
            .any(|below| below.len() > path.len() && is_below(below, path))
    };
    let kept = owned_by(&left, "a");
    for path in theirs.iter().filter(|path| !is_filled(path)) {
        assert!(
            kept.contains(path),
            "{} is taken from the other one",
            text_of(path)
        );
        assert!(
            exists(&left, path) || !exists(both, path),
            "{} is gone though it is owned",
            text_of(path)
        );
    }
    for path in &ours {
        let is_shared = theirs.iter().any(|other| is_below(other, path));
        let is_named = path.first().is_some_and(|step| step == "f:metadata");
        if !is_shared && !is_named {
            assert!(
                !exists(&left, path),
                "{} stays though nobody owns it",
                text_of(path)
            );
        }
    }
}

/// An update that changes nothing changes nothing.
fn nothing(ground: &Ground, both: &Value) {
    let mut same = both.clone();
    track_update(
        ground.schema,
        Some(both),
        &mut same,
        &ground.owner("u", Operation::Update),
        &[],
    );
    assert_eq!(&same, both, "an update that changes nothing");
}

/// An update by somebody else: what is there stays owned by somebody.
fn update(ground: &Ground, both: &Value, c: &Value) {
    let mut new = both.clone();
    for field in ["spec", "data"] {
        if let Some(value) = c.get(field) {
            new[field] = value.clone();
        }
    }
    track_update(
        ground.schema,
        Some(both),
        &mut new,
        &ground.owner("u", Operation::Update),
        &[],
    );
    if new.pointer("/metadata/managedFields").is_none() || has_twins(&new, false) {
        // It does not fit the schema, which the caller would have noticed before. Twins are owned as one.
        return;
    }
    let after = owned_by_all(&new);
    for path in owned_by_all(both) {
        assert!(
            after.contains(&path) || !exists(&new, &path),
            "{} is there and nobody's",
            text_of(&path)
        );
    }
    let mut again = new.clone();
    track_update(
        ground.schema,
        Some(&new),
        &mut again,
        &ground.owner("v", Operation::Update),
        &[],
    );
    assert_eq!(
        again, new,
        "an update that changes nothing, after one that does"
    );
}

/// Two managers with nothing in common: who is first does not matter.
fn commute(tape: &mut Tape<'_>) {
    let ground = Ground {
        schema: widget(),
        api_version: "fuzz.dev/v1".to_owned(),
        kind: "Widget".to_owned(),
        seed: widget_seed(),
    };
    let whole = thinned(tape, &ground.seed);
    let (mut a, mut b) = split(tape, &whole, "");
    for (config, label) in [(&mut a, "of-a"), (&mut b, "of-b")] {
        config["apiVersion"] = json!(ground.api_version);
        config["kind"] = json!(ground.kind);
        // An object of which nobody owns anything is one that nobody recorded: both own something from the start.
        config["metadata"] = json!({"name": "w", "labels": {label: "x"}});
    }
    told(|| format!("a {a}\n  b {b}"));
    let after = |live: Option<&Value>, config: &Value, manager: &str| {
        ground
            .apply(live, config, manager, false)
            .map_err(|s| s.message)
    };
    let Ok(first) = after(None, &a, "a") else {
        return;
    };
    law();
    let ab = after(Some(&first), &b, "b").unwrap();
    let ba = after(Some(&after(None, &b, "b").unwrap()), &a, "a").unwrap();
    assert_eq!(in_order(&ab), in_order(&ba), "who is first does not matter");
}

/// Each leaf, and each item of a list that has no names in it, goes to one of two.
fn split(tape: &mut Tape<'_>, value: &Value, name: &str) -> (Value, Value) {
    match value {
        Value::Object(map) if !matches!(name, "atomicMap" | "any") => {
            let (mut a, mut b) = (Map::new(), Map::new());
            for (name, value) in map {
                match value {
                    Value::Object(_) | Value::Array(_) => {
                        let (left, right) = split(tape, value, name);
                        for (to, part) in [(&mut a, left), (&mut b, right)] {
                            let is_empty = part.as_array().is_some_and(Vec::is_empty)
                                || part.as_object().is_some_and(Map::is_empty)
                                || part.is_null();
                            if !is_empty {
                                to.insert(name.clone(), part);
                            }
                        }
                    }
                    leaf if tape.once_in(2) => drop(a.insert(name.clone(), leaf.clone())),
                    leaf => drop(b.insert(name.clone(), leaf.clone())),
                }
            }
            (Value::Object(a), Value::Object(b))
        }
        Value::Array(items) if matches!(name, "items" | "ports" | "names" | "nums" | "tags") => {
            let (a, b): (Vec<Value>, Vec<Value>) =
                items.iter().cloned().partition(|_| tape.once_in(2));
            (Value::from(a), Value::from(b))
        }
        whole if tape.once_in(2) => (whole.clone(), Value::Null),
        whole => (Value::Null, whole.clone()),
    }
}

/// Lists in the order of their texts: the order of sets and maps depends on who came first.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), in_order(value)))
                .collect(),
        ),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(in_order).collect();
            items.sort_by_key(ToString::to_string);
            Value::from(items)
        }
        other => other.clone(),
    }
}

/// Entries that somebody made up: refused, or taken and read again.
pub(super) fn managed_fields(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let ground = ground(tape);
    let config = ground.config(tape, 0);
    let Ok(mut live) = ground.apply(None, &config, "a", false) else {
        return;
    };
    let Some(entries) = live.pointer_mut("/metadata/managedFields") else {
        return;
    };
    if tape.once_in(3) {
        let mut text = entries.to_string().into_bytes();
        let tokens = [
            "f:",
            "k:{}",
            "v:",
            "i:",
            ".",
            "\"f:a\":{},",
            "{",
            "}",
            "\"v:1\":{}",
            "\"k:{\\\"name\\\":\\\"a\\\"}\":{}",
            "Update",
            "-1",
        ];
        damage(tape, &mut text, &tokens, 4);
        *entries = serde_json::from_slice(&text).unwrap_or_default();
    } else {
        disturb(tape, entries, 5);
    }
    told(|| format!("{live}"));
    let _ = apply::validate_managed_fields(&live);
    let other = with_contents(ground.config(tape, 0)).unwrap_or_default();
    let applied = ground.apply(Some(&live), &other, "b", true);
    let mut updated = other.clone();
    track_update(
        ground.schema,
        Some(&live),
        &mut updated,
        &ground.owner("u", Operation::Update),
        &[],
    );
    let mut sent = live.clone();
    sent["spec"] = any_json(tape, 3);
    track_update(
        ground.schema,
        Some(&live),
        &mut sent,
        &ground.owner("u", Operation::Update),
        &[],
    );
    match applied {
        Err(status) => assert!(matches!(status.code, 400 | 409 | 500), "{status:?}"),
        Ok(object) if owned_by_all(&object).is_empty() => {}
        Ok(object) => {
            // Who disowns the key of an item loses the item, so that a second apply may change something. But it is
            // read, and so are the entries.
            law();
            assert!(ground.apply(Some(&object), &other, "b", true).is_ok());
            let mut same = object.clone();
            track_update(
                ground.schema,
                Some(&object),
                &mut same,
                &ground.owner("u", Operation::Update),
                &[],
            );
            assert_eq!(same, object, "an update that changes nothing");
        }
    }
}
