//! External: somebody else moves clusters from revision to revision. Only those that have nothing get something here.

use std::collections::BTreeSet;

use super::survey::{Seen, Standing, Survey};
use super::{Decision, Hold};
use crate::observe::Wanted;
use crate::reasons::Reason;

pub(super) fn decide(wanted: &Wanted, survey: &Survey<'_>, decision: &mut Decision) {
    decision.run = None;
    let stable = proved(survey).or(decision.stable.take());
    // The first template is stable because there is no other.
    let stable = stable.unwrap_or_else(|| wanted.target.clone());
    let is_new = |seen: &Seen<'_>| seen.standing == Standing::New && seen.can_be_written();
    for seen in survey.in_order(is_new) {
        let proved = seen.proved(&stable, &wanted.target);
        if proved.is_none() && seen.cluster.stable.is_none() && stable != wanted.target {
            let message =
                format!("the module of revision {stable}, which new clusters get, is not there");
            let unblock = "whoever assigns the cluster another revision, or brings all clusters to the target";
            let hold = Hold::new(Reason::RevisionGone, message, unblock);
            decision.holds.push(hold.at(seen.name));
        }
        decision.assign.extend(proved);
    }
    decision.stable = Some(stable);
}

/// The revision that all assigned clusters have and are ready with, if it is one.
fn proved(survey: &Survey<'_>) -> Option<String> {
    let assigned = survey.selected().filter(|seen| seen.entry().is_some());
    let mut templates = BTreeSet::new();
    for seen in assigned {
        if !seen.is_ready() {
            return None;
        }
        templates.insert(seen.template()?);
    }
    let mut templates = templates.into_iter();
    let only = templates.next()?;
    templates.next().is_none().then(|| only.to_owned())
}
