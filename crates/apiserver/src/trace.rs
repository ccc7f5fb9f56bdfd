//! A record of every request and how it ended.
//!
//! Tests read it, and its hash tells whether two runs were the same run.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// How many records a cluster in virtual time keeps; the hash covers all, kept or not.
pub(crate) const KEPT: usize = 100_000;

/// How many records a cluster in real time keeps, which may run for days.
pub(crate) const KEPT_IN_REAL_TIME: usize = 2_000;

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The client got this code.
    Answered(u16),
    /// The request never reached the server.
    Unreachable,
    /// The request was carried out with this code, but the answer was lost.
    Lost(u16),
    /// The client went away before it was answered.
    GivenUp,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The place in the order of all requests of the cluster, from 0.
    pub index: u64,
    /// When it came in.
    pub at: Timestamp,
    /// Who asked.
    pub user: String,
    /// With which program.
    pub agent: String,
    /// What the client put into `X-Trace-Context`: opaque here.
    pub context: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or for non-resource paths
    /// the method in small letters.
    pub verb: String,
    /// Path and query as sent.
    pub uri: String,
    /// `group/plural` with `/subresource`, or empty.
    pub resource: String,
    /// Empty outside namespaces.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// How it ended.
    pub ending: Ending,
    /// The reason in the `Status`, if it failed.
    pub reason: String,
    /// The cluster's version when the request came in, and when it was answered.
    pub versions: (u64, u64),
}

/// A record as it is kept: all texts in one piece. A process may have thousands of clusters.
#[derive(Debug)]
struct Kept {
    index: u64,
    at: Timestamp,
    ending: Ending,
    versions: (u64, u64),
    texts: Box<str>,
    /// Where each text ends.
    ends: [u32; 9],
}

impl From<&Record> for Kept {
    fn from(record: &Record) -> Self {
        let mut texts = String::new();
        let ends = [
            &record.user,
            &record.agent,
            &record.context,
            &record.verb,
            &record.uri,
            &record.resource,
            &record.namespace,
            &record.name,
            &record.reason,
        ]
        .map(|text| {
            texts.push_str(text);
            u32::try_from(texts.len()).unwrap_or(u32::MAX)
        });
        Self {
            index: record.index,
            at: record.at,
            ending: record.ending.clone(),
            versions: record.versions,
            texts: texts.into(),
            ends,
        }
    }
}

impl From<&Kept> for Record {
    fn from(kept: &Kept) -> Self {
        let mut start = 0;
        let [
            user,
            agent,
            context,
            verb,
            uri,
            resource,
            namespace,
            name,
            reason,
        ] = kept.ends.map(|end| {
            let end = end as usize;
            let text = kept.texts.get(start..end);
            start = end;
            text.unwrap_or_default().to_owned()
        });
        Self {
            index: kept.index,
            at: kept.at,
            user,
            agent,
            context,
            verb,
            uri,
            resource,
            namespace,
            name,
            ending: kept.ending.clone(),
            reason,
            versions: kept.versions,
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    limit: usize,
    next: u64,
    kept: VecDeque<Kept>,
    hash: Sha256,
}

/// The records of one cluster.
#[derive(Debug)]
pub struct Trace(Mutex<Inner>);

impl Trace {
    /// An empty one that keeps the newest `limit` records.
    pub(crate) fn keeping(limit: usize) -> Self {
        Self(Mutex::new(Inner {
            limit,
            ..Inner::default()
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record; its index is set here.
    pub(crate) fn push(&self, mut record: Record) {
        let mut inner = self.lock();
        record.index = inner.next;
        inner.next += 1;
        inner.hash.update(format!("{record:?}\n").as_bytes());
        if inner.kept.len() >= inner.limit {
            inner.kept.pop_front();
        }
        inner.kept.push_back((&record).into());
    }

    /// The newest records, oldest first.
    pub fn records(&self) -> Vec<Record> {
        self.lock().kept.iter().map(Record::from).collect()
    }

    /// How many requests there were.
    pub fn len(&self) -> u64 {
        self.lock().next
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A hash over all records so far.
    pub fn hash(&self) -> String {
        let digest = self.lock().hash.clone().finalize();
        digest.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were() {
        let text = str::to_owned;
        let record = Record {
            index: 0,
            at: Timestamp::UNIX_EPOCH,
            user: text("admin"),
            agent: text("kubectl/v1"),
            context: String::new(),
            verb: text("get"),
            uri: text("/api/v1/namespaces/d/configmaps/ä?x=1"),
            resource: text("/configmaps"),
            namespace: text("d"),
            name: text("ä"),
            ending: Ending::Answered(404),
            reason: text("NotFound"),
            versions: (3, 4),
        };
        let trace = Trace::keeping(2);
        for _ in 0..3 {
            trace.push(record.clone());
        }
        let kept = [1, 2].map(|index| Record {
            index,
            ..record.clone()
        });
        assert_eq!(trace.records(), kept);
        assert_eq!(trace.len(), 3);
    }
}
