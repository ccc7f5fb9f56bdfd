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
}

impl Log {
    pub(super) fn push(&mut self, change: Change) {
        if self.changes.len() >= KEPT
            && let Some(oldest) = self.changes.pop_front()
        {
            self.forgotten = oldest.version;
        }
        self.changes.push_back(change);
    }

    pub(super) fn forget(&mut self, version: u64) {
        self.changes = VecDeque::new();
        self.forgotten = version;
    }

    /// The version of the last change, also of one that is forgotten.
    pub(super) fn newest(&self) -> u64 {
        let last = self.changes.back().map(|change| change.version);
        last.unwrap_or(self.forgotten)
    }

    pub(super) fn since(&self, version: u64) -> Result<Vec<Change>, Compacted> {
        self.reachable(version)?;
        let first = self
            .changes
            .partition_point(|change| change.version <= version);
        Ok(self.changes.range(first..).cloned().collect())
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
