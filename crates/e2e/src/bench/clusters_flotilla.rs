//! The capability of the bench: a `ConfigMap` in a member that wants something gets it. Members are `ConfigMap`s at home with a
//! label, the name of a Secret, and the uid of their cluster.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::action::Target;
use slipway_kernel::capability::Gauge;
use slipway_kernel::identity::{ClusterId, ObjectRef, kinds};
use slipway_kernel::interest::{Interest, Where};
use slipway_kernel::member::{Attention, Credentials, Member};
use slipway_kernel::parts::Parts;
use slipway_kernel::store::{Entry, Meta, Projection, Stores, Undecodable};
use slipway_kernel::{Action, Controller, Facts, Fence, Key, Plan, Purpose};

/// Where everything is.
pub(crate) const PLACE: &str = "default";
/// The labels of members at home, and of what is looked at in them.
pub(crate) const SHIP: &str = "flotilla";
pub(crate) const CARGO: &str = "cargo";
/// On a member at home: the uid of its cluster.
pub(crate) const UID: &str = "flotilla/uid";
/// The entry of its Secret.
pub(crate) const ENTRY: &str = "kubeconfig";
const NAME: &str = "flotilla";

/// The planner.
pub(crate) struct Flotilla;

/// A member at home.
#[derive(Debug)]
struct Ship(Option<String>);

impl Projection for Ship {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let annotations = object.pointer("/metadata/annotations");
        let uid = annotations.and_then(|all| all.get(UID)?.as_str());
        Ok(Self(uid.map(str::to_owned)))
    }
}

/// An object in a member.
#[derive(Debug)]
struct Cargo {
    want: Option<Box<str>>,
    have: Option<Box<str>>,
}

impl Projection for Cargo {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let entry = |name: &str| Some(object.get("data")?.get(name)?.as_str()?.into());
        Ok(Self {
            want: entry("want"),
            have: entry("have"),
        })
    }
}

fn key(cluster: &ClusterId) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: NAME,
        namespace: PLACE.to_owned(),
        name: String::new(),
    }
}

fn ship(entry: &Entry<'_, Ship>) -> Member {
    let name = &entry.meta.name;
    Member {
        cluster: ClusterId::remote(name),
        object: ObjectRef::local(kinds::CONFIG_MAP, PLACE, name),
        uid: entry.meta.uid.clone(),
        credentials: Credentials {
            namespace: PLACE.to_owned(),
            name: name.clone(),
            key: ENTRY.to_owned(),
            version: entry.meta.version.clone(),
        },
        labels: BTreeMap::new(),
        confirmed: entry.body.0.clone(),
        attention: Attention::Close,
    }
}

impl Controller for Flotilla {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        vec![
            Interest::of::<Ship>(kinds::CONFIG_MAP, |_, _, _| Vec::new())
                .labelled(SHIP)
                .meaning(|meta: &Meta, _| vec![ClusterId::remote(&meta.name)]),
            Interest::of::<Cargo>(kinds::CONFIG_MAP, |cluster, _, _| vec![key(cluster)])
                .labelled(CARGO)
                .at(Where::Members),
        ]
    }

    fn members(&self, stores: &Stores) -> Vec<Member> {
        let all = stores.list::<Ship>(&ClusterId::local(), &kinds::CONFIG_MAP);
        all.map(|entry| ship(&entry)).collect()
    }

    fn member(&self, stores: &Stores, cluster: &ClusterId) -> Option<Member> {
        let (home, name) = (ClusterId::local(), cluster.as_str());
        let entry = stores.get::<Ship>(&home, &kinds::CONFIG_MAP, PLACE, name);
        entry.map(|entry| ship(&entry))
    }

    fn lease(&self) -> &'static str {
        NAME
    }

    fn fence(&self) -> Fence {
        Fence::WaitOut
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        let all = stores.clusters().filter(|cluster| !cluster.is_local());
        all.map(key).collect()
    }

    fn keys_in(&self, _: &Stores, cluster: &ClusterId) -> Vec<Key> {
        if cluster.is_local() {
            return Vec::new();
        }
        vec![key(cluster)]
    }

    fn plan(&self, stores: &Stores, _: &Facts, key: &Key, _: Timestamp) -> Option<Plan> {
        let store = stores.typed::<Cargo>(&key.cluster, &kinds::CONFIG_MAP)?;
        let mut plan = Plan::default();
        let basis = (key.cluster.clone(), kinds::CONFIG_MAP);
        plan.basis.insert(basis, store.version());
        for entry in stores.list::<Cargo>(&key.cluster, &kinds::CONFIG_MAP) {
            if entry.body.want != entry.body.have {
                plan.act(Action::Patch {
                    target: Target::seen(store.reference(entry.meta), entry.meta),
                    purpose: Purpose::new("load"),
                    body: json!({"data": {"have": entry.body.want}}),
                });
            }
        }
        Some(plan)
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}
