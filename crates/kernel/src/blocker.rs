//! Why nothing happens.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::waiting::{MOST_WAITING, WaitingFor};

use crate::identity::ObjectRef;

/// One reason why nothing happens, and who can change that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// A word that programs can match on.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// What is waited for.
    pub object: ObjectRef,
    /// Since when.
    pub since: Timestamp,
    /// When it ends by itself, if it does.
    pub until: Option<Timestamp>,
    /// Who or what can end it before.
    pub unblock: String,
}

impl Blocker {
    /// As an object's status shows it.
    pub fn waiting(&self) -> WaitingFor {
        WaitingFor {
            reason: self.reason.to_owned(),
            message: self.message.clone(),
            object: self.object.waiting(),
            since: Time(self.since),
            until: self.until.map(Time),
            unblock: self.unblock.clone(),
        }
    }
}

/// `status.waitingFor`: oldest first, few, in a stable order; what was already waited for keeps its `since`.
pub fn waiting_for(blockers: &[Blocker], before: &[WaitingFor]) -> Vec<WaitingFor> {
    let mut all: Vec<WaitingFor> = blockers
        .iter()
        .map(|blocker| {
            let mut waiting = blocker.waiting();
            let known = before
                .iter()
                .find(|w| w.reason == waiting.reason && w.object == waiting.object);
            if let Some(known) = known
                && known.since.0 < waiting.since.0
            {
                waiting.since = known.since.clone();
            }
            waiting
        })
        .collect();
    all.sort_by(|a, b| (a.since.0, &a.reason, &a.object).cmp(&(b.since.0, &b.reason, &b.object)));
    all.dedup_by(|a, b| a.reason == b.reason && a.object == b.object);
    all.truncate(MOST_WAITING);
    all
}
