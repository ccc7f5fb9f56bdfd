//! When checks are due.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::instant::later;

use super::advance::{Look, Next};
use super::sight::Weights;

impl Look<'_> {
    /// Decides at the tick that it is time for, the first of which is due at this time and has come. Whoever was asked for a
    /// tick is waited for: who is slow is asked once, and not again with every interval. Meanwhile what was waited for before
    /// is still said.
    pub(super) fn at_tick(
        &self,
        due: Timestamp,
        decide: impl Fn(&Self, Timestamp) -> Next,
    ) -> Next {
        let heard = self.heard(due);
        let mut heard = heard.into_iter().rev();
        let Some(last) = heard.next() else {
            return decide(self, self.unheard(due));
        };
        let next = decide(self, last);
        if next.run != *self.run {
            return next;
        }
        if !next.asks.is_empty() {
            let before = heard.next().map(|tick| decide(self, tick).holds);
            return next.still(before.unwrap_or_default());
        }
        match self.after(last).filter(|again| *again <= self.now) {
            None => next,
            Some(again) => decide(self, self.unheard(again)).still(next.holds),
        }
    }

    /// Waits for a tick that has not come. None is further away than an interval: the clock was set back, or the interval is another
    /// one.
    pub(super) fn early(&self, due: Timestamp) -> Option<Next> {
        if due <= self.now {
            return None;
        }
        match self.after(self.now).filter(|latest| *latest < due) {
            Some(latest) => Some(self.change(|run| run.due = Some(latest))),
            None => Some(self.stay().wake_at(Some(due))),
        }
    }

    /// The ticks since this one for which there are answers.
    fn heard(&self, due: Timestamp) -> BTreeSet<Timestamp> {
        let ticks = self.answers.keys().map(|ask| ask.at);
        ticks.filter(|at| (due..=self.now).contains(at)).collect()
    }

    /// Whether there are answers for more than one tick.
    pub(super) fn has_heard_twice(&self) -> bool {
        self.run.due.is_some_and(|due| self.heard(due).len() > 1)
    }

    /// The latest tick since this one, where nothing was heard. All that is asked for a tick has an answer before the next.
    fn unheard(&self, from: Timestamp) -> Timestamp {
        let interval = self.rules.interval.as_nanos().max(1);
        let intervals = self.rules.patience.as_nanos().div_ceil(interval).max(1);
        let stride = interval.saturating_mul(intervals);
        let passed = self.now.duration_since(from).as_nanos().unsigned_abs();
        let whole = u64::try_from(passed - passed % stride).unwrap_or(u64::MAX);
        later(from, Duration::from_nanos(whole)).unwrap_or(from)
    }

    /// The tick after this one.
    pub(super) fn after(&self, tick: Timestamp) -> Option<Timestamp> {
        later(tick, self.rules.interval)
    }

    /// When the next check is due after something was decided at this tick. Ticks do not drift; but a step that began late
    /// lasts an interval too.
    pub(super) fn next_due(&self, tick: Timestamp) -> Option<Timestamp> {
        let late = self.now.duration_since(tick).as_nanos().unsigned_abs();
        if late.saturating_mul(10) <= self.rules.interval.as_nanos() {
            self.after(tick)
        } else {
            self.after(self.now)
        }
    }

    /// The time in which progress has to be made begins.
    pub(super) fn hold_from_now(&self) -> Next {
        self.change(|run| run.held_since = Some(self.now))
    }

    /// Remembers that the target, which is to be scaled down, has no traffic any more, where the data plane is given a while;
    /// none if that is remembered, or not so.
    pub(super) fn freed(&self) -> Option<Next> {
        let is_given = !self.rules.grace_in(self.run.phase).is_zero();
        let is_free = self.sight.routing.is_at(Weights::SOURCE);
        // One that is yet to come is of a clock that was set back.
        let is_known = self.run.free_since.is_some_and(|since| since <= self.now);
        let is_due = !is_known && self.sight.target.size > 0;
        let is_new = is_given && is_free && is_due;
        is_new.then(|| self.change(|run| run.free_since = Some(self.now)))
    }

    /// When the target can be scaled down, if that is only a matter of time.
    pub(super) fn drain_at(&self) -> Option<Timestamp> {
        let grace = self.rules.grace_in(self.run.phase);
        let at = later(self.run.free_since?, grace)?;
        (at > self.now).then_some(at)
    }

    /// When the time is over in which progress has to be made.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        later(self.run.held_since?, self.rules.deadline)
    }

    pub(super) fn is_too_late(&self) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= self.now)
    }
}
