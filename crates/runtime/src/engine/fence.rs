//! Makes sure that a former leader cannot act any more, before this one does.
//!
//! First it is waited until every request of the former one must have ended, unless it gave the lease up itself; then
//! everything is listed again, consistently, so that its last writes are seen. `Fence::Touch` is treated the same for
//! now: the plan that touches comes with the first capability that declares it.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::Engine;
use crate::election::Taken;
use crate::message::Message;
use crate::state::Phase;
use crate::watch::WatchKey;

/// What a new leader still waits for.
#[derive(Debug)]
pub(super) struct Fencing {
    epoch: i64,
    /// Lists of at least this number.
    lists: Option<BTreeMap<WatchKey, u64>>,
}

impl Engine {
    pub(super) fn taken(&mut self, lease: &'static str, epoch: i64, taken: Taken) {
        let fencing = Fencing { epoch, lists: None };
        self.fences.insert(lease, fencing);
        match (taken, &self.shared.settings.election) {
            (Taken::Fresh, _) | (_, None) => self.acts(lease, epoch),
            (Taken::Released, _) => self.waited_out(lease, epoch),
            (Taken::Expired, Some(election)) => {
                let wait = self.shared.settings.request_timeout + election.skew;
                let environment = self.shared.environment.clone();
                self.start(async move {
                    environment.sleep(wait).await;
                    Message::WaitedOut(lease, epoch)
                });
            }
        }
    }

    pub(super) fn waited_out(&mut self, lease: &'static str, epoch: i64) {
        let Some(fencing) = self.fences.get_mut(lease) else {
            return;
        };
        if fencing.epoch != epoch {
            return;
        }
        let controllers = self.capabilities.values().filter(|c| c.lease() == lease);
        let mut lists = BTreeMap::new();
        for key in controllers
            .filter_map(|c| self.needs.get(c.name()))
            .flatten()
        {
            let off = {
                let state = self.shared.lock();
                state.watches.get(key).is_some_and(|watch| watch.off)
            };
            if let Some(watched) = self.watches.get(key)
                && !off
            {
                lists
                    .entry(key.clone())
                    .or_insert_with(|| watched.control.relist());
            }
        }
        let done = lists.is_empty();
        fencing.lists = Some(lists);
        if done {
            self.acts(lease, epoch);
        }
    }

    /// A watch has made its list of this number.
    pub(super) fn relisted(&mut self, key: &WatchKey, round: u64) {
        let mut done = Vec::new();
        for (lease, fencing) in &mut self.fences {
            let Some(lists) = &mut fencing.lists else {
                continue;
            };
            if lists.get(key).is_some_and(|wanted| round >= *wanted) {
                lists.remove(key);
                if lists.is_empty() {
                    done.push((*lease, fencing.epoch));
                }
            }
        }
        for (lease, epoch) in done {
            self.acts(lease, epoch);
        }
    }

    /// From now on this replica acts.
    fn acts(&mut self, lease: &'static str, epoch: i64) {
        self.fences.remove(lease);
        let lanes: Vec<_> = {
            let mut state = self.shared.lock();
            match state.standings.get_mut(lease) {
                Some(standing) if standing.epoch == epoch && standing.phase == Phase::Fencing => {
                    standing.phase = Phase::Acting;
                }
                _ => return,
            }
            let names: Vec<&'static str> = self
                .capabilities
                .values()
                .filter(|c| c.lease() == lease)
                .map(|c| c.name())
                .collect();
            // What was in doubt has been listed since.
            state.doubts.retain(|(_, name), _| !names.contains(name));
            let lanes = self.started.iter().filter(|lane| names.contains(&lane.1));
            lanes.cloned().collect()
        };
        tracing::info!(lease, epoch, "this replica acts now");
        let now = Instant::now();
        for lane in lanes {
            for key in self.queue.keys(&lane) {
                self.queue.at_once(&key, now);
            }
        }
        self.shared.touch();
    }

    pub(super) fn lost(&mut self, lease: &'static str) {
        self.fences.remove(lease);
        self.shared.touch();
    }
}
