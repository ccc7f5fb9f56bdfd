//! What people are told of an API server that fails: one line with the cause, then one after each pause, which grows, and
//! one when it is over. Watches that fail together fail for one reason.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use slipway_kernel::duration;
use slipway_kernel::identity::ClusterId;
use tokio::time::Instant;

use crate::settings::Backoff;
use crate::watch::{Failure, RETRY, WatchKey};

/// Between two lines about the same.
const PAUSE: Backoff = Backoff {
    first: Duration::from_secs(30),
    most: Duration::from_mins(30),
};

/// What fails.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    /// The API server of a cluster.
    Server(ClusterId),
    /// One kind.
    Kind(WatchKey),
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    /// When the next line may be written, and how many were.
    next: Instant,
    lines: u32,
    watches: BTreeSet<WatchKey>,
}

/// All that fails.
#[derive(Debug, Default)]
pub(super) struct Outages(BTreeMap<Trouble, Outage>);

impl Outages {
    /// A watch does not get on.
    pub(super) fn failed(&mut self, key: &WatchKey, why: &Failure, server: &str, now: Instant) {
        let is_server = why.is_about_the_server();
        if !is_server {
            self.answered(key, now);
        }
        let trouble = if is_server {
            Trouble::Server(key.cluster.clone())
        } else {
            Trouble::Kind(key.clone())
        };
        let outage = self.0.entry(trouble).or_insert_with(|| Outage {
            since: now,
            next: now,
            lines: 0,
            watches: BTreeSet::new(),
        });
        outage.watches.insert(key.clone());
        if now < outage.next {
            return;
        }
        outage.lines = outage.lines.saturating_add(1);
        outage.next = now + PAUSE.after(outage.lines);
        let cluster = key.cluster.to_string();
        let retry = duration::render(RETRY);
        let lasts = duration::render(whole(now - outage.since));
        if why.is_too_much() {
            tracing::warn!(cluster, cause = %why, lasts, "a member has more of a kind than is taken in; it is not known, and listed again now and then");
        } else if is_server && why.code().is_none() {
            tracing::warn!(server, cluster, cause = %why, lasts, "cannot reach the API server; trying again within {retry}");
        } else if is_server {
            tracing::warn!(server, cluster, cause = %why, lasts, "API server fails; trying again within {retry}");
        } else {
            tracing::warn!(cluster, cause = %why, lasts, "watch failed; trying again within {retry}");
        }
    }

    /// A watch gets on again.
    pub(super) fn reached(&mut self, key: &WatchKey, now: Instant) {
        self.answered(key, now);
        if let Some(outage) = self.0.remove(&Trouble::Kind(key.clone())) {
            let (cluster, kind) = (key.cluster.to_string(), key.kind.kind.as_ref());
            let lasted = duration::render(whole(now - outage.since));
            tracing::info!(cluster, kind, lasted, "watch works again");
        }
    }

    /// The server answers that the kind of a watch is not there or may not be seen, which is told elsewhere.
    pub(super) fn refused(&mut self, key: &WatchKey, now: Instant) {
        self.answered(key, now);
        self.0.remove(&Trouble::Kind(key.clone()));
    }

    /// The server answers a watch, whatever it says.
    fn answered(&mut self, key: &WatchKey, now: Instant) {
        let cluster = key.cluster.to_string();
        let server = Trouble::Server(key.cluster.clone());
        if let Some(outage) = self.0.get_mut(&server) {
            outage.watches.remove(key);
            if outage.watches.is_empty() {
                let lasted = duration::render(whole(now - outage.since));
                tracing::info!(cluster, lasted, "API server reached again");
                self.0.remove(&server);
            }
        }
    }
}

/// Nobody wants to read nanoseconds.
fn whole(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}
