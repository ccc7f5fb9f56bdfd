//! The figures of one run, and how several runs of one contender become one column.
//!
//! Whoever is measured first is at a disadvantage: the same program in both places took 4 % more of the processor and
//! patched 10 % later when it was first. So two contenders take turns, the first of which is also the last, and what the
//! place disturbs (time, processor, memory) is the better of both runs. What was written is the most of both: nothing
//! that somebody wrote is hidden.
//!
//! This file is a module of the bench and, for its tests, of `xtask`: no test runs the bench's own.

use std::collections::BTreeMap;
use std::time::Duration;

/// All figures of one run, or of all runs of one contender on one server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measurement {
    pub(crate) server: &'static str,
    pub(crate) contender: String,
    /// Whether restarts were due before the operator was ready, which spoils the delays.
    pub(crate) started_late: bool,
    pub(crate) spread: Delays,
    pub(crate) idle: Idle,
    pub(crate) herd: Herd,
    pub(crate) resident: u64,
    pub(crate) processor: Duration,
}

/// From due to patched in seconds, and what else was written meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delays {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) mutations_per_restart: f64,
    pub(crate) beside: Beside,
}

/// When nothing is due.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Idle {
    pub(crate) mutations: usize,
    pub(crate) beside: Beside,
    pub(crate) processor: f64,
}

/// When all are due at once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Herd {
    pub(crate) all: Duration,
    pub(crate) mutations_per_restart: f64,
}

/// What is written beside workloads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Beside {
    pub(crate) events: usize,
    pub(crate) statuses: usize,
    pub(crate) leases: usize,
}

/// Whose turn it is, one after another: of several contenders each has two, there and back; one alone has one.
pub(crate) fn turns(contenders: usize) -> Vec<usize> {
    let back = if contenders > 1 { contenders } else { 0 };
    (0..contenders).chain((0..back).rev()).collect()
}

/// One column for each contender and server, in the order of contenders.
pub(crate) fn columns(runs: Vec<(usize, Measurement)>) -> Vec<Measurement> {
    let mut columns: BTreeMap<(usize, &'static str), Measurement> = BTreeMap::new();
    for (contender, run) in runs {
        let place = (contender, run.server);
        let column = match columns.remove(&place) {
            Some(earlier) => earlier.with(&run),
            None => run,
        };
        columns.insert(place, column);
    }
    columns.into_values().collect()
}

impl Measurement {
    /// What this run and another of the same contender on the same server come to.
    fn with(self, other: &Self) -> Self {
        Self {
            server: self.server,
            contender: self.contender,
            started_late: self.started_late || other.started_late,
            spread: Delays {
                p50: self.spread.p50.min(other.spread.p50),
                p99: self.spread.p99.min(other.spread.p99),
                mutations_per_restart: self
                    .spread
                    .mutations_per_restart
                    .max(other.spread.mutations_per_restart),
                beside: self.spread.beside.with(&other.spread.beside),
            },
            idle: Idle {
                mutations: self.idle.mutations.max(other.idle.mutations),
                beside: self.idle.beside.with(&other.idle.beside),
                processor: self.idle.processor.min(other.idle.processor),
            },
            herd: Herd {
                all: self.herd.all.min(other.herd.all),
                mutations_per_restart: self
                    .herd
                    .mutations_per_restart
                    .max(other.herd.mutations_per_restart),
            },
            resident: self.resident.min(other.resident),
            processor: self.processor.min(other.processor),
        }
    }
}

impl Beside {
    fn with(&self, other: &Self) -> Self {
        Self {
            events: self.events.max(other.events),
            statuses: self.statuses.max(other.statuses),
            leases: self.leases.max(other.leases),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose times are so long, and whose writes are so many.
    fn run(server: &'static str, contender: &str, time: u8, written: u8) -> Measurement {
        let (seconds, count) = (f64::from(time), usize::from(written));
        let beside = Beside {
            events: count,
            statuses: count,
            leases: count,
        };
        Measurement {
            server,
            contender: contender.to_owned(),
            started_late: false,
            spread: Delays {
                p50: seconds,
                p99: seconds,
                mutations_per_restart: f64::from(written),
                beside: beside.clone(),
            },
            idle: Idle {
                mutations: count,
                beside,
                processor: seconds,
            },
            herd: Herd {
                all: Duration::from_secs(time.into()),
                mutations_per_restart: f64::from(written),
            },
            resident: time.into(),
            processor: Duration::from_secs(time.into()),
        }
    }

    #[test]
    fn two_take_turns_and_one_alone_has_one() {
        assert_eq!(turns(1), [0]);
        assert_eq!(turns(2), [0, 1, 1, 0]);
        let places = |who: usize| -> usize {
            let order = turns(2);
            let own = order.iter().enumerate().filter(|(_, turn)| **turn == who);
            own.map(|(place, _)| place).sum()
        };
        assert_eq!(places(0), places(1), "nobody is earlier than the other");
    }

    #[test]
    fn of_two_runs_the_better_time_counts_and_every_write() {
        let cold = run("embedded", "ours", 11, 1);
        let warm = run("embedded", "ours", 10, 2);
        let both = run("embedded", "ours", 10, 2);
        assert_eq!(cold.clone().with(&warm), both);
        assert_eq!(warm.with(&cold), both, "whichever was first");
    }

    #[test]
    fn a_late_start_in_one_run_is_told() {
        let mut late = run("real", "ours", 1, 1);
        late.started_late = true;
        assert!(late.clone().with(&run("real", "ours", 1, 1)).started_late);
        assert!(run("real", "ours", 1, 1).with(&late).started_late);
    }

    #[test]
    fn contenders_of_one_name_stay_apart_and_so_do_servers() {
        let runs = vec![
            (0, run("embedded", "slipway", 11, 1)),
            (0, run("real", "slipway", 21, 1)),
            (1, run("embedded", "slipway", 12, 1)),
            (1, run("real", "slipway", 22, 1)),
            (1, run("embedded", "slipway", 13, 1)),
            (1, run("real", "slipway", 23, 1)),
            (0, run("embedded", "slipway", 10, 1)),
            (0, run("real", "slipway", 20, 1)),
        ];
        let columns = columns(runs);
        let seen: Vec<(&str, u64)> = columns.iter().map(|c| (c.server, c.resident)).collect();
        let expected = [
            ("embedded", 10),
            ("real", 20),
            ("embedded", 12),
            ("real", 22),
        ];
        assert_eq!(seen, expected);
    }
}
