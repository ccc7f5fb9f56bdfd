//! The source-controller: fetches what a `GitRepository` asks for.
//!
//! It says twice that it has: first that it is ready, then what it fetched and of which generation. What fails is tried again
//! and again, each time after a longer wait. Nothing is written when it looks again and finds the same.

use jiff::Timestamp;

use super::super::hash;
use super::super::key::{Key, Kind};
use super::super::pod;
use super::super::scheduler::after;
use super::super::script::Scene;
use super::super::world::World;
use super::super::write::{self, Step};
use super::conditions::{Said, drop, say};
use super::script::{Flux, Stage};
use super::{Artifact, GitRepository, SourceStatus, finalizer, is_over};

/// The longest wait after a failure, in seconds.
const LONGEST: i64 = 900;

/// How far a source is.
#[derive(Debug, Clone, PartialEq)]
enum State {
    /// It is being fetched, since when.
    Running(Timestamp),
    /// This revision has been fetched, and not all of that is told.
    Fetched(String, Timestamp),
    /// It could not be: until when it waits, and why.
    Failed(Timestamp, String),
}

/// A source that is being fetched.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    state: State,
    /// How many times in a row it could not be.
    failures: u32,
}

/// What the controller does about one source.
pub(crate) fn reconcile(world: &mut World, scene: Scene<'_>, key: &Key, now: Timestamp) -> Step {
    let mut step = Step::default();
    let before = world.fetches.remove(key);
    let (Some(source), Some(flux)) = (world.sources.get(key).cloned(), &scene.script.flux) else {
        return step;
    };
    let is_going = source.metadata.deletion_timestamp.is_some();
    step.writes
        .extend(finalizer(Kind::GitRepository, &source.metadata, !is_going));
    if is_going || source.spec.suspend || !step.writes.is_empty() {
        return step;
    }
    let look = Look {
        source: &source,
        flux,
        scene,
        now,
    };
    let mut fetch = match before {
        Some(fetch) => fetch,
        None if source.status.observed_generation == look.generation() => return step,
        None => Fetch {
            state: State::Running(now),
            failures: 0,
        },
    };
    match &fetch.state {
        State::Running(since) if is_over(*since, flux.fetch, now) => {
            fetch.state = look.outcome(fetch.failures);
            if matches!(fetch.state, State::Failed(..)) {
                fetch.failures += 1;
            }
        }
        State::Failed(until, _) if *until <= now => fetch.state = State::Running(now),
        // It is told in two writes: what was fetched comes last.
        State::Fetched(revision, at) if look.write(&look.ready(revision)).is_none() => {
            step.writes.extend(look.write(&look.done(revision, *at)));
            return step;
        }
        _ => {}
    }
    match &fetch.state {
        State::Running(since) => step.wake_at(after(*since, flux.fetch)),
        State::Failed(until, _) => step.wake_at(*until),
        State::Fetched(..) => {}
    }
    step.writes.extend(look.write(&look.status(&fetch.state)));
    world.fetches.insert(key.clone(), fetch);
    step
}

struct Look<'a> {
    source: &'a GitRepository,
    flux: &'a Flux,
    scene: Scene<'a>,
    now: Timestamp,
}

impl Look<'_> {
    fn generation(&self) -> i64 {
        self.source.metadata.generation.unwrap_or(1)
    }

    fn write(&self, status: &SourceStatus) -> Option<write::Write> {
        let old = Some(&self.source.status);
        write::status(Kind::GitRepository, &self.source.metadata, old, status)
    }

    /// What comes of it.
    fn outcome(&self, failures: u32) -> State {
        let spec = &self.source.spec;
        let (tag, commit) = (
            spec.reference.tag.as_deref(),
            spec.reference.commit.as_deref(),
        );
        let name = self.source.metadata.name.as_deref().unwrap_or_default();
        let since = self.scene.since(self.now);
        let fails = |version: &str| {
            self.flux
                .fails(Stage::Fetch, name, (&spec.url, version), since)
        };
        let problem = match self.flux.find(&spec.url, tag, commit) {
            Some(found) if !fails(found.version) => {
                let sha = found.repository.commit(found.version);
                let revision = match commit {
                    Some(_) => format!("sha1:{sha}"),
                    None => format!("{}@sha1:{sha}", found.version),
                };
                return State::Fetched(revision, self.now);
            }
            Some(_) => "connection refused".to_owned(),
            None if !self.flux.repositories.iter().any(|one| one.url == spec.url) => {
                "repository not found: ".to_owned()
            }
            None => format!(
                "couldn't find remote ref \"refs/tags/{}\"",
                tag.or(commit).unwrap_or_default()
            ),
        };
        let message = format!(
            "failed to checkout and determine revision: unable to clone '{}': {problem}",
            spec.url
        );
        let wait = (1_i64 << failures.min(10)).min(LONGEST);
        State::Failed(pod::later(self.now, wait), message)
    }

    fn status(&self, state: &State) -> SourceStatus {
        match state {
            State::Running(_) => self.running(),
            State::Fetched(revision, _) => self.ready(revision),
            State::Failed(_, message) => self.failed(message),
        }
    }

    fn with(&self, all: &[Said<'_>]) -> SourceStatus {
        let mut status = self.source.status.clone();
        for said in all {
            say(&mut status.conditions, said, self.generation(), self.now);
        }
        status
    }

    fn running(&self) -> SourceStatus {
        let message = "building artifact";
        self.with(&[
            Said {
                of: "Reconciling",
                status: "True",
                reason: "Progressing",
                message,
            },
            Said {
                of: "Ready",
                status: "Unknown",
                reason: "Progressing",
                message,
            },
        ])
    }

    fn failed(&self, message: &str) -> SourceStatus {
        let reason = "GitOperationFailed";
        self.with(&[
            Said {
                of: "Reconciling",
                status: "True",
                reason: "ProgressingWithRetry",
                message: "building artifact",
            },
            Said {
                of: "Ready",
                status: "False",
                reason,
                message,
            },
            Said {
                of: "FetchFailed",
                status: "True",
                reason,
                message,
            },
        ])
    }

    fn ready(&self, revision: &str) -> SourceStatus {
        let message = format!("stored artifact for revision '{revision}'");
        let said = |of| Said {
            of,
            status: "True",
            reason: "Succeeded",
            message: &message,
        };
        let mut status = self.with(&[said("Ready"), said("ArtifactInStorage")]);
        drop(&mut status.conditions, "Reconciling");
        drop(&mut status.conditions, "FetchFailed");
        status
    }

    fn done(&self, revision: &str, at: Timestamp) -> SourceStatus {
        let key = Key::of(&self.source.metadata);
        let (_, sha) = revision.rsplit_once(':').unwrap_or_default();
        let path = format!("gitrepository/{}/{}/{sha}.tar.gz", key.namespace, key.name);
        let digest = hash::number(revision.as_bytes());
        SourceStatus {
            observed_generation: self.generation(),
            artifact: Some(Artifact {
                revision: revision.to_owned(),
                digest: format!("sha256:{digest:064x}"),
                url: format!("http://source-controller.flux-system.svc/{path}"),
                path,
                size: 1_024,
                last_update_time: pod::stamp(at).0.to_string(),
            }),
            ..self.ready(revision)
        }
    }
}
