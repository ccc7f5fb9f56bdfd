//! What is written for a Rollout, or for a module that stands for one.

use std::collections::BTreeSet;

use serde_json::json;
use slipway_api::fleet::names::{CONFIRM_UNASSIGN, FINALIZER, REVISION};
use slipway_api::purpose::fleet as purpose;
use slipway_kernel::event::EventType;
use slipway_kernel::fields::{strings, text};
use slipway_kernel::finalizer::{self, Finalizers};
use slipway_kernel::store::{Item, Meta};
use slipway_kernel::{Action, Event, Kind, ObjectRef, Target};

use super::rollout::{Assigner, Course, kept, values};
use super::view::{View, reference};
use crate::observe::gather::Parts;
use crate::observe::kept::Kept;
use crate::observe::seen::Whole;
use crate::reasons::{news, outcome};
use crate::render::assignment::{self, Layer};
use crate::render::rollout::writes;
use crate::settings::Settings;
use crate::steps::Steps;
use crate::{kinds, naming};

/// What one plan writes.
pub(super) struct Writing<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) one: &'a Assigner<'a>,
    pub(super) parts: &'a Parts<'a>,
    pub(super) course: &'a Course,
    pub(super) settings: &'a Settings,
}

impl Writing<'_> {
    pub(super) fn write(&self, steps: &mut Steps<'_>, finalizers: &Finalizers) {
        let values = values(self.view, self.one);
        let there: BTreeSet<String> = values.iter().map(|item| item.meta().name.clone()).collect();
        let decision = &self.course.decision;
        let all = writes(self.parts, &self.course.gathered, decision, &there);
        let most = self.settings.max_steps;
        steps.plan.prepares |= all.prepares || all.applied.len() > most;
        for applied in all.applied.into_iter().take(most) {
            let purpose = purpose_of(&applied.object.kind);
            // What refers to a revision comes after it.
            let is_revision = purpose == purpose::KEEP;
            if decision.make.is_some() && !is_revision && purpose != purpose::VALUES {
                steps.plan.prepares = true;
                continue;
            }
            let events = self.told_when(purpose, &applied.object);
            steps.apply(applied, purpose, events);
        }
        self.unassign(steps);
        self.retire(steps);
        self.collect(&values, steps);
        if decision.word_is_followed || decision.word_left.is_some() {
            let left = decision.word_left.map(|left| left.to_string());
            let action = Action::Patch {
                target: self.one.target(),
                purpose: purpose::FOLLOWED,
                body: json!({"metadata": {"annotations": {CONFIRM_UNASSIGN: left}}}),
            };
            steps.act(action, Vec::new());
        }
        if decision.is_released {
            self.release(&values, steps, finalizers);
        }
        steps.plan.events.extend(self.news());
    }

    fn told_when(&self, purpose: slipway_kernel::Purpose, object: &ObjectRef) -> Vec<Event> {
        let (reason, note, instance) = if purpose == purpose::ASSIGN {
            let mut assigned = self.course.decision.assign.iter();
            let found = assigned.find(|one| {
                one.cluster == object.name || naming::bootstrap(&one.cluster) == object.name
            });
            let Some(found) = found else {
                return Vec::new();
            };
            let note = format!("cluster {} gets revision {}", found.cluster, found.revision);
            let instance = format!("{}-{}", found.cluster, found.revision);
            (news::ASSIGNED, note, instance)
        } else {
            return Vec::new();
        };
        vec![self.event((EventType::Normal, reason, "Assign"), note, &instance)]
    }

    fn event(
        &self,
        told: (EventType, &'static str, &'static str),
        note: String,
        instance: &str,
    ) -> Event {
        let meta = self.one.item.meta();
        Event::on(
            reference(&self.one.kind, meta),
            &meta.uid,
            told,
            note,
            instance,
        )
    }

    /// What is told whether or not anything is done.
    fn news(&self) -> Vec<Event> {
        if self.one.kind != kinds::ROLLOUT {
            return Vec::new();
        }
        let mut all = Vec::new();
        let decision = &self.course.decision;
        for past in &decision.ended {
            let (severity, reason) = match past.outcome.as_str() {
                outcome::SUCCEEDED => (EventType::Normal, news::FINISHED),
                outcome::SUPERSEDED => (EventType::Normal, news::SUPERSEDED),
                _ => (EventType::Warning, news::FINISHED),
            };
            let note = format!(
                "revision {}: {}, {} of {} clusters ready",
                past.revision, past.outcome, past.counts.ready, past.counts.total
            );
            let instance = format!("{}-{}", past.revision, past.started.0);
            all.push(self.event((severity, reason, "Roll"), note, &instance));
        }
        let before = self.course.gathered.world.rollout.status.run.as_ref();
        if let Some(run) = &decision.run
            && before.is_none_or(|before| before.revision != run.revision)
        {
            let first = run.canary.as_ref();
            let first = first
                .map(|name| format!(", {name} first"))
                .unwrap_or_default();
            let note = format!("revision {} is brought to clusters{first}", run.revision);
            let instance = format!("{}-{}", run.revision, run.started.0);
            all.push(self.event((EventType::Normal, news::STARTED, "Roll"), note, &instance));
        }
        all
    }

    /// Takes entries away, each out of the assemblage as it was seen.
    fn unassign(&self, steps: &mut Steps<'_>) {
        let layer = self.one.layer();
        let kind = match layer {
            Layer::Remote => kinds::REMOTE_ASSEMBLAGE,
            Layer::Bootstrap => kinds::ASSEMBLAGE,
        };
        let name = &self.one.item.meta().name;
        for cluster in &self.course.decision.unassign {
            let Some(found) = self.parts.assemblages.get(cluster) else {
                continue;
            };
            let meta = Meta::of(found.object());
            let object = reference(&kind, &meta);
            let note = format!("cluster {cluster} loses this configuration");
            let told = (EventType::Normal, news::UNASSIGNED, "Assign");
            let event = self.event(told, note, &format!("{cluster}-{}", meta.version));
            let action = Action::Patch {
                target: Target::seen(object, &meta),
                purpose: purpose::UNASSIGN,
                body: assignment::take_away(layer, found, name),
            };
            steps.act(action, vec![event]);
        }
    }

    /// Revisions that nobody needs any more.
    fn retire(&self, steps: &mut Steps<'_>) {
        let retired = &self.course.decision.retire;
        if retired.is_empty() {
            return;
        }
        let own = &self.one.item.meta().name;
        for (kind, item) in kept(self.view, self.one) {
            let labels = strings(item.body().object(), "/metadata/labels");
            let is_retired = labels
                .get(REVISION)
                .is_some_and(|revision| retired.contains(revision));
            // The module of Replace is changed, and never retired.
            if is_retired && (kind == kinds::CONTROLLER_REVISION || item.meta().name != *own) {
                steps.delete(
                    Target::seen(reference(&kind, item.meta()), item.meta()),
                    purpose::RETIRE,
                );
            }
        }
    }

    /// Secrets with values that no assignment refers to, or is about to.
    fn collect(&self, values: &[Item<Whole>], steps: &mut Steps<'_>) {
        if values.is_empty() {
            return;
        }
        // All of the namespace: somebody may have gone on with a Secret under a name of their own.
        let namespace = self.one.namespace();
        let remotes = self.view.all_remotes(namespace);
        let bootstraps = self.view.assemblages(namespace);
        let remotes = remotes.iter().map(|item| item.body().kept());
        let bootstraps = bootstraps.iter().map(|item| item.body().kept());
        let wanted = self.course.gathered.assignments.values();
        let mut used: BTreeSet<&str> = wanted
            .filter_map(|assigned| Some(assigned.secret.as_ref()?.0.as_str()))
            .collect();
        used.extend(remotes.chain(bootstraps).flat_map(Kept::secrets));
        // While something cannot be read, it is not known what is wanted.
        if !self.course.gathered.needs.is_empty() || self.course.decision.is_released {
            return;
        }
        for item in values {
            if !used.contains(item.meta().name.as_str()) {
                steps.delete(secret(item), purpose::COLLECT);
            }
        }
    }

    /// Nothing is left in any cluster: what is kept here goes, and then the finalizer.
    fn release(&self, values: &[Item<Whole>], steps: &mut Steps<'_>, finalizers: &Finalizers) {
        let kept = kept(self.view, self.one);
        let is_clean = kept.is_empty() && values.is_empty();
        for (kind, item) in kept {
            let going = text(item.body().object(), "/metadata/deletionTimestamp").is_some();
            if !going {
                let target = Target::seen(reference(&kind, item.meta()), item.meta());
                steps.delete(target, purpose::RETIRE);
            }
        }
        for item in values {
            steps.delete(secret(item), purpose::COLLECT);
        }
        if is_clean {
            let target = self.one.target();
            let remove = finalizer::remove(target, finalizers, FINALIZER, purpose::RELEASE);
            if let Some(remove) = remove {
                steps.act(remove, Vec::new());
            }
        }
    }
}

fn secret(item: &Item<Whole>) -> Target {
    Target::seen(reference(&kinds::SECRET, item.meta()), item.meta())
}

fn purpose_of(kind: &Kind) -> slipway_kernel::Purpose {
    if *kind == kinds::SECRET {
        purpose::VALUES
    } else if [kinds::REMOTE_ASSEMBLAGE, kinds::ASSEMBLAGE].contains(kind) {
        purpose::ASSIGN
    } else {
        purpose::KEEP
    }
}
