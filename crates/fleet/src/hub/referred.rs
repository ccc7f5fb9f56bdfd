//! What objects of the control plane speak of, and has to be looked at: what bindings refer to, and kubeconfigs.
//!
//! It is asked for after every change at home. So it is looked first, at what is stored as it is stored, whether anything can be
//! referred to at all: hardly any assemblage of a fleet names a module, and many Rollouts have no bindings.

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_api::fleet::names::FINALIZER;
use slipway_kernel::Kind;
use slipway_kernel::fields::{list, text};
use slipway_kernel::interest::Interest;

use super::remote::{Fate, Remote};
use super::rollout::{self, Assigner};
use super::view::View;
use super::{bootstraps, by_definition, by_referred, entries, interests};
use crate::expansion::Expansion;
use crate::kinds;
use crate::observe::reference::Place;

/// What bindings refer to in the control plane.
pub(super) fn all(view: &View<'_>) -> Vec<Interest> {
    let mut all = Vec::new();
    let mut add = |namespace: &str, assemblage: Option<&str>, references| {
        let place = Place {
            stores: view.stores,
            cluster: &view.home,
            namespace,
            assemblage,
        };
        all.extend(place.interests(&references, by_referred, by_definition));
    };
    let kept = of_revisions(view);
    for item in entries(view, &kinds::ROLLOUT) {
        let bindings = "/spec/template/spec/controlPlaneBindings";
        let meta = item.meta();
        if refers(item.body().object(), bindings) || kept.contains(&meta.uid) {
            let one = Assigner::rollout(&item);
            add(&meta.namespace, None, rollout::references(view, &one));
        }
    }
    for kind in [kinds::MODULE, kinds::BOOTSTRAP_MODULE] {
        for item in entries(view, &kind) {
            let object = item.body().object();
            let assigns = object.pointer("/spec/selector").is_some() || is_guarded(object);
            let is_meant = assigns && refers(object, "/spec/controlPlaneBindings");
            if is_meant && let Some(one) = Assigner::module(kind.clone(), &item) {
                let references = rollout::references(view, &one);
                add(&item.meta().namespace, None, references);
            }
        }
    }
    for item in view.naming_modules() {
        let meta = item.meta();
        if let Some(one) = Remote::find(view, &meta.namespace, &meta.name) {
            add(&meta.namespace, None, one.references());
        }
    }
    for item in bootstraps(view) {
        if !has_references(item.body().object()) {
            continue;
        }
        let expansion = Expansion {
            view,
            item: &item,
            fate: Fate::Here,
            record: None,
            is_unread: false,
            objection: None,
        };
        let meta = item.meta();
        add(&meta.namespace, Some(&meta.name), expansion.references());
    }
    all
}

/// Whether some binding of a list refers to an object.
fn refers(object: &Value, bindings: &str) -> bool {
    list(object, bindings).any(|binding| binding.get("objectFieldRef").is_some())
}

fn is_guarded(object: &Value) -> bool {
    let mut finalizers = list(object, "/metadata/finalizers");
    finalizers.any(|one| one.as_str() == Some(FINALIZER))
}

/// The uids of the Rollouts of which a kept revision refers to something.
fn of_revisions(view: &View<'_>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut add = |kind: &Kind, bindings: &str| {
        for item in entries(view, kind) {
            let object = item.body().object();
            if refers(object, bindings) {
                let owners = list(object, "/metadata/ownerReferences");
                let uids = owners.filter_map(|owner| text(owner, "/uid"));
                all.extend(uids.map(str::to_owned));
            }
        }
    };
    add(&kinds::MODULE, "/spec/controlPlaneBindings");
    add(&kinds::BOOTSTRAP_MODULE, "/spec/controlPlaneBindings");
    add(
        &kinds::CONTROLLER_REVISION,
        "/data/spec/controlPlaneBindings",
    );
    all
}

/// Whether a sync of an assemblage refers to something, or names what may.
fn has_references(assemblage: &Value) -> bool {
    let is_reference = |binding: &Value| binding.get("value").is_none();
    list(assemblage, "/spec/syncs")
        .any(|sync| sync.get("module").is_some() || list(sync, "/bindings").any(is_reference))
}

/// Kubeconfigs that assemblages name and that nobody has labelled, and Secrets that stood for clusters and have lost their label: to know
/// when one changes, and whether it is there at all.
pub(super) fn kubeconfigs(view: &View<'_>) -> Vec<Interest> {
    let is_listed = |slot: &str, namespace: &str, name: &str| {
        view.secrets(slot)
            .is_some_and(|store| store.get(namespace, name).is_some())
    };
    let mut names = BTreeSet::new();
    let mut namespaces = BTreeSet::new();
    for item in entries(view, &kinds::REMOTE_ASSEMBLAGE) {
        let namespace = &item.meta().namespace;
        let name = crate::observe::assemblage::kubeconfig(item.body().object());
        let name = name.filter(|name| !name.is_empty());
        names.extend(name.map(|name| (namespace.clone(), name.to_owned())));
        namespaces.insert(namespace.clone());
    }
    for item in bootstraps(view) {
        namespaces.insert(item.meta().namespace.clone());
    }
    for namespace in namespaces {
        let formers = view.formers(&namespace).into_iter();
        names.extend(formers.map(|name| (namespace.clone(), name)));
    }
    names.retain(|(namespace, name)| {
        let slots = [interests::CLUSTERS, interests::KUBECONFIGS];
        !slots.iter().any(|slot| is_listed(slot, namespace, name))
    });
    let all = names.iter();
    all.map(|(namespace, name)| interests::kubeconfig(namespace, name))
        .collect()
}
