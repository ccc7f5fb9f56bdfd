//! What one answer of a member changes in what is known of it.

use slipway_kernel::member::{Identity, Reach};
use tokio::time::Instant;

use super::Said;
use crate::state::Membership;

/// What one answer changes.
pub(super) struct Turn {
    /// It is another cluster than the one that was seen before.
    pub(super) is_other: bool,
    pub(super) is_reached: bool,
    /// It answers again, and had not answered before: since when it had not, at the latest.
    pub(super) returns: Option<Instant>,
}

/// Takes in what a member says to somebody who asked after this doubt.
pub(super) fn hear(member: &mut Membership, doubts: u64, said: Said, now: jiff::Timestamp) -> Turn {
    let (reach, identity) = match said {
        Said::Uid(uid) => (Reach::Reached, Some(Identity::Uid(uid))),
        Said::Forbidden(why) => (Reach::Reached, Some(Identity::Forbidden(why))),
        Said::Refused(why) => (Reach::Refused(why), None),
        Said::Failed(why) => (Reach::Unreachable(why), None),
        Said::Silent(why) => {
            member.lost = Some(Instant::now());
            (Reach::Unreachable(why), None)
        }
    };
    let is_reached = reach == Reach::Reached;
    turn(member, reach, now);
    if is_reached {
        member.state.contact = Some(now);
        member.assure(doubts, matches!(identity, Some(Identity::Uid(_))));
    } else {
        member.checked = None;
    }
    if let Some(identity) = identity {
        member.state.identity = identity;
    }
    let is_other = is_other(member);
    if is_other {
        // What the former one serves is not what this one does.
        member.state.discovery = None;
    }
    let returns = member.lost.take_if(|_| is_reached);
    Turn {
        is_other,
        is_reached,
        returns,
    }
}

/// Whether the cluster that answers is another one than the last that has said which one it is: in between it may have been one
/// that does not say so.
fn is_other(member: &mut Membership) -> bool {
    let Identity::Uid(uid) = &member.state.identity else {
        return false;
    };
    let before = member.seen.replace(uid.clone());
    before.is_some_and(|before| before != *uid)
}

/// Notes whether a member can be reached, and since when that is so. Another reason for the same is no other state, and is said.
pub(super) fn turn(member: &mut Membership, reach: Reach, now: jiff::Timestamp) {
    let state = &mut member.state;
    let is_same = std::mem::discriminant(&state.reach) == std::mem::discriminant(&reach);
    if !is_same {
        state.since = now;
    }
    state.reach = reach;
}

#[cfg(test)]
mod tests;
