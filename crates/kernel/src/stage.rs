//! A stage for plans: objects in memory, a clock that is set by hand, and just enough of an API to carry a plan out.
//!
//! For tests and previews. It keeps uids, versions, generations and merge patches as the API does. It has no controllers, no
//! admission and no conflicts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::action::{Action, copied};
use crate::blocker::Blocker;
use crate::capability::Controller;
use crate::event::Event;
use crate::fact::{Facts, Missing, Unseen};
use crate::fields::merge;
use crate::identity::{ClusterId, Key, ObjectRef};
use crate::interest::Interest;
use crate::plan::{Plan, Status, Step};
use crate::store::{Meta, StoreKey, Stores};

/// Objects, a clock, and a planner over them.
#[derive(Debug)]
pub struct Stage<C> {
    /// The planner.
    pub planner: C,
    /// What time it is.
    pub now: Timestamp,
    /// What is known besides the objects.
    pub facts: Facts,
    objects: BTreeMap<ObjectRef, Value>,
    /// Objects of kinds that the planner does not watch, or not yet.
    unwatched: Vec<Value>,
    version: u64,
}

impl<C: Controller> Stage<C> {
    /// An empty stage.
    pub fn new(planner: C, now: Timestamp) -> Self {
        Self {
            planner,
            now,
            facts: Facts::default(),
            objects: BTreeMap::new(),
            unwatched: Vec::new(),
            version: 0,
        }
    }

    /// A kind that the planner watches is not seen in a way of this name, as metrics have it: `watch pods`, …. Gives whether
    /// there is such a thing.
    pub fn lack(&mut self, name: &str) -> bool {
        let ways = [
            Unseen::Absent,
            Unseen::Forbidden,
            Unseen::OutOfSync,
            Unseen::Late,
        ];
        let interests = self.planner.interests().into_iter();
        let mut all = interests.chain(self.asked()).flat_map(|interest| {
            ways.map(|how| Missing::unseen(how, &ClusterId::local(), &interest.kind))
        });
        let meant = all.find(|missing| missing.to_string() == name);
        let is_known = meant.is_some();
        self.facts.missing.extend(meant);
        is_known
    }

    /// Puts an object there, or in the place of the one of its name. Objects of kinds that the planner does not
    /// watch are left out until it does.
    pub fn put(&mut self, object: Value) {
        self.keep(object);
        // What is watched may follow from what is there now.
        for object in std::mem::take(&mut self.unwatched) {
            self.keep(object);
        }
    }

    fn keep(&mut self, mut object: Value) {
        let Some(reference) = self.reference(&object) else {
            self.unwatched.push(object);
            return;
        };
        let before = self.objects.get(&reference);
        let generation = generation(before, &object);
        let uid = before.map_or_else(
            || format!("uid-{}-{}", reference.namespace, reference.name),
            |known| Meta::of(known).uid,
        );
        self.version += 1;
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        metadata.entry("uid").or_insert(Value::String(uid));
        metadata.insert("resourceVersion".into(), self.version.to_string().into());
        metadata.insert("generation".into(), generation.into());
        self.objects.insert(reference, object);
    }

    /// The object of this name.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects
            .iter()
            .find(|(of, _)| of.kind.kind == kind && of.namespace == namespace && of.name == name)
            .map(|(_, object)| object)
    }

    /// Takes an object away.
    pub fn delete(&mut self, kind: &str, namespace: &str, name: &str) {
        self.objects
            .retain(|of, _| of.kind.kind != kind || of.namespace != namespace || of.name != name);
    }

    /// Merges a patch into an object, as the API does.
    pub fn patch(&mut self, kind: &str, namespace: &str, name: &str, patch: &Value) {
        if let Some(mut object) = self.get(kind, namespace, name).cloned() {
            merge(&mut object, patch);
            self.put(object);
        }
    }

    /// What a replica would have in its stores after it has listed everything.
    pub fn stores(&self) -> Stores {
        let stores = self.listed(Stores::default(), &self.planner.interests());
        let asked = self.planner.interests_in(&stores, &ClusterId::local());
        self.listed(stores, &asked)
    }

    /// What the planner wants to see because of what is there.
    fn asked(&self) -> Vec<Interest> {
        let stores = self.listed(Stores::default(), &self.planner.interests());
        self.planner.interests_in(&stores, &ClusterId::local())
    }

    fn listed(&self, mut stores: Stores, interests: &[Interest]) -> Stores {
        let home = ClusterId::local();
        for interest in interests.iter().filter(|interest| interest.at.holds(&home)) {
            let key: StoreKey = stores.open(&home, interest);
            let of_kind: Vec<Value> = self
                .objects
                .iter()
                .filter(|(of, _)| of.kind == interest.kind)
                .map(|(_, object)| object.clone())
                .collect();
            if let Some(store) = stores.store_mut(&key) {
                store.observe_list(&of_kind, &self.version.to_string());
            }
        }
        stores
    }

    /// The first piece of work that there is.
    fn key(&self, stores: &Stores) -> Option<Key> {
        self.planner.keys(stores).into_iter().next()
    }

    /// What is to be done now about the first piece of work.
    pub fn plan(&self) -> Plan {
        let stores = self.stores();
        let key = self.key(&stores);
        key.and_then(|key| self.planner.plan(&stores, &self.facts, &key, self.now))
            .unwrap_or_default()
    }

    /// Does it.
    pub fn execute(&mut self, plan: &Plan) {
        for step in &plan.steps {
            match &step.action {
                Action::Patch { target, body, .. } => self.change(target.object(), body),
                Action::Apply { object, body, .. } => self.apply(object, body),
                Action::Delete { target, .. } => {
                    let object = target.object();
                    self.delete(&object.kind.kind, &object.namespace, &object.name);
                }
                Action::Copy(copy) => {
                    let Some(seen) = self.objects.get(copy.from.object()) else {
                        continue;
                    };
                    let over = self.objects.get(&copy.object);
                    let body = copied(copy.body.clone(), seen, over, copy.fields);
                    self.apply(&copy.object, &body);
                }
                // Nobody answers: tests put answers into the facts.
                Action::Ask(_) => {}
            }
        }
        for status in &plan.statuses {
            self.change(status.target.object(), &json!({"status": status.body}));
        }
    }

    /// Plans and does it; the plan.
    pub fn step(&mut self) -> Plan {
        let plan = self.plan();
        self.execute(&plan);
        plan
    }

    fn apply(&mut self, object: &ObjectRef, body: &Value) {
        if self.objects.contains_key(object) {
            self.change(object, body);
        } else {
            self.put(body.clone());
        }
    }

    fn change(&mut self, object: &ObjectRef, patch: &Value) {
        let kind = object.kind.kind.clone();
        self.patch(&kind, &object.namespace, &object.name, patch);
    }

    fn reference(&self, object: &Value) -> Option<ObjectRef> {
        let meta = Meta::of(object);
        let kind = object.get("kind").and_then(Value::as_str)?;
        let of = |all: Vec<Interest>| {
            let mut kinds = all.into_iter().map(|interest| interest.kind);
            kinds.find(|known| known.kind == kind)
        };
        let kind = of(self.planner.interests()).or_else(|| of(self.asked()))?;
        Some(ObjectRef::local(kind, meta.namespace, meta.name))
    }
}

/// A plan as people read it, for snapshots.
pub fn readable(plan: &Plan) -> Value {
    let told = |events: &[Event]| -> Vec<String> { events.iter().map(sentence).collect() };
    let step = |step: &Step| {
        let object = step.action.object().map(ToString::to_string);
        json!({
            "do": format!("{} {}", step.action.purpose(), object.unwrap_or_default()),
            "body": body(&step.action),
            "tell": told(&step.events),
        })
    };
    let status =
        |status: &Status| json!({"of": status.target.object().to_string(), "body": status.body});
    let blocker = |b: &Blocker| {
        json!({
            "reason": b.reason,
            "object": b.object.to_string(),
            "message": b.message,
            "until": b.until.map(|at| at.to_string()),
            "unblock": b.unblock,
        })
    };
    json!({
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "statuses": plan.statuses.iter().map(status).collect::<Vec<_>>(),
        "events": told(&plan.events),
        "blockers": plan.blockers.iter().map(blocker).collect::<Vec<_>>(),
        "wake_at": plan.wake_at.map(|at| at.to_string()),
    })
}

fn sentence(event: &Event) -> String {
    format!(
        "{} {} on {} ({}): {}",
        event.severity.as_str(),
        event.reason,
        event.regarding,
        event.instance,
        event.note
    )
}

fn body(action: &Action) -> Value {
    match action {
        Action::Patch { body, .. } | Action::Apply { body, .. } => body.clone(),
        Action::Copy(copy) => copy.body.clone(),
        Action::Delete { target, .. } => {
            json!({"preconditions": {"uid": target.uid(), "resourceVersion": target.version()}})
        }
        Action::Ask(question) => json!(format!("{} {}", question.method(), question.address())),
    }
}

/// A generation counts changes of the spec, and for workloads those of annotations too.
fn generation(before: Option<&Value>, object: &Value) -> i64 {
    let Some(before) = before else {
        return Meta::of(object).generation.max(1);
    };
    let differs = |path: &str| before.pointer(path) != object.pointer(path);
    let annotations = object.get("kind").and_then(Value::as_str) == Some("Deployment")
        && differs("/metadata/annotations");
    Meta::of(before).generation + i64::from(differs("/spec") || annotations)
}
