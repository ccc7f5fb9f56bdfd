//! The kustomize-controller: builds, applies, prunes, and waits until all is healthy.
//!
//! It works on one attempt at a time: a change of the spec during an attempt, or a deletion, is looked at when that is over, and
//! what is then said of the attempt has the generation of the change. Success is told in two writes: that it is ready, and then
//! of what. After a failure the applied revision and the observed generation stay as they were.

mod attempt;
mod told;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::super::key::{Actor, Job, Key, Kind};
use super::super::scheduler::after;
use super::super::script::Scene;
use super::super::world::World;
use super::super::write::{Step, Write};
use super::{Entry, GitRepository, Kustomization, build, finalizer, is_over, length};
pub(crate) use attempt::Memory;
use attempt::{Attempt, Outcome, Rest, Stage};

/// How long is waited for a source that is not there.
const SOURCE: SignedDuration = SignedDuration::from_secs(30);
/// The shortest time that something may take to become healthy, whatever is asked for.
const SHORTEST: SignedDuration = SignedDuration::from_secs(30);

/// What the controller does about one Kustomization.
pub(crate) fn reconcile(world: &mut World, scene: Scene<'_>, key: &Key, now: Timestamp) -> Step {
    let mut memory = world.attempts.remove(key).unwrap_or_default();
    let Some(object) = world.kustomizations.get(key).cloned() else {
        return Step::default();
    };
    let look = Look {
        object: &object,
        scene,
        now,
    };
    let step = look.step(world, &mut memory);
    world.attempts.insert(key.clone(), memory);
    step
}

/// What one look is about.
struct Look<'a> {
    /// As it is now: an attempt may be about an earlier spec.
    object: &'a Arc<Kustomization>,
    scene: Scene<'a>,
    now: Timestamp,
}

impl Look<'_> {
    fn step(&self, world: &mut World, memory: &mut Memory) -> Step {
        let meta = &self.object.metadata;
        let mut step = Step::default();
        if let Some(attempt) = &mut memory.attempt {
            let over = self.go_on(world, attempt, &mut step);
            if let Some(rest) = over {
                *memory = Memory {
                    attempt: None,
                    rest: Some(rest),
                };
                // What came meanwhile is looked at now.
                let is_current = meta.deletion_timestamp.is_none()
                    && self
                        .source(world)
                        .is_none_or(|(_, revision)| rest.is_about(self.generation(), &revision));
                step.wake_at(if is_current { rest.until } else { self.now });
            }
            return step;
        }
        if meta.deletion_timestamp.is_some() {
            self.clean_up(world, &mut step);
            return step;
        }
        step.writes
            .extend(finalizer(Kind::Kustomization, meta, true));
        if !step.writes.is_empty() || self.object.spec.suspend {
            return step;
        }
        let Some((source, revision)) = self.source(world) else {
            let status = self.no_source(world);
            step.writes.extend(self.write(&status));
            step.wake_at(after(self.now, SOURCE));
            return step;
        };
        let rest = memory.rest.filter(|rest| rest.until > self.now);
        let is_done = rest.is_some_and(|rest| rest.is_about(self.generation(), &revision));
        if let (true, Some(rest)) = (is_done, rest) {
            step.wake_at(rest.until);
            return step;
        }
        let attempt = Attempt::begin(self.object, source.spec.url.clone(), revision, self.now);
        step.writes.extend(self.write(&self.fetching(&attempt)));
        step.wake_at(after(self.now, self.takes()));
        memory.attempt = Some(attempt);
        step
    }

    fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or(1)
    }

    /// How long it takes until all is applied.
    fn takes(&self) -> SignedDuration {
        let flux = self.scene.script.flux.as_ref();
        flux.map_or(SignedDuration::ZERO, |flux| flux.apply)
    }

    /// The source, and the revision of what was fetched.
    fn source(&self, world: &World) -> Option<(Arc<GitRepository>, String)> {
        let reference = &self.object.spec.source_ref;
        let own = self.object.metadata.namespace.as_deref();
        let namespace = reference.namespace.as_deref().or(own).unwrap_or_default();
        let source = world.sources.get(&Key::new(namespace, &reference.name))?;
        let artifact = source.status.artifact.as_ref()?;
        Some((source.clone(), artifact.revision.clone()))
    }

    /// One step of an attempt; what comes after it, if it is over.
    fn go_on(&self, world: &mut World, attempt: &mut Attempt, step: &mut Step) -> Option<Rest> {
        match &attempt.stage {
            Stage::Building => {
                let due = after(attempt.began, self.takes());
                if due > self.now {
                    step.writes.extend(self.write(&self.fetching(attempt)));
                    step.wake_at(due);
                    return None;
                }
                if let Some(outcome) = self.apply(world, attempt, step) {
                    attempt.stage = Stage::Telling(outcome);
                }
            }
            Stage::Checking(_) => {
                if let Some(problem) = self.refused(world) {
                    let outcome = Outcome::failed("ReconciliationFailed", problem, true);
                    attempt.stage = Stage::Telling(outcome);
                } else {
                    self.check(world, attempt, step);
                }
            }
            Stage::Telling(_) => {}
        }
        let Stage::Telling(outcome) = &attempt.stage else {
            return None;
        };
        // Whatever is due to be told is told, in as many writes as it takes; then it is over.
        let next = self
            .tellings(attempt, outcome)
            .into_iter()
            .find_map(|status| self.write(&status));
        if let Some(write) = next {
            step.writes.push(write);
            return None;
        }
        let spec = &attempt.object.spec;
        let interval = length(Some(&spec.interval), SignedDuration::from_mins(10));
        let wait = match outcome {
            Outcome::Succeeded { .. } => interval,
            Outcome::Failed { .. } => length(spec.retry_interval.as_deref(), interval),
        };
        Some(Rest {
            generation: attempt.generation,
            revision: attempt::mark(&attempt.revision),
            until: after(self.now, wait),
        })
    }

    /// What the API said of what was to be applied, if it refused it.
    fn refused(&self, world: &mut World) -> Option<String> {
        let job = Job {
            actor: Actor::Kustomize,
            key: Key::of(&self.object.metadata),
        };
        world
            .failures
            .get(&job)
            .filter(|failure| failure.about_pods)?;
        world.failures.remove(&job).map(|failure| failure.message)
    }

    /// Builds and applies; the end of the attempt, if it comes to one here.
    fn apply(&self, world: &World, attempt: &mut Attempt, step: &mut Step) -> Option<Outcome> {
        let flux = self.scene.script.flux.as_ref()?;
        let object = attempt.object.clone();
        let found = flux.of_revision(&attempt.url, &attempt.revision);
        let folder = found.and_then(|found| found.folder(&object.spec.path));
        let (Some(found), Some(folder)) = (found, folder) else {
            let path = object.spec.path.trim_start_matches("./");
            let message = format!(
                "kustomization path not found: stat /tmp/kustomization/{path}: no such file or directory"
            );
            return Some(Outcome::failed("ArtifactFailed", message, false));
        };
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let fails = |stage| {
            let about = (attempt.url.as_str(), found.version);
            flux.fails(stage, name, about, self.scene.since(self.now))
        };
        if fails(super::script::Stage::Build) {
            return Some(Outcome::failed(
                "BuildFailed",
                "as the script says".to_owned(),
                true,
            ));
        }
        if fails(super::script::Stage::Apply) {
            return Some(Outcome::failed(
                "ReconciliationFailed",
                "as the script says".to_owned(),
                true,
            ));
        }
        let to = match target(world, &object) {
            Ok(to) => to,
            Err(problem) => return Some(Outcome::failed("ReconciliationFailed", problem, true)),
        };
        let built = match build::all(world, &object, folder) {
            Ok(built) => built,
            Err(build::Unbuilt::Build(problem)) => {
                return Some(Outcome::failed("BuildFailed", problem, true));
            }
            Err(build::Unbuilt::Refused(problem)) => {
                return Some(Outcome::failed("ReconciliationFailed", problem, true));
            }
        };
        let entries: BTreeSet<Entry> = built.iter().map(|one| one.entry.clone()).collect();
        for one in built {
            let (path, body) = (one.path, one.body);
            step.writes.push(Write::Apply {
                path,
                body,
                to: to.clone(),
            });
        }
        if object.spec.prune {
            let stale = self.inventory().filter(|entry| !entries.contains(entry));
            let paths = stale.filter_map(build::path);
            step.writes.extend(paths.map(|path| Write::Remove {
                path,
                to: to.clone(),
            }));
        }
        attempt.entries = entries.into_iter().collect();
        attempt.stage = Stage::Checking(self.now);
        attempt.is_elsewhere = to.is_some();
        step.writes.extend(self.write(&self.checking(attempt)));
        step.wake_at(after(self.now, timeout(&object)));
        None
    }

    /// What was applied before.
    fn inventory(&self) -> impl Iterator<Item = &Entry> {
        self.object
            .status
            .inventory
            .iter()
            .flat_map(|all| &all.entries)
    }

    /// Looks whether all is healthy, and until when it may take.
    fn check(&self, world: &World, attempt: &mut Attempt, step: &mut Step) {
        let Stage::Checking(since) = attempt.stage else {
            return;
        };
        // First it is told that it is looked at.
        if let Some(write) = self.write(&self.checking(attempt)) {
            step.writes.push(write);
            return;
        }
        let timeout = timeout(&attempt.object);
        let took = told::length_of(self.now.duration_since(since));
        let health = self.health(world, attempt);
        let outcome = match health {
            super::health::Health::Current => Outcome::Succeeded { took },
            super::health::Health::Stalled(who) => Outcome::unhealthy(
                &took,
                format!("failed early due to stalled resources: [{who}]"),
            ),
            super::health::Health::Waiting(who) if is_over(since, timeout, self.now) => {
                Outcome::unhealthy(&took, format!("timeout waiting for: [{who}]"))
            }
            super::health::Health::Waiting(_) => {
                step.wake_at(after(since, timeout));
                let turn = self.scene.script.flux.as_ref();
                let turn = turn.and_then(|flux| flux.next_turn(self.scene.since(self.now)));
                if let Some(turn) = turn {
                    step.wake_at(after(self.scene.started, turn));
                }
                return;
            }
        };
        attempt.stage = Stage::Telling(outcome);
    }

    fn health(&self, world: &World, attempt: &Attempt) -> super::health::Health {
        use super::health::{Health, of};
        let flux = self.scene.script.flux.as_ref();
        let found = flux.and_then(|flux| flux.of_revision(&attempt.url, &attempt.revision));
        let name = attempt.object.metadata.name.as_deref().unwrap_or_default();
        let fails = flux.zip(found).is_some_and(|(flux, found)| {
            let about = (attempt.url.as_str(), found.version);
            flux.fails(
                super::script::Stage::Health,
                name,
                about,
                self.scene.since(self.now),
            )
        });
        if fails {
            return Health::Waiting("as the script says".to_owned());
        }
        if attempt.is_elsewhere || !attempt.object.spec.wait {
            return Health::Current;
        }
        of(world, &attempt.entries)
    }

    /// What was applied goes, and then it goes itself.
    fn clean_up(&self, world: &World, step: &mut Step) {
        let spec = &self.object.spec;
        if spec.prune && !spec.suspend {
            // Where nobody knows any more where it was, it stays.
            let to = target(world, self.object);
            for path in self.inventory().filter_map(build::path) {
                if let Ok(to) = &to {
                    step.writes.push(Write::Remove {
                        path,
                        to: to.clone(),
                    });
                }
            }
        }
        step.writes
            .extend(finalizer(Kind::Kustomization, &self.object.metadata, false));
    }
}

fn timeout(object: &Kustomization) -> SignedDuration {
    let interval = length(Some(&object.spec.interval), SignedDuration::from_mins(10));
    length(object.spec.timeout.as_deref(), interval).max(SHORTEST)
}

/// The cluster that a Kustomization is applied to; none for the one that it is in.
fn target(world: &World, object: &Kustomization) -> Result<Option<String>, String> {
    let Some(config) = &object.spec.kube_config else {
        return Ok(None);
    };
    let reference = &config.secret_ref;
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let name = &reference.name;
    let secret = world.secrets.get(&Key::new(namespace, name));
    let Some(secret) = secret else {
        return Err(format!(
            "unable to read KubeConfig secret '{namespace}/{name}' error: secrets \"{name}\" not found"
        ));
    };
    let key = reference.key.as_deref().unwrap_or("value");
    let data = build::decoded(secret);
    let said = data.get(key).and_then(|text| text.trim().split_once(' '));
    match said {
        Some((cluster, _)) => Ok(Some(cluster.to_owned())),
        None => Err(format!(
            "KubeConfig secret '{namespace}/{name}' doesn't contain a '{key}' key with a kubeconfig"
        )),
    }
}
