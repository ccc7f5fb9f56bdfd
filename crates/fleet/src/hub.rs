//! The controller of the control plane: rollouts, modules, and what clusters are assigned.
//!
//! At home one piece of work for each Rollout, module, `RemoteAssemblage` and `Assemblage` that names a cluster; in each cluster
//! one for each `RemoteAssemblage` that is about it. Members are the clusters of Cluster API, labelled Secrets, and whatever
//! else a `RemoteAssemblage` names.

mod concern;
pub(crate) mod interests;
mod leaf;
mod members;
mod module;
mod objection;
pub(crate) mod reach;
mod referred;
mod refused;
pub(crate) mod remote;
pub(crate) mod rollout;
mod telling;
mod triggers;
pub(crate) mod view;
mod writing;

use jiff::Timestamp;
use slipway_api::fleet::names::LEASE;
use slipway_kernel::capability::{Gauge, Lane, Severity};
use slipway_kernel::interest::Interest;
use slipway_kernel::store::{Item, Meta, Store};
use slipway_kernel::{
    ClusterId, Controller, Facts, Fence, Key, Kind, Member, Plan, Stores, Target,
};

use crate::expansion::Expansion;
use crate::observe::seen::{Assembled, RemoteSeen, Whole};
use crate::reasons::Reason;
use crate::steps::Steps;
use crate::{Settings, gauges, kinds, work};
use remote::Remote;
use rollout::Assigner;
use view::{View, reference};

/// The planner of the control plane.
#[derive(Debug, Clone, Default)]
pub struct Hub {
    settings: Settings,
}

impl Hub {
    /// A planner with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }
}

impl Controller for Hub {
    fn name(&self) -> &'static str {
        crate::NAME
    }

    fn interests(&self) -> Vec<Interest> {
        let mut all = interests::interests();
        let ours = [
            kinds::ASSEMBLAGE,
            kinds::BOOTSTRAP_MODULE,
            kinds::MODULE,
            kinds::REMOTE_ASSEMBLAGE,
            kinds::ROLLOUT,
        ];
        all.extend(ours.map(|kind| interests::definition(&kind, by_definition)));
        all
    }

    fn interests_in(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Interest> {
        let view = View::new(stores);
        if !cluster.is_local() {
            let namespace = work::place(cluster).map(|(namespace, _)| namespace);
            let there = |name| interests::namespace(name, triggers::by_member);
            return namespace.map(there).into_iter().collect();
        }
        let mut all = referred::all(&view);
        all.extend(referred::kubeconfigs(&view));
        all
    }

    fn members(&self, stores: &Stores) -> Vec<Member> {
        members::all(&View::new(stores))
    }

    fn member(&self, stores: &Stores, cluster: &ClusterId) -> Option<Member> {
        members::one(&View::new(stores), cluster)
    }

    fn member_keys(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Key> {
        let view = View::new(stores);
        let Some((namespace, name)) = work::place(cluster) else {
            return Vec::new();
        };
        let mut keys = triggers::of_member(&view, namespace, name);
        if keys.is_empty() {
            // Whoever wants to assign something to it waits for it.
            keys = triggers::assigners(&view, namespace);
        }
        // What is applied from here waits for the cluster to say which one it is.
        keys.extend(triggers::bootstraps(&view, namespace, name));
        keys
    }

    fn tells_of(&self, stores: &Stores, key: &Key) -> Option<ClusterId> {
        let (kind, name) = work::object(key).filter(|_| key.cluster.is_local())?;
        let view = View::new(stores);
        if kind == kinds::REMOTE_ASSEMBLAGE {
            let found = view.remote(&key.namespace, name)?;
            return Some(view::member_of(found.meta(), found.body().object()));
        }
        // Whose a cluster is, is seen in it, also where something is applied to it from here.
        let is_assemblage = kind == kinds::ASSEMBLAGE;
        let found = is_assemblage.then(|| view.assemblage(&key.namespace, name))??;
        Some(work::member(&key.namespace, found.body().cluster()?))
    }

    fn lane(&self, _: &Key) -> Lane {
        Lane::Key
    }

    fn lease(&self) -> &'static str {
        LEASE
    }

    fn fence(&self) -> Fence {
        // What is applied carries no version by which an old leader could be stopped.
        Fence::WaitOut
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        let view = View::new(stores);
        let mut all = at_home(&view);
        for remote in every_remote(&view) {
            let member = view::member_of(remote.meta(), remote.body().object());
            let meta = remote.meta();
            all.push(work::over_there(&member, &meta.namespace, &meta.name));
        }
        all
    }

    fn keys_in(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Key> {
        let view = View::new(stores);
        if cluster.is_local() {
            return at_home(&view);
        }
        let Some((namespace, name)) = work::place(cluster) else {
            return Vec::new();
        };
        let remotes = view.remotes(namespace, name);
        remotes
            .iter()
            .map(|remote| work::over_there(cluster, namespace, &remote.meta().name))
            .collect()
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan> {
        let view = View::new(stores);
        if !key.cluster.is_local() {
            let one = Remote::find(&view, &key.namespace, &key.name)?;
            return leaf::over_there(&one, facts, &key.cluster, now);
        }
        let (kind, name) = work::object(key)?;
        if kind == kinds::REMOTE_ASSEMBLAGE {
            let one = Remote::find(&view, &key.namespace, name)?;
            return Some(telling::at_home(&one, facts, now));
        }
        if kind == kinds::ASSEMBLAGE {
            let item = view.assemblage(&key.namespace, name)?;
            return bootstrap(&view, &item, facts, now);
        }
        let item = view.get(&kind, &key.namespace, name)?;
        Some(if kind == kinds::ROLLOUT {
            self.rollout(&view, &item, facts, now)
        } else {
            module::plan(&view, facts, &self.settings, (&kind, &item), now)
        })
    }

    fn gauges(&self, stores: &Stores, _: Timestamp) -> Vec<Gauge> {
        let rollouts = entries(&View::new(stores), &kinds::ROLLOUT);
        gauges::gauges(rollouts.iter().map(|item| item.body().object()))
    }

    fn severity(&self, reason: &str) -> Severity {
        Reason::of(reason).map_or(Severity::Warning, Reason::severity)
    }
}

impl Hub {
    fn rollout(&self, view: &View<'_>, item: &Item<Whole>, facts: &Facts, now: Timestamp) -> Plan {
        let one = Assigner::rollout(item);
        let (plan, course) = rollout::plan(view, facts, &self.settings, &one, now);
        let mut steps = Steps::new(facts, now);
        steps.plan = plan;
        if let Some(course) = course {
            let target = Target::seen(reference(&kinds::ROLLOUT, item.meta()), item.meta());
            let before = &course.gathered.world.rollout.status;
            let stored = item.body().object().get("status");
            steps.status(target, (before, stored), &course.status);
            // Who goes first and who came lately is acted on when it is written, which does not wait for its turn then.
            let is_intent = steps.plan.steps.is_empty() && !steps.plan.statuses.is_empty();
            steps.plan.prepares |= is_intent && course.decision.is_news(&course.gathered.world);
        }
        steps.plan
    }
}

/// The plan of an assemblage that names a cluster; none for another one, which is the agent's.
fn bootstrap(
    view: &View<'_>,
    item: &Item<Assembled>,
    facts: &Facts,
    now: Timestamp,
) -> Option<Plan> {
    let cluster = item.body().cluster()?;
    let namespace = &item.meta().namespace;
    let registered = view.cluster(namespace, cluster);
    let before = item.body().kept().status_but_syncs().cluster;
    let member = work::member(namespace, cluster);
    let state = facts.members.get(&member);
    let uid = state.and_then(|state| state.uid());
    let known = before.as_ref().and_then(|record| record.uid.as_deref());
    let objection = objection::to_bootstrap(view, facts, item);
    let is_right = |uid: &&str| objection.is_none() && known.is_none_or(|known| known == *uid);
    let expansion = Expansion {
        view,
        item,
        fate: remote::fate(view, facts, before.as_ref(), (namespace, cluster), uid),
        record: remote::record(before.as_ref(), registered.as_ref(), uid.filter(is_right)),
        is_unread: known.is_none() && state.is_some_and(|state| reach::is_asked(state, now)),
        is_hidden: facts.is_blind_to(&member, &kinds::ASSEMBLAGE),
        objection,
    };
    Some(expansion.plan(facts, now))
}

fn entries(view: &View<'_>, kind: &Kind) -> Vec<Item<Whole>> {
    let store = view.stores.typed::<Whole>(&view.home, kind);
    let all = store.into_iter().flat_map(Store::objects);
    all.filter_map(Item::of).collect()
}

fn every_remote(view: &View<'_>) -> Vec<Item<RemoteSeen>> {
    let kind = &kinds::REMOTE_ASSEMBLAGE;
    let store = view.stores.typed::<RemoteSeen>(&view.home, kind);
    let all = store.into_iter().flat_map(Store::objects);
    all.filter_map(Item::of).collect()
}

fn bootstraps(view: &View<'_>) -> Vec<Item<Assembled>> {
    let all = view.every_assemblage();
    all.filter(|item| item.body().cluster().is_some()).collect()
}

/// All work at home.
fn at_home(view: &View<'_>) -> Vec<Key> {
    let mut all = Vec::new();
    let mut add = |kind: &Kind, meta: &Meta| {
        all.push(work::at_home(kind, &meta.namespace, &meta.name));
    };
    for kind in [kinds::ROLLOUT, kinds::MODULE, kinds::BOOTSTRAP_MODULE] {
        for item in entries(view, &kind) {
            add(&kind, item.meta());
        }
    }
    for item in every_remote(view) {
        add(&kinds::REMOTE_ASSEMBLAGE, item.meta());
    }
    for item in bootstraps(view) {
        add(&kinds::ASSEMBLAGE, item.meta());
    }
    all
}

/// A changed value may be a change of whatever is in the namespace; which, nobody writes down.
fn by_referred(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let mut keys = at_home(&view);
    if !meta.namespace.is_empty() {
        keys.retain(|key| key.namespace == meta.namespace);
    }
    for item in every_remote(&view) {
        let of = item.meta();
        if meta.namespace.is_empty() || of.namespace == meta.namespace {
            let member = view::member_of(of, item.body().object());
            keys.push(work::over_there(&member, &of.namespace, &of.name));
        }
    }
    keys
}

/// Another kind may be what a binding refers to.
fn by_definition(cluster: &ClusterId, _: &Meta, stores: &Stores) -> Vec<Key> {
    by_referred(cluster, &Meta::default(), stores)
}
