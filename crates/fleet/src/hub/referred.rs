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
use super::view::{View, former};
use super::{bootstraps, by_definition, by_referred, entries, interests};
use crate::expansion::Expansion;
use crate::kinds;
use crate::observe::assemblage::kubeconfig;
use crate::observe::reference::Place;
use crate::observe::seen::RemoteSeen;

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
        if !item.body().kept().refers() {
            continue;
        }
        let expansion = Expansion {
            view,
            item: &item,
            fate: Fate::Here,
            record: None,
            is_unread: false,
            is_hidden: false,
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

/// Kubeconfigs that assemblages name and that nobody has labelled, and Secrets that stood for clusters and have lost their label: to know
/// when one changes, and whether it is there at all.
pub(super) fn kubeconfigs(view: &View<'_>) -> Vec<Interest> {
    let slots = [interests::CLUSTERS, interests::KUBECONFIGS];
    let listed = slots.map(|slot| view.secrets(slot));
    let mut names = BTreeSet::new();
    let mut add = |namespace: &str, name: Option<&str>| {
        let is_listed = |name: &str| {
            let mut listed = listed.iter().flatten();
            listed.any(|store| store.get(namespace, name).is_some())
        };
        // Of a thousand hardly any is copied.
        let name = name.filter(|name| !name.is_empty() && !is_listed(name));
        names.extend(name.map(|name| (namespace.to_owned(), name.to_owned())));
    };
    let remotes = view
        .stores
        .list::<RemoteSeen>(&view.home, &kinds::REMOTE_ASSEMBLAGE);
    for remote in remotes {
        let object = remote.body.object();
        let (named, stood) = (kubeconfig(object), former(object));
        add(&remote.meta.namespace, named);
        // Nearly always it is the same.
        add(&remote.meta.namespace, stood.filter(|_| stood != named));
    }
    for item in bootstraps(view) {
        add(&item.meta().namespace, former(item.body().object()));
    }
    let all = names.iter();
    all.map(|(namespace, name)| interests::kubeconfig(namespace, name))
        .collect()
}
