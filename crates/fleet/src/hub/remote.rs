//! A `RemoteAssemblage`: at home what is known of its cluster is told on it, in the cluster what it says is written.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::fleet::assemblage::{AssemblageStatus, ClusterRecord};
use slipway_api::fleet::names::{CLEARED, VALUES_FOR};
use slipway_api::fleet::sync::NamedSync;
use slipway_api::purpose::fleet as purpose;
use slipway_bindings::{Given, Known};
use slipway_kernel::fields::{list, strings, text};
use slipway_kernel::finalizer::{self, Finalizers, Phase};
use slipway_kernel::instant::later;
use slipway_kernel::member::Reach;
use slipway_kernel::store::Item;
use slipway_kernel::{
    ClusterId, Facts, Kind, Member, MemberState, ObjectRef, Plan, Stores, Target,
};

use super::interests::{COPIED, namespace_slot};
use super::view::{View, cluster_of, member_of, reference, status_of};
use super::{members, reach};
use crate::kinds;
use crate::observe::cluster::Registered;
use crate::observe::reference::Place;
use crate::observe::seen::{Assembled, Bare, Whole};
use crate::remote::fill::fill;
use crate::remote::{self, Leaf, WRITTEN, World};
use crate::render::Applied;
use crate::render::assignment::label;
use crate::specialise::Specialised;
use crate::steps::Steps;

/// What is known of one `RemoteAssemblage`.
pub(crate) struct Remote<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) item: Item<Whole>,
    member: ClusterId,
}

impl<'a> Remote<'a> {
    pub(crate) fn find(view: &'a View<'a>, namespace: &str, name: &str) -> Option<Self> {
        let item = view.get(&kinds::REMOTE_ASSEMBLAGE, namespace, name)?;
        let member = member_of(item.meta(), item.body().object());
        Some(Self { view, item, member })
    }

    fn object(&self) -> &Value {
        self.item.body().object()
    }

    fn target(&self) -> Target {
        let object = reference(&kinds::REMOTE_ASSEMBLAGE, self.item.meta());
        Target::seen(object, self.item.meta())
    }

    fn cluster(&self) -> Option<Registered> {
        let meta = self.item.meta();
        self.view.cluster(&meta.namespace, cluster_of(self.object()))
    }

    /// The assemblage in the cluster, if it is there.
    fn leaf(&self) -> Option<Item<Assembled>> {
        let meta = self.item.meta();
        let store = self
            .view
            .stores
            .typed::<Assembled>(&self.member, &kinds::ASSEMBLAGE)?;
        Item::of(store.get(&meta.namespace, &meta.name)?)
    }

    /// The world of its plan, and whether something has to be read for it.
    fn world(&self, facts: &Facts, is_reachable: bool) -> (World, bool) {
        let meta = self.item.meta();
        let mut is_unread = false;
        let mut syncs = Vec::new();
        for sync in list(self.object(), "/spec/assemblage/syncs") {
            let Ok(sync) = serde_json::from_value::<NamedSync>(sync.clone()) else {
                continue;
            };
            let filled = self.filled(facts, &sync);
            is_unread |= matches!(filled, Some(Specialised::Unread(_)));
            syncs.push((sync, filled));
        }
        let world = World {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            syncs,
            before: status_of(self.object()),
            is_reachable,
            leaf: self.leaf().map(|leaf| leaf_of(leaf.body().object())),
            secrets: self.secrets(),
            copied: self.copied(),
        };
        (world, is_unread)
    }

    /// What a sync that names a module comes to.
    fn filled(
        &self,
        facts: &Facts,
        sync: &NamedSync,
    ) -> Option<Specialised<crate::specialise::Assigned>> {
        filled(self.view, facts, &kinds::MODULE, (self.item.meta(), cluster_of(self.object())), sync)
    }

    /// The Secrets with values at home that are for this cluster.
    fn secrets(&self) -> BTreeSet<String> {
        let cluster = label(cluster_of(self.object()));
        let all = self.view.all(&kinds::SECRET, &self.item.meta().namespace);
        let is_its = |item: &Item<Whole>| {
            let labels = strings(item.body().object(), "/metadata/labels");
            labels.get(VALUES_FOR) == Some(&cluster)
        };
        let its = all.into_iter().filter(is_its);
        its.map(|item| item.meta().name.clone()).collect()
    }

    /// Those that are in the cluster.
    fn copied(&self) -> BTreeSet<String> {
        let found = self.copies();
        found.iter().map(|item| item.meta().name.clone()).collect()
    }

    fn copies(&self) -> Vec<Item<Bare>> {
        let store = self
            .view
            .stores
            .slot::<Bare>(&self.member, &kinds::SECRET, COPIED);
        super::view::items(store, &self.item.meta().namespace)
    }

    /// What its syncs refer to in the control plane.
    pub(crate) fn references(&self) -> BTreeSet<slipway_bindings::Reference> {
        let mut all = BTreeSet::new();
        for sync in list(self.object(), "/spec/assemblage/syncs") {
            let Ok(sync) = serde_json::from_value::<NamedSync>(sync.clone()) else {
                continue;
            };
            all.extend(match self.filled(&Facts::default(), &sync) {
                Some(Specialised::Done(assigned)) => assigned.references,
                Some(Specialised::Unread(needs)) => needs,
                _ => BTreeSet::new(),
            });
        }
        all
    }
}

/// What a sync that names a module of this kind comes to for a cluster; none if it names none.
pub(crate) fn filled(
    view: &View<'_>,
    facts: &Facts,
    kind: &Kind,
    (meta, cluster): (&slipway_kernel::store::Meta, &str),
    sync: &NamedSync,
) -> Option<Specialised<crate::specialise::Assigned>> {
    let named = sync.module.as_ref()?;
    let module = view.get(kind, &meta.namespace, &named.name);
    let module = module.as_ref().map(|module| module.body().object());
    let registered = view.cluster(&meta.namespace, cluster);
    let given = match registered {
        Some(cluster) => cluster.given(),
        None => Given::cluster(
            &meta.namespace,
            cluster,
            &std::collections::BTreeMap::new(),
            &std::collections::BTreeMap::new(),
        ),
    };
    let place = Place {
        stores: view.stores,
        cluster: &view.home,
        namespace: &meta.namespace,
        assemblage: None,
    };
    let mut known = Known::new();
    loop {
        let filled = fill(cluster, sync, named, module, &given, &known);
        let Specialised::Unread(needs) = &filled else {
            return Some(filled);
        };
        let read = place.read(facts, needs);
        if read.is_empty() {
            return Some(filled);
        }
        known.extend(read);
    }
}

fn leaf_of(object: &Value) -> Leaf {
    let syncs = list(object, "/spec/syncs");
    let syncs = syncs.filter_map(|sync| serde_json::from_value(sync.clone()).ok());
    Leaf {
        syncs: syncs.collect(),
        written: strings(object, "/metadata/annotations").remove(WRITTEN),
        status: status_of(object),
    }
}

/// Whether the cluster that an assemblage was made for is gone, or another one has taken its name.
pub(crate) fn is_gone(
    view: &View<'_>,
    facts: &Facts,
    record: Option<&ClusterRecord>,
    registered: Option<&Registered>,
) -> bool {
    let kind = record.and_then(|record| record.kind.as_deref());
    let Some(kind) = kind.filter(|kind| view.knows_clusters(facts, kind)) else {
        return false;
    };
    let uid = record.and_then(|record| record.object_uid.as_deref());
    match registered {
        None => true,
        Some(cluster) => cluster.kind == kind && uid.is_some_and(|uid| uid != cluster.uid),
    }
}

/// What is recorded of the cluster of an assemblage: what stands for it, and once it has been seen which it is.
pub(crate) fn record(
    before: Option<&ClusterRecord>,
    registered: Option<&Registered>,
    uid: Option<&str>,
) -> Option<ClusterRecord> {
    let mut record = before.cloned().unwrap_or_default();
    if let Some(cluster) = registered {
        record.kind = Some(cluster.kind.to_owned());
        record.object_uid = Some(cluster.uid.clone());
    }
    if let Some(uid) = uid {
        record.uid = Some(uid.to_owned());
    }
    (record != ClusterRecord::default()).then_some(record)
}

/// The plan at home.
pub(super) fn at_home(one: &Remote<'_>, facts: &Facts, now: Timestamp) -> Plan {
    let mut steps = Steps::new(facts, now);
    let finalizers = Finalizers::of(one.object());
    let before = status_of(one.object());
    let registered = one.cluster();
    let is_gone = is_gone(one.view, facts, before.cluster.as_ref(), registered.as_ref());
    let member = members::one(one.view, &one.member);
    let state = facts.members.get(&one.member).map(AsRef::as_ref);
    match finalizers.phase(CLEARED) {
        Phase::Unguarded => {
            let add = finalizer::add(one.target(), &finalizers, CLEARED, purpose::GUARD);
            steps.prepare(add);
            return steps.plan;
        }
        Phase::Released => return steps.plan,
        Phase::Ending => {
            if is_gone || is_cleared(one, member.as_ref(), state) {
                let target = one.target();
                let remove = finalizer::remove(target, &finalizers, CLEARED, purpose::RELEASE);
                if let Some(remove) = remove {
                    steps.act(remove, Vec::new());
                }
                return steps.plan;
            }
        }
        Phase::Guarded if is_gone => {
            steps.delete(one.target(), purpose::FORGET);
            return steps.plan;
        }
        Phase::Guarded => {}
    }
    tell(one, &mut steps, facts, (member.as_ref(), state), now);
    steps.plan
}

/// Whether nothing is left in the cluster, or nobody could ever look.
fn is_cleared(one: &Remote<'_>, member: Option<&Member>, state: Option<&MemberState>) -> bool {
    let Some(member) = member else {
        return true;
    };
    let has_no_credentials =
        state.is_some_and(|state| matches!(state.reach, Reach::NoCredentials(_)));
    let is_clean = one.leaf().is_none() && one.copied().is_empty();
    // It was never written to.
    let is_untouched = member.confirmed.is_none();
    has_no_credentials || is_untouched || (reach::is_open(member, state) && is_clean)
}

/// Tells on it how its cluster is.
fn tell(
    one: &Remote<'_>,
    steps: &mut Steps<'_>,
    facts: &Facts,
    (member, state): (Option<&Member>, Option<&MemberState>),
    now: Timestamp,
) {
    let before = status_of(one.object());
    let is_open = member.is_some_and(|member| reach::is_open(member, state));
    let (world, is_unread) = one.world(facts, is_open);
    let decision = remote::decide(&world, now);
    let generation = one.item.meta().generation;
    let mut after = AssemblageStatus {
        observed_generation: Some(generation),
        conditions: before.conditions.clone(),
        cluster: record(
            before.cluster.as_ref(),
            one.cluster().as_ref(),
            recorded(member, state),
        ),
        summary: Some(decision.summary.clone()),
        syncs: decision.syncs,
    };
    crate::conditions::set(&mut after, generation, now);
    if let Some(member) = member {
        let again = reach::tell(&mut after.conditions, member, state, generation, now);
        if let Some(at) = again {
            steps.plan.wake(at);
        }
        steps
            .plan
            .blockers
            .extend(state.and_then(|state| state.blocker(member)));
    }
    if is_unread && let Some(at) = later(now, super::rollout::READING) {
        steps.plan.wake(at);
    }
    let stored = one.object().get("status");
    steps.status(one.target(), (&before, stored), &after);
}

/// The uid to be recorded: that of a cluster that is seen for the first time, or that a person confirmed.
fn recorded<'a>(member: Option<&Member>, state: Option<&'a MemberState>) -> Option<&'a str> {
    let uid = state?.uid()?;
    let confirmed = member?.confirmed.as_deref();
    confirmed.is_none_or(|known| known == uid).then_some(uid)
}

/// The plan in the cluster.
pub(super) fn over_there(
    one: &Remote<'_>,
    facts: &Facts,
    cluster: &ClusterId,
    now: Timestamp,
) -> Option<Plan> {
    if one.member != *cluster {
        return None;
    }
    let mut steps = Steps::new(facts, now);
    let there = |kind: Kind, namespace: &str, name: &str| ObjectRef {
        cluster: cluster.clone(),
        ..ObjectRef::local(kind, namespace, name)
    };
    let meta = one.item.meta();
    match Finalizers::of(one.object()).phase(CLEARED) {
        Phase::Unguarded | Phase::Released => return Some(steps.plan),
        Phase::Ending => {
            clear(one, &mut steps, there);
            return Some(steps.plan);
        }
        Phase::Guarded => {}
    }
    let has_namespace = has_namespace(one.view.stores, facts, cluster, &meta.namespace);
    if has_namespace.is_none() {
        let again = later(now, super::rollout::READING);
        again.into_iter().for_each(|at| steps.plan.wake(at));
        return Some(steps.plan);
    }
    if has_namespace == Some(false) {
        steps.plan.prepares = true;
        let mut made = namespace(&meta.namespace);
        made.object.cluster = cluster.clone();
        steps.apply(made, purpose::NAMESPACE, Vec::new());
        return Some(steps.plan);
    }
    // What home may not read is told at home; here it stays as it was.
    let (world, is_unread) = one.world(&Facts::default(), true);
    let decision = remote::decide(&world, now);
    if is_unread && let Some(at) = later(now, super::rollout::READING) {
        steps.plan.wake(at);
    }
    let mut apply = |mut applied: Applied, purpose| {
        applied.object.cluster = cluster.clone();
        steps.apply(applied, purpose, Vec::new());
    };
    for name in &decision.copy {
        if let Some(copy) = copy(one, name) {
            apply(copy, purpose::VALUES);
        }
    }
    for made in decision.make {
        apply(made, purpose::VALUES);
    }
    if let Some(assemblage) = decision.apply {
        apply(assemblage, purpose::TELL);
    }
    let copies = one.copies();
    let unused = copies
        .iter()
        .filter(|item| decision.delete_secrets.contains(&item.meta().name));
    for item in unused {
        let meta = item.meta();
        let object = there(kinds::SECRET, &meta.namespace, &meta.name);
        steps.delete(Target::seen(object, meta), purpose::COLLECT);
    }
    Some(steps.plan)
}

/// Takes away what is in the cluster.
fn clear(
    one: &Remote<'_>,
    steps: &mut Steps<'_>,
    there: impl Fn(Kind, &str, &str) -> ObjectRef,
) {
    if let Some(leaf) = one.leaf() {
        let is_going = text(leaf.body().object(), "/metadata/deletionTimestamp").is_some();
        if !is_going {
            let meta = leaf.meta();
            let object = there(kinds::ASSEMBLAGE, &meta.namespace, &meta.name);
            steps.delete(Target::seen(object, meta), purpose::CLEAR);
        }
        return;
    }
    for item in one.copies() {
        let meta = item.meta();
        let object = there(kinds::SECRET, &meta.namespace, &meta.name);
        steps.delete(Target::seen(object, meta), purpose::CLEAR);
    }
}

/// Whether a namespace is there; none while that has not been seen. Where it may not be seen, it is taken to be there: if it
/// is not, the API says so.
pub(crate) fn has_namespace(
    stores: &Stores,
    facts: &Facts,
    cluster: &ClusterId,
    namespace: &str,
) -> Option<bool> {
    if facts.is_absent(cluster, &kinds::NAMESPACE) {
        return Some(true);
    }
    let store = stores.slot::<Bare>(cluster, &kinds::NAMESPACE, &namespace_slot(namespace))?;
    let is_there = store.get("", namespace).is_some();
    (is_there || store.is_synced()).then_some(is_there)
}

/// A namespace, as it is made where it is missing.
pub(crate) fn namespace(name: &str) -> Applied {
    Applied {
        object: ObjectRef::local(kinds::NAMESPACE, "", name),
        manager: slipway_api::names::FIELD_MANAGER.to_owned(),
        force: true,
        body: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
    }
}

/// A Secret with values as it is written into the cluster.
fn copy(one: &Remote<'_>, name: &str) -> Option<Applied> {
    let meta = one.item.meta();
    let found = one.view.get(&kinds::SECRET, &meta.namespace, name)?;
    let object = found.body().object();
    let (reference, body) = crate::render::object(
        kinds::SECRET,
        &meta.namespace,
        name,
        json!({
            "metadata": {"labels": {VALUES_FOR: label(cluster_of(one.object()))}},
            "immutable": true,
            "data": object.get("data"),
        }),
    );
    Some(Applied {
        object: reference,
        manager: slipway_api::names::FIELD_MANAGER.to_owned(),
        force: true,
        body,
    })
}
