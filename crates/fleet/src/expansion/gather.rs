//! The world of an assemblage where it is expanded.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use slipway_api::fleet::names::MADE_FOR;
use slipway_api::fleet::sync::NamedSync;
use slipway_bindings::{Found, Known, Read, Reference, Text};
use slipway_kernel::fact::Cause;
use slipway_kernel::fields::{strings, text};
use slipway_kernel::store::{Item, Meta, Store};
use slipway_kernel::{Facts, Kind, ObjectRef, Target};

use super::{Expansion, target_namespace};
use crate::assemblage::{KustomizationSeen, SourceSeen, World};
use crate::hub::interests::MADE;
use crate::hub::remote::filled;
use crate::hub::view::{items, reference};
use crate::observe::elements::Element;
use crate::observe::kept::Kept;
use crate::observe::reference::Place;
use crate::observe::seen::{Assembled, Bare, Whole};
use crate::remote::unreadable;
use crate::render::assignment::revealed;
use crate::specialise::{Specialised, Substitutions, substitutions};
use crate::{kinds, naming};

impl Expansion<'_> {
    pub(super) fn object(&self) -> &Value {
        self.item.body().object()
    }

    pub(super) fn meta(&self) -> &Meta {
        self.item.meta()
    }

    pub(super) fn target(&self) -> Target {
        Target::seen(reference(&kinds::ASSEMBLAGE, self.meta()), self.meta())
    }

    /// All of it.
    pub(super) fn kept(&self) -> &Kept {
        self.item.body().kept()
    }

    /// Its syncs; those that cannot be read by their names only.
    pub(super) fn syncs(&self) -> Vec<NamedSync> {
        let all = self.read().into_iter();
        all.map(|(sync, _)| sync).collect()
    }

    /// Its syncs, each with why it cannot be read, if it cannot. None is left out: what is not asked for is taken away.
    fn read(&self) -> Vec<(NamedSync, Option<Specialised<Substitutions>>)> {
        let all = self.kept().syncs().iter();
        let read = |sync: &Element| match sync.read::<NamedSync>() {
            Ok(sync) => Some((sync, None)),
            Err(error) => {
                let (named, blocked) = unreadable(&sync.value(), &error)?;
                Some((named, Some(blocked)))
            }
        };
        all.filter_map(read).collect()
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place {
            stores: self.view.stores,
            cluster: &self.view.home,
            namespace: &self.meta().namespace,
            assemblage: Some(&self.meta().name),
        }
    }

    /// What its syncs refer to.
    pub(crate) fn references(&self) -> BTreeSet<Reference> {
        let facts = Facts::default();
        let mut all = BTreeSet::new();
        let readable = self
            .read()
            .into_iter()
            .filter(|(_, blocked)| blocked.is_none());
        for (sync, _) in readable {
            let (_, specialised) = self.specialised(&facts, sync);
            all.extend(match specialised {
                Specialised::Done(values) => values.references,
                Specialised::Unread { references, .. }
                | Specialised::Blocked { references, .. } => references,
            });
        }
        all
    }

    /// The namespaces that its syncs are to be in, where that is this cluster.
    pub(crate) fn namespaces(&self) -> BTreeSet<String> {
        if self.item.body().cluster().is_some() {
            return BTreeSet::new();
        }
        let all = self
            .syncs()
            .into_iter()
            .filter_map(|sync| target_namespace(&sync));
        all.collect()
    }

    /// A sync, with what its bindings come to.
    pub(super) fn specialised(
        &self,
        facts: &Facts,
        sync: NamedSync,
    ) -> (NamedSync, Specialised<Substitutions>) {
        let (sync, secret) = match self.filled(facts, &sync) {
            None => (sync, None),
            Some(Specialised::Done(assigned)) => (assigned.sync, assigned.secret),
            Some(Specialised::Unread { needs, references }) => {
                return (sync, Specialised::Unread { needs, references });
            }
            Some(Specialised::Blocked {
                reason,
                message,
                references,
            }) => {
                let blocked = Specialised::Blocked {
                    reason,
                    message,
                    references,
                };
                return (sync, blocked);
            }
        };
        let mut known = Known::new();
        loop {
            let specialised = substitutions(&sync, &known);
            let Specialised::Unread { needs, .. } = &specialised else {
                return (sync, specialised);
            };
            let mut read = self.place().read(facts, needs);
            read.extend(needs.iter().filter_map(|need| {
                let (name, data) = secret.as_ref()?;
                Some((need.clone(), in_hand(need, name, data)?))
            }));
            if read.is_empty() {
                return (sync, specialised);
            }
            known.extend(read);
        }
    }

    /// What a sync that names a module comes to: only in the control plane there are modules.
    pub(super) fn filled(
        &self,
        facts: &Facts,
        sync: &NamedSync,
    ) -> Option<Specialised<crate::specialise::Assigned>> {
        let cluster = self.item.body().cluster()?;
        let place = (self.meta(), cluster);
        filled(self.view, facts, &kinds::BOOTSTRAP_MODULE, place, sync)
    }

    pub(super) fn world(&self, facts: &Facts) -> World {
        let meta = self.meta();
        let before = self.kept().status().syncs;
        World {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            kubeconfig: text(self.object(), "/spec/kubeconfigRef/name").map(str::to_owned),
            syncs: self
                .read()
                .into_iter()
                .map(|(sync, blocked)| match blocked {
                    Some(blocked) => (sync, blocked),
                    None => self.specialised(facts, sync),
                })
                .collect(),
            hashes: self
                .kept()
                .syncs()
                .iter()
                .filter_map(|sync| Some((sync.name()?.to_owned(), sync.hash().to_owned())))
                .collect(),
            before: before
                .into_iter()
                .map(|told| (told.name.clone(), told))
                .collect(),
            sources: self.sources(),
            kustomizations: self.kustomizations(),
            secrets: self.secrets().into_keys().collect(),
            refusals: refusals(facts),
            wanted_by_others: self.wanted_by_others(facts),
        }
    }

    /// The sources that other assemblages of the namespace want. Where that cannot be known here, all that there are: what somebody may
    /// want is not deleted.
    fn wanted_by_others(&self, facts: &Facts) -> BTreeSet<String> {
        let meta = self.meta();
        let mut others = self.view.assemblages(&meta.namespace);
        others.retain(|one| one.meta().name != meta.name);
        let kind = &kinds::BOOTSTRAP_MODULE;
        let modules = self.view.stores.typed::<Whole>(&self.view.home, kind);
        let is_hidden = |one: &Item<Assembled>| {
            let is_named = one.body().cluster().is_some() && one.body().names_modules();
            is_named && !modules.is_some_and(Store::is_synced)
        };
        if others.iter().any(is_hidden) {
            return self.sources().into_keys().collect();
        }
        let wanted = others.iter().flat_map(|one| self.wanted_by(facts, one));
        wanted.collect()
    }

    /// The sources that another assemblage wants, also by naming modules.
    fn wanted_by(&self, facts: &Facts, item: &Item<Assembled>) -> BTreeSet<String> {
        let mut all = item.body().sources().clone();
        if item.body().names_modules() {
            let other = Expansion {
                view: self.view,
                item,
                fate: self.fate,
                record: None,
                is_unread: false,
                is_hidden: false,
                objection: None,
            };
            let filled = other.syncs().into_iter();
            let filled = filled.filter_map(|sync| match other.filled(facts, &sync)? {
                Specialised::Done(assigned) => assigned.sync.source,
                _ => None,
            });
            all.extend(filled.map(|source| naming::source(&source)));
        }
        all
    }

    pub(super) fn store<T: slipway_kernel::store::Projection>(
        &self,
        kind: &Kind,
    ) -> Option<&Store> {
        self.view.stores.typed::<T>(&self.view.home, kind)
    }

    pub(super) fn sources(&self) -> BTreeMap<String, SourceSeen> {
        let store = self.store::<SourceSeen>(&kinds::GIT_REPOSITORY);
        let all = items::<SourceSeen>(store, &self.meta().namespace);
        all.iter()
            .map(|item| (item.meta().name.clone(), item.body().clone()))
            .collect()
    }

    pub(super) fn kustomizations(&self) -> BTreeMap<String, KustomizationSeen> {
        let store = self.store::<KustomizationSeen>(&kinds::KUSTOMIZATION);
        let all = items::<KustomizationSeen>(store, &self.meta().namespace);
        all.iter()
            .map(|item| (item.meta().name.clone(), item.body().clone()))
            .collect()
    }

    /// The Secrets that were made for it.
    pub(super) fn secrets(&self) -> BTreeMap<String, Meta> {
        let all = items::<Bare>(self.view.secrets(MADE), &self.meta().namespace);
        let is_ours = |item: &Item<Bare>| {
            let said = strings(item.body().object(), "/metadata/annotations");
            said.get(MADE_FOR) == Some(&self.meta().name)
        };
        let ours = all.into_iter().filter(is_ours);
        ours.map(|item| (item.meta().name.clone(), item.meta().clone()))
            .collect()
    }
}

/// What the API refused. That it has too much to do is nobody's fault.
pub(super) fn refusals(facts: &Facts) -> BTreeMap<ObjectRef, String> {
    let all = facts.refusals.iter();
    let all = all.filter(|(_, refusal)| refusal.cause != Cause::Busy);
    all.map(|(object, refusal)| (object.clone(), refusal.message.clone()))
        .collect()
}

/// The Secret with the values of what was filled in here, as if it had been read: nobody has to make it for what is expanded where it
/// is filled in. Its name has the revision of the values in it.
fn in_hand(need: &Reference, name: &str, data: &BTreeMap<String, Text>) -> Option<Read> {
    let is_it = matches!(need, Reference::Object { kind, name: asked, .. } if kind == "Secret" && asked == name);
    is_it.then(|| {
        Read::Found(Found::new(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "uid": name, "resourceVersion": "0"},
            "data": revealed(data),
        })))
    })
}
