//! Writes the history of a run while it happens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::environment::Clock;
use slipway_apiserver::store;
use slipway_kernel::identity::ClusterId;

use super::beginning::{Beginning, named};
use super::{
    Asked, Call, Change, ChangeKind, Course, Event, History, Image, Log, Mark, Object, Request,
    Review,
};

#[derive(Debug, Default)]
struct Book {
    history: History,
    /// What is known of each cluster; home is the first.
    waters: Vec<Water>,
    /// How often webhooks, pods and the world outside were asked or answered.
    spoken: u64,
}

/// What is known of one cluster.
#[derive(Debug)]
struct Water {
    id: ClusterId,
    cluster: Arc<Cluster>,
    latest: BTreeMap<Object, Arc<Image>>,
    /// Up to which of the cluster's versions.
    seen: u64,
    /// How much later than the cluster's the history's versions are: they never run backwards.
    shift: u64,
    /// The cluster's version that everything was last put back to.
    restored: u64,
}

/// Writes down what happens in one cluster, and of the operator whatever happens. Clones, and those of other clusters of a
/// run, write into one book.
#[derive(Debug, Clone)]
pub struct Recorder {
    cluster: Arc<Cluster>,
    clock: Arc<dyn Clock>,
    book: Arc<Mutex<Book>>,
    /// Which of the book's waters.
    at: usize,
}

impl Recorder {
    /// A book in which is what there is already at home, from the beginning.
    pub fn new(cluster: Arc<Cluster>, clock: Arc<dyn Clock>, beginning: &Beginning) -> Self {
        let start = clock.now();
        let book = Book {
            history: History {
                start,
                end: start,
                calm: start,
                ..History::default()
            },
            waters: Vec::new(),
            spoken: 0,
        };
        let home = Self {
            cluster: cluster.clone(),
            clock,
            book: Arc::new(Mutex::new(book)),
            at: 0,
        };
        home.beside(ClusterId::local(), cluster, beginning)
    }

    /// One for another cluster, in the same book.
    #[must_use]
    pub fn beside(&self, id: ClusterId, cluster: Arc<Cluster>, beginning: &Beginning) -> Self {
        let now = self.clock.now();
        let base = cluster.version();
        let mut book = self.lock();
        let at = book.waters.len();
        book.begin(id.clone(), base);
        let log = book.history.log(&id);
        log.extend(beginning.0.iter().map(|(version, object, image)| Change {
            at: now,
            version: *version,
            kind: ChangeKind::Added,
            object: object.clone(),
            before: None,
            after: Some(image.clone()),
            by: None,
        }));
        let latest = beginning.0.iter();
        book.waters.push(Water {
            id,
            cluster: cluster.clone(),
            latest: latest
                .map(|(_, o, image)| (o.clone(), image.clone()))
                .collect(),
            seen: base,
            shift: 0,
            restored: 0,
        });
        drop(book);
        Self {
            cluster,
            clock: self.clock.clone(),
            book: self.book.clone(),
            at,
        }
    }

    /// The time by which is written down.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
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

    /// Writes down all changes in this cluster so far.
    pub fn catch_up(&self) {
        self.lock().catch_up(self.at, self.clock.now());
    }

    /// The version of the present, in this history.
    pub fn version(&self) -> u64 {
        let shift = self.lock().water(self.at).map_or(0, |water| water.shift);
        self.cluster.version() + shift
    }

    /// How much has happened that stays when a replica dies: changes in all clusters, what was said beside them, and what became of
    /// replicas.
    pub fn tide(&self) -> u64 {
        let book = self.lock();
        let waters = book.waters.iter();
        let changed: u64 = waters.map(|w| w.cluster.version() + w.shift).sum();
        changed + book.spoken + book.history.marks.len() as u64
    }

    /// A version of the cluster's that the operator spoke of now, in this history.
    pub fn translate(&self, version: u64) -> u64 {
        let present = self.cluster.version();
        let book = self.lock();
        let Some(water) = book.water(self.at) else {
            return version;
        };
        // Nobody has given out a version yet that is larger than the present one: it is from before everything was put back.
        if version <= water.restored || version > present {
            return version;
        }
        version + water.shift
    }

    /// Everything in this cluster is put back by `put`; what that changes happens at one version.
    pub fn restore(&self, put: impl FnOnce()) {
        self.catch_up();
        if self.at == 0 {
            self.mark(Event::Restored);
        }
        let at = self.clock.now();
        let mut book = self.lock();
        put();
        let (objects, version) = self.cluster.everything();
        if let Some(water) = book.waters.get_mut(self.at) {
            let now = water.seen + water.shift;
            water.shift = (now + 1).saturating_sub(version);
            water.seen = version;
            water.restored = version;
        }
        book.put_back(self.at, at, objects);
    }

    /// All objects of a resource as they are now.
    pub fn all(&self, resource: &str) -> Vec<Arc<Image>> {
        self.catch_up();
        let book = self.lock();
        let latest = book.water(self.at).into_iter().flat_map(|w| &w.latest);
        let of = latest.filter(|(object, _)| &*object.0 == resource);
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
        let mut book = self.lock();
        book.spoken += 1;
        book.history.reviews.push(review);
        book.history.reviews.len() - 1
    }

    /// Writes down what a webhook said.
    pub fn said(&self, number: usize, response: serde_json::Value) {
        let (at, version) = (self.clock.now(), self.version());
        let mut book = self.lock();
        book.spoken += 1;
        if let Some(review) = book.history.reviews.get_mut(number) {
            review.ended = at;
            review.versions.1 = version;
            review.said = Some(response);
        }
    }

    /// Writes down what a pod was asked.
    pub fn called(&self, call: Call) {
        let mut book = self.lock();
        book.spoken += 1;
        book.history.calls.push(call);
    }

    /// Writes down a call to the world outside.
    pub fn calls(&self, asked: Asked) {
        let mut book = self.lock();
        book.spoken += 1;
        book.history.asked.push(asked);
    }

    /// A call has arrived.
    pub fn arrived(&self, number: u64) {
        self.of_call(number, |asked| asked.arrived += 1);
    }

    /// The operator is told what came of a call.
    pub fn told(&self, number: u64, code: u16) {
        let now = self.clock.now();
        self.of_call(number, |asked| asked.told = Some((now, code)));
    }

    /// The same, with the whole answer.
    pub fn told_all(&self, number: u64, code: u16, body: &str) {
        let now = self.clock.now();
        self.of_call(number, |asked| {
            asked.told = Some((now, code));
            asked.said = Some(body.to_owned());
        });
    }

    fn of_call(&self, number: u64, change: impl FnOnce(&mut Asked)) {
        let mut book = self.lock();
        book.spoken += 1;
        let mut all = book.history.asked.iter_mut().rev();
        if let Some(asked) = all.find(|asked| asked.number == number) {
            change(asked);
        }
    }

    /// An object as it is now.
    pub fn latest(&self, object: &Object) -> Option<Arc<Image>> {
        self.catch_up();
        let book = self.lock();
        book.water(self.at)?.latest.get(object).cloned()
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

    /// When the last fault is over.
    pub fn calm(&self) -> Timestamp {
        self.lock().history.calm
    }

    /// Whether anything has gone wrong on purpose.
    pub fn is_disturbed(&self) -> bool {
        self.lock().history.is_disturbed()
    }

    /// The history so far, of all clusters.
    pub fn close(&self) -> History {
        let now = self.clock.now();
        let mut book = self.lock();
        for at in 0..book.waters.len() {
            book.catch_up(at, now);
        }
        let mut history = std::mem::take(&mut book.history);
        history.end = self.clock.now();
        history.attribute();
        history
    }
}

impl Book {
    fn water(&self, at: usize) -> Option<&Water> {
        self.waters.get(at)
    }

    /// A cluster appears, at this version.
    fn begin(&mut self, id: ClusterId, base: u64) {
        if id.is_local() {
            self.history.base = base;
            return;
        }
        let course = Course {
            base,
            changes: Log::default(),
        };
        self.history.members.insert(id, course);
    }

    fn catch_up(&mut self, at: usize, now: Timestamp) {
        let Some(water) = self.waters.get_mut(at) else {
            return;
        };
        // A compaction between two looks would hide changes; then the book goes on from what is there.
        let Ok((changes, seen)) = water.cluster.history(water.seen) else {
            water.seen = water.cluster.version();
            return;
        };
        water.seen = seen;
        for (resource, change) in changes {
            self.add(at, now, &resource, change);
        }
    }

    fn add(&mut self, at: usize, now: Timestamp, resource: &str, change: store::Change) {
        let object = named(resource, &change.object);
        let Some(water) = self.waters.get_mut(at) else {
            return;
        };
        let before = water.latest.get(&object).cloned();
        let (kind, after) = match change.kind {
            store::ChangeKind::Deleted => {
                water.latest.remove(&object);
                (ChangeKind::Deleted, None)
            }
            made => {
                let image = Arc::new(Image::stored(change.object));
                water.latest.insert(object.clone(), image.clone());
                let kind = if made == store::ChangeKind::Added {
                    ChangeKind::Added
                } else {
                    ChangeKind::Modified
                };
                (kind, Some(image))
            }
        };
        let change = Change {
            at: now,
            version: change.version + water.shift,
            kind,
            object,
            before,
            after,
            by: None,
        };
        let id = water.id.clone();
        self.history.log(&id).push(change);
    }

    /// What there is instead of what there was.
    fn put_back(
        &mut self,
        at: usize,
        now: Timestamp,
        objects: Vec<store::Named<Arc<store::Stored>>>,
    ) {
        let Some(water) = self.waters.get_mut(at) else {
            return;
        };
        let version = water.seen + water.shift;
        let mut found: BTreeMap<Object, Arc<store::Stored>> = BTreeMap::new();
        for (resource, stored) in objects {
            found.insert(named(&resource, &stored), stored);
        }
        let known: Vec<Object> = water.latest.keys().chain(found.keys()).cloned().collect();
        let known: std::collections::BTreeSet<Object> = known.into_iter().collect();
        let log = self.history.log(&water.id);
        for object in known {
            let before = water.latest.get(&object).cloned();
            let after = found.remove(&object).map(|s| Arc::new(Image::stored(s)));
            let kind = match (&before, &after) {
                (Some(before), Some(after)) if before.value() == after.value() => continue,
                (Some(_), Some(_)) => ChangeKind::Modified,
                (None, _) => ChangeKind::Added,
                (Some(_), None) => ChangeKind::Deleted,
            };
            match &after {
                Some(image) => water.latest.insert(object.clone(), image.clone()),
                None => water.latest.remove(&object),
            };
            log.push(Change {
                at: now,
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
    /// Where the changes of a cluster are written down.
    fn log(&mut self, cluster: &ClusterId) -> &mut Log {
        if cluster.is_local() {
            return &mut self.changes;
        }
        &mut self.members.entry(cluster.clone()).or_default().changes
    }

    /// Says of each change which request of the operator did it. Nothing else runs in a cluster while a request to it is carried
    /// out, except while webhooks are asked about a change: of that the last version is its own.
    fn attribute(&mut self) {
        let requests = std::mem::take(&mut self.requests);
        for request in requests.iter().filter(|r| r.is_committed()) {
            let (mut before, after) = request.versions;
            let edits = matches!(request.method.as_str(), "PATCH" | "PUT");
            if edits {
                before = before.max(after - 1);
            }
            let changes = self.log(&request.cluster);
            let first = changes.partition_point(|c| c.version <= before);
            let made = changes.iter_mut().skip(first);
            for change in made.take_while(|c| c.version <= after) {
                let name = format!("/{}", change.object.2);
                if !edits || request.path().contains(&name) {
                    change.by = Some(request.number);
                }
            }
        }
        self.requests = requests;
    }
}
