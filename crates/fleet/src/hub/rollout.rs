//! The plan of a Rollout, and of a module that stands for one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::fleet::names::{ASSIGNED_BY, CONFIRM_UNASSIGN, FINALIZER, REVISION};
use slipway_api::fleet::rollout::TemplateSpec;
use slipway_api::purpose::fleet as purpose;
use slipway_bindings::Known;
use slipway_kernel::event::EventType;
use slipway_kernel::fields::{list, strings, text};
use slipway_kernel::finalizer::{self, Finalizers, Phase};
use slipway_kernel::instant::later;
use slipway_kernel::store::Item;
use slipway_kernel::{Action, Event, Facts, Kind, ObjectRef, Plan, Target};

use super::reach;
use super::view::{View, reference};
use crate::observe::gather::{Gathered, Parts, assigner, gather};
use crate::observe::reference::Place;
use crate::observe::rollout::Asked;
use crate::observe::seen::{Assembled, Whole};
use crate::observe::assemblage;
use crate::plan::{self, Decision};
use crate::reasons::{news, outcome};
use crate::render::assignment::{self, Layer};
use crate::render::rollout::writes;
use crate::settings::Settings;
use crate::steps::Steps;
use crate::{kinds, naming};

/// How long to wait for what has not been read yet.
pub(crate) const READING: Duration = Duration::from_secs(1);

/// Something that assigns: a Rollout, or a module with a selector.
pub(crate) struct Assigner<'a> {
    pub(crate) kind: Kind,
    pub(crate) item: &'a Item<Whole>,
    /// The Rollout: itself, or the one that the module stands for.
    pub(crate) rollout: Value,
}

impl<'a> Assigner<'a> {
    /// A Rollout.
    pub(crate) fn rollout(item: &'a Item<Whole>) -> Self {
        Self {
            kind: kinds::ROLLOUT,
            rollout: item.body().object().clone(),
            item,
        }
    }

    /// A module; none if it has no selector.
    pub(crate) fn module(kind: Kind, item: &'a Item<Whole>) -> Option<Self> {
        let rollout = crate::observe::rollout::of_module(&kind, item.body().object())?;
        Some(Self {
            kind,
            item,
            rollout,
        })
    }

    fn layer(&self) -> Layer {
        match text(&self.rollout, "/spec/targetKind") {
            Some("BootstrapModule") => Layer::Bootstrap,
            _ => Layer::Remote,
        }
    }

    fn namespace(&self) -> &str {
        &self.item.meta().namespace
    }

    fn target(&self) -> Target {
        Target::seen(reference(&self.kind, self.item.meta()), self.item.meta())
    }
}

/// All that was gathered for one plan.
pub(crate) struct Course {
    pub(crate) gathered: Gathered,
    pub(crate) decision: Decision,
    pub(crate) status: slipway_api::fleet::rollout::status::RolloutStatus,
}

/// Gathers the world of an assigner, decides, and hands both on.
pub(crate) fn course<T>(
    view: &View<'_>,
    facts: &Facts,
    one: &Assigner<'_>,
    now: Timestamp,
    with: impl FnOnce(&Parts<'_>, Course) -> T,
) -> T {
    let namespace = one.namespace();
    let clusters = view.clusters(namespace);
    let (remotes, bootstraps) = match one.layer() {
        Layer::Remote => (
            view.all(&kinds::REMOTE_ASSEMBLAGE, namespace),
            Vec::<Item<Assembled>>::new(),
        ),
        Layer::Bootstrap => (Vec::new(), view.assemblages(namespace)),
    };
    let mut assemblages: BTreeMap<String, &Value> = BTreeMap::new();
    for remote in &remotes {
        assemblages.insert(remote.meta().name.clone(), remote.body().object());
    }
    for bootstrap in &bootstraps {
        let cluster = bootstrap.body().cluster();
        let is_its = |cluster: &&str| naming::bootstrap(cluster) == bootstrap.meta().name;
        if let Some(cluster) = cluster.filter(is_its) {
            assemblages.insert(cluster.to_owned(), bootstrap.body().object());
        }
    }
    let revisions = revisions(view, one);
    let has = |name: &str| assemblages.contains_key(name);
    let unreachable = reach::unreachable(
        view,
        facts,
        clusters.values().map(|cluster| (cluster, has(&cluster.name))),
    );
    let place = Place {
        stores: view.stores,
        cluster: &view.home,
        namespace,
        assemblage: None,
    };
    let mut known = Known::new();
    loop {
        let parts = Parts {
            rollout: &one.rollout,
            clusters: &clusters,
            assemblages: &assemblages,
            revisions: &revisions,
            known: &known,
            unreachable: &unreachable,
        };
        let gathered = gather(&parts);
        let read = place.read(facts, &gathered.needs);
        if read.is_empty() {
            let decision = plan::decide(&gathered.world, now);
            let status = plan::status(&gathered.world, &decision, now);
            let course = Course {
                gathered,
                decision,
                status,
            };
            return with(&parts, course);
        }
        known.extend(read);
    }
}

/// The revisions that are kept: modules of this Rollout, and records of what its module was.
fn revisions(
    view: &View<'_>,
    one: &Assigner<'_>,
) -> BTreeMap<String, (TemplateSpec, Timestamp)> {
    if one.kind != kinds::ROLLOUT {
        // A module is its own only revision.
        let spec = one.rollout.pointer("/spec/template/spec").cloned();
        let template: Option<TemplateSpec> =
            spec.and_then(|spec| serde_json::from_value(spec).ok());
        let named = template.map(|template| {
            let revision = slipway_bindings::revision::of_template(&template);
            (revision, (template, Timestamp::MIN))
        });
        return named.into_iter().collect();
    }
    let mut all = BTreeMap::new();
    for (kind, item) in kept(view, one) {
        let object = item.body().object();
        let labels = strings(object, "/metadata/labels");
        let spec = if kind == kinds::CONTROLLER_REVISION {
            object.pointer("/data/spec")
        } else {
            object.get("spec")
        };
        let template = spec.and_then(|spec| serde_json::from_value(spec.clone()).ok());
        let made = text(object, "/metadata/creationTimestamp");
        let made = made.and_then(|made| made.parse().ok()).unwrap_or_default();
        if let (Some(revision), Some(template)) = (labels.get(REVISION), template) {
            all.insert(revision.clone(), (template, made));
        }
    }
    if text(&one.rollout, "/spec/strategy") == Some("Replace") {
        // Its module has to say the same as the last record.
        let name = &one.item.meta().name;
        let module = view.get(&target_kind(one), one.namespace(), name);
        let is_of = module.map(|module| strings(module.body().object(), "/metadata/labels"));
        let is_of = is_of.and_then(|mut labels| labels.remove(REVISION));
        if let Asked::For(wanted) = crate::observe::Rollout::of(&one.rollout).wanted
            && is_of.as_ref() != Some(&wanted.target)
        {
            all.remove(&wanted.target);
        }
    }
    all
}

fn target_kind(one: &Assigner<'_>) -> Kind {
    match one.layer() {
        Layer::Bootstrap => kinds::BOOTSTRAP_MODULE,
        Layer::Remote => kinds::MODULE,
    }
}

/// What was made to keep revisions of this Rollout.
fn kept(view: &View<'_>, one: &Assigner<'_>) -> Vec<(Kind, Item<Whole>)> {
    let uid = one.item.meta().uid.as_str();
    let is_ours = |item: &Item<Whole>| {
        let mut owners = list(item.body().object(), "/metadata/ownerReferences");
        owners.any(|owner| text(owner, "/uid") == Some(uid))
    };
    let mut all = Vec::new();
    for kind in [target_kind(one), kinds::CONTROLLER_REVISION] {
        let items = view.all(&kind, one.namespace());
        all.extend(
            items
                .into_iter()
                .filter(is_ours)
                .map(|item| (kind.clone(), item)),
        );
    }
    all
}

/// The Secrets with values that were made for this assigner.
fn values(view: &View<'_>, one: &Assigner<'_>) -> Vec<Item<Whole>> {
    let by = assignment::label(&assigner(&one.rollout));
    let mut all = view.all(&kinds::SECRET, one.namespace());
    all.retain(|item| {
        let labels = strings(item.body().object(), "/metadata/labels");
        labels.get(ASSIGNED_BY) == Some(&by)
    });
    all
}

/// The plan of an assigner, and the status that it comes to.
pub(crate) fn plan(
    view: &View<'_>,
    facts: &Facts,
    settings: &Settings,
    one: &Assigner<'_>,
    now: Timestamp,
) -> (Plan, Option<Course>) {
    let mut steps = Steps::new(facts, now);
    let finalizers = Finalizers::of(one.item.body().object());
    match finalizers.phase(FINALIZER) {
        Phase::Unguarded => {
            let add = finalizer::add(one.target(), &finalizers, FINALIZER, purpose::GUARD);
            steps.prepare(add);
            return (steps.plan, None);
        }
        Phase::Released => return (steps.plan, None),
        Phase::Guarded | Phase::Ending => {}
    }
    let course = course(view, facts, one, now, |parts, course| {
        let writing = Writing {
            view,
            one,
            parts,
            course: &course,
            settings,
        };
        writing.write(&mut steps, &finalizers);
        course
    });
    let mut plan = steps.plan;
    let holds = plan::blockers(&course.gathered.world, &course.decision.holds, now);
    plan.blockers.extend(holds.into_iter().map(|mut blocker| {
        if blocker.object.kind == kinds::ROLLOUT {
            blocker.object.kind = one.kind.clone();
        }
        blocker
    }));
    if let Some(at) = course.decision.wake_at {
        plan.wake(at);
    }
    if !course.gathered.needs.is_empty()
        && let Some(at) = later(now, READING)
    {
        plan.wake(at);
    }
    (plan, Some(course))
}

struct Writing<'a> {
    view: &'a View<'a>,
    one: &'a Assigner<'a>,
    parts: &'a Parts<'a>,
    course: &'a Course,
    settings: &'a Settings,
}

impl Writing<'_> {
    fn write(&self, steps: &mut Steps<'_>, finalizers: &Finalizers) {
        let values = values(self.view, self.one);
        let there: BTreeSet<String> = values.iter().map(|item| item.meta().name.clone()).collect();
        let decision = &self.course.decision;
        let all = writes(self.parts, &self.course.gathered, decision, &there);
        let most = self.settings.max_steps;
        steps.plan.prepares |= all.prepares || all.applied.len() > most;
        for applied in all.applied.into_iter().take(most) {
            let purpose = purpose_of(&applied.object.kind, &applied.body);
            // What refers to a revision comes after it.
            let is_revision = purpose == purpose::KEEP;
            if decision.make.is_some() && !is_revision && purpose != purpose::VALUES {
                steps.plan.prepares = true;
                continue;
            }
            let events = self.told_when(purpose, &applied.object);
            steps.apply(applied, purpose, events);
        }
        self.retire(steps);
        self.collect(&values, steps);
        if decision.word_is_followed {
            steps.act(
                Action::Patch {
                    target: self.one.target(),
                    purpose: purpose::FOLLOWED,
                    body: json!({"metadata": {"annotations": {CONFIRM_UNASSIGN: null}}}),
                },
                Vec::new(),
            );
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
        } else if purpose == purpose::UNASSIGN {
            let note = format!("{object} loses this configuration");
            (news::UNASSIGNED, note, object.name.clone())
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
            let first = first.map(|name| format!(", {name} first")).unwrap_or_default();
            let note = format!("revision {} is brought to clusters{first}", run.revision);
            let instance = format!("{}-{}", run.revision, run.started.0);
            all.push(self.event((EventType::Normal, news::STARTED, "Roll"), note, &instance));
        }
        all
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
        let wanted = self.course.gathered.assignments.values();
        let mut used: BTreeSet<&str> = wanted
            .filter_map(|assigned| Some(assigned.secret.as_ref()?.0.as_str()))
            .collect();
        for found in self.parts.assemblages.values() {
            used.extend(assemblage::secrets(found));
        }
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

fn purpose_of(kind: &Kind, body: &Value) -> slipway_kernel::Purpose {
    if *kind == kinds::SECRET {
        return purpose::VALUES;
    }
    let path = if *kind == kinds::REMOTE_ASSEMBLAGE {
        "/spec/assemblage/syncs"
    } else if *kind == kinds::ASSEMBLAGE {
        "/spec/syncs"
    } else {
        return purpose::KEEP;
    };
    match list(body, path).next() {
        Some(_) => purpose::ASSIGN,
        None => purpose::UNASSIGN,
    }
}

/// What the bindings of an assigner refer to, in the control plane.
pub(crate) fn references(
    view: &View<'_>,
    one: &Assigner<'_>,
) -> BTreeSet<slipway_bindings::Reference> {
    if !refers(&one.rollout) && !revisions(view, one).values().any(|(template, _)| has_references(template)) {
        return BTreeSet::new();
    }
    course(
        view,
        &Facts::default(),
        one,
        Timestamp::UNIX_EPOCH,
        |_, course| course.gathered.references,
    )
}

fn refers(rollout: &Value) -> bool {
    let spec = rollout.pointer("/spec/template/spec").cloned();
    let template: Option<TemplateSpec> = spec.and_then(|spec| serde_json::from_value(spec).ok());
    template.as_ref().is_some_and(has_references)
}

fn has_references(template: &TemplateSpec) -> bool {
    let mut bindings = template.control_plane_bindings.iter();
    bindings.any(|binding| binding.object_field_ref.is_some())
}
