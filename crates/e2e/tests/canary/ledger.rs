//! What became of every request: who answered, at which step, or that nobody did.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many losses are told.
const TOLD: usize = 5;

/// What became of a request.
pub(crate) enum Outcome {
    /// A pod of this name and image answered, with this status.
    Answered {
        pod: String,
        image: String,
        status: u16,
    },
    /// Nobody did, for this reason.
    Lost(String),
}

/// The requests while the new version had one share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    /// In percent, by the configuration that the requests went by.
    pub(crate) share: u32,
    /// Answered by the serving copy.
    pub(crate) source: usize,
    /// Answered by the new version.
    pub(crate) target: usize,
}

impl Step {
    pub(crate) fn total(&self) -> usize {
        self.source + self.target
    }

    /// The share of the new version that was seen, in percent.
    #[allow(clippy::cast_precision_loss, reason = "counts of a test are small")]
    pub(crate) fn seen(&self) -> f64 {
        self.target as f64 * 100.0 / self.total().max(1) as f64
    }
}

#[derive(Debug, Default)]
struct Entries {
    /// Rises with every configuration of the data plane.
    epoch: usize,
    /// Whether one configuration is being replaced by the next: a request may go by either.
    is_turning: bool,
    steps: Vec<Step>,
    total: usize,
    lost: Vec<String>,
    /// Answers by image, and how many of them were failures.
    images: BTreeMap<String, (usize, usize)>,
    /// Who was to get requests and had nobody to answer them.
    starved: Vec<String>,
    is_open: bool,
}

/// All of it, for the data plane and the client.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Entries>);

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on somebody asks.
    pub(crate) fn open(&self) {
        self.entries().is_open = true;
    }

    /// From now on nobody does.
    pub(crate) fn close(&self) {
        self.entries().is_open = false;
    }

    /// Whether somebody asks.
    pub(crate) fn is_open(&self) -> bool {
        self.entries().is_open
    }

    /// From now on requests may go by another configuration.
    pub(crate) fn begin_turn(&self) {
        self.entries().is_turning = true;
    }

    /// From now on all requests do.
    pub(crate) fn turn(&self, share: u32) {
        let mut entries = self.entries();
        entries.is_turning = false;
        entries.epoch += 1;
        if entries.steps.last().is_none_or(|step| step.share != share) {
            entries.steps.push(Step {
                share,
                ..Step::default()
            });
        }
    }

    /// A configuration sends requests where nobody is.
    pub(crate) fn starve(&self, services: &[&str]) {
        let mut entries = self.entries();
        if entries.is_open && !services.is_empty() {
            entries.starved.push(services.join(", "));
        }
    }

    /// Which configuration a request begins with.
    pub(crate) fn epoch(&self) -> usize {
        self.entries().epoch
    }

    /// A request is over. Where the configuration changed meanwhile, it counts for no step.
    pub(crate) fn note(&self, epoch: usize, outcome: Outcome) {
        let mut entries = self.entries();
        entries.total += 1;
        let (pod, image, status) = match outcome {
            Outcome::Lost(why) => return entries.lost.push(why),
            Outcome::Answered { pod, image, status } => (pod, image, status),
        };
        let of_image = entries.images.entry(image).or_default();
        of_image.0 += 1;
        of_image.1 += usize::from(status >= 500);
        let is_same = entries.epoch == epoch && !entries.is_turning;
        if is_same && let Some(step) = entries.steps.last_mut() {
            if pod.contains("-primary-") {
                step.source += 1;
            } else {
                step.target += 1;
            }
        }
    }

    /// The step that it is now.
    pub(crate) fn step(&self) -> Step {
        self.entries().steps.last().cloned().unwrap_or_default()
    }

    /// All steps so far.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.entries().steps.clone()
    }

    /// How many answers were of an image, and how many of these were failures.
    pub(crate) fn of(&self, image: &str) -> (usize, usize) {
        let entries = self.entries();
        entries.images.get(image).copied().unwrap_or_default()
    }

    /// How many requests there were.
    pub(crate) fn total(&self) -> usize {
        self.entries().total
    }

    /// What was lost, and who was starved; none if all is well.
    pub(crate) fn losses(&self) -> Option<String> {
        let entries = self.entries();
        if entries.lost.is_empty() && entries.starved.is_empty() {
            return None;
        }
        let told: Vec<&str> = entries.lost.iter().take(TOLD).map(String::as_str).collect();
        Some(format!(
            "{} of {} requests were lost ({}); without anybody to answer: {:?}",
            entries.lost.len(),
            entries.total,
            told.join("; "),
            entries.starved
        ))
    }

    /// In a few words.
    pub(crate) fn summary(&self) -> String {
        let entries = self.entries();
        let mut text = format!("{} requests", entries.total);
        for step in entries.steps.iter().filter(|step| step.total() > 0) {
            let _ = write!(
                text,
                ", {} % gave {:.1} % of {}",
                step.share,
                step.seen(),
                step.total()
            );
        }
        text
    }
}
