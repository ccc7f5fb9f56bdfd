//! What a Canary says about itself and its workload, before anything is decided.

use serde_json::Value;
use slipway_api::canary::{Canary, CanaryStatus, Phase};
use slipway_api::flagger::{COMMAND, PRIMARY};
use slipway_kernel::fields::text;

use super::configs::{self, Tracked};
use super::hash::digest;
use super::scene::{Obstacle, Seen};
use super::{Names, PodLabel};
use crate::engine::{Command, Verb};
use crate::places::Places;
use crate::reasons::Reason;
use crate::router::{Pods, Route};

/// So much is kept of who asked for something, and why.
const MAX_BECAUSE: usize = 300;

/// The label by which the workload's pods are known.
pub(super) fn label(
    seen: &Seen<'_>,
    target: Option<&Value>,
    primary: Option<&Value>,
) -> Result<PodLabel, Obstacle> {
    let looked_for = &seen.settings.selector_labels;
    if let Some(target) = target {
        let names = if looked_for.is_empty() {
            "app, name, app.kubernetes.io/name".to_owned()
        } else {
            looked_for.join(", ")
        };
        return PodLabel::of(target, looked_for).ok_or_else(|| {
            let message = format!("the workload selects its pods by none of {names}; add one");
            Obstacle::new(Reason::InvalidSpec, message)
        });
    }
    // The workload is gone; its copy tells what pods were called.
    let label = primary.and_then(|primary| PodLabel::of(primary, looked_for));
    let label = label.map(|label| PodLabel {
        value: label.value.trim_end_matches(PRIMARY).to_owned(),
        ..label
    });
    label.ok_or_else(|| {
        let (kind, name) = (Places::kind(seen.canary), &seen.canary.spec.target_ref.name);
        let message = format!("{kind} {name} does not exist; create it");
        Obstacle::new(Reason::TargetNotFound, message)
    })
}

/// What the workload is configured with. In the middle of a run, something that is missing is no new version.
pub(super) fn tracked(
    seen: &Seen<'_>,
    target: Option<&Value>,
    status: &CanaryStatus,
) -> Result<Tracked, Obstacle> {
    let template = target.and_then(|target| target.pointer("/spec/template"));
    let Some(template) = template.filter(|_| seen.settings.config_tracking) else {
        return Ok(Tracked::default());
    };
    let references = configs::references(template);
    match configs::track(&references, seen.configs) {
        Ok(tracked) => Ok(tracked),
        Err(missing) => {
            let is_running = Phase::of(status.phase.as_deref()).is_running();
            let known = status.tracked_configs.clone().filter(|_| is_running);
            let lost = Obstacle::new(Reason::ConfigNotFound, missing.to_string());
            known
                .map(|checksums| Tracked::remembered(checksums, missing))
                .ok_or(lost)
        }
    }
}

/// How pods are found that have this label.
pub(super) fn pods(seen: &Seen<'_>, names: &Names, label: &PodLabel) -> Pods {
    Pods {
        key: label.key.clone(),
        source: label.primary(),
        target: label.value.clone(),
        kind: Places::kind(seen.canary).to_owned(),
        of_source: names.primary.clone(),
        of_target: names.target.clone(),
    }
}

/// How traffic comes to the Services.
pub(super) fn route(seen: &Seen<'_>, names: &Names) -> Route {
    let spec = &seen.canary.spec;
    let metadata = &seen.canary.metadata;
    let analysis = spec.analysis().unwrap_or_default();
    let places = Places::of_canary(seen.canary);
    let is_ab = analysis.iterations.unwrap_or_default() > 0;
    let written = if is_ab {
        analysis.matching.clone()
    } else {
        Vec::new()
    };
    let matching = written.iter();
    Route {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        canary: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        apex: names.apex.clone(),
        source: names.apex_primary.clone(),
        target: names.apex_canary.clone(),
        service: spec.service.clone().unwrap_or_default(),
        matching: matching
            .filter_map(|one| serde_json::from_value(one.clone()).ok())
            .collect(),
        written,
        mirror_weight: analysis.mirror_weight,
        affinity: None,
        route: places.route,
        ingress: places.ingress,
        prefix: seen.settings.ingress_prefix.clone(),
        pods: None,
    }
}

/// What a person asked for by annotation: `{"verb": …, "id": …, "by": …, "reason": …}`. Without an id, what is written tells
/// it from others: the same words are followed once.
pub(super) fn command(canary: &Canary) -> Option<Command> {
    let annotations = canary.metadata.annotations.as_ref()?;
    let written = annotations.get(COMMAND)?;
    let unnamed = |verb: Option<Verb>, because: String| Command {
        verb,
        id: digest(written.as_bytes()),
        because: because.chars().take(MAX_BECAUSE).collect(),
    };
    let read: Value = match serde_json::from_str(written) {
        Ok(read) => read,
        Err(error) => return Some(unnamed(None, error.to_string())),
    };
    let field = |name: &str| text(&read, &format!("/{name}")).unwrap_or_default();
    let (by, reason, id) = (field("by"), field("reason"), field("id"));
    let Some(verb) = Verb::of(field("verb")) else {
        let known = Verb::ALL.map(Verb::as_str).join(", ");
        return Some(unnamed(None, format!("its verb is none of {known}")));
    };
    let mut command = unnamed(Some(verb), format!("by {by}: {reason}"));
    if !id.is_empty() && id.len() <= MAX_BECAUSE {
        id.clone_into(&mut command.id);
    }
    Some(command)
}

/// How many percent of the pods of the copy, and of the workload, have to be available.
pub(super) fn thresholds(seen: &Seen<'_>) -> (u8, u8) {
    let analysis = seen.canary.spec.analysis().unwrap_or_default();
    let percent = |given: Option<i64>| {
        let given = given.filter(|percent| (1..=100).contains(percent));
        given
            .and_then(|percent| u8::try_from(percent).ok())
            .unwrap_or(100)
    };
    (
        percent(analysis.primary_ready_threshold),
        percent(analysis.canary_ready_threshold),
    )
}
