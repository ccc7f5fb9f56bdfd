//! When work may begin: windows and excluded dates. They govern the beginning of work, never its end.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::cron::Schedule;

/// A time in which work may begin.
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
    /// Work begins in one of these only; empty for at any time.
    pub windows: Vec<Window>,
    /// No work begins on these dates.
    pub excluded: BTreeSet<Date>,
    /// Where the dates are, if no window says so.
    pub zone: Option<TimeZone>,
}

/// What a calendar says about a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hours {
    /// Work may begin.
    Open,
    /// Not today; perhaps again then.
    Excluded(Option<Timestamp>),
    /// No window is open; one opens then.
    Closed(Option<Timestamp>),
}

impl Calendar {
    /// Whether work may begin at `now`.
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

    /// The first moment from `at` on when work may begin, looking a little ahead.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeSet;
    use std::time::Duration;

    use jiff::Timestamp;

    use super::{Calendar, Hours, Window};
    use crate::cron::{Cron, Schedule, zone};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn window(cron: &str, hours: u64, place: &str) -> Window {
        Window {
            opens: Schedule {
                cron: Cron::parse(cron).unwrap(),
                zone: zone(Some(place)).unwrap(),
            },
            duration: Duration::from_secs(hours * 3_600),
        }
    }

    fn dates(all: &[&str]) -> BTreeSet<jiff::civil::Date> {
        all.iter().map(|date| date.parse().unwrap()).collect()
    }

    #[test]
    fn a_window_is_open_from_its_first_moment_to_just_before_its_last() {
        let calendar = Calendar {
            windows: vec![
                window("0 22 * * *", 4, "UTC"),
                window("0 12 * * SUN", 1, "UTC"),
            ],
            ..Calendar::default()
        };
        let closed = |until: &str| Hours::Closed(Some(at(until)));
        for (now, expected) in [
            ("2026-03-04T21:59:59Z", closed("2026-03-04T22:00:00Z")),
            ("2026-03-04T22:00:00Z", Hours::Open),
            ("2026-03-05T01:59:59Z", Hours::Open),
            ("2026-03-05T02:00:00Z", closed("2026-03-05T22:00:00Z")),
            ("2026-03-08T03:00:00Z", closed("2026-03-08T12:00:00Z")),
            ("2026-03-08T12:30:00Z", Hours::Open),
        ] {
            assert_eq!(calendar.at(at(now)), expected, "{now}");
        }
    }

    #[test]
    fn excluded_dates_are_those_of_the_windows_place() {
        let calendar = Calendar {
            windows: vec![window("0 * * * *", 1, "Asia/Tokyo")],
            excluded: dates(&["2026-12-24", "2026-12-25"]),
            zone: None,
        };
        assert_eq!(calendar.at(at("2026-12-23T14:59:59Z")), Hours::Open);
        let end = Some(at("2026-12-25T15:00:00Z"));
        assert_eq!(
            calendar.at(at("2026-12-23T15:00:00Z")),
            Hours::Excluded(end)
        );
        assert_eq!(calendar.at(at("2026-12-25T15:00:00Z")), Hours::Open);
    }

    #[test]
    fn the_next_opening_is_past_excluded_dates() {
        let calendar = Calendar {
            windows: vec![window("0 3 * * *", 2, "UTC")],
            excluded: dates(&["2026-03-05", "2026-03-06"]),
            zone: None,
        };
        let opening = calendar.opening(at("2026-03-04T12:00:00Z"));
        assert_eq!(opening, Some(at("2026-03-07T03:00:00Z")));
        assert_eq!(
            Calendar::default().opening(at("2026-03-04T12:00:00Z")),
            Some(at("2026-03-04T12:00:00Z"))
        );
    }
}
