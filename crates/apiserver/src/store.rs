//! The objects of one cluster, and the log of what happened to them.
//!
//! Objects are encoded bytes with a small header: what selectors, garbage collection and preconditions ask for is in
//! the header, so that lists and watches seldom decode. `apiVersion` and `kind` are not stored: they are spliced in
//! when an object is served, so one stored form serves every version and lists of built-in kinds can leave them out.
//!
//! Every write takes the next resource version. A write is a compare-and-swap on the version it was decided on.

mod log;
mod object;
mod text;

pub use log::{Change, ChangeKind};
pub use object::{Header, Stored};
pub(crate) use text::Piece;
pub use text::Text;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use log::Log;

/// `group/plural` of the resource under which objects are kept.
pub type Bucketed = str;

/// Something of a resource, with the name under which the resource is kept.
pub type Named<T> = (Box<str>, T);

/// Why a write was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The object is there already.
    Exists,
    /// The object is not there.
    Missing,
    /// The object is not in the expected version any more.
    Moved,
}

/// A consistent view of one resource at one version.
#[derive(Debug)]
pub struct Snapshot {
    /// The version of the cluster at that moment.
    pub version: u64,
    /// The objects, in key order.
    pub objects: Vec<Arc<Stored>>,
    /// How many more there are behind the last one.
    pub remaining: usize,
}

/// Why a view of the past cannot be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// The oldest version that can still be seen.
    pub oldest: u64,
}

#[derive(Debug, Default)]
struct Bucket {
    objects: BTreeMap<Box<str>, Arc<Stored>>,
    log: Log,
}

#[derive(Debug)]
struct Inner {
    version: u64,
    /// Everything up to this version has been forgotten, also of resources that have no log yet.
    forgotten: u64,
    buckets: BTreeMap<Box<str>, Bucket>,
}

/// The objects of one cluster.
#[derive(Debug)]
pub struct Store {
    inner: Mutex<Inner>,
    /// Wakes in the order in which was waited. A `tokio::sync::watch` wakes in random order, which no seed decides.
    written: Notify,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            inner: Mutex::new(Inner {
                version: 0,
                forgotten: 0,
                buckets: BTreeMap::new(),
            }),
            written: Notify::new(),
        }
    }
}

/// How keys are built: in the order of these the API lists objects.
pub fn key(namespace: &str, name: &str) -> Box<str> {
    if namespace.is_empty() {
        name.into()
    } else {
        let mut key = String::with_capacity(namespace.len() + 1 + name.len());
        key.push_str(namespace);
        key.push('/');
        key.push_str(name);
        key.into()
    }
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock was held cannot leave a half-done write: each write is one insert behind all checks.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version of the last write.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Waits for the next write after this call.
    pub fn written(&self) -> Notified<'_> {
        self.written.notified()
    }

    /// One object.
    pub fn get(&self, bucket: &Bucketed, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let inner = self.lock();
        let objects = &inner.buckets.get(bucket)?.objects;
        let found = match namespace {
            "" => objects.get(name),
            namespace => objects.get(&key(namespace, name)),
        };
        found.cloned()
    }

    /// How many objects there are of a resource.
    pub fn count(&self, bucket: &Bucketed) -> usize {
        self.lock()
            .buckets
            .get(bucket)
            .map_or(0, |b| b.objects.len())
    }

    /// Names of all resources that have, or had, objects.
    pub fn buckets(&self) -> Vec<Box<str>> {
        self.lock().buckets.keys().cloned().collect()
    }

    /// All objects of a resource at this moment, or of one namespace of it, for which `keep` holds.
    pub fn list(
        &self,
        bucket: &Bucketed,
        namespace: &str,
        keep: &dyn Fn(&Stored) -> bool,
    ) -> Snapshot {
        let inner = self.lock();
        let objects = inner
            .buckets
            .get(bucket)
            .map(|b| {
                within(&b.objects, namespace, None)
                    .filter(|o| keep(o))
                    .cloned()
                    .collect()
            })
            .unwrap_or_default();
        Snapshot {
            version: inner.version,
            objects,
            remaining: 0,
        }
    }

    /// As [`Store::list`] in pages: at most `limit` objects (0: all) whose key is at or after `start`, as they were
    /// at version `at` (none: now).
    pub fn page(
        &self,
        bucket: &Bucketed,
        namespace: &str,
        at: Option<u64>,
        start: Option<&str>,
        limit: usize,
        keep: &dyn Fn(&Stored) -> bool,
    ) -> Result<Snapshot, Compacted> {
        let inner = self.lock();
        let version = at.unwrap_or(inner.version);
        let Some(found) = inner.buckets.get(bucket) else {
            return Ok(Snapshot {
                version,
                objects: Vec::new(),
                remaining: 0,
            });
        };
        let past;
        let objects = if version < inner.version {
            past = found.log.rewind(&found.objects, version)?;
            &past
        } else {
            &found.objects
        };
        let mut kept = within(objects, namespace, start).filter(|o| keep(o));
        let page: Vec<_> = if limit == 0 {
            kept.by_ref().cloned().collect()
        } else {
            kept.by_ref().take(limit).cloned().collect()
        };
        let remaining = kept.count();
        Ok(Snapshot {
            version,
            objects: page,
            remaining,
        })
    }

    /// What happened to a resource after version `since`, oldest first, and the version up to which this is complete.
    pub fn changes(&self, bucket: &Bucketed, since: u64) -> Result<(Vec<Change>, u64), Compacted> {
        let inner = self.lock();
        if since < inner.forgotten {
            return Err(Compacted {
                oldest: inner.forgotten,
            });
        }
        let changes = match inner.buckets.get(bucket) {
            Some(found) => found.log.since(since)?,
            None => Vec::new(),
        };
        Ok((changes, inner.version))
    }

    /// What happened to all resources after version `since`, oldest first, with the names of the resources, and the
    /// version up to which this is complete. Seen at one moment, so that nothing falls between two resources.
    pub fn all_changes(&self, since: u64) -> Result<(Vec<Named<Change>>, u64), Compacted> {
        let inner = self.lock();
        if since < inner.forgotten {
            return Err(Compacted {
                oldest: inner.forgotten,
            });
        }
        let mut all = Vec::new();
        for (name, bucket) in &inner.buckets {
            // Mostly it is one of many that something happened to.
            if bucket.log.newest() > since {
                let changes = bucket.log.since(since)?;
                all.extend(changes.into_iter().map(|change| (name.clone(), change)));
            }
        }
        all.sort_by_key(|(_, change)| change.version);
        Ok((all, inner.version))
    }

    /// All objects of all resources at this moment, with the names of the resources, and the version.
    pub fn everything(&self) -> (Vec<Named<Arc<Stored>>>, u64) {
        let inner = self.lock();
        let objects = inner
            .buckets
            .iter()
            .flat_map(|(name, bucket)| {
                bucket
                    .objects
                    .values()
                    .map(|object| (name.clone(), object.clone()))
            })
            .collect();
        (objects, inner.version)
    }

    /// Creates an object: `make` gets the version it will have. Fails if one of that name is there.
    pub fn create(
        &self,
        bucket: &Bucketed,
        namespace: &str,
        name: &str,
        make: impl FnOnce(u64) -> Stored,
    ) -> Result<Arc<Stored>, Refused> {
        let key = key(namespace, name);
        self.write(bucket, key, ChangeKind::Added, |before, version| {
            if before.is_some() {
                return Err(Refused::Exists);
            }
            Ok(make(version))
        })
    }

    /// Replaces an object that must still be at `expected`.
    pub fn update(
        &self,
        bucket: &Bucketed,
        namespace: &str,
        name: &str,
        expected: u64,
        make: impl FnOnce(u64) -> Stored,
    ) -> Result<Arc<Stored>, Refused> {
        let key = key(namespace, name);
        self.write(bucket, key, ChangeKind::Modified, |before, version| {
            unmoved(before, expected)?;
            Ok(make(version))
        })
    }

    /// Removes an object that must still be at `expected`. Its last form, as watches see it, is what was stored, at
    /// the version of the deletion.
    pub fn delete(
        &self,
        bucket: &Bucketed,
        namespace: &str,
        name: &str,
        expected: u64,
    ) -> Result<Arc<Stored>, Refused> {
        let key = key(namespace, name);
        self.write(bucket, key, ChangeKind::Deleted, |before, version| {
            Ok(unmoved(before, expected)?.at(version))
        })
    }

    /// Every write: `decide` sees what stands at the key and makes what comes next, in the version that it gets.
    fn write(
        &self,
        bucket: &Bucketed,
        key: Box<str>,
        kind: ChangeKind,
        decide: impl FnOnce(Option<&Stored>, u64) -> Result<Stored, Refused>,
    ) -> Result<Arc<Stored>, Refused> {
        let mut inner = self.lock();
        let version = inner.version + 1;
        let found = inner.bucket(bucket);
        let before = found.objects.get(&key).cloned();
        let stored = Arc::new(decide(before.as_deref(), version)?);
        if kind == ChangeKind::Deleted {
            found.objects.remove(&key);
        } else {
            found.objects.insert(key, stored.clone());
        }
        found.log.push(Change {
            version,
            kind,
            object: stored.clone(),
            before,
        });
        inner.version = version;
        drop(inner);
        self.written.notify_waiters();
        Ok(stored)
    }

    /// Puts objects of a resource in as they are, in versions that are newer than all before, without a trace in the
    /// log.
    pub fn restore(&self, bucket: &Bucketed, objects: impl IntoIterator<Item = Arc<Stored>>) {
        let mut inner = self.lock();
        let mut version = inner.version;
        let found = inner.bucket(bucket);
        for object in objects {
            version = version.max(object.version);
            let key = key(&object.header.namespace, &object.header.name);
            found.objects.insert(key, object);
        }
        inner.version = version;
        drop(inner);
        self.written.notify_waiters();
    }

    /// Has exactly these objects from now on, and this version, which may be older than the present one.
    pub fn reset(&self, version: u64, objects: impl IntoIterator<Item = Named<Arc<Stored>>>) {
        let mut inner = self.lock();
        inner.buckets.clear();
        inner.version = version;
        inner.forgotten = version;
        for (bucket, object) in objects {
            let key = key(&object.header.namespace, &object.header.name);
            let found = inner.buckets.entry(bucket).or_default();
            found.objects.insert(key, object);
            found.log.forget(version);
        }
        drop(inner);
        self.written.notify_waiters();
    }

    /// Forgets the past of all resources: watches and pages that start before now get 410 from here on.
    pub fn compact(&self) {
        let mut inner = self.lock();
        let version = inner.version;
        inner.forgotten = version;
        for bucket in inner.buckets.values_mut() {
            bucket.log.forget(version);
        }
    }
}

/// The object, if it is there and at this version.
fn unmoved(stored: Option<&Stored>, expected: u64) -> Result<&Stored, Refused> {
    match stored {
        None => Err(Refused::Missing),
        Some(stored) if stored.version == expected => Ok(stored),
        Some(_) => Err(Refused::Moved),
    }
}

impl Inner {
    fn bucket(&mut self, name: &Bucketed) -> &mut Bucket {
        if !self.buckets.contains_key(name) {
            self.buckets.insert(name.into(), Bucket::default());
        }
        self.buckets.entry(name.into()).or_default()
    }
}

fn within<'a>(
    objects: &'a BTreeMap<Box<str>, Arc<Stored>>,
    namespace: &str,
    start: Option<&str>,
) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
    let prefix: Box<str> = if namespace.is_empty() {
        "".into()
    } else {
        format!("{namespace}/").into()
    };
    let first: Box<str> = start.map_or_else(|| prefix.clone(), Into::into);
    objects
        .range::<str, _>((Bound::Included(&*first), Bound::Unbounded))
        .take_while(move |(key, _)| key.starts_with(&*prefix))
        .map(|(_, object)| object)
}
