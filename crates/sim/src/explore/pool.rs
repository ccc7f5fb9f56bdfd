//! Many runs at once, each on one thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::report::Report;
use super::{Aim, Effort, Job, examine};
use crate::stage::{Unplayable, Wiring};

/// Does all jobs, or stops after enough failures. The report is the same whatever thread did what.
pub(super) fn work(
    jobs: &[Job],
    wiring: &Wiring,
    effort: &Effort,
    report: Report,
) -> Result<Report, Unplayable> {
    let next = AtomicUsize::new(0);
    let enough = AtomicBool::new(false);
    let shared = Mutex::new((report, None));
    std::thread::scope(|scope| {
        for _ in 0..effort.threads.max(1) {
            scope.spawn(|| {
                while !enough.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else {
                        return;
                    };
                    let result = examine(&job.known, wiring, &job.trial);
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
        Aim::Standstill => &mut report.standstills,
        Aim::Spell(class) => report.spells.entry(class).or_default(),
        Aim::Seed => &mut report.seeds,
    };
    score.done += job.stands_for;
}
