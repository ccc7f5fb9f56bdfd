//! Writes the history of a run while it happens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::environment::Clock;
use slipway_apiserver::store;

use super::{Call, Change, ChangeKind, Event, History, Image, Mark, Object, Request, Review};

#[derive(Debug, Default)]
struct Book {
    history: History,
    latest: BTreeMap<Object, Arc<Image>>,
    /// Up to which of the cluster's versions.
    seen: u64,
    /// How much later than the cluster's the history's versions are: they never run backwards.
    shift: u64,
    /// The cluster's version that everything was last put back to.
    restored: u64,
}

/// Writes down what happens in one cluster. Clones write into one book.
#[derive(Debug, Clone)]
pub struct Recorder {
    cluster: Arc<Cluster>,
    clock: Arc<dyn Clock>,
    book: Arc<Mutex<Book>>,
}

impl Recorder {
    /// A book in which is what there is already.
    pub fn new(cluster: Arc<Cluster>, clock: Arc<dyn Clock>) -> Self {
        let start = clock.now();
        let base = cluster.version();
        let mut book = Book {
            history: History {
                start,
                end: start,
                calm: start,
                base,
                ..History::default()
            },
            seen: base,
            ..Book::default()
        };
        let (mut objects, _) = cluster.everything();
        objects.sort_by_key(|(_, object)| object.version);
        for (resource, object) in objects {
            let added = store::Change {
                version: object.version,
                kind: store::ChangeKind::Added,
                object,
                before: None,
            };
            book.add(start, &resource, added);
        }
        Self {
            cluster,
            clock,
            book: Arc::new(Mutex::new(book)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows all changes until dropped. Time stands still until it has caught up, so it knows when each happened.
    pub async fn follow(self) {
        loop {
            let written = self.cluster.next_write();
            self.catch_up();
            written.await;
        }
    }

    /// Writes down all changes so far.
    pub fn catch_up(&self) {
        let at = self.clock.now();
        let mut book = self.lock();
        // A compaction between two looks would hide changes; then the book goes on from what is there.
        let Ok((changes, seen)) = self.cluster.history(book.seen) else {
            book.seen = self.cluster.version();
            return;
        };
        book.seen = seen;
        for (resource, change) in changes {
            book.add(at, &resource, change);
        }
    }

    /// The version of the present, in this history.
    pub fn version(&self) -> u64 {
        let shift = self.lock().shift;
        self.cluster.version() + shift
    }

    /// A version of the cluster's that the operator spoke of now, in this history.
    pub fn translate(&self, version: u64) -> u64 {
        let present = self.cluster.version();
        let book = self.lock();
        // Nobody has given out a version yet that is larger than the present one: it is from before everything was put back.
        if version <= book.restored || version > present {
            return version;
        }
        version + book.shift
    }

    /// Everything is put back by `put`; what that changes happens at one version.
    pub fn restore(&self, put: impl FnOnce()) {
        self.catch_up();
        self.mark(Event::Restored);
        let at = self.clock.now();
        let mut book = self.lock();
        let now = book.seen + book.shift;
        put();
        let (objects, version) = self.cluster.everything();
        book.shift = (now + 1).saturating_sub(version);
        book.seen = version;
        book.restored = version;
        book.put_back(at, objects);
    }

    /// All objects of a resource as they are now.
    pub fn all(&self, resource: &str) -> Vec<Arc<Image>> {
        self.catch_up();
        let book = self.lock();
        let of = book
            .latest
            .iter()
            .filter(|(object, _)| &*object.0 == resource);
        of.map(|(_, image)| image.clone()).collect()
    }

    /// Writes a request down as it leaves; gives its number.
    pub fn sent(&self, request: Request) {
        self.lock().history.requests.push(request);
    }

    /// Writes down how a request ended. What it changed is its deed.
    pub fn ended(&self, number: u64, change: impl FnOnce(&mut Request)) {
        let mut book = self.lock();
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(request) = book.history.requests.get_mut(at) {
            change(request);
        }
    }

    /// Writes down what a webhook is asked; gives the number of the review.
    pub fn asked(&self, review: Review) -> usize {
        let reviews = &mut self.lock().history.reviews;
        reviews.push(review);
        reviews.len() - 1
    }

    /// Writes down what a webhook said.
    pub fn said(&self, number: usize, response: serde_json::Value) {
        let (at, version) = (self.clock.now(), self.version());
        if let Some(review) = self.lock().history.reviews.get_mut(number) {
            review.ended = at;
            review.versions.1 = version;
            review.said = Some(response);
        }
    }

    /// Writes down what a pod was asked.
    pub fn called(&self, call: Call) {
        self.lock().history.calls.push(call);
    }

    /// An object as it is now.
    pub fn latest(&self, object: &Object) -> Option<Arc<Image>> {
        self.catch_up();
        self.lock().latest.get(object).cloned()
    }

    /// Writes a mark.
    pub fn mark(&self, what: Event) {
        let at = self.clock.now();
        let mut book = self.lock();
        if let Event::Skewed(_, seconds) = &what {
            let off = Duration::from_secs(seconds.unsigned_abs());
            book.history.skew = book.history.skew.max(off);
        }
        book.history.marks.push(Mark { at, what });
    }

    /// Something goes wrong on purpose, for so long.
    pub fn disturbed_for(&self, time: Duration) {
        let now = self.clock.now();
        let until = now.checked_add(time).unwrap_or(Timestamp::MAX);
        let mut book = self.lock();
        book.history.calm = book.history.calm.max(until);
    }

    /// The history so far.
    pub fn close(&self) -> History {
        self.catch_up();
        let mut book = self.lock();
        let mut history = std::mem::take(&mut book.history);
        history.end = self.clock.now();
        history.attribute();
        history
    }
}

impl Book {
    fn add(&mut self, at: Timestamp, resource: &str, change: store::Change) {
        let header = &change.object.header;
        let object: Object = (
            resource.into(),
            (*header.namespace).into(),
            (*header.name).into(),
        );
        let before = self.latest.get(&object).cloned();
        let (kind, after) = match change.kind {
            store::ChangeKind::Deleted => {
                self.latest.remove(&object);
                (ChangeKind::Deleted, None)
            }
            made => {
                let image = Arc::new(Image::stored(change.object));
                self.latest.insert(object.clone(), image.clone());
                let kind = if made == store::ChangeKind::Added {
                    ChangeKind::Added
                } else {
                    ChangeKind::Modified
                };
                (kind, Some(image))
            }
        };
        self.history.changes.push(Change {
            at,
            version: change.version + self.shift,
            kind,
            object,
            before,
            after,
            by: None,
        });
    }

    /// What there is instead of what there was.
    fn put_back(&mut self, at: Timestamp, objects: Vec<store::Named<Arc<store::Stored>>>) {
        let version = self.seen + self.shift;
        let mut found: BTreeMap<Object, Arc<store::Stored>> = BTreeMap::new();
        for (resource, stored) in objects {
            let header = &stored.header;
            let (namespace, name) = ((*header.namespace).into(), (*header.name).into());
            found.insert(((*resource).into(), namespace, name), stored);
        }
        let known: Vec<Object> = self.latest.keys().chain(found.keys()).cloned().collect();
        let known: std::collections::BTreeSet<Object> = known.into_iter().collect();
        for object in known {
            let before = self.latest.get(&object).cloned();
            let after = found.remove(&object).map(|s| Arc::new(Image::stored(s)));
            let kind = match (&before, &after) {
                (Some(before), Some(after)) if before.value() == after.value() => continue,
                (Some(_), Some(_)) => ChangeKind::Modified,
                (None, _) => ChangeKind::Added,
                (Some(_), None) => ChangeKind::Deleted,
            };
            match &after {
                Some(image) => self.latest.insert(object.clone(), image.clone()),
                None => self.latest.remove(&object),
            };
            self.history.changes.push(Change {
                at,
                version,
                kind,
                object,
                before,
                after,
                by: None,
            });
        }
    }
}

impl History {
    /// Says of each change which request of the operator did it. Nothing else runs while a request is carried out, except
    /// while webhooks are asked about a change: of that the last version is its own.
    fn attribute(&mut self) {
        for request in self.requests.iter().filter(|r| r.is_committed()) {
            let (mut before, after) = request.versions;
            let changes = matches!(request.method.as_str(), "PATCH" | "PUT");
            if changes {
                before = before.max(after - 1);
            }
            let first = self.changes.partition_point(|c| c.version <= before);
            let made = self.changes.iter_mut().skip(first);
            for change in made.take_while(|c| c.version <= after) {
                let name = format!("/{}", change.object.2);
                if !changes || request.path().contains(&name) {
                    change.by = Some(request.number);
                }
            }
        }
    }
}
