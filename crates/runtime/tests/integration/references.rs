//! What is watched is known only at run time: single objects that another object names, all in one store; and fields that somebody
//! else manages are left alone where the plan says so.

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::Purpose;
use slipway_kernel::action::{Action, FieldManager, Target};
use slipway_kernel::capability::{Controller, Fence, Gauge};
use slipway_kernel::fact::Facts;
use slipway_kernel::identity::{ClusterId, Key, ObjectRef, kinds};
use slipway_kernel::interest::Interest;
use slipway_kernel::parts::Parts;
use slipway_kernel::plan::Plan;
use slipway_kernel::store::{Meta, Projection, Stores, Undecodable};
use slipway_runtime::{Environment, Operator};

use crate::stage::{Replica, Stage, alone, epoch, secs, virtually};
use crate::toy::Anything;

const NAME: &str = "references";

/// Wanted as a name, this is a note.
const NOTE: &str = "note";

/// The entry `names` of a config map, and whether it has a note.
#[derive(Debug)]
struct Names(String, bool);

impl Projection for Names {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let names = object.pointer("/data/names").and_then(Value::as_str);
        let is_noted = object.pointer("/data/note").is_some();
        Ok(Self(names.unwrap_or_default().to_owned(), is_noted))
    }
}

/// Writes into the config map `seen` which of the Secrets there are that the config map `wanted` names; and a note into it, under
/// another name, where one is wanted.
struct References;

fn key() -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: NAME,
        namespace: "default".to_owned(),
        name: String::new(),
    }
}

fn names<'a>(stores: &'a Stores, slot: &str) -> Option<&'a str> {
    let store = stores.slot::<Names>(&ClusterId::local(), &kinds::CONFIG_MAP, slot)?;
    let entry = store.entries::<Names>().next()?;
    Some(&entry.body.0)
}

/// A note into `seen`, if there is none.
fn note(stores: &Stores) -> Option<Action> {
    let store = stores.slot::<Names>(&ClusterId::local(), &kinds::CONFIG_MAP, "seen")?;
    let seen = store.entries::<Names>().find(|seen| !seen.body.1)?;
    let object = ObjectRef::local(kinds::CONFIG_MAP, "default", "seen");
    Some(Action::Patch {
        target: Target::seen(object, seen.meta),
        purpose: Purpose::new("note"),
        body: json!({"data": {"note": "yes"}}),
    })
}

impl Controller for References {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        let map = |name: &'static str| {
            let all = Interest::of::<Names>(kinds::CONFIG_MAP, |_, _, _| vec![key()]);
            all.only("default", name).in_slot(name)
        };
        vec![map("wanted"), map("seen")]
    }

    fn interests_in(&self, stores: &Stores, _: &ClusterId) -> Vec<Interest> {
        let wanted = names(stores, "wanted").unwrap_or_default();
        let wanted = wanted.split(',');
        let wanted = wanted.filter(|name| !name.is_empty() && *name != NOTE);
        let secret = |name: &str| {
            let all = Interest::of::<Anything>(kinds::SECRET, |_, _: &Meta, _| vec![key()]);
            all.only("default", name).optional()
        };
        wanted.map(secret).collect()
    }

    fn lease(&self) -> &'static str {
        NAME
    }

    fn fence(&self) -> Fence {
        Fence::WaitOut
    }

    fn keys(&self, _: &Stores) -> Vec<Key> {
        vec![key()]
    }

    fn plan(&self, stores: &Stores, _: &Facts, key: &Key, _: Timestamp) -> Option<Plan> {
        let mut plan = Plan::default();
        let wanted = names(stores, "wanted").unwrap_or_default();
        if wanted.split(',').any(|name| name == NOTE)
            && let Some(note) = note(stores)
        {
            plan.act(note);
        }
        let seen = stores.typed::<Anything>(&key.cluster, &kinds::SECRET);
        let seen = seen.into_iter().flat_map(|store| store.objects());
        let seen: Vec<&str> = seen.map(|seen| seen.meta.name.as_str()).collect();
        let seen = seen.join(",");
        if names(stores, "seen") != Some(seen.as_str()) {
            plan.act(Action::Apply {
                object: ObjectRef::local(kinds::CONFIG_MAP, "default", "seen"),
                purpose: Purpose::new("note"),
                body: json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "seen", "namespace": "default"},
                    "data": {"names": seen},
                }),
                by: FieldManager::named("slipway/references").without_force(),
            });
        }
        Some(plan)
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}

fn start(stage: &Stage) -> Replica {
    let environment = Environment::virtual_from(epoch(), 7);
    let operator = Operator::new(environment, stage.client("one"), alone());
    Replica::run(operator.with(std::sync::Arc::new(References)))
}

async fn wanted(stage: &Stage, names: &str) {
    let path = "/api/v1/namespaces/default/configmaps/wanted";
    let body = json!({"data": {"names": names}});
    stage.send("PATCH", path, &body).await;
    secs(2).await;
}

async fn secret(stage: &Stage, name: &str) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    let path = "/api/v1/namespaces/default/secrets";
    stage.create(path, &secret).await;
}

async fn seen(stage: &Stage) -> String {
    stage.entry("seen", "names").await.unwrap_or_default()
}

#[test]
fn single_objects_are_watched_while_somebody_names_them_and_share_a_store() {
    virtually(async {
        let stage = Stage::new().await;
        for name in ["a", "b", "c"] {
            secret(&stage, name).await;
        }
        stage.map("wanted", json!({"names": ""})).await;
        let replica = start(&stage);
        secs(5).await;
        let (tasks, watches) = (replica.view.tasks(), stage.cluster.watches());
        wanted(&stage, "a,b,missing").await;
        assert_eq!(seen(&stage).await, "a,b");
        assert_eq!(stage.cluster.watches(), watches + 3);
        secret(&stage, "missing").await;
        let path = "/api/v1/namespaces/default/secrets/a";
        stage.send("DELETE", path, &Value::Null).await;
        secs(2).await;
        assert_eq!(seen(&stage).await, "b,missing");
        // Each is listed again by itself, and takes no other out.
        secs(4_000).await;
        assert_eq!(seen(&stage).await, "b,missing");
        wanted(&stage, "b,c").await;
        assert_eq!(seen(&stage).await, "b,c");
        assert_eq!(stage.cluster.watches(), watches + 2);
        wanted(&stage, "").await;
        assert_eq!(seen(&stage).await, "");
        assert_eq!(stage.cluster.watches(), watches);
        assert_eq!(replica.view.tasks(), tasks);
        let stores = replica.view.stores();
        let secrets = stores
            .iter()
            .filter(|((_, kind, _), _)| *kind == kinds::SECRET);
        assert_eq!(secrets.count(), 0);
    });
}

#[test]
fn a_field_that_somebody_else_manages_is_left_to_them_and_that_is_a_fact() {
    virtually(async {
        let stage = Stage::new().await;
        secret(&stage, "a").await;
        stage.map("wanted", json!({"names": "a"})).await;
        stage.map("seen", json!({"names": "mine"})).await;
        let replica = start(&stage);
        secs(20).await;
        assert_eq!(seen(&stage).await, "mine");
        let object = ObjectRef::local(kinds::CONFIG_MAP, "default", "seen");
        let facts = replica.view.facts();
        let refusal = facts.refusal(&object, "slipway/references").unwrap();
        assert_eq!(refusal.reason, "Conflict");
        assert!(refusal.message.contains("conflict"), "{}", refusal.message);
        let tried = stage.records(|record| record.context.starts_with("controller=references"));
        let tried = tried.iter().filter(|record| record.verb == "patch").count();
        assert!((2..8).contains(&tried), "{tried}");
    });
}

/// Several may have their part in one object: whoever is refused theirs keeps no other waiting, and is not tried again the sooner.
#[test]
fn what_is_refused_to_one_manager_is_refused_to_no_other() {
    virtually(async {
        let stage = Stage::new().await;
        secret(&stage, "a").await;
        stage.map("wanted", json!({"names": "a"})).await;
        stage.map("seen", json!({"names": "mine"})).await;
        let replica = start(&stage);
        // By now it is tried every two minutes.
        secs(150).await;
        let object = ObjectRef::local(kinds::CONFIG_MAP, "default", "seen");
        let refusal = |replica: &Replica| {
            let facts = replica.view.facts();
            let refusal = facts.refusal(&object, "slipway/references");
            refusal.unwrap().clone()
        };
        let before = refusal(&replica);
        wanted(&stage, "a,note").await;
        let noted = stage.entry("seen", "note").await;
        assert_eq!(noted.as_deref(), Some("yes"));
        assert_eq!(seen(&stage).await, "mine");
        assert_eq!(refusal(&replica), before);
    });
}
