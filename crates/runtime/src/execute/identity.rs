//! Where a plan may write: into the cluster of its key, and if that is a member, only while it is the cluster that it is taken for.
//!
//! Whatever changes or deletes an object names its uid, which no other cluster has. What brings an object into being does not: so
//! before each plan is carried out, before each write of it, and before an event is told, the member is asked who it is, unless it has
//! just said so. It is asked again whenever a watch of it has failed, because whoever takes its place ends the connections to it; and
//! what it has said over another connection than the one that would be written over does not count.

use std::time::Duration;

use slipway_api::purpose::runtime::STATUS;
use slipway_kernel::Purpose;
use slipway_kernel::identity::{ClusterId, ObjectRef};
use slipway_kernel::member::Member;
use tokio::sync::mpsc;

use super::Execution;
use crate::clusters::Cluster;
use crate::engine::{Said, identify};
use crate::message::Message;
use crate::state::{Asked, Shared};

/// For how long it counts what a member has said.
const FRESH: Duration = Duration::from_secs(10);

impl Execution {
    /// Leaves out what is about another cluster than the key: a defect of the planner.
    pub(super) fn keep_within_cluster(&mut self) {
        let (key, metrics) = (&self.key, &self.shared.metrics);
        let is_within = |object: &ObjectRef, (verb, purpose): (&'static str, Purpose)| {
            if object.cluster == key.cluster {
                return true;
            }
            let kind = object.kind.kind.as_ref();
            let cluster = &object.cluster;
            tracing::error!(%key, verb, %object, %cluster, %purpose, "plan writes into another cluster than its key's; not done");
            metrics.acted(key.controller, (verb, kind, purpose), "misdirected");
            false
        };
        self.plan.steps.retain(|step| {
            let (verb, purpose) = (step.action.verb(), step.action.purpose());
            let object = step.action.object();
            object.is_none_or(|object| is_within(object, (verb, purpose)))
        });
        self.plan.statuses.retain(|status| {
            let what = ("patch", STATUS);
            is_within(status.target.object(), what)
        });
    }

    /// Whether the cluster of the key may be written to: home, or a member that is the one that was confirmed.
    pub(super) async fn is_identified(&self) -> bool {
        let plan = &self.plan;
        let is_idle = plan.steps.is_empty() && plan.statuses.is_empty() && plan.events.is_empty();
        if is_idle || self.key.cluster.is_local() {
            return true;
        }
        match self.clusters.get(&self.key.cluster) {
            Some(reached) => self.is_meant_by(&reached).await,
            None => false,
        }
    }

    /// Whether it may be written to over this connection. That costs nothing while it has just said who it is.
    pub(super) async fn is_meant_by(&self, reached: &Cluster) -> bool {
        let whose = (&self.key.cluster, self.key.controller);
        self.key.cluster.is_local() || is_meant(&self.shared, &self.inbox, whose, reached).await
    }
}

/// Whether a member is the cluster that was confirmed to a controller: by what it has just said, or says now over this connection.
/// What it says is told. Over a former connection nobody is asked: its credentials may be there no more.
pub(crate) async fn is_meant(
    shared: &Shared,
    inbox: &mpsc::UnboundedSender<Message>,
    (cluster, controller): (&ClusterId, &str),
    reached: &Cluster,
) -> bool {
    let (client, run) = (&reached.client, reached.run);
    let over = client.connection();
    let (member, doubts) = {
        let state = shared.lock();
        let known = state.of(cluster);
        let Some(membership) = known.and_then(|known| known.member.as_ref()) else {
            return false;
        };
        if membership.run != run {
            return false;
        }
        if membership.is_fresh(FRESH, over) {
            return membership.is_open_to(controller);
        }
        let Some(member) = membership.named.get(controller) else {
            return false;
        };
        (member.clone(), membership.doubts.clone())
    };
    let timeout = shared.settings.request_timeout;
    let mut asked = Asked::now(run, &doubts, client);
    let mut said = identify(client, timeout).await;
    if said.is_well() && doubts.last() != asked.doubts {
        // It may have been another one's answer. Once: where doubts arise all the time, somebody has to begin.
        asked = Asked::now(run, &doubts, client);
        said = identify(client, timeout).await;
    }
    if !said.is_well() {
        // Nothing is done there until it answers, and it may be that this one question was lost: it is asked again at once.
        doubts.rise();
    }
    let is_meant = is_confirmed(&member, &said);
    // Nobody listens when the replica is about to end.
    let _ = inbox.send(Message::Attended(cluster.clone(), asked, said));
    is_meant
}

fn is_confirmed(member: &Member, said: &Said) -> bool {
    matches!(said, Said::Uid(uid) if member.confirmed.as_deref() == Some(uid))
}
