//! Many runs at once, each on one thread, for as long as a budget of processor time lasts.
//!
//! The budget is of processor time, so that it reaches as far beside other programs as it does alone.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::report::Report;
use super::{Aim, Effort, Job, examine};
use crate::stage::{Unplayable, Wiring};

/// Does all jobs, or stops after enough failures, or when the budget is used up and all are done that it does not bound. The
/// report is the same whatever thread did what.
pub(super) fn work(
    jobs: &[Job],
    wiring: &Wiring,
    effort: &Effort,
    budget: Option<Duration>,
    report: Report,
) -> Result<Report, Unplayable> {
    let next = AtomicUsize::new(0);
    let spent = AtomicU64::new(0);
    let is_affordable = |job: &Job| {
        let spent = Duration::from_nanos(spent.load(Ordering::Relaxed));
        job.is_owed(effort.is_bounded) || budget.is_none_or(|budget| spent < budget)
    };
    let enough = AtomicBool::new(false);
    let shared = Mutex::new((report, None));
    std::thread::scope(|scope| {
        for _ in 0..effort.threads.max(1) {
            scope.spawn(|| {
                let mut clock = Clock::new();
                while !enough.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at).filter(|job| is_affordable(job)) else {
                        return;
                    };
                    let result = examine(&job.known, wiring, &job.trial);
                    spent.fetch_add(clock.lap(), Ordering::Relaxed);
                    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    match result {
                        Ok((outcome, verdicts)) => {
                            count(&mut shared.0, job);
                            let scenario = &job.known.scenario;
                            shared.0.take(scenario, &job.trial, &outcome, verdicts);
                            if shared.0.failures.len() >= effort.most_failures {
                                enough.store(true, Ordering::Relaxed);
                            }
                        }
                        Err(error) => {
                            shared.1 = Some(error);
                            enough.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let (mut report, error) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    for job in jobs {
        match job.aim {
            Aim::Request => report.requests.of += job.stands_for,
            Aim::Event => report.events.of += job.stands_for,
            Aim::Call => report.calls.of += job.stands_for,
            Aim::Standstill => report.standstills.of += job.stands_for,
            Aim::Spell(class) => report.spells.entry(class).or_default().of += job.stands_for,
            Aim::Seed => report.seeds.of += job.stands_for,
        }
    }
    report.sort();
    match error {
        Some(error) => Err(error),
        None => Ok(report),
    }
}

fn count(report: &mut Report, job: &Job) {
    report.runs += 1;
    let score = match job.aim {
        Aim::Request => &mut report.requests,
        Aim::Event => &mut report.events,
        Aim::Call => &mut report.calls,
        Aim::Standstill => &mut report.standstills,
        Aim::Spell(class) => report.spells.entry(class).or_default(),
        Aim::Seed => &mut report.seeds,
    };
    score.done += job.stands_for;
}

/// Processor time of this thread where the system tells it, otherwise time.
struct Clock {
    began: Instant,
    last: u64,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long runs take is no part of any run"
    )]
    fn new() -> Self {
        let began = Instant::now();
        Self {
            began,
            last: on_processor().unwrap_or_default(),
        }
    }

    /// Nanoseconds since the last time.
    fn lap(&mut self) -> u64 {
        let passed = || u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = on_processor().unwrap_or_else(passed);
        let lap = now.saturating_sub(self.last);
        self.last = now;
        lap
    }
}

/// Nanoseconds that this thread was on a processor, as Linux counts them.
pub fn on_processor() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
