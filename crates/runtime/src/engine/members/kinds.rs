//! Which kinds clusters serve: asked for where a capability wants to know, and kept once for all that serve the same.

use std::sync::Arc;

use slipway_kernel::identity::ClusterId;
use slipway_kernel::interest::Where;
use slipway_kernel::member::Discovery;

use super::Engine;
use super::attend::{discover, jittered};
use crate::message::Message;
use crate::request::LARGEST_ANSWER;

impl Engine {
    /// Whether somebody wants to know which kinds a cluster serves.
    pub(super) fn discovers(&self, cluster: &ClusterId) -> bool {
        let mut all = self.capabilities.values();
        all.any(|c| c.discovers().is_some_and(|at: Where| at.holds(cluster)))
    }

    /// Asks home now and then which kinds it serves, if somebody wants to know.
    pub(in crate::engine) fn discover(&mut self, home: &ClusterId) {
        let Some(reached) = self.clusters.get(home).filter(|_| self.discovers(home)) else {
            return;
        };
        let (shared, inbox, home) = (self.shared.clone(), self.sender.clone(), home.clone());
        self.start(async move {
            loop {
                let timeout = shared.settings.request_timeout;
                if let Some(kinds) = discover(&reached.client, timeout, LARGEST_ANSWER).await {
                    let said = Message::Discovered(home.clone(), 0, Arc::new(kinds));
                    if inbox.send(said).is_err() {
                        return Message::Ended;
                    }
                }
                let wait = jittered(&shared, shared.settings.heartbeat);
                shared.environment.sleep(wait).await;
            }
        });
    }

    /// A cluster has said which kinds it serves.
    pub(in crate::engine) fn discovered(
        &mut self,
        cluster: &ClusterId,
        run: u64,
        kinds: Arc<Discovery>,
    ) {
        if !cluster.is_local() && !self.is_current(cluster, run) {
            return;
        }
        let is_new = {
            let mut state = self.shared.lock();
            // Clusters that serve the same share what is known of it.
            let kinds = state.shared_kinds(kinds);
            let Some(known) = state.of_mut(cluster) else {
                return;
            };
            if let Some(member) = &mut known.member {
                member.state.discovery = Some(kinds.clone());
            }
            let is_new = known.facts.discovery.as_ref() != Some(&kinds);
            if is_new {
                known.facts.discovery = Some(kinds);
            }
            is_new
        };
        if !is_new {
            return;
        }
        self.assess(cluster);
        for controller in self.started(cluster) {
            self.look_for_interests(cluster, controller);
        }
        self.replan(cluster);
    }
}
