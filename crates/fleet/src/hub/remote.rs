//! A `RemoteAssemblage`, and what is known of its cluster.

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_api::fleet::assemblage::{AssemblageStatus, ClusterRecord, SyncStatus};
use slipway_api::fleet::names::{CONFIRM_UNASSIGN, COPIED_FOR, TAKE_OVER, VALUES_FOR};
use slipway_api::fleet::sync::NamedSync;
use slipway_bindings::{Given, Known};
use slipway_kernel::fields::strings;
use slipway_kernel::store::Item;
use slipway_kernel::{ClusterId, Facts, Kind, Target};

use super::interests::COPIED;
use super::view::{View, cluster_of, member_of, reference};
use crate::kinds;
use crate::observe::cluster::{self, Registered};
use crate::observe::kept::Kept;
use crate::observe::reference::Place;
use crate::observe::seen::{Bare, LeafSeen, RemoteSeen};
use crate::remote::fill::fill;
use crate::remote::{Leaf, World, is_elsewhere, unreadable};
use crate::render::assignment::label;
use crate::specialise::Specialised;

/// What is known of one `RemoteAssemblage`.
pub(crate) struct Remote<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) item: Item<RemoteSeen>,
    pub(super) member: ClusterId,
}

impl<'a> Remote<'a> {
    pub(crate) fn find(view: &'a View<'a>, namespace: &str, name: &str) -> Option<Self> {
        let item = view.remote(namespace, name)?;
        let member = member_of(item.meta(), item.body().object());
        Some(Self { view, item, member })
    }

    pub(super) fn object(&self) -> &Value {
        self.kept().object()
    }

    pub(super) fn kept(&self) -> &Kept {
        self.item.body().kept()
    }

    pub(super) fn target(&self) -> Target {
        let object = reference(&kinds::REMOTE_ASSEMBLAGE, self.item.meta());
        Target::seen(object, self.item.meta())
    }

    pub(super) fn cluster(&self) -> Option<Registered> {
        let meta = self.item.meta();
        self.view
            .cluster(&meta.namespace, cluster_of(self.object()))
    }

    /// What became of its cluster.
    pub(super) fn fate(&self, facts: &Facts) -> Fate {
        let record = self.kept().status_but_syncs().cluster;
        let state = facts.members.get(&self.member);
        let place = (
            self.item.meta().namespace.as_str(),
            cluster_of(self.object()),
        );
        fate(
            self.view,
            facts,
            record.as_ref(),
            place,
            state.and_then(|state| state.uid()),
        )
    }

    /// The assemblage in the cluster, if it is there.
    pub(super) fn leaf(&self) -> Option<Item<LeafSeen>> {
        let meta = self.item.meta();
        let store = self
            .view
            .stores
            .typed::<LeafSeen>(&self.member, &kinds::ASSEMBLAGE)?;
        Item::of(store.get(&meta.namespace, &meta.name)?)
    }

    /// How many syncs are in the cluster, if they are more than are read: then it is as if none could be seen.
    pub(super) fn crowd(&self) -> Option<usize> {
        Leaf::crowd(self.leaf()?.body().kept())
    }

    /// The world of its plan, and whether something has to be read for it.
    pub(super) fn world(&self, facts: &Facts, is_reachable: bool) -> (World, bool) {
        self.world_with(facts, is_reachable, Leaf::read, self.kept().status())
    }

    /// The same for whoever writes into the cluster, and tells nothing of what that one tells: of what was told here it is enough to
    /// know of which syncs.
    pub(super) fn world_there(&self, facts: &Facts) -> (World, bool) {
        let named = |name: &str| SyncStatus {
            name: name.to_owned(),
            ..SyncStatus::default()
        };
        let before = AssemblageStatus {
            syncs: self.kept().told().map(named).collect(),
            ..AssemblageStatus::default()
        };
        self.world_with(facts, true, Leaf::untold, before)
    }

    fn world_with(
        &self,
        facts: &Facts,
        is_reachable: bool,
        read: fn(&Kept) -> Leaf,
        before: AssemblageStatus,
    ) -> (World, bool) {
        let meta = self.item.meta();
        let mut is_unread = false;
        let mut syncs = Vec::new();
        for sync in self.kept().syncs().iter() {
            let spelled = match sync.spelled() {
                Ok(spelled) => spelled,
                Err(error) => {
                    let blocked = unreadable(&sync.value(), &error);
                    syncs.extend(blocked.map(|(sync, blocked)| (sync.into(), Some(blocked))));
                    continue;
                }
            };
            let is_named = spelled.names_module();
            let filled = is_named.then(|| self.filled(facts, &spelled.read()));
            let filled = filled.flatten();
            is_unread |= matches!(filled, Some(Specialised::Unread { .. }));
            syncs.push((spelled, filled));
        }
        let (refused, refused_secrets) =
            super::refused::over_there(facts, self.item.meta(), &self.member);
        let words = strings(self.object(), "/metadata/annotations");
        let many = words.get(CONFIRM_UNASSIGN);
        let many = many.and_then(|many| many.trim().parse().ok());
        let leaf = self.leaf().filter(|_| self.crowd().is_none());
        let world = World {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            generation: meta.generation,
            hub: self.view.identity().unwrap_or_default(),
            takes_over: words.get(TAKE_OVER).cloned(),
            may_unassign: many.unwrap_or_default(),
            syncs,
            before,
            is_reachable,
            reached: None,
            leaf: leaf.map(|leaf| read(leaf.body().kept())),
            refused,
            refused_secrets,
            secrets: self.secrets(),
            copied: named(self.copied()),
            own: named(self.copies()),
        };
        (world, is_unread)
    }

    /// Whether its cluster is known to be no other control plane's.
    pub(super) fn is_ours(&self) -> bool {
        self.view.identity().is_some() && self.elsewhere().is_none()
    }

    /// The control plane that has its cluster, if that is another one than this; none also while it is not known which this is.
    pub(super) fn elsewhere(&self) -> Option<String> {
        let hub = Leaf::hub_of(self.leaf()?.body().object())?;
        let ours = self.view.identity()?;
        let words = strings(self.object(), "/metadata/annotations");
        let takes_over = words.get(TAKE_OVER).map(String::as_str);
        is_elsewhere(&hub, &ours, takes_over).then_some(hub)
    }

    /// What a sync that names a module comes to.
    fn filled(
        &self,
        facts: &Facts,
        sync: &NamedSync,
    ) -> Option<Specialised<crate::specialise::Assigned>> {
        filled(
            self.view,
            facts,
            &kinds::MODULE,
            (self.item.meta(), cluster_of(self.object())),
            sync,
        )
    }

    /// The Secrets with values at home that are for this cluster.
    fn secrets(&self) -> BTreeSet<String> {
        let cluster = label(cluster_of(self.object()));
        let namespace = &self.item.meta().namespace;
        let its = self.view.values(namespace, VALUES_FOR, &cluster);
        its.iter().map(|item| item.meta().name.clone()).collect()
    }

    /// All Secrets with values that are in the cluster, for whomever: where the cluster is the control plane itself, also those of
    /// other clusters.
    fn copied(&self) -> Vec<Item<Bare>> {
        let store = self
            .view
            .stores
            .slot::<Bare>(&self.member, &kinds::SECRET, COPIED);
        super::view::items(store, &self.item.meta().namespace)
    }

    /// Those that were written there for this one, and are its to delete.
    pub(super) fn copies(&self) -> Vec<Item<Bare>> {
        let its = label(&self.item.meta().name);
        let mut all = self.copied();
        all.retain(|item| {
            let labels = strings(item.body().object(), "/metadata/labels");
            labels.get(COPIED_FOR) == Some(&its)
        });
        all
    }

    /// What its syncs refer to in the control plane.
    pub(crate) fn references(&self) -> BTreeSet<slipway_bindings::Reference> {
        let mut all = BTreeSet::new();
        for sync in self.kept().syncs().iter() {
            let Ok(sync) = sync.read::<NamedSync>() else {
                continue;
            };
            all.extend(match self.filled(&Facts::default(), &sync) {
                Some(Specialised::Done(assigned)) => assigned.references,
                Some(
                    Specialised::Unread { references, .. }
                    | Specialised::Blocked { references, .. },
                ) => references,
                None => BTreeSet::new(),
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
        let Specialised::Unread { needs, .. } = &filled else {
            return Some(filled);
        };
        let read = place.read(facts, needs);
        if read.is_empty() {
            return Some(filled);
        }
        known.extend(read);
    }
}

fn named(items: Vec<Item<Bare>>) -> BTreeSet<String> {
    let names = items.into_iter().map(|item| item.meta().name.clone());
    names.collect()
}

/// What became of the cluster that an assemblage was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is there, as far as is known.
    Here,
    /// Nothing is known to stand for it, and it has not been looked for by its name yet.
    Unread,
    /// Nothing stands for it any more. It may be made anew in a moment, as by whoever replaces a Secret.
    Absent,
    /// Another cluster has taken its name.
    Replaced,
}

/// What became of the cluster that an assemblage was made for. `uid` is that of the cluster that answers under its name now: the
/// same one behind another object is the same cluster.
pub(crate) fn fate(
    view: &View<'_>,
    facts: &Facts,
    record: Option<&ClusterRecord>,
    (namespace, name): (&str, &str),
    uid: Option<&str>,
) -> Fate {
    let kind = record.and_then(|record| record.kind.as_deref());
    let Some((record, kind)) = record.zip(kind) else {
        return Fate::Here;
    };
    if !view.knows_clusters(facts, kind) {
        return Fate::Here;
    }
    let Some(cluster) = view.cluster(namespace, name) else {
        // A Secret is known to be gone when it has been looked for by its name: it may only have lost its label.
        let is_secret = kind == cluster::SECRET;
        return match view.has_kubeconfig(namespace, name).filter(|_| is_secret) {
            None if is_secret => Fate::Unread,
            Some(true) => Fate::Here,
            None | Some(false) => Fate::Absent,
        };
    };
    let is_same = record.object_uid.as_ref() == Some(&cluster.uid) || cluster.kind != kind;
    match (record.uid.as_deref(), uid) {
        // Somebody may have put the wrong kubeconfig into a Secret: that it is right is for a person to say.
        (Some(known), Some(seen)) if !is_same && known != seen && kind != cluster::SECRET => {
            Fate::Replaced
        }
        _ => Fate::Here,
    }
}

/// What is recorded of the cluster of an assemblage: what stands for it, and once it has been seen which it is. Another object stands
/// for it when it is known that it stands for the same cluster.
pub(crate) fn record(
    before: Option<&ClusterRecord>,
    registered: Option<&Registered>,
    uid: Option<&str>,
) -> Option<ClusterRecord> {
    let mut record = before.cloned().unwrap_or_default();
    let is_new = record.object_uid.is_none() || record.uid.is_none();
    if let Some(cluster) = registered.filter(|_| is_new || uid.is_some()) {
        record.kind = Some(cluster.kind.to_owned());
        record.object_uid = Some(cluster.uid.clone());
    }
    if let Some(uid) = uid {
        record.uid = Some(uid.to_owned());
    }
    (record != ClusterRecord::default()).then_some(record)
}
