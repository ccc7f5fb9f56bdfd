//! Where a plan may write: into the cluster of its key, and if that is a member, only while it is the cluster that it is taken for.
//!
//! Whatever changes or deletes an object names its uid, which no other cluster has. What brings an object into being does not: so
//! before each plan is carried out, before each write of it, and before an event is told, the member is asked who it is, unless it has
//! just said so. It is asked again whenever a watch of it has failed, because whoever takes its place ends the connections to it; and
//! what it has said counts for the connection that it was said over: what is written goes over that one, or is not sent.

use std::time::Duration;

use slipway_api::purpose::runtime::STATUS;
use slipway_kernel::Purpose;
use slipway_kernel::identity::{ClusterId, ObjectRef};
use slipway_kernel::member::Member;
use tokio::sync::mpsc;

use super::Execution;
use crate::channel::Tied;
use crate::clusters::Cluster;
use crate::engine::{Said, identify};
use crate::message::Message;
use crate::state::{Asked, Membership, Shared};

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
            Some(reached) => self.way_into(&reached).await.is_some(),
            None => false,
        }
    }

    /// The way to look something up where it is: over the same connection as what is written, and whether or not all of it is known.
    pub(super) async fn way_to(&self, object: &ObjectRef, reached: &Cluster) -> Option<Tied> {
        if object.cluster.is_local() {
            return Some(reached.client.over(None));
        }
        let whose = (&object.cluster, self.key.controller);
        let is_free = Membership::is_confirmed_to;
        way(&self.shared, &self.inbox, whose, reached, is_free).await
    }

    /// The way to write to it, if it may be. That costs nothing while it has just said who it is.
    pub(super) async fn way_into(&self, reached: &Cluster) -> Option<Tied> {
        if self.key.cluster.is_local() {
            return Some(reached.client.over(None));
        }
        let whose = (&self.key.cluster, self.key.controller);
        way_into(&self.shared, &self.inbox, whose, reached).await
    }
}

/// The way into a member that is the cluster that was confirmed to a controller: the connection over which it has just said so, or
/// says so now. None if it is not, or cannot say. What it says is told. Over a former client nobody is asked: its credentials may be
/// there no more.
pub(crate) async fn way_into(
    shared: &Shared,
    inbox: &mpsc::UnboundedSender<Message>,
    whose: (&ClusterId, &str),
    reached: &Cluster,
) -> Option<Tied> {
    way(shared, inbox, whose, reached, Membership::is_open_to).await
}

/// The same. What is known of a member that has just said who it is is asked whether the way is free.
async fn way(
    shared: &Shared,
    inbox: &mpsc::UnboundedSender<Message>,
    (cluster, controller): (&ClusterId, &str),
    reached: &Cluster,
    is_free: fn(&Membership, &str) -> bool,
) -> Option<Tied> {
    let (client, run) = (&reached.client, reached.run);
    let over = client.connection();
    let (member, doubts) = {
        let state = shared.lock();
        let membership = state.of(cluster)?.member.as_ref()?;
        if membership.run != run {
            return None;
        }
        if membership.is_fresh(FRESH, over) {
            return is_free(membership, controller).then(|| client.over(over));
        }
        let member = membership.named.get(controller)?;
        (member.clone(), membership.doubts.clone())
    };
    let timeout = shared.settings.request_timeout;
    let mut asked = Asked::now(run, &doubts, client);
    let mut said = identify(client, timeout).await;
    if said.is_well() && (doubts.last() != asked.doubts || asked.over.is_none()) {
        // It may have been another one's answer, or one over a connection that was only being made. Once: where doubts arise all the
        // time, somebody has to begin.
        asked = Asked::now(run, &doubts, client);
        said = identify(client, timeout).await;
    }
    if !said.is_well() {
        // Nothing is done there until it answers, and it may be that this one question was lost: it is asked again at once.
        doubts.rise();
    }
    let is_meant = is_confirmed(&member, &said) && asked.over.is_some();
    if is_meant {
        let mut state = shared.lock();
        if let Some(membership) = state.member_mut(cluster) {
            // The loop hears of it later, and until then whatever is sent would ask again.
            membership.vouch(controller, &asked);
        }
    }
    let over = asked.over;
    // Nobody listens when the replica is about to end.
    let _ = inbox.send(Message::Attended(cluster.clone(), asked, said));
    is_meant.then(|| client.over(over))
}

fn is_confirmed(member: &Member, said: &Said) -> bool {
    matches!(said, Said::Uid(uid) if member.confirmed.as_deref() == Some(uid))
}
