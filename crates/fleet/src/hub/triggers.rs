//! Which work a change of an object is, and which clusters it means.

use serde_json::Value;
use slipway_api::fleet::names;
use slipway_kernel::fields::{list, text};
use slipway_kernel::finalizer::{Finalizers, Phase};
use slipway_kernel::store::{Item, Meta, Seen};
use slipway_kernel::{ClusterId, Key, Kind, Stores};

use super::concern::{is_told, miscounted};
use super::interests::MODULES;
use super::objection::record_of;
use super::view::{View, cluster_of, remote, whole};
use crate::assemblage::KustomizationSeen;
use crate::observe::assemblage::kubeconfig;
use crate::observe::kept::Kept;
use crate::observe::seen::{Assembled, LeafSeen, RemoteSeen, Whole};
use crate::remote::{Leaf, is_elsewhere};
use crate::render::assignment::Layer;
use crate::{kinds, work};

/// Where an object is found by something that it says: names are those of its namespace.
fn found_by(seen: &Seen, said: Option<&str>) -> Vec<String> {
    let value = said.map(|said| format!("{}/{said}", seen.meta.namespace));
    value.into_iter().collect()
}

fn assembled(seen: &Seen) -> Option<&Assembled> {
    let body = seen.body.as_ref().ok()?;
    body.downcast_ref::<Assembled>()
}

pub(super) fn of_cluster(seen: &Seen) -> Vec<String> {
    found_by(seen, remote(seen).map(cluster_of))
}

pub(super) fn of_kubeconfig(seen: &Seen) -> Vec<String> {
    found_by(seen, remote(seen).and_then(kubeconfig))
}

pub(super) fn of_uid(seen: &Seen) -> Vec<String> {
    found_by(seen, remote(seen).and_then(record_of))
}

pub(super) fn of_bootstrap_uid(seen: &Seen) -> Vec<String> {
    let object = assembled(seen).map(Assembled::object);
    found_by(seen, object.and_then(record_of))
}

pub(super) fn of_values(seen: &Seen) -> Vec<String> {
    let labels = whole(seen).and_then(|object| object.pointer("/metadata/labels"));
    let said = |label: &str| {
        let value = labels?.get(label)?.as_str()?;
        Some(format!("{}/{label}={value}", seen.meta.namespace))
    };
    let said = [names::VALUES_FOR, names::ASSIGNED_BY].map(said);
    said.into_iter().flatten().collect()
}

pub(super) fn naming(seen: &Seen) -> Vec<String> {
    let body = seen.body.as_ref().ok();
    let Some(object) = body.and_then(|body| body.downcast_ref::<RemoteSeen>()) else {
        return Vec::new();
    };
    let any = object.kept().names_modules().then(|| MODULES.to_owned());
    any.into_iter()
        .chain(named(&seen.meta, object.kept()))
        .collect()
}

pub(super) fn naming_bootstrap_modules(seen: &Seen) -> Vec<String> {
    let named = assembled(seen).map(|one| named(&seen.meta, one.kept()).collect());
    named.unwrap_or_default()
}

pub(super) fn naming_cluster(seen: &Seen) -> Vec<String> {
    found_by(seen, assembled(seen).and_then(Assembled::cluster))
}

/// The modules that syncs name, with their namespace.
fn named<'a>(meta: &'a Meta, object: &'a Kept) -> impl Iterator<Item = String> + 'a {
    let names = object.modules();
    names.map(|name| format!("{}/{name}", meta.namespace))
}

pub(super) fn itself(_: &ClusterId, meta: &Meta, _: &Stores) -> Vec<Key> {
    vec![work::at_home(&kinds::ROLLOUT, &meta.namespace, &meta.name)]
}

/// All Rollouts of a namespace, and all modules that stand for one.
pub(super) fn assigners(view: &View<'_>, namespace: &str) -> Vec<Key> {
    assigning(view, namespace, |_, _| true)
}

fn assigning(
    view: &View<'_>,
    namespace: &str,
    is_meant: impl Fn(&Kind, &Item<Whole>) -> bool,
) -> Vec<Key> {
    let mut keys = Vec::new();
    for kind in [kinds::ROLLOUT, kinds::MODULE, kinds::BOOTSTRAP_MODULE] {
        let is_rollout = kind == kinds::ROLLOUT;
        for item in view.all(&kind, namespace) {
            let object = item.body().object();
            let is_guarded = || Finalizers::of(object).phase(names::FINALIZER) == Phase::Guarded;
            let selects = object.pointer("/spec/selector").is_some() || is_guarded();
            if (is_rollout || selects) && is_meant(&kind, &item) {
                keys.push(work::at_home(&kind, namespace, &item.meta().name));
            }
        }
    }
    keys
}

/// A module is work itself, and what its Rollout and those who name it wait for.
pub(super) fn by_module(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let mut keys = module(&view, &kinds::MODULE, meta);
    for remote in view.remotes_naming(&meta.namespace, &meta.name) {
        keys.extend(of_remote(remote.meta(), remote.body().object()));
    }
    keys
}

pub(super) fn by_bootstrap_module(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let mut keys = module(&view, &kinds::BOOTSTRAP_MODULE, meta);
    for assemblage in view.assemblages_naming(&meta.namespace, &meta.name) {
        if assemblage.body().cluster().is_some() {
            let name = &assemblage.meta().name;
            keys.push(work::at_home(&kinds::ASSEMBLAGE, &meta.namespace, name));
        }
    }
    keys
}

fn module(view: &View<'_>, kind: &Kind, meta: &Meta) -> Vec<Key> {
    let mut keys = vec![work::at_home(kind, &meta.namespace, &meta.name)];
    let found = view.get(kind, &meta.namespace, &meta.name);
    keys.extend(match found {
        Some(found) => owners(found.body().object(), &meta.namespace),
        None => rollouts(view, &meta.namespace),
    });
    keys
}

/// The Rollouts that own an object.
fn owners(object: &Value, namespace: &str) -> Vec<Key> {
    let owners = list(object, "/metadata/ownerReferences");
    let owners = owners.filter(|owner| text(owner, "/kind") == Some(&kinds::ROLLOUT.kind));
    let names = owners.filter_map(|owner| text(owner, "/name"));
    names
        .map(|name| work::at_home(&kinds::ROLLOUT, namespace, name))
        .collect()
}

fn rollouts(view: &View<'_>, namespace: &str) -> Vec<Key> {
    let all = view.all(&kinds::ROLLOUT, namespace).into_iter();
    all.map(|item| work::at_home(&kinds::ROLLOUT, namespace, &item.meta().name))
        .collect()
}

pub(super) fn by_revision(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    match view.get(&kinds::CONTROLLER_REVISION, &meta.namespace, &meta.name) {
        Some(found) => owners(found.body().object(), &meta.namespace),
        None => rollouts(&view, &meta.namespace),
    }
}

fn of_remote(meta: &Meta, object: &Value) -> [Key; 2] {
    let member = work::member(&meta.namespace, cluster_of(object));
    [
        work::at_home(&kinds::REMOTE_ASSEMBLAGE, &meta.namespace, &meta.name),
        work::over_there(&member, &meta.namespace, &meta.name),
    ]
}

/// An assemblage is work itself, at home and in its cluster, and what those wait for who have an assignment in it that they
/// know otherwise. Whoever has told already what is there has nothing to do: so a status that changed for one sync is not
/// work for all who have one there.
pub(super) fn by_remote(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let found = view.remote(&meta.namespace, &meta.name);
    let Some(found) = found else {
        let mut keys = assigners(&view, &meta.namespace);
        let member = work::member(&meta.namespace, &meta.name);
        let gone = [
            work::at_home(&kinds::REMOTE_ASSEMBLAGE, &meta.namespace, &meta.name),
            work::over_there(&member, &meta.namespace, &meta.name),
        ];
        keys.extend(gone);
        keys.extend(miscounted(&view, &kinds::MODULE, &meta.namespace));
        return keys;
    };
    let object = found.body().object();
    let mut keys = Vec::from(of_remote(meta, object));
    let cluster = (Layer::Remote, cluster_of(object));
    keys.extend(assigning(&view, &meta.namespace, |kind, item| {
        !is_told(kind, item, cluster, Some(found.body().kept()))
    }));
    keys.extend(referred(&kinds::MODULE, meta, found.body().kept()));
    keys.extend(miscounted(&view, &kinds::MODULE, &meta.namespace));
    keys
}

/// The modules that syncs name: they tell where they are assigned.
fn referred(kind: &Kind, meta: &Meta, object: &Kept) -> Vec<Key> {
    let names = object.modules();
    names
        .map(|name| work::at_home(kind, &meta.namespace, name))
        .collect()
}

pub(super) fn by_assemblage(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let mut keys = vec![work::at_home(
        &kinds::ASSEMBLAGE,
        &meta.namespace,
        &meta.name,
    )];
    keys.extend(miscounted(&view, &kinds::BOOTSTRAP_MODULE, &meta.namespace));
    let Some(found) = view.assemblage(&meta.namespace, &meta.name) else {
        keys.extend(assigners(&view, &meta.namespace));
        return keys;
    };
    let Some(cluster) = found.body().cluster() else {
        return keys;
    };
    let kept = found.body().kept();
    let cluster = (Layer::Bootstrap, cluster);
    keys.extend(assigning(&view, &meta.namespace, |kind, item| {
        !is_told(kind, item, cluster, Some(kept))
    }));
    keys.extend(referred(&kinds::BOOTSTRAP_MODULE, meta, kept));
    keys
}

/// A cluster is what all who select some wait for, and what its assemblages are about.
pub(super) fn by_cluster(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let mut keys = assigners(&view, &meta.namespace);
    keys.extend(of_member(&view, &meta.namespace, &meta.name));
    keys.extend(bootstraps(&view, &meta.namespace, &meta.name));
    keys
}

/// The work at home of what names a cluster and is applied to it from here. Whoever makes such an assemblage calls it as they like.
pub(super) fn bootstraps(view: &View<'_>, namespace: &str, cluster: &str) -> Vec<Key> {
    let all = view.assemblages_of(namespace, cluster).into_iter();
    all.map(|item| work::at_home(&kinds::ASSEMBLAGE, namespace, &item.meta().name))
        .collect()
}

/// All work about a member: at home and there.
pub(super) fn of_member(view: &View<'_>, namespace: &str, cluster: &str) -> Vec<Key> {
    let remotes = view.remotes(namespace, cluster);
    let keys = remotes
        .iter()
        .flat_map(|remote| of_remote(remote.meta(), remote.body().object()));
    keys.collect()
}

pub(super) fn means_itself(meta: &Meta, _: &Stores) -> Vec<ClusterId> {
    vec![work::member(&meta.namespace, &meta.name)]
}

pub(super) fn meant_by_remote(meta: &Meta, stores: &Stores) -> Vec<ClusterId> {
    let view = View::new(stores);
    let found = view.remote(&meta.namespace, &meta.name);
    let mut all = means_itself(meta, stores);
    if let Some(found) = found {
        let named = work::member(&meta.namespace, cluster_of(found.body().object()));
        all.push(named);
        all.dedup();
    }
    all
}

/// Clusters whose kubeconfig this is: by its name as Cluster API has it, or because an assemblage says so.
pub(super) fn meant_by_kubeconfig(meta: &Meta, stores: &Stores) -> Vec<ClusterId> {
    let named = meta.name.strip_suffix(names::KUBECONFIG_SUFFIX);
    let mut all: Vec<ClusterId> = named
        .map(|cluster| work::member(&meta.namespace, cluster))
        .into_iter()
        .collect();
    let view = View::new(stores);
    for remote in view.remotes_by_kubeconfig(&meta.namespace, &meta.name) {
        let cluster = cluster_of(remote.body().object());
        all.push(work::member(&meta.namespace, cluster));
    }
    all.sort();
    all.dedup();
    all
}

pub(super) fn by_kubeconfig(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let members = meant_by_kubeconfig(meta, stores);
    let places = members.iter().filter_map(work::place);
    places
        .flat_map(|(namespace, cluster)| of_member(&view, namespace, cluster))
        .collect()
}

/// A Secret that is looked at by its name alone: a kubeconfig, or what stood for a cluster and has lost its label.
pub(super) fn by_one_kubeconfig(cluster: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let mut keys = by_kubeconfig(cluster, meta, stores);
    keys.extend(by_cluster(cluster, meta, stores));
    keys
}

/// Secrets with values are what the cluster that they are for waits for.
pub(super) fn by_values(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let remotes = view.all_remotes(&meta.namespace);
    let found = view.get(&kinds::SECRET, &meta.namespace, &meta.name);
    let label = found.as_ref().and_then(|found| {
        let labels = found.body().object().pointer("/metadata/labels")?;
        labels.get(names::VALUES_FOR)?.as_str()
    });
    let is_meant = |remote: &&Item<RemoteSeen>| {
        let cluster = cluster_of(remote.body().object());
        label.is_none_or(|label| crate::render::assignment::label(cluster) == label)
    };
    let mut keys: Vec<Key> = remotes
        .iter()
        .filter(is_meant)
        .flat_map(|remote| of_remote(remote.meta(), remote.body().object()))
        .collect();
    for assemblage in view.assemblages(&meta.namespace) {
        let cluster = assemblage.body().cluster();
        let is_meant = cluster.is_some_and(|cluster| {
            label.is_none_or(|label| crate::render::assignment::label(cluster) == label)
        });
        if is_meant {
            let name = &assemblage.meta().name;
            keys.push(work::at_home(&kinds::ASSEMBLAGE, &meta.namespace, name));
        }
    }
    keys
}

fn expanded(meta: &Meta, stores: &Stores, wants: impl Fn(&Assembled) -> bool) -> Vec<Key> {
    let all = View::new(stores).assemblages(&meta.namespace);
    let wanting = all
        .into_iter()
        .filter(|one| one.body().cluster().is_some() && wants(one.body()));
    wanting
        .map(|one| work::at_home(&kinds::ASSEMBLAGE, &meta.namespace, &one.meta().name))
        .collect()
}

pub(super) fn by_made(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    expanded(meta, stores, |_| true)
}

pub(super) fn by_source(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    expanded(meta, stores, |one| {
        one.names_modules() || one.sources().contains(&meta.name)
    })
}

pub(super) fn by_kustomization(_: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let mut keys = expanded(meta, stores, |one| {
        one.kustomizations().contains(&meta.name)
    });
    // One that is no longer wanted is waited for by who made it.
    let store = view
        .stores
        .typed::<KustomizationSeen>(&view.home, &kinds::KUSTOMIZATION);
    let seen = store
        .and_then(|store| Item::<KustomizationSeen>::of(store.get(&meta.namespace, &meta.name)?));
    let made_for = seen.and_then(|seen| seen.body().made_for.clone());
    if keys.is_empty() {
        keys = match made_for {
            Some(maker) => view
                .assemblages(&meta.namespace)
                .into_iter()
                .filter(|one| one.meta().name == maker && one.body().cluster().is_some())
                .map(|one| work::at_home(&kinds::ASSEMBLAGE, &meta.namespace, &one.meta().name))
                .collect(),
            None => expanded(meta, stores, |one| {
                text(one.object(), "/metadata/deletionTimestamp").is_some()
            }),
        };
    }
    keys
}

/// The assemblage in a member is told at home, and looked at there.
pub(super) fn by_leaf(cluster: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let found = view.remote(&meta.namespace, &meta.name);
    let is_meant = |item: &Item<RemoteSeen>| {
        let named = cluster_of(item.body().object());
        work::member(&meta.namespace, named) == *cluster
    };
    let mut keys = match found.filter(is_meant) {
        Some(found) => Vec::from(of_remote(found.meta(), found.body().object())),
        None => Vec::new(),
    };
    // A cluster that another control plane has is not applied to either. That it is ours again is looked for.
    if let Some((namespace, name)) = work::place(cluster)
        && is_of_another_hub(&view, cluster, meta)
    {
        keys.extend(bootstraps(&view, namespace, name));
    }
    keys
}

/// Whether what is in a member says that another control plane has it.
fn is_of_another_hub(view: &View<'_>, cluster: &ClusterId, meta: &Meta) -> bool {
    let store = view.stores.typed::<LeafSeen>(cluster, &kinds::ASSEMBLAGE);
    let leaf =
        store.and_then(|store| Item::<LeafSeen>::of(store.get(&meta.namespace, &meta.name)?));
    let hub = leaf.and_then(|leaf| Leaf::hub_of(leaf.body().object()));
    let said = hub.zip(view.identity());
    said.is_some_and(|(hub, ours)| is_elsewhere(&hub, &ours, None))
}

/// Whatever else is seen in a member is about its assemblages.
pub(super) fn by_member(cluster: &ClusterId, _: &Meta, stores: &Stores) -> Vec<Key> {
    let view = View::new(stores);
    let place = work::place(cluster);
    place
        .map(|(namespace, name)| of_member(&view, namespace, name))
        .unwrap_or_default()
}
