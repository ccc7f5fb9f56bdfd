//! What there is no room for: a member that tells of more objects of a kind than are taken in.
//!
//! A list has its own bounds ([`Bounds`](crate::watch::Bounds)). What streams add to it, and lists that come to nothing, is counted here,
//! where it is kept. Nothing is kept of a kind of which there is too much: it is not known, and that is said.

use slipway_kernel::interest::Need;
use slipway_kernel::store::{Meta, Store};

use super::Engine;
use super::unseen::trust;
use crate::state::{State, Trust};
use crate::watch::{Failure, News, WatchKey};

impl Engine {
    /// Whether there is no room for what a watch tells of objects: it does not know that yet, and all of it is left out.
    pub(super) fn is_left_out(&self, key: &WatchKey, news: &News) -> bool {
        let is_about_objects = matches!(
            news,
            News::Listing(_)
                | News::Page(_)
                | News::Listed(..)
                | News::Applied(_)
                | News::Deleted(_)
        );
        let site = self.sites.get(&key.cluster);
        let watched = site.and_then(|site| site.watches.get(key));
        is_about_objects && watched.is_some_and(|watched| watched.control.is_crowded())
    }

    /// Whether there is room for so many more objects of a list. Until it is complete those are there as well that are gone.
    pub(super) fn has_room_for(&self, state: &State, key: &WatchKey, more: usize) -> bool {
        let most = self.most(key).saturating_mul(2);
        stores(state, key).all(|store| store.len() + more <= most)
    }

    /// Whether there is room for an object, or it is there already.
    pub(super) fn has_room(&self, state: &State, key: &WatchKey, object: &Meta) -> bool {
        let most = self.most(key);
        let is_known = |store: &Store| store.get(&object.namespace, &object.name).is_some();
        stores(state, key).all(|store| store.len() < most || is_known(store))
    }

    /// Whether there are no more objects than are taken in.
    pub(super) fn fits(&self, state: &State, key: &WatchKey) -> bool {
        let most = self.most(key);
        stores(state, key).all(|store| store.len() <= most)
    }

    /// How many objects of a kind are taken in.
    fn most(&self, key: &WatchKey) -> usize {
        match self.shared.settings.bound_of(&key.cluster) {
            0 => usize::MAX,
            most => most,
        }
    }

    /// There is more of a kind of a member than is taken in: it counts as not listed, nothing is kept of it, and nothing is done where
    /// it is needed.
    pub(super) fn too_much(&mut self, state: &mut State, key: &WatchKey, why: &Failure) {
        let Some(known) = state.of_mut(&key.cluster) else {
            return;
        };
        if let Some(member) = &mut known.member {
            let why = why.to_string();
            member.excess.insert(key.clone(), why.into());
        }
        let Some(watch) = known.watches.get_mut(key) else {
            return;
        };
        watch.listed = false;
        watch.control.make_room();
        let is_needed = watch.need != Need::Optional;
        trust(state, key, Trust::Unlisted);
        forget(state, key);
        self.sync(state, key);
        if is_needed {
            self.hold(&key.cluster);
        }
    }
}

/// Forgets what is known of the objects of a watch.
pub(super) fn forget(state: &mut State, key: &WatchKey) {
    for store in state.fed_by(key).to_vec() {
        let seen = state.stores.store_mut(&store);
        let gone = seen.map(|store| match key.single() {
            Some(name) => store.forget(&name).into_iter().collect(),
            None => store.forget_extent(&key.namespace),
        });
        for meta in gone.unwrap_or_default() {
            state.changes.push((store.as_ref().clone(), meta));
        }
    }
}

/// There is room for all of a kind, or nothing of it is watched any more.
pub(super) fn fitting(state: &mut State, key: &WatchKey) {
    let member = state.of_mut(&key.cluster).and_then(|k| k.member.as_mut());
    if let Some(member) = member {
        member.excess.remove(key);
    }
}

/// The stores that a watch feeds.
fn stores<'a>(state: &'a State, key: &WatchKey) -> impl Iterator<Item = &'a Store> + use<'a> {
    let fed = state.fed_by(key).iter();
    fed.filter_map(move |store| state.stores.store(store))
}
