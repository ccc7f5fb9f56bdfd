//! What happened to the objects of one resource, kept for watches and for pages of the past.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{Compacted, Stored, key};

/// How many changes of one resource are kept before the oldest is forgotten.
const KEPT: usize = 8192;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The object is new.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone; the change holds its last form.
    Deleted,
}

/// One write.
#[derive(Debug, Clone)]
pub struct Change {
    /// The version the write took.
    pub version: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// The object after the write; for a deletion its last form, at the version of the deletion.
    pub object: Arc<Stored>,
    /// The object before the write.
    pub before: Option<Arc<Stored>>,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    changes: VecDeque<Change>,
    /// Changes up to this version are forgotten.
    forgotten: u64,
    /// The version of the newest change that is forgotten.
    lost: u64,
}

impl Log {
    pub(super) fn push(&mut self, change: Change) {
        if self.changes.len() >= KEPT
            && let Some(oldest) = self.changes.pop_front()
        {
            self.forgotten = oldest.version;
            self.lost = oldest.version;
        }
        self.changes.push_back(change);
    }

    pub(super) fn forget(&mut self, version: u64) {
        let last = self.changes.back();
        self.lost = last.map_or(self.lost, |change| change.version);
        self.changes = VecDeque::new();
        self.forgotten = version;
    }

    pub(super) fn since(&self, version: u64) -> Result<Vec<Change>, Compacted> {
        self.reachable(version)?;
        Ok(self.after(version))
    }

    /// The same for whoever has seen all changes up to `version`: only if one behind that is forgotten, it cannot be told.
    pub(super) fn further(&self, version: u64) -> Result<Vec<Change>, Compacted> {
        if version < self.lost {
            return Err(Compacted {
                oldest: self.forgotten,
            });
        }
        Ok(self.after(version))
    }

    fn after(&self, version: u64) -> Vec<Change> {
        let first = self
            .changes
            .partition_point(|change| change.version <= version);
        self.changes.range(first..).cloned().collect()
    }

    /// The objects as they were at `version`: newer changes undone, newest first.
    pub(super) fn rewind(
        &self,
        now: &BTreeMap<Box<str>, Arc<Stored>>,
        version: u64,
    ) -> Result<BTreeMap<Box<str>, Arc<Stored>>, Compacted> {
        self.reachable(version)?;
        let mut past = now.clone();
        for change in self
            .changes
            .iter()
            .rev()
            .take_while(|change| change.version > version)
        {
            let key = key(&change.object.header.namespace, &change.object.header.name);
            match &change.before {
                Some(before) => past.insert(key, before.clone()),
                None => past.remove(&key),
            };
        }
        Ok(past)
    }

    fn reachable(&self, version: u64) -> Result<(), Compacted> {
        if version < self.forgotten {
            Err(Compacted {
                oldest: self.forgotten,
            })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(version: u64) -> Change {
        Change {
            version,
            kind: ChangeKind::Modified,
            object: Arc::new(Stored::encode(&json!({}), version, &[])),
            before: None,
        }
    }

    fn versions(changes: Result<Vec<Change>, Compacted>) -> Result<Vec<u64>, u64> {
        let changes = changes.map_err(|compacted| compacted.oldest)?;
        Ok(changes.iter().map(|change| change.version).collect())
    }

    #[test]
    fn what_is_forgotten_matters_to_whoever_has_not_seen_it() {
        let mut log = Log::default();
        for version in [3, 5] {
            log.push(change(version));
        }
        assert_eq!(versions(log.further(0)), Ok(vec![3, 5]));
        // Others of the cluster have been written since.
        log.forget(9);
        log.push(change(11));
        assert_eq!(versions(log.since(5)), Err(9));
        assert_eq!(versions(log.since(9)), Ok(vec![11]));
        assert_eq!(versions(log.further(4)), Err(9));
        assert_eq!(versions(log.further(5)), Ok(vec![11]));
        assert_eq!(versions(log.further(11)), Ok(vec![]));
        log.forget(12);
        log.forget(13);
        assert_eq!(versions(log.further(10)), Err(13));
        assert_eq!(versions(log.further(11)), Ok(vec![]));
    }

    #[test]
    fn the_oldest_of_too_many_are_forgotten() {
        let mut log = Log::default();
        for version in 1..=KEPT as u64 + 2 {
            log.push(change(version));
        }
        assert_eq!(versions(log.further(1)), Err(2));
        assert_eq!(versions(log.since(1)), Err(2));
        assert_eq!(versions(log.further(2)).map(|all| all.len()), Ok(KEPT));
    }
}
