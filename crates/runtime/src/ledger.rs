//! What we have written and not yet seen come back through the watch, and what answers told beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slipway_kernel::action::Target;
use slipway_kernel::identity::{Kind, ObjectRef};
use slipway_kernel::store::{Name, number};

/// How many writes are remembered; what is not watched would otherwise stay for ever.
const MOST: usize = 8_192;

#[derive(Debug, Clone, Copy)]
struct Written {
    version: u64,
    place: u64,
}

/// Our last write to each object of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    written: BTreeMap<ObjectRef, Written>,
    order: BTreeMap<u64, ObjectRef>,
    /// Places of what we were told and have not written: these are forgotten first.
    told: BTreeSet<u64>,
    last: Places,
}

/// The last place in the order of what we wrote and were told. Whoever begins a list reads it before: what comes after
/// may be newer than the list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Arc<AtomicU64>);

impl Places {
    pub(crate) fn last(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Takes the next one.
    pub(crate) fn step(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }
}

impl Ledger {
    /// Our write made the object this version.
    pub(crate) fn record(&mut self, object: &ObjectRef, version: u64) {
        self.forget(object);
        let place = self.last.step();
        self.order.insert(place, object.clone());
        if version == 0 {
            self.told.insert(place);
        }
        self.written
            .insert(object.clone(), Written { version, place });
        while self.order.len() > MOST {
            let told = self.told.first().copied();
            let first = told.or_else(|| self.order.keys().next().copied());
            let Some(oldest) = first.and_then(|place| self.order.get(&place).cloned()) else {
                return;
            };
            self.forget(&oldest);
        }
    }

    /// An answer has told of the object, or that it is gone.
    pub(crate) fn note(&mut self, object: &ObjectRef) {
        let version = self.written.get(object).map_or(0, |w| w.version);
        self.record(object, version);
    }

    /// Forgets all of it; places go on.
    pub(crate) fn clear(&mut self) {
        self.written.clear();
        self.order.clear();
        self.told.clear();
    }

    /// The object is gone.
    pub(crate) fn forget(&mut self, object: &ObjectRef) {
        if let Some(before) = self.written.remove(object) {
            self.order.remove(&before.place);
            self.told.remove(&before.place);
        }
    }

    /// The watch has shown this version of the object.
    pub(crate) fn caught_up(&mut self, object: &ObjectRef, version: u64) {
        if self
            .written
            .get(object)
            .is_some_and(|w| w.version <= version)
        {
            self.forget(object);
        }
    }

    /// Whether the target was seen before our last write to it: what was decided on it is out of date.
    pub(crate) fn is_stale(&self, target: &Target) -> bool {
        let written = self.written.get(target.object());
        written.is_some_and(|w| number(target.version()) < w.version)
    }

    /// The order of what we wrote and were told, for [`Ledger::since`].
    pub(crate) fn places(&self) -> Places {
        self.last.clone()
    }

    /// Whether we have written the object since, or were told of it.
    pub(crate) fn is_since(&self, place: u64, object: &ObjectRef) -> bool {
        self.written.get(object).is_some_and(|w| w.place > place)
    }

    /// What we have written since or were told of, of one kind.
    pub(crate) fn since(&self, place: u64, kind: &Kind) -> BTreeSet<Name> {
        self.order
            .range(place + 1..)
            .map(|(_, object)| object)
            .filter(|object| object.kind == *kind)
            .map(|object| (object.namespace.clone(), object.name.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slipway_kernel::identity::kinds;
    use slipway_kernel::store::Meta;

    fn object(name: &str) -> ObjectRef {
        ObjectRef::local(kinds::POD, "default", name)
    }

    fn target(name: &str, version: &str) -> Target {
        let meta = Meta {
            version: version.to_owned(),
            ..Meta::default()
        };
        Target::seen(object(name), &meta)
    }

    #[test]
    fn a_target_older_than_our_own_write_is_stale_until_the_watch_has_caught_up() {
        let mut ledger = Ledger::default();
        ledger.record(&object("a"), 7);
        assert!(ledger.is_stale(&target("a", "6")));
        assert!(!ledger.is_stale(&target("a", "7")));
        assert!(!ledger.is_stale(&target("b", "6")));
        ledger.caught_up(&object("a"), 6);
        assert!(ledger.is_stale(&target("a", "6")));
        ledger.caught_up(&object("a"), 7);
        assert!(!ledger.is_stale(&target("a", "6")));
        assert!(ledger.order.is_empty());
    }

    #[test]
    fn reads_for_reviews_do_not_make_us_forget_our_own_writes() {
        let mut ledger = Ledger::default();
        ledger.record(&object("ours"), 7);
        for n in 0..MOST + 10 {
            ledger.note(&object(&n.to_string()));
        }
        assert!(ledger.is_stale(&target("ours", "6")));
        assert_eq!(ledger.written.len(), MOST);
        assert_eq!(ledger.order.len(), MOST);
        assert_eq!(ledger.told.len(), MOST - 1);
    }

    #[test]
    fn what_a_review_has_read_while_a_list_was_made_is_not_taken_out_by_the_list() {
        let mut ledger = Ledger::default();
        let place = ledger.places().last();
        ledger.note(&object("read"));
        let since = ledger.since(place, &kinds::POD);
        assert!(since.contains(&("default".to_owned(), "read".to_owned())));
    }

    #[test]
    fn it_is_bounded_and_forgets_the_oldest() {
        let mut ledger = Ledger::default();
        let place = ledger.places().last();
        for n in 0..MOST + 10 {
            ledger.record(&object(&n.to_string()), 5);
        }
        assert_eq!(ledger.written.len(), MOST);
        assert_eq!(ledger.order.len(), MOST);
        assert!(!ledger.is_stale(&target("0", "1")));
        assert!(ledger.is_stale(&target(&MOST.to_string(), "1")));
        let since = ledger.since(place, &kinds::POD);
        assert_eq!(since.len(), MOST);
        assert!(ledger.since(ledger.places().last(), &kinds::POD).is_empty());
    }
}
