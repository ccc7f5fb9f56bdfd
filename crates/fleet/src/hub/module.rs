//! The plan of a module: with a selector it is that of a Rollout that replaces; without, it only tells where it is assigned.

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::fleet::assemblage::SyncStatus;
use slipway_api::fleet::names::FINALIZER;
use slipway_api::fleet::rollout::TemplateSpec;
use slipway_api::fleet::rollout::status::{Counts, RolloutStatus};
use slipway_api::fleet::{ModuleStatus, SyncSummary};
use slipway_api::purpose::fleet as purpose;
use slipway_bindings::revision;
use slipway_kernel::condition::{READY, set};
use slipway_kernel::finalizer::{self, Finalizers};
use slipway_kernel::store::Item;
use slipway_kernel::{Facts, Kind, Plan, Target};

use super::rollout::{Assigner, Course, plan as assign};
use super::view::{View, reference};
use crate::observe::Cluster;
use crate::observe::kept::Kept;
use crate::observe::seen::Whole;
use crate::remote::summary;
use crate::settings::Settings;
use crate::steps::Steps;
use crate::{kinds, reasons};

/// The plan of a module.
pub(super) fn plan(
    view: &View<'_>,
    facts: &Facts,
    settings: &Settings,
    (kind, item): (&Kind, &Item<Whole>),
    now: Timestamp,
) -> Plan {
    let object = item.body().object();
    let finalizers = Finalizers::of(object);
    let target = || Target::seen(reference(kind, item.meta()), item.meta());
    let mut steps = Steps::new(facts, now);
    let after = if let Some(one) = Assigner::module(kind.clone(), item) {
        let (plan, course) = assign(view, facts, settings, &one, now);
        steps.plan = plan;
        let Some(course) = course else {
            return steps.plan;
        };
        let has_lost = object.pointer("/spec/selector").is_none();
        if has_lost && is_nowhere(&course) && !course.gathered.world.rollout.is_deleting {
            // It selects nothing any more, and nothing of it is left.
            let remove = finalizer::remove(target(), &finalizers, FINALIZER, purpose::RELEASE);
            if let Some(remove) = remove {
                steps.act(remove, Vec::new());
            }
        }
        selecting(object, &course.status)
    } else {
        inert(view, kind, item, now)
    };
    let before: ModuleStatus = object
        .get("status")
        .and_then(|status| serde_json::from_value(status.clone()).ok())
        .unwrap_or_default();
    steps.status(target(), (&before, object.get("status")), &after);
    steps.plan
}

/// Whether nothing is left of what a module assigned.
fn is_nowhere(course: &Course) -> bool {
    let mut clusters = course.gathered.world.clusters.values();
    let is_ours = |cluster: &Cluster| cluster.entry.as_ref().is_some_and(|entry| entry.is_ours);
    course.decision.unassign.is_empty() && !clusters.any(is_ours)
}

/// What is known of any module.
fn plain(object: &Value) -> ModuleStatus {
    let spec = object.get("spec").cloned().unwrap_or_default();
    let template: Option<TemplateSpec> = serde_json::from_value(spec).ok();
    let before: ModuleStatus = object
        .get("status")
        .and_then(|status| serde_json::from_value(status.clone()).ok())
        .unwrap_or_default();
    let version = template.as_ref().and_then(|template| {
        let version = template.sync.source.git.version.name();
        version.map(str::to_owned)
    });
    ModuleStatus {
        observed_generation: object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64),
        conditions: before.conditions,
        revision: template.as_ref().map(revision::of_template),
        version,
        summary: None,
        unassigned: before.unassigned,
    }
}

fn selecting(object: &Value, status: &RolloutStatus) -> ModuleStatus {
    let counts = status.counts.unwrap_or_default();
    ModuleStatus {
        conditions: status.conditions.clone(),
        summary: Some(counted(counts)),
        unassigned: status.unassigned.clone(),
        ..plain(object)
    }
}

fn counted(counts: Counts) -> SyncSummary {
    let failed = counts.failed + counts.blocked;
    SyncSummary {
        total: counts.total,
        failed,
        succeeded: counts.ready,
        updating: (counts.total - counts.ready - failed).max(0),
    }
}

/// A module that is only there to be assigned.
fn inert(view: &View<'_>, kind: &Kind, item: &Item<Whole>, now: Timestamp) -> ModuleStatus {
    let mut status = plain(item.body().object());
    let generation = status.observed_generation.unwrap_or_default();
    set(
        &mut status.conditions,
        READY,
        true,
        reasons::condition::ASSIGNABLE,
        "it is there to be assigned",
        generation,
        now,
    );
    status.summary = Some(summary(&referring(view, kind, item)));
    status
}

/// How far those syncs are that name a module. Most modules are former revisions, which nobody names.
fn referring(view: &View<'_>, kind: &Kind, item: &Item<Whole>) -> Vec<SyncStatus> {
    let meta = item.meta();
    let mut all = Vec::new();
    let mut add = |assemblage: &Kept| {
        let syncs = assemblage.syncs().iter();
        let naming = syncs.filter(|sync| sync.module() == Some(meta.name.as_str()));
        // Only what is told of those is read: they may be one of a hundred.
        let told = naming.map(|sync| assemblage.sync_status(sync.name()?));
        all.extend(told.map(Option::unwrap_or_default));
    };
    if *kind == kinds::MODULE {
        for remote in view.remotes_naming(&meta.namespace, &meta.name) {
            add(remote.body().kept());
        }
    } else {
        for assemblage in view.assemblages_naming(&meta.namespace, &meta.name) {
            add(assemblage.body().kept());
        }
    }
    all
}
