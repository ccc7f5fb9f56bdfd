//! Values that are a function of some content, kept once in a process for as long as somebody uses them.
//!
//! Many clusters have the same definitions, roles and texts. Who needs what is made of some content asks the shelf of such
//! values: it gives the one that is in use, or makes it. The shelf itself holds none: the last user takes the value with
//! him, and its place. So it is never larger than what is in use, and nothing has to be cleared.
//!
//! Sharing changes no answer. Values do not change; contents are compared, not only their digests; and where a digest is
//! taken by another content, the value is its user's alone.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Values of one kind, by their contents.
pub(crate) struct Shelf<K: 'static, V: 'static> {
    places: Mutex<Places<K, V>>,
}

/// By the digest of the content.
type Places<K, V> = BTreeMap<u64, Weak<Kept<K, V>>>;

/// A value and the content that it is made of.
pub(crate) struct Kept<K: 'static, V: 'static> {
    shelf: &'static Shelf<K, V>,
    digest: u64,
    content: K,
    value: V,
}

impl<K, V> Shelf<K, V> {
    /// An empty one.
    pub(crate) const fn new() -> Self {
        Self {
            places: Mutex::new(BTreeMap::new()),
        }
    }

    /// The value of this content: the one that is in use, or else the one that `make` gives, with the content to keep.
    pub(crate) fn get<Q>(
        &'static self,
        content: &Q,
        make: impl FnOnce() -> (K, V),
    ) -> Arc<Kept<K, V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let digest = digest(content);
        let is_it = |kept: &Arc<Kept<K, V>>| Borrow::<Q>::borrow(&kept.content) == content;
        if let Some(kept) = self.at(digest).filter(is_it) {
            return kept;
        }
        // Nobody else waits meanwhile: it can take long, and may need other values of this shelf.
        let (content, value) = make();
        let made = Arc::new(Kept {
            shelf: self,
            digest,
            content,
            value,
        });
        match self.put(&made) {
            // Somebody else was faster.
            Some(other) if is_it(&other) => other,
            _ => made,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places<K, V>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, digest: u64) -> Option<Arc<Kept<K, V>>> {
        self.lock().get(&digest).and_then(Weak::upgrade)
    }

    /// Puts a value in its place; gives the one that is there already, if there is one.
    fn put(&self, made: &Arc<Kept<K, V>>) -> Option<Arc<Kept<K, V>>> {
        let mut places = self.lock();
        let there = places.get(&made.digest).and_then(Weak::upgrade);
        if there.is_none() {
            places.insert(made.digest, Arc::downgrade(made));
        }
        // Given back, and so dropped by nobody who holds the lock: dropping the last of a value takes it.
        there
    }

    /// How many values are in use.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// Where a content stands. The same in every run, as is everything here.
fn digest<Q: Hash + ?Sized>(content: &Q) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

impl<K, V> Kept<K, V> {
    /// What it is made of.
    pub(crate) fn content(&self) -> &K {
        &self.content
    }

    /// The digest of the content.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }
}

impl<K, V> Deref for Kept<K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

impl<K, V> Drop for Kept<K, V> {
    fn drop(&mut self) {
        let mut places = self.shelf.lock();
        // Somebody may have made a new one meanwhile, whose place it is now.
        let place = places.get(&self.digest);
        if place.is_some_and(|place| place.strong_count() == 0) {
            places.remove(&self.digest);
        }
    }
}

impl<K, V: fmt::Debug> fmt::Debug for Kept<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn a_value_is_made_once_while_it_is_used_and_goes_with_its_last_user() {
        static SHELF: Shelf<String, usize> = Shelf::new();
        let made = |text: &str| SHELF.get(text, || (text.to_owned(), text.len()));
        let (one, other) = (made("sail"), made("anchor"));
        assert_eq!((**one, **other), (4, 6));
        let again = SHELF.get("sail", || panic!("it is there"));
        assert!(Arc::ptr_eq(&one, &again));
        drop(one);
        assert_eq!(SHELF.len(), 2, "somebody uses it still");
        drop((again, other));
        assert_eq!(SHELF.len(), 0);
        assert_eq!(**made("sail"), 4, "made anew");
    }

    /// Contents of which all have one digest.
    #[derive(PartialEq, Eq)]
    struct Alike(&'static str);

    impl Hash for Alike {
        fn hash<H: Hasher>(&self, state: &mut H) {
            0.hash(state);
        }
    }

    #[test]
    fn contents_of_one_digest_are_told_apart() {
        static SHELF: Shelf<Alike, &str> = Shelf::new();
        let made = |text| SHELF.get(&Alike(text), || (Alike(text), text));
        let (one, other) = (made("a"), made("b"));
        assert_eq!((**one, **other), ("a", "b"));
        assert!(!Arc::ptr_eq(&other, &made("b")), "its place is taken");
        assert!(Arc::ptr_eq(&one, &made("a")));
        drop(other);
        assert!(
            Arc::ptr_eq(&one, &made("a")),
            "the place is not the other's"
        );
    }

    #[test]
    fn a_value_can_need_another_of_its_shelf() {
        static SHELF: Shelf<u32, u64> = Shelf::new();
        fn factorial(n: u32) -> Arc<Kept<u32, u64>> {
            let below = |n: u32| if n == 0 { 1 } else { **factorial(n - 1) };
            SHELF.get(&n, || (n, u64::from(n.max(1)) * below(n)))
        }
        assert_eq!(**factorial(5), 120);
        assert_eq!(SHELF.len(), 0);
    }

    #[test]
    fn many_threads_get_one_value() {
        static SHELF: Shelf<u32, u32> = Shelf::new();
        let all: Vec<_> = std::thread::scope(|scope| {
            let ask = || SHELF.get(&7, || (7, 49));
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(all.iter().all(|kept| Arc::ptr_eq(kept, &all[0])));
        drop(all);
        assert_eq!(SHELF.len(), 0);
    }
}
