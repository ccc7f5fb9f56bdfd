//! When a workload is due: the decision table as one pure function of stamp, pod template, cadence and clock.
//!
//! | stamp on the workload | answer |
//! |---|---|
//! | missing or empty | stamp, no restart |
//! | no RFC 3339 time | stamp, no restart |
//! | in the future | wait |
//! | less than an interval ago | wait |
//! | an interval ago or more | restart |
//!
//! The pod template's `restartedAt` counts as a restart, whoever wrote it, unless it lies in the future.

use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::cron::Schedule;

pub use slipway_kernel::instant::{Written, instant, later, second};

/// How restarts follow one another.
#[derive(Debug, Clone, PartialEq)]
pub enum Cadence {
    /// So long after the last one.
    Every(Duration),
    /// At the times of a calendar.
    At(Schedule),
}

impl Cadence {
    /// When the next one is due after `last`; none if never.
    pub fn after(&self, last: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(interval) => later(last, *interval),
            Self::At(schedule) => schedule.next_after(last),
        }
    }
}

/// What is known about a workload's last restart.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    /// Our stamp on the workload.
    pub stamp: &'a Written,
    /// `restartedAt` in the pod template.
    pub template: &'a Written,
    /// Whether `restartedAt` was written by us.
    pub template_is_ours: bool,
    /// When somebody went back to an earlier revision, and so brought an earlier stamp back.
    pub rolled_back: Option<Timestamp>,
}

/// What the table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Write the stamp: the workload is seen for the first time, or (`repair`) its stamp is no time.
    Stamp {
        /// Whether there was something unreadable.
        repair: bool,
    },
    /// The stamp lies in the future: look again after a full interval.
    Future {
        /// When it will be due.
        due: Option<Timestamp>,
    },
    /// Not yet.
    Wait {
        /// When it will be due; none if never.
        due: Option<Timestamp>,
    },
    /// It is due.
    Restart {
        /// Since when.
        due: Timestamp,
    },
}

/// The table.
pub fn decide(past: Past<'_>, cadence: &Cadence, now: Timestamp) -> Decision {
    let Some(last) = last(past, now) else {
        return match past.stamp {
            Written::At(future) => Decision::Future {
                due: cadence.after(*future),
            },
            Written::Missing => Decision::Stamp { repair: false },
            Written::Unreadable(_) => Decision::Stamp { repair: true },
        };
    };
    match cadence.after(last) {
        Some(due) if due <= now => Decision::Restart { due },
        due => Decision::Wait { due },
    }
}

/// When the workload was last restarted; none if that has to be stamped or lies in the future.
pub fn last(past: Past<'_>, now: Timestamp) -> Option<Timestamp> {
    let by_template = past.template.at().filter(|at| *at <= now);
    match past.stamp {
        Written::At(own) if *own <= now => {
            // Dated by the API server, whose clock may be ahead of ours: then it was just now.
            let back = past.rolled_back.map(|at| at.min(now));
            Some(
                (*own)
                    .max(by_template.unwrap_or(*own))
                    .max(back.unwrap_or(*own)),
            )
        }
        Written::Missing if past.template_is_ours => by_template,
        _ => None,
    }
}

/// When the last restart reads otherwise by time alone: what a clock ahead of ours wrote beside our stamp counts as soon as ours
/// gets there. A stamp of our own in the future is another matter: see [`Decision::Future`].
pub fn reads_otherwise_at(past: Past<'_>, now: Timestamp) -> Option<Timestamp> {
    let has_been = match past.stamp {
        Written::At(own) => *own <= now,
        Written::Missing => past.template_is_ours,
        Written::Unreadable(_) => false,
    };
    let written = past.template.at().into_iter().chain(past.rolled_back);
    written.filter(|at| has_been && *at > now).min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::time::Duration;

    use jiff::Timestamp;

    use super::{Cadence, Decision, Past, Written, decide, instant, second};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn decision(stamp: &str, template: &str, now: &str) -> Decision {
        let past = Past {
            stamp: &Written::read(Some(stamp)),
            template: &Written::read(Some(template)),
            template_is_ours: false,
            rolled_back: None,
        };
        decide(past, &Cadence::Every(Duration::from_mins(10)), at(now))
    }

    const NOON: &str = "2026-03-04T12:00:00Z";

    #[test]
    fn the_table() {
        let due = at(NOON);
        let cases = [
            ("", Decision::Stamp { repair: false }),
            ("noon", Decision::Stamp { repair: true }),
            (
                "2026-03-04T12:00:01Z",
                Decision::Future {
                    due: Some(at("2026-03-04T12:10:01Z")),
                },
            ),
            (
                NOON,
                Decision::Wait {
                    due: Some(at("2026-03-04T12:10:00Z")),
                },
            ),
            (
                "2026-03-04T11:50:01Z",
                Decision::Wait {
                    due: Some(at("2026-03-04T12:00:01Z")),
                },
            ),
            ("2026-03-04T11:50:00Z", Decision::Restart { due }),
            ("2026-03-04T12:50:00+01:00", Decision::Restart { due }),
            (
                "2020-01-01T00:00:00Z",
                Decision::Restart {
                    due: at("2020-01-01T00:10:00Z"),
                },
            ),
        ];
        for (stamp, expected) in cases {
            assert_eq!(decision(stamp, "", NOON), expected, "{stamp}");
        }
    }

    #[test]
    fn a_template_counts_only_if_it_is_a_time_that_has_been() {
        let stamp = "2026-03-04T11:00:00Z";
        let waits = Decision::Wait {
            due: Some(at("2026-03-04T12:05:00Z")),
        };
        let restarts = Decision::Restart {
            due: at("2026-03-04T11:10:00Z"),
        };
        assert_eq!(decision(stamp, "2026-03-04T11:55:00Z", NOON), waits);
        assert_eq!(decision(stamp, "2026-03-04T12:00:01Z", NOON), restarts);
        assert_eq!(decision(stamp, "five to twelve", NOON), restarts);
        assert_eq!(decision(stamp, "2026-03-04T10:00:00Z", NOON), restarts);
        // Seen for the first time is seen for the first time.
        assert_eq!(
            decision("", "2026-03-04T10:00:00Z", NOON),
            Decision::Stamp { repair: false }
        );
    }

    #[test]
    fn a_rollback_by_a_clock_that_is_ahead_was_just_now() {
        let past = Past {
            stamp: &Written::read(Some("2026-03-04T11:00:00Z")),
            template: &Written::Missing,
            template_is_ours: false,
            rolled_back: Some(at("2026-03-04T12:00:01Z")),
        };
        let decided = decide(past, &Cadence::Every(Duration::from_mins(10)), at(NOON));
        let due = Some(at("2026-03-04T12:10:00Z"));
        assert_eq!(decided, Decision::Wait { due });
    }

    #[test]
    fn an_interval_beyond_all_calendars_is_never_due() {
        let past = Past {
            stamp: &Written::read(Some(NOON)),
            template: &Written::Missing,
            template_is_ours: false,
            rolled_back: None,
        };
        let long = Cadence::Every(Duration::from_secs(u64::MAX));
        let decided = decide(past, &long, at("9000-01-01T00:00:00Z"));
        assert_eq!(decided, Decision::Wait { due: None });
    }

    #[test]
    fn only_rfc_3339_is_a_time() {
        for text in [
            "2024-06-28T12:00:00Z",
            "2024-06-28T12:00:00.25Z",
            "2024-06-28T12:00:00+05:30",
        ] {
            assert!(instant(text).is_some(), "{text}");
        }
        for text in [
            "2024-06-28 12:00:00Z",
            "2024-06-28t12:00:00z",
            "2024-06-28T12:00Z",
            "2024-06-28T12:00:00",
            "2024-06-28T12:00:00.Z",
            "2024-06-28T12:00:00+0530",
            "2024-02-30T12:00:00Z",
            "2024-06-28T12:00:00Z[UTC]",
            "Fri, 28 Jun 2024 12:00:00 UTC",
            "ééééééééééééééééééééé",
        ] {
            assert!(instant(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_second_is_never_ahead() {
        assert_eq!(second(at("2026-03-04T12:00:00.999Z")), at(NOON));
        assert_eq!(
            second(at("1969-12-31T23:59:58.5Z")),
            at("1969-12-31T23:59:58Z")
        );
    }
}
