//! Why nothing is written into a cluster that could be written to: a person has to say so first.

use jiff::Timestamp;
use slipway_api::fleet::names::TAKE_OVER;
use slipway_kernel::Blocker;

use super::remote::Remote;
use crate::reasons::Reason;

/// What is in the way of writing into the cluster of a `RemoteAssemblage`, if something is. `since` is when the cluster was first
/// as it is now.
pub(super) fn objection(one: &Remote<'_>, since: Timestamp) -> Option<Blocker> {
    let (reason, message, unblock) = another_hub(one)?;
    Some(Blocker {
        reason: reason.as_str(),
        message,
        object: one.target().object().clone(),
        since,
        until: None,
        unblock,
    })
}

/// The cluster belongs to another control plane: two that write there would take away what only the other one knows.
fn another_hub(one: &Remote<'_>) -> Option<(Reason, String, String)> {
    let hub = one.elsewhere()?;
    let object = one.target().object().clone();
    Some((
        Reason::OtherHub,
        format!(
            "the cluster belongs to another control plane, whose kube-system has the uid {hub}"
        ),
        format!(
            "if this one is to take its place, stop that one and annotate {object} with {TAKE_OVER}={hub}"
        ),
    ))
}
