//! A capability with members, as small as it can be and still have a budget over clusters: the convoy.
//!
//! An order at home (`ConfigMap convoy-order`: `image`, `most`) is carried out in every member: its Deployment `app` gets the
//! image, and the flavour that the member's own `ConfigMap convoy-local` names. A member is a `ConfigMap convoy-NAME` at home
//! with the label `convoy=member`, and a Secret of its name. It is changed when that map says that it has its turn; no more than
//! `most` members have a turn that is not done. What is done and is not so any more is to be done again, in its turn. A Flipper in a member holds everything there, so a member whose Flippers cannot be
//! known is left alone.
//!
//! It is part of no program: it is what scenarios of several clusters are played with until a capability is.

#[path = "convoy/mutants.rs"]
pub(crate) mod mutants;
#[path = "convoy/oracles.rs"]
mod oracles;
#[path = "convoy/seen.rs"]
mod seen;
#[path = "convoy/setup.rs"]
mod setup;
#[path = "convoy/work.rs"]
mod work;

pub(crate) use setup::{find, scenarios, wiring};

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::names::CONFIRM_CLUSTER;
use slipway_kernel::action::Target;
use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::Gauge;
use slipway_kernel::identity::{ClusterId, ObjectRef, kinds};
use slipway_kernel::interest::{Interest, Where};
use slipway_kernel::member::{Attention, Credentials, Member, confirmed};
use slipway_kernel::store::{Entry, Meta, Stores};
use slipway_kernel::{Action, Controller, Facts, Fence, Key, Lane, Plan, Purpose};
use slipway_restarts::kinds::FLIPPER;

use seen::{App, Map, Nothing};
use work::{IN, home_key, member_key};

pub(crate) const NAME: &str = "convoy";
pub(crate) const LEASE: &str = "convoy.slipway.dev";
/// Where everything of it is, at home and in members.
pub(crate) const PLACE: &str = "fleet";
/// The label of all that it looks at.
const LABEL: &str = "convoy";
/// What the names of its own maps begin with.
pub(crate) const PREFIX: &str = "convoy-";
const ORDER: &str = "convoy-order";
const LOCAL: &str = "convoy-local";
/// On a member's map: the uid that was recorded, whose turn it is, and what is done.
pub(crate) const UID: &str = "convoy/uid";
pub(crate) const TURN: &str = "convoy/turn";
pub(crate) const DONE: &str = "convoy/done";
/// On a member's Deployment: whose flavour it has.
pub(crate) const FLAVOUR: &str = "convoy/flavour";
pub(crate) const SAIL: Purpose = Purpose::new("sail");
pub(crate) const RECORD: Purpose = Purpose::new("record");
const HELD: &str = "Held";

/// The planner.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Convoy {
    /// What it forgets, if it is a mutant.
    pub(crate) slip: Option<Slip>,
}

/// Where a cluster can be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slip {
    /// In a key: what is to be done in a member is called work at home.
    Key,
    /// In a store: what is a member's own is read in the first one.
    Store,
    /// In a fact: what is known of the first member is taken for what is known of all.
    Fact,
    /// In a lane: what shares a budget over clusters is decided at once.
    Lane,
    /// In a fence: a new leader fences the former one at home only.
    Fence,
    /// In a missing right: what may not be seen in a member is looked up at home.
    Right,
    /// In who it is: whatever cluster answers is taken down as the member.
    Identity,
    /// In who says so: what a person would have to confirm is confirmed.
    Word,
}

/// The member that a map at home is about.
fn named(map: &str) -> Option<ClusterId> {
    let name = map.strip_prefix(PREFIX)?;
    (map != ORDER && map != LOCAL).then(|| ClusterId::remote(name))
}

/// The members' maps at home.
fn maps(stores: &Stores) -> impl Iterator<Item = (ClusterId, Entry<'_, Map>)> {
    let all = stores.list::<Map>(&ClusterId::local(), &kinds::CONFIG_MAP);
    all.filter_map(|entry| Some((named(&entry.meta.name)?, entry)))
}

fn map<'a>(stores: &'a Stores, cluster: &ClusterId, name: &str) -> Option<Entry<'a, Map>> {
    stores.get::<Map>(cluster, &kinds::CONFIG_MAP, PLACE, name)
}

fn own_map<'a>(stores: &'a Stores, member: &ClusterId) -> Option<Entry<'a, Map>> {
    map(stores, &ClusterId::local(), &format!("{PREFIX}{member}"))
}

fn member(stores: &Stores, cluster: ClusterId, map: &Entry<'_, Map>) -> Option<Member> {
    let home = ClusterId::local();
    let name = cluster.as_str();
    let secret = stores.get::<Nothing>(&home, &kinds::SECRET, PLACE, name)?;
    let annotation = |name: &str| map.body.annotations.get(name).map(String::as_str);
    Some(Member {
        object: ObjectRef::local(kinds::CONFIG_MAP, PLACE, &map.meta.name),
        uid: map.meta.uid.clone(),
        credentials: Credentials {
            namespace: PLACE.to_owned(),
            name: name.to_owned(),
            key: "token".to_owned(),
            version: secret.meta.version.clone(),
        },
        labels: std::collections::BTreeMap::new(),
        confirmed: confirmed(annotation(UID), annotation(CONFIRM_CLUSTER)),
        attention: Attention::Close,
        cluster,
    })
}

/// What the order says: the image, and how many members may be under way.
fn order(stores: &Stores) -> Option<(String, usize)> {
    let order = map(stores, &ClusterId::local(), ORDER)?;
    let most = order.body.data.get("most")?.parse().ok()?;
    Some((order.body.data.get("image")?.clone(), most))
}

/// Adds a change of a member's map.
fn record(stores: &Stores, map: &Entry<'_, Map>, annotation: &str, value: &str, plan: &mut Plan) {
    let home = ClusterId::local();
    let Some(store) = stores.typed::<Map>(&home, &kinds::CONFIG_MAP) else {
        return;
    };
    plan.basis
        .insert((home, kinds::CONFIG_MAP), store.version());
    plan.act(Action::Patch {
        target: Target::seen(store.reference(map.meta), map.meta),
        purpose: RECORD,
        body: json!({"metadata": {"annotations": {annotation: value}}}),
    });
}

impl Convoy {
    fn has(self, slip: Slip) -> bool {
        self.slip == Some(slip)
    }

    /// What is decided at home about a member: who it is, whether it has its turn, whether that is done.
    fn plan_home(self, stores: &Stores, facts: &Facts, key: &Key) -> Option<Plan> {
        let cluster = ClusterId::remote(&key.name);
        let own = own_map(stores, &cluster)?;
        let member = member(stores, cluster.clone(), &own)?;
        let mut plan = Plan::default();
        let state = if self.has(Slip::Fact) {
            facts.members.values().next()
        } else {
            facts.members.get(&cluster)
        };
        let Some(state) = state else {
            return Some(plan);
        };
        let is_known = member.confirmed.is_some() && !self.has(Slip::Identity);
        let uid = state
            .uid()
            .filter(|uid| member.confirmed.as_deref() != Some(*uid));
        if let (false, Some(uid)) = (is_known, uid) {
            record(stores, &own, UID, uid, &mut plan);
            return Some(plan);
        }
        if let Some(uid) = uid.filter(|_| self.has(Slip::Word)) {
            record(stores, &own, CONFIRM_CLUSTER, uid, &mut plan);
            return Some(plan);
        }
        plan.blockers.extend(state.blocker(&member));
        let (image, most) = order(stores)?;
        if !plan.blockers.is_empty() {
            return Some(plan);
        }
        let turn = own.body.turn();
        let app = stores.get::<App>(&cluster, &kinds::DEPLOYMENT, PLACE, "app");
        let has_it = app
            .as_ref()
            .is_some_and(|app| Some(app.body.image.as_str()) == turn);
        if own.body.is_under_way() {
            if has_it && app.is_some_and(|app| app.body.is_rolled_out) {
                record(stores, &own, DONE, turn.unwrap_or_default(), &mut plan);
            }
            return Some(plan);
        }
        let under_way = maps(stores).filter(|(_, map)| map.body.is_under_way());
        if under_way.count() >= most {
            return Some(plan);
        }
        if turn != Some(image.as_str()) {
            record(stores, &own, TURN, &image, &mut plan);
        } else if !has_it {
            // Its storage was restored, or somebody has changed it: what was done is to be done again.
            record(stores, &own, DONE, "", &mut plan);
        }
        Some(plan)
    }

    /// What is done in a member that has its turn.
    fn plan_member(self, stores: &Stores, facts: &Facts, key: &Key) -> Option<Plan> {
        let cluster = &key.cluster;
        let own = own_map(stores, cluster)?;
        let mut plan = Plan::default();
        let app = stores.get::<App>(cluster, &kinds::DEPLOYMENT, PLACE, "app");
        let first = maps(stores).next().map(|(first, _)| first);
        let of = first.filter(|_| self.has(Slip::Store));
        let local = map(stores, of.as_ref().unwrap_or(cluster), LOCAL);
        let (Some(app), Some(local)) = (app, local) else {
            return Some(plan);
        };
        if !own.body.is_under_way() {
            return Some(plan);
        }
        let store = stores.typed::<App>(cluster, &kinds::DEPLOYMENT)?;
        let object = store.reference(app.meta);
        let is_held = stores.list::<Nothing>(cluster, &FLIPPER).next().is_some();
        let home = ClusterId::local();
        let asked = if self.has(Slip::Right) {
            &home
        } else {
            cluster
        };
        if is_held || facts.is_blind_to(asked, &FLIPPER) {
            plan.blockers.push(Blocker {
                reason: HELD,
                message: format!("a Flipper in {cluster} holds it, or may"),
                object,
                since: Timestamp::UNIX_EPOCH,
                until: None,
                unblock: "delete the Flipper".to_owned(),
            });
            return Some(plan);
        }
        let flavour = local.body.data.get("flavour").cloned().unwrap_or_default();
        let image = own.body.turn().unwrap_or_default();
        if app.body.image == image && app.body.flavour == flavour {
            return Some(plan);
        }
        plan.basis = slipway_kernel::basis::basis(stores, cluster);
        plan.act(Action::Patch {
            target: Target::seen(object, app.meta),
            purpose: SAIL,
            body: sail(image, &flavour),
        });
        Some(plan)
    }
}

/// The change of a member's Deployment.
fn sail(image: &str, flavour: &str) -> Value {
    let container = json!({"name": "main", "image": image});
    json!({
        "metadata": {"annotations": {FLAVOUR: flavour}},
        "spec": {"template": {"spec": {"containers": [container]}}},
    })
}

impl Controller for Convoy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        let mean =
            |meta: &Meta, _: &Stores| -> Vec<ClusterId> { named(&meta.name).into_iter().collect() };
        let of_secret = |meta: &Meta, _: &Stores| vec![ClusterId::remote(&meta.name)];
        let [on_map, on_app, on_hold] = self.triggers();
        vec![
            Interest::of::<Map>(kinds::CONFIG_MAP, on_map)
                .labelled(LABEL)
                .at(Where::Both)
                .meaning(mean),
            Interest::of::<Nothing>(kinds::SECRET, |_, meta, _| vec![home_key(&meta.name)])
                .labelled(LABEL)
                .meaning(of_secret),
            Interest::of::<App>(kinds::DEPLOYMENT, on_app)
                .labelled(LABEL)
                .at(Where::Members),
            Interest::of::<Nothing>(FLIPPER, on_hold)
                .where_defined()
                .at(Where::Members),
        ]
    }

    fn members(&self, stores: &Stores) -> Vec<Member> {
        let all = maps(stores);
        all.filter_map(|(cluster, map)| member(stores, cluster, &map))
            .collect()
    }

    fn member(&self, stores: &Stores, cluster: &ClusterId) -> Option<Member> {
        member(stores, cluster.clone(), &own_map(stores, cluster)?)
    }

    fn member_keys(&self, _: &Stores, cluster: &ClusterId) -> Vec<Key> {
        vec![home_key(cluster.as_str()), self.work(cluster)]
    }

    /// All turns are given in one lane: they share a budget.
    fn lane(&self, _: &Key) -> Lane {
        if self.has(Slip::Lane) {
            return Lane::Key;
        }
        Lane::Cluster
    }

    fn lease(&self) -> &'static str {
        LEASE
    }

    fn fence(&self) -> Fence {
        Fence::BumpVersions
    }

    fn objects_to_bump(&self, stores: &Stores, key: &Key) -> Vec<Target> {
        let seen = |target: Option<Target>| -> Vec<Target> { target.into_iter().collect() };
        if key.cluster.is_local() {
            let store = stores.typed::<Map>(&key.cluster, &kinds::CONFIG_MAP);
            let own = own_map(stores, &ClusterId::remote(&key.name));
            let both = store.zip(own);
            return seen(
                both.map(|(store, map)| Target::seen(store.reference(map.meta), map.meta)),
            );
        }
        if self.has(Slip::Fence) {
            return Vec::new();
        }
        let is_under_way = own_map(stores, &key.cluster).is_some_and(|m| m.body.is_under_way());
        let store = stores.typed::<App>(&key.cluster, &kinds::DEPLOYMENT);
        let app = stores.get::<App>(&key.cluster, &kinds::DEPLOYMENT, PLACE, "app");
        let both = store.zip(app).filter(|_| is_under_way);
        seen(both.map(|(store, app)| Target::seen(store.reference(app.meta), app.meta)))
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        let all = maps(stores);
        all.flat_map(|(member, _)| [home_key(member.as_str()), self.work(&member)])
            .collect()
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, _: Timestamp) -> Option<Plan> {
        if let Some(member) = key.name.strip_prefix(IN) {
            // What a mutant has mistaken for work at home.
            return self.plan_member(stores, facts, &member_key(&ClusterId::remote(member)));
        }
        if key.cluster.is_local() {
            self.plan_home(stores, facts, key)
        } else {
            self.plan_member(stores, facts, key)
        }
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}
