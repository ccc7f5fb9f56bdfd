//! What the controller says of a Kustomization while it works on it.

use jiff::SignedDuration;

use super::super::super::key::Kind;
use super::super::super::world::World;
use super::super::super::write::{self, Write};
use super::super::conditions::{Said, drop, say};
use super::super::{Inventory, KustomizationStatus};
use super::attempt::{Attempt, Outcome};
use super::{Look, timeout};

/// A time as it is told in messages.
pub(super) fn length_of(time: SignedDuration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

impl Look<'_> {
    pub(super) fn write(&self, status: &KustomizationStatus) -> Option<Write> {
        let old = Some(&self.object.status);
        write::status(Kind::Kustomization, &self.object.metadata, old, status)
    }

    fn with(&self, all: &[Said<'_>]) -> KustomizationStatus {
        let mut status = self.object.status.clone();
        for said in all {
            say(&mut status.conditions, said, self.generation(), self.now);
        }
        status
    }

    /// There is nothing to apply.
    pub(super) fn no_source(&self, world: &World) -> KustomizationStatus {
        let reference = &self.object.spec.source_ref;
        let own = self.object.metadata.namespace.as_deref();
        let namespace = reference.namespace.as_deref().or(own).unwrap_or_default();
        let key = super::Key::new(namespace, &reference.name);
        let message = if world.sources.get(&key).is_some() {
            "Source artifact not found, retrying in 30s".to_owned()
        } else {
            let (kind, name) = (&reference.kind, &reference.name);
            format!("{kind}.source.toolkit.fluxcd.io \"{name}\" not found")
        };
        self.with(&[Said {
            of: "Ready",
            status: "False",
            reason: "ArtifactFailed",
            message: &message,
        }])
    }

    /// An attempt has begun.
    pub(super) fn fetching(&self, attempt: &Attempt) -> KustomizationStatus {
        let message = doing("Fetching manifests", attempt);
        self.with(&[
            Said {
                of: "Reconciling",
                status: "True",
                reason: "Progressing",
                message: &message,
            },
            Said {
                of: "Ready",
                status: "Unknown",
                reason: "Progressing",
                message: "Reconciliation in progress",
            },
        ])
    }

    /// All is applied, and looked at.
    pub(super) fn checking(&self, attempt: &Attempt) -> KustomizationStatus {
        let message = doing("Running health checks", attempt);
        let progressing = |of, status, message| Said {
            of,
            status,
            reason: "Progressing",
            message,
        };
        let mut status = self.with(&[
            progressing("Reconciling", "True", &message),
            progressing("Ready", "Unknown", "Reconciliation in progress"),
        ]);
        if attempt.object.spec.wait {
            let said = progressing("Healthy", "Unknown", &message);
            say(&mut status.conditions, &said, self.generation(), self.now);
        }
        status.last_attempted_revision = Some(attempt.revision.clone());
        status.inventory = Some(Inventory {
            entries: attempt.entries.clone(),
        });
        status
    }

    /// What is said when it is over, one after the other.
    pub(super) fn tellings(
        &self,
        attempt: &Attempt,
        outcome: &Outcome,
    ) -> Vec<KustomizationStatus> {
        match outcome {
            Outcome::Succeeded { took } => self.succeeded(attempt, took),
            Outcome::Failed {
                reason,
                message,
                is_attempt,
                health,
            } => {
                let what = match (is_attempt, health) {
                    (_, Some(_)) => "Running health checks",
                    (false, _) => "Fetching manifests",
                    (true, _) if *reason == "BuildFailed" => "Building manifests",
                    (true, _) => "Detecting drift",
                };
                let doing = doing(what, attempt);
                let mut status = self.with(&[
                    Said {
                        of: "Reconciling",
                        status: "True",
                        reason: "ProgressingWithRetry",
                        message: &doing,
                    },
                    Said {
                        of: "Ready",
                        status: "False",
                        reason,
                        message,
                    },
                ]);
                if let Some(health) = health {
                    let said = Said {
                        of: "Healthy",
                        status: "False",
                        reason,
                        message: health,
                    };
                    say(&mut status.conditions, &said, self.generation(), self.now);
                }
                if *is_attempt {
                    status.last_attempted_revision = Some(attempt.revision.clone());
                }
                vec![status]
            }
        }
    }

    fn succeeded(&self, attempt: &Attempt, took: &str) -> Vec<KustomizationStatus> {
        let revision = &attempt.revision;
        let message = format!("Applied revision: {revision}");
        let health = format!("Health check passed in {took}");
        let ready = Said {
            of: "Ready",
            status: "True",
            reason: "ReconciliationSucceeded",
            message: &message,
        };
        let mut first = self.with(&[ready]);
        if attempt.object.spec.wait {
            let said = Said {
                of: "Healthy",
                status: "True",
                reason: "Succeeded",
                message: &health,
            };
            say(&mut first.conditions, &said, self.generation(), self.now);
        }
        drop(&mut first.conditions, "Reconciling");
        let last = KustomizationStatus {
            last_applied_revision: Some(revision.clone()),
            observed_generation: attempt.generation,
            ..first.clone()
        };
        let is_last = self.object.status.last_applied_revision == last.last_applied_revision
            && self.object.status.observed_generation == last.observed_generation;
        if is_last {
            vec![last]
        } else {
            vec![first, last]
        }
    }
}

fn doing(what: &str, attempt: &Attempt) -> String {
    let timeout = length_of(timeout(&attempt.object));
    format!(
        "{what} for revision {} with a timeout of {timeout}",
        attempt.revision
    )
}
