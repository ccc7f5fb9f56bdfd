//! The plan of a Rollout, and of a module that stands for one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::fleet::names::{ASSIGNED_BY, FINALIZER, REVISION};
use slipway_api::fleet::rollout::TemplateSpec;
use slipway_api::purpose::fleet as purpose;
use slipway_bindings::Known;
use slipway_kernel::fields::{list, strings, text};
use slipway_kernel::finalizer::{self, Finalizers, Phase};
use slipway_kernel::instant::later;
use slipway_kernel::store::Item;
use slipway_kernel::{Facts, Kind, Plan, Target};

use super::view::{View, cluster_of, reference, unsettled};
use super::writing::Writing;
use super::{reach, refused};
use crate::observe::Strategy;
use crate::observe::gather::{Gathered, Parts, assigner, gather, selector};
use crate::observe::kept::Kept;
use crate::observe::reference::Place;
use crate::observe::rollout::Asked;
use crate::observe::seen::{Assembled, Whole};
use crate::plan::{self, Decision};
use crate::render::assignment::{self, Layer};
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
    pub(crate) rollout: Cow<'a, Value>,
}

impl<'a> Assigner<'a> {
    /// A Rollout.
    pub(crate) fn rollout(item: &'a Item<Whole>) -> Self {
        Self {
            kind: kinds::ROLLOUT,
            rollout: Cow::Borrowed(item.body().object()),
            item,
        }
    }

    /// A module; none if it has no selector.
    pub(crate) fn module(kind: Kind, item: &'a Item<Whole>) -> Option<Self> {
        let rollout = crate::observe::rollout::of_module(&kind, item.body().object())?;
        Some(Self {
            kind,
            item,
            rollout: Cow::Owned(rollout),
        })
    }

    pub(super) fn layer(&self) -> Layer {
        match text(&self.rollout, "/spec/targetKind") {
            Some("BootstrapModule") => Layer::Bootstrap,
            _ => Layer::Remote,
        }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.item.meta().namespace
    }

    pub(super) fn target(&self) -> Target {
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
    gathering(view, facts, one, now, |parts, gathered| {
        let mut decision = plan::decide(&gathered.world, now);
        refused::add(view, facts, one, &gathered, &mut decision);
        let status = plan::status(&gathered.world, &decision, now);
        let course = Course {
            gathered,
            decision,
            status,
        };
        with(parts, course)
    })
}

/// Gathers the world of an assigner, and hands it on.
fn gathering<T>(
    view: &View<'_>,
    facts: &Facts,
    one: &Assigner<'_>,
    now: Timestamp,
    with: impl FnOnce(&Parts<'_>, Gathered) -> T,
) -> T {
    let namespace = one.namespace();
    let (remotes, bootstraps) = match one.layer() {
        Layer::Remote => (view.all_remotes(namespace), Vec::<Item<Assembled>>::new()),
        Layer::Bootstrap => (Vec::new(), view.assemblages(namespace)),
    };
    let mut assemblages: BTreeMap<String, &Kept> = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for remote in &remotes {
        let (name, kept) = (&remote.meta().name, remote.body().kept());
        if cluster_of(kept.object()) == name {
            assemblages.insert(name.clone(), kept);
        } else {
            // What is written there would reach another cluster.
            taken.insert(name.clone());
        }
    }
    for bootstrap in &bootstraps {
        let cluster = bootstrap.body().cluster();
        let is_its = |cluster: &&str| naming::bootstrap(cluster) == bootstrap.meta().name;
        if let Some(cluster) = cluster.filter(is_its) {
            assemblages.insert(cluster.to_owned(), bootstrap.body().kept());
        }
    }
    // Of thousands of clusters a Rollout may be for a few, and it is planned whenever one of these says something.
    let own = one.item.meta().name.as_str();
    let assigned = assemblages.iter();
    let assigned = assigned.filter(|(_, kept)| kept.syncs().named(own).is_some());
    let assigned: BTreeSet<String> = assigned.map(|(name, _)| name.clone()).collect();
    let selector = selector(&one.rollout);
    let is_selected = |object: &Value| {
        let selector = selector.as_ref();
        selector.is_some_and(|selector| selector.selects_object(object))
    };
    let clusters = view.clusters(namespace, &assigned, is_selected);
    assemblages.retain(|name, _| assigned.contains(name) || clusters.contains_key(name));
    let kept = remotes.iter().map(|item| item.body().kept());
    let kept = kept.chain(bootstraps.iter().map(|item| item.body().kept()));
    let named = kept.flat_map(Kept::modules).collect();
    let revisions = revisions(view, one);
    let has = |name: &str| assemblages.contains_key(name);
    let all = || clusters.values();
    let unreachable = reach::unreachable(
        view,
        facts,
        one.layer(),
        all().map(|cluster| (cluster, has(&cluster.name))),
    );
    let unread = reach::unread(facts, all().filter(|cluster| has(&cluster.name)), now);
    let refused = refused::clusters(facts, one, clusters.keys());
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
            unread: &unread,
            refused: &refused,
            taken: &taken,
            named: &named,
            is_blind: view.is_blind_to_clusters(facts),
        };
        let mut gathered = gather(&parts);
        gathered.world.forgets_who_came = view.forgets(&kinds::ROLLOUT, "joined");
        let read = place.read(facts, &gathered.needs);
        if read.is_empty() {
            return with(&parts, gathered);
        }
        known.extend(read);
    }
}

/// The revisions that are kept: modules of this Rollout, and records of what its module was.
fn revisions(view: &View<'_>, one: &Assigner<'_>) -> BTreeMap<String, (TemplateSpec, Timestamp)> {
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
    let own = &one.item.meta().name;
    let mut all = BTreeMap::new();
    // What is kept as a record, and what as a module of its own name.
    let (mut recorded, mut made) = (BTreeSet::new(), BTreeSet::new());
    for (kind, item) in kept(view, one) {
        let object = item.body().object();
        let labels = strings(object, "/metadata/labels");
        let spec = if kind == kinds::CONTROLLER_REVISION {
            object.pointer("/data/spec")
        } else {
            object.get("spec")
        };
        let template = spec.and_then(|spec| serde_json::from_value(spec.clone()).ok());
        let since = text(object, "/metadata/creationTimestamp");
        let since = since.and_then(|since| since.parse().ok());
        if let (Some(revision), Some(template)) = (labels.get(REVISION), template) {
            if kind == kinds::CONTROLLER_REVISION {
                recorded.insert(revision.clone());
            } else if item.meta().name == naming::module(own, revision) {
                made.insert(revision.clone());
            }
            all.insert(revision.clone(), (template, since.unwrap_or_default()));
        }
    }
    if let Asked::For(wanted) = crate::observe::Rollout::of(&one.rollout).wanted {
        let is_kept = match wanted.strategy {
            // Its module has to say the same as the last record, and that has to be there: one of the two writes may have failed.
            Strategy::Replace => {
                let module = view.get(&target_kind(one), one.namespace(), own);
                let is_of =
                    module.map(|module| strings(module.body().object(), "/metadata/labels"));
                let is_of = is_of.and_then(|mut labels| labels.remove(REVISION));
                is_of.as_ref() == Some(&wanted.target) && recorded.contains(&wanted.target)
            }
            // What Replace kept has another name than entries say.
            Strategy::Incremental | Strategy::External => made.contains(&wanted.target),
        };
        if !is_kept {
            all.remove(&wanted.target);
        }
    }
    all
}

pub(super) fn target_kind(one: &Assigner<'_>) -> Kind {
    match one.layer() {
        Layer::Bootstrap => kinds::BOOTSTRAP_MODULE,
        Layer::Remote => kinds::MODULE,
    }
}

/// What was made to keep revisions of this Rollout.
pub(super) fn kept(view: &View<'_>, one: &Assigner<'_>) -> Vec<(Kind, Item<Whole>)> {
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
pub(super) fn values(view: &View<'_>, one: &Assigner<'_>) -> Vec<Item<Whole>> {
    let by = assignment::label(&assigner(&one.rollout));
    view.values(one.namespace(), ASSIGNED_BY, &by)
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
        Phase::Ending => {
            if let Some(until) = unsettled(one.item.body().object(), now) {
                steps.plan.wake(until);
                return (steps.plan, None);
            }
            if view.is_undefined(&one.kind) {
                // Its definition was deleted, and nobody has said that clusters are to lose anything: who comes by this name has it.
                let remove =
                    finalizer::remove(one.target(), &finalizers, FINALIZER, purpose::RELEASE);
                if let Some(remove) = remove {
                    steps.act(remove, Vec::new());
                }
                return (steps.plan, None);
            }
        }
        Phase::Guarded => {}
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
    let mut clusters = course.gathered.world.clusters.values();
    let is_unread = clusters.any(|cluster| !cluster.is_seen);
    if (is_unread || !course.gathered.needs.is_empty())
        && let Some(at) = later(now, READING)
    {
        plan.wake(at);
    }
    (plan, Some(course))
}

/// What the bindings of an assigner refer to, in the control plane.
pub(crate) fn references(
    view: &View<'_>,
    one: &Assigner<'_>,
) -> BTreeSet<slipway_bindings::Reference> {
    let facts = Facts::default();
    let now = Timestamp::UNIX_EPOCH;
    gathering(view, &facts, one, now, |_, gathered| gathered.references)
}
