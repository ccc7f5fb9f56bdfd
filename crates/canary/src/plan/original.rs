//! Whether Flagger acts on a Canary: its Deployment runs, or it writes.
//!
//! When neither is so any more, two of the Canary's intervals are waited for: what was begun has its time to end.

use jiff::Timestamp;
use slipway_kernel::instant::later;

use super::Look;
use crate::reasons::Reason;
use crate::spec::interval;
use crate::standalone::scene::Obstacle;

/// What keeps us away, if Flagger acts.
pub(super) fn acts(look: &Look<'_>) -> Option<Obstacle> {
    if let Some(original) = &look.world.original {
        let message = format!(
            "Flagger runs as Deployment {original} and acts on Canaries too; scale it to zero"
        );
        return Some(Obstacle::new(Reason::FlaggerRuns, message));
    }
    let until = quiet_at(look)?;
    let message = "Flagger has acted on this Canary; two intervals without that are waited for";
    Some(Obstacle {
        until: Some(until),
        ..Obstacle::new(Reason::FlaggerRuns, message)
    })
}

/// When it has been quiet for long enough; none if it has.
fn quiet_at(look: &Look<'_>) -> Option<Timestamp> {
    let analysis = look.canary.spec.analysis().unwrap_or_default();
    let two = interval(analysis.interval.as_deref()).saturating_mul(2);
    let written = look.world.canary.body().written_by_original;
    let after_write = written.and_then(|at| later(at, two));
    let known = look.canary.status.as_ref().and_then(|status| {
        let mut all = status.waiting_for.iter();
        all.find(|one| one.reason == Reason::FlaggerRuns.as_str())
    });
    // Its Deployment ran when we looked last, and does not any more.
    let after_end = known.and_then(|known| match &known.until {
        Some(until) => Some(until.0),
        None => later(look.now, two),
    });
    let latest = after_write.max(after_end)?;
    (latest > look.now).then_some(latest)
}
