//! External: somebody else moves clusters from revision to revision. Only those that have nothing get something here.

use std::collections::BTreeSet;

use super::Decision;
use super::survey::{Seen, Standing, Survey};
use crate::observe::Wanted;

pub(super) fn decide(wanted: &Wanted, survey: &Survey<'_>, decision: &mut Decision) {
    decision.run = None;
    let stable = proved(survey).or(decision.stable.take());
    // The first template is stable because there is no other.
    let stable = stable.unwrap_or_else(|| wanted.target.clone());
    let is_new = |seen: &Seen<'_>| seen.standing == Standing::New && seen.can_be_written();
    for seen in survey.in_order(is_new) {
        decision.assign.extend(seen.proved(&stable, &wanted.target));
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
