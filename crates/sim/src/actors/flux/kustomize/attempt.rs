//! What the controller remembers of a Kustomization: the attempt that it is at, and when the next one is due.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::super::hash;
use super::super::{Entry, Kustomization};

/// All of it. Nothing is remembered across a restart: then everything is tried again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(super) attempt: Option<Attempt>,
    pub(super) rest: Option<Rest>,
}

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The object as it was when it began.
    pub(super) object: Arc<Kustomization>,
    pub(super) generation: i64,
    pub(super) url: String,
    /// Of the source.
    pub(super) revision: String,
    pub(super) began: Timestamp,
    pub(super) stage: Stage,
    pub(super) entries: Vec<Entry>,
    /// Whether it is applied to another cluster.
    pub(super) is_elsewhere: bool,
}

/// How far an attempt is.
#[derive(Debug)]
pub(super) enum Stage {
    /// It is built and applied.
    Building,
    /// It is applied, and looked at since then.
    Checking(Timestamp),
    /// It is over, and that is told.
    Telling(Outcome),
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// All is applied, and healthy after this time.
    Succeeded { took: String },
    /// It failed.
    Failed {
        reason: &'static str,
        message: String,
        /// Whether it came as far as to be an attempt at the revision.
        is_attempt: bool,
        /// What is said of its health.
        health: Option<String>,
    },
}

impl Outcome {
    pub(super) fn failed(reason: &'static str, message: String, is_attempt: bool) -> Self {
        Self::Failed {
            reason,
            message,
            is_attempt,
            health: None,
        }
    }

    pub(super) fn unhealthy(took: &str, problem: String) -> Self {
        Self::Failed {
            reason: "HealthCheckFailed",
            message: format!("health check failed after {took}: {problem}"),
            is_attempt: true,
            health: Some(problem),
        }
    }
}

/// Between two attempts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    pub(super) generation: i64,
    /// A number for the revision.
    pub(super) revision: u64,
    /// The next one begins then, if nothing changes before.
    pub(super) until: Timestamp,
}

impl Rest {
    pub(super) fn is_about(self, generation: i64, revision: &str) -> bool {
        self.generation == generation && self.revision == mark(revision)
    }
}

/// A number for a revision.
pub(super) fn mark(revision: &str) -> u64 {
    hash::number(revision.as_bytes())
}

impl Attempt {
    pub(super) fn begin(
        object: &Arc<Kustomization>,
        url: String,
        revision: String,
        now: Timestamp,
    ) -> Self {
        Self {
            object: object.clone(),
            generation: object.metadata.generation.unwrap_or(1),
            url,
            revision,
            began: now,
            stage: Stage::Building,
            entries: Vec::new(),
            is_elsewhere: false,
        }
    }
}
