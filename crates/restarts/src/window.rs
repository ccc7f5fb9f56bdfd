//! When restarts may begin: windows and excluded dates. They govern the beginning of a restart, never its end.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::cron::Schedule;

/// A time in which restarts may begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// When it opens.
    pub opens: Schedule,
    /// How long it stays open.
    pub duration: Duration,
}

impl Window {
    fn is_open(&self, now: Timestamp) -> bool {
        let open = || {
            let length = SignedDuration::try_from(self.duration).ok()?;
            let opened = self.opens.next_after(now.checked_sub(length).ok()?)?;
            Some(opened <= now)
        };
        open().unwrap_or(false)
    }
}

/// All that a policy says about when.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calendar {
    /// Restarts begin in one of these only; empty for at any time.
    pub windows: Vec<Window>,
    /// No restart begins on these dates.
    pub excluded: BTreeSet<Date>,
    /// Where the dates are, if no window says so.
    pub zone: Option<TimeZone>,
}

/// What a calendar says about a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hours {
    /// Restarts may begin.
    Open,
    /// Not today; perhaps again then.
    Excluded(Option<Timestamp>),
    /// No window is open; one opens then.
    Closed(Option<Timestamp>),
}

impl Calendar {
    /// Whether restarts may begin at `now`.
    pub fn at(&self, now: Timestamp) -> Hours {
        if self.windows.is_empty() {
            let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
            return match self.free_from(now, &zone) {
                Some(at) if at == now => Hours::Open,
                until => Hours::Excluded(until),
            };
        }
        let mut excluded = None;
        for window in self.windows.iter().filter(|w| w.is_open(now)) {
            match self.free_from(now, &window.opens.zone) {
                Some(at) if at == now => return Hours::Open,
                until => excluded = Some(until),
            }
        }
        match excluded {
            Some(until) => Hours::Excluded(until),
            None => Hours::Closed(
                self.windows
                    .iter()
                    .filter_map(|w| w.opens.next_after(now))
                    .min(),
            ),
        }
    }

    /// The first moment from `now` on whose date is not excluded.
    fn free_from(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut date = zone.to_datetime(now).date();
        if !self.excluded.contains(&date) {
            return Some(now);
        }
        // Each turn leaves one excluded date behind.
        while self.excluded.contains(&date) {
            date = date.tomorrow().ok()?;
        }
        Some(date.to_zoned(zone.clone()).ok()?.timestamp())
    }

    /// The first moment from `at` on when restarts may begin, looking a little ahead.
    pub fn opening(&self, at: Timestamp) -> Option<Timestamp> {
        let mut at = at;
        for _ in 0..64 {
            at = match self.at(at) {
                Hours::Open => return Some(at),
                Hours::Excluded(until) | Hours::Closed(until) => until?,
            };
        }
        None
    }
}
