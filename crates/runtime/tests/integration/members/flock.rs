//! Another capability that names a cluster which the herd names too, by an object of its own: a config map with the label `flock`,
//! whose `cluster` is that cluster's name. It records which cluster it is (`uid`), and keeps the config map `flock` over there as its
//! `want`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::names::CONFIRM_CLUSTER;
use slipway_kernel::Purpose;
use slipway_kernel::action::{Action, Target};
use slipway_kernel::capability::{Controller, Fence, Gauge};
use slipway_kernel::fact::Facts;
use slipway_kernel::identity::{ClusterId, Key, ObjectRef, kinds};
use slipway_kernel::interest::{Interest, Where};
use slipway_kernel::member::{Attention, Credentials, Member, confirmed};
use slipway_kernel::parts::Parts;
use slipway_kernel::plan::Plan;
use slipway_kernel::store::{Entry, Meta, Projection, Stores, Undecodable};

use super::herd::NAMESPACE;

pub(crate) const NAME: &str = "flock";

/// A config map.
#[derive(Debug)]
struct Bird {
    data: BTreeMap<String, String>,
    confirmed: Option<String>,
}

impl Projection for Bird {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let data = object.get("data").cloned().unwrap_or_default();
        let confirmed = object.pointer("/metadata/annotations");
        let confirmed = confirmed.and_then(|all| all.get(CONFIRM_CLUSTER)?.as_str());
        Ok(Self {
            data: serde_json::from_value(data).unwrap_or_default(),
            confirmed: confirmed.map(str::to_owned),
        })
    }
}

impl Bird {
    fn entry(&self, name: &str) -> Option<&str> {
        self.data.get(name).map(String::as_str)
    }

    fn cluster(&self) -> ClusterId {
        ClusterId::remote(self.entry("cluster").unwrap_or_default())
    }
}

/// What it keeps over there.
#[derive(Debug)]
struct Nest(String);

impl Projection for Nest {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let have = object.pointer("/data/have").and_then(Value::as_str);
        Ok(Self(have.unwrap_or_default().to_owned()))
    }
}

#[derive(Debug)]
pub(crate) struct Flock;

fn key(cluster: &ClusterId) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: NAME,
        namespace: NAMESPACE.to_owned(),
        name: NAME.to_owned(),
    }
}

/// The one object that means a cluster.
fn bird(stores: &Stores) -> Option<Entry<'_, Bird>> {
    stores.get::<Bird>(&ClusterId::local(), &kinds::CONFIG_MAP, NAMESPACE, NAME)
}

fn member(bird: &Entry<'_, Bird>) -> Member {
    let cluster = bird.body.cluster();
    Member {
        object: ObjectRef::local(kinds::CONFIG_MAP, NAMESPACE, NAME),
        uid: bird.meta.uid.clone(),
        credentials: Credentials {
            namespace: NAMESPACE.to_owned(),
            name: cluster.as_str().to_owned(),
            key: "token".to_owned(),
            version: "1".to_owned(),
        },
        labels: BTreeMap::new(),
        confirmed: confirmed(bird.body.entry("uid"), bird.body.confirmed.as_deref()),
        attention: Attention::Close,
        cluster,
    }
}

impl Controller for Flock {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        let of_home = |home: &ClusterId, _: &Meta, stores: &Stores| {
            let there = bird(stores).map(|bird| key(&bird.body.cluster()));
            [key(home)].into_iter().chain(there).collect()
        };
        let means = |_: &Meta, stores: &Stores| {
            let named = bird(stores).map(|bird| bird.body.cluster());
            named.into_iter().collect()
        };
        let of_member = |cluster: &ClusterId, _: &Meta, _: &Stores| vec![key(cluster)];
        vec![
            Interest::of::<Bird>(kinds::CONFIG_MAP, of_home)
                .labelled(NAME)
                .meaning(means),
            Interest::of::<Nest>(kinds::CONFIG_MAP, of_member)
                .at(Where::Members)
                .named(NAME),
        ]
    }

    fn members(&self, stores: &Stores) -> Vec<Member> {
        bird(stores).iter().map(member).collect()
    }

    fn member_keys(&self, _: &Stores, _: &ClusterId) -> Vec<Key> {
        vec![key(&ClusterId::local())]
    }

    fn lease(&self) -> &'static str {
        NAME
    }

    fn fence(&self) -> Fence {
        Fence::WaitOut
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        let there = bird(stores).map(|bird| key(&bird.body.cluster()));
        let home = key(&ClusterId::local());
        [home].into_iter().chain(there).collect()
    }

    fn plan(&self, stores: &Stores, facts: &Facts, at: &Key, _: Timestamp) -> Option<Plan> {
        let bird = bird(stores)?;
        let mut plan = Plan::default();
        let object = ObjectRef {
            cluster: at.cluster.clone(),
            ..ObjectRef::local(kinds::CONFIG_MAP, NAMESPACE, NAME)
        };
        if at.cluster.is_local() {
            let known = facts.members.get(&bird.body.cluster());
            let uid = known.and_then(|known| known.uid());
            let is_first = member(&bird).confirmed.is_none();
            if let Some(uid) = uid.filter(|_| is_first) {
                plan.act(Action::Patch {
                    target: Target::seen(object, bird.meta),
                    purpose: Purpose::new("record"),
                    body: json!({"data": {"uid": uid}}),
                });
            }
            return Some(plan);
        }
        let want = bird.body.entry("want").unwrap_or_default();
        let nest = stores.get::<Nest>(&at.cluster, &kinds::CONFIG_MAP, NAMESPACE, NAME);
        if nest.is_some_and(|nest| nest.body.0 == want) {
            return Some(plan);
        }
        plan.act(Action::apply(
            object,
            Purpose::new("flock"),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": NAME, "namespace": NAMESPACE},
                "data": {"have": want},
            }),
        ));
        Some(plan)
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}
