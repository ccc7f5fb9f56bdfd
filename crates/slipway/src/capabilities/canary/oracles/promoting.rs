//! T3: what serves becomes of a version only in a promotion, and only when what was measured of that very version was good.

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::purpose::canary as purpose;
use slipway_sim::history::{Asked, Change, History, Image};
use slipway_sim::oracles::{Case, Findings};

use super::{Canary, Scene, both, images};

/// T3.
pub(in super::super) fn promoted(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, request) in history.deeds() {
        let Some((before, after)) = both(change) else {
            continue;
        };
        let template = "/spec/template/spec/containers";
        if before.at(template) == after.at(template) {
            continue;
        }
        let scene = Scene::at(history, change.version);
        let Some(canary) = scene.of(&change.object) else {
            continue;
        };
        let is_copy = *change.object.2 == *canary.primary();
        let phase = canary.phase();
        // What never became ready is of what the workload is corrected to.
        let is_unborn = phase == "Initializing" && is_down(before);
        let is_time = is_unborn || ["Promoting", "Failed", "Finalising"].contains(&phase);
        let may = is_copy && is_time && request.is_for(purpose::SERVE);
        findings.check(change.at, may, || {
            format!("{} got another template in phase {phase}", change.object.2)
        });
        if phase == "Promoting" {
            let wanted = scene.workload(&canary, &canary.target());
            let is_it = wanted.is_some_and(|wanted| images(wanted) == images(after));
            findings.check(change.at, is_it, || {
                let now = images(after);
                format!("{} became of {now:?}, which nobody wants", change.object.2)
            });
            if !is_skipping(&canary) {
                measured(history, &canary, change, &mut findings);
                configured(history, &canary, change, &mut findings);
            }
        }
    }
    findings
}

/// Whether none of a workload's pods is available.
fn is_down(workload: &Image) -> bool {
    let fields = ["/status/availableReplicas", "/status/numberAvailable"];
    fields.iter().all(|field| workload.number(field) == 0)
}

fn is_skipping(canary: &Canary<'_>) -> bool {
    canary.is("/spec/skipAnalysis") || canary.is("/status/run/skip")
}

/// What a Canary measures was last good, since the version is there.
fn measured(history: &History, canary: &Canary<'_>, change: &Change, findings: &mut Findings) {
    let metrics = canary.image.at("/spec/analysis/metrics");
    let metrics = metrics.and_then(Value::as_array).into_iter().flatten();
    let since = pushed(history, canary, change.at);
    for metric in metrics {
        let Some(query) = metric.get("query").and_then(Value::as_str) else {
            continue;
        };
        let query = rendered(query, metric, canary);
        let last = last(history, &query, change.at);
        let value = last.and_then(value);
        let is_of_it = last.is_some_and(|asked| asked.at >= since);
        let is_good = value.is_some_and(|value| is_within(metric, value));
        findings.check(change.at, is_of_it && is_good, || {
            let name = canary.target();
            format!("{name} was promoted although {query} was {value:?} when it was last measured")
        });
    }
}

/// Pods of the version were started with the configs that it is promoted with.
fn configured(history: &History, canary: &Canary<'_>, change: &Change, findings: &mut Findings) {
    let scene = Scene::at(history, change.version);
    let Some(target) = scene.workload(canary, &canary.target()) else {
        return;
    };
    let since = changed(history, canary, target, change.at);
    let labels = target.at("/spec/selector/matchLabels");
    let pods = history.states("/pods", change.version).into_iter();
    let of_it = pods.filter(|(object, pod)| {
        object.1 == canary.object.1 && is_selected(labels, pod.at("/metadata/labels"))
    });
    for (object, pod) in of_it {
        let made = pod.text("/metadata/creationTimestamp");
        let made: Option<Timestamp> = made.and_then(|text| text.parse().ok());
        let holds = made.is_none_or(|made| made.as_second() >= since.as_second());
        findings.check(change.at, holds, || {
            format!(
                "{} was promoted with configs that {} was not started with",
                canary.target(),
                object.2
            )
        });
    }
}

/// Whether labels are those that a selector asks for.
pub(super) fn is_selected(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let selector = selector.and_then(Value::as_object);
    selector.is_some_and(|wanted| {
        let mut wanted = wanted.iter();
        wanted.all(|(name, value)| labels.and_then(|all| all.get(name)) == Some(value))
    })
}

/// When something that a workload is configured with was last changed by somebody.
fn changed(
    history: &History,
    canary: &Canary<'_>,
    workload: &Image,
    until: Timestamp,
) -> Timestamp {
    let template = workload.at("/spec/template/spec");
    let template = template.map(Value::to_string).unwrap_or_default();
    let changes = history
        .changes
        .iter()
        .take_while(|change| change.at <= until);
    let of_configs = changes.filter(|change| {
        let (resource, namespace, name) = &change.object;
        let is_config = ["/configmaps", "/secrets"].contains(&&**resource);
        is_config
            && change.by.is_none()
            && *namespace == canary.object.1
            && template.contains(&format!("\"{name}\""))
    });
    of_configs.last().map_or(history.start, |change| change.at)
}

/// When the workload became what it is at a moment.
fn pushed(history: &History, canary: &Canary<'_>, until: Timestamp) -> Timestamp {
    let (target, resource) = (canary.target(), canary.workloads());
    let changes = history
        .changes
        .iter()
        .take_while(|change| change.at <= until);
    let of_it = changes.filter(|change| {
        let (of, namespace, name) = &change.object;
        &**of == resource && *namespace == canary.object.1 && **name == *target
    });
    let pushes = of_it.filter(|change| match both(change) {
        Some((before, after)) => images(before) != images(after),
        None => true,
    });
    pushes.last().map_or(history.start, |change| change.at)
}

/// A query with the names in it that scenarios use.
fn rendered(query: &str, metric: &Value, canary: &Canary<'_>) -> String {
    let interval = metric.get("interval").and_then(Value::as_str);
    query
        .replace("{{ target }}", &canary.target())
        .replace("{{ namespace }}", &canary.object.1)
        .replace("{{ interval }}", interval.unwrap_or("1m"))
}

/// The last answer to a query until a moment that the operator was told in whole.
fn last<'a>(history: &'a History, query: &str, until: Timestamp) -> Option<&'a Asked> {
    let asked = history.asked.iter().rev();
    let mut told = asked.filter(|asked| asked.told.is_some_and(|(at, _)| at <= until));
    told.find(|asked| asked.query.as_deref() == Some(query) && asked.is_readable())
}

/// The number that Prometheus said.
fn value(asked: &Asked) -> Option<f64> {
    let said: Value = serde_json::from_str(asked.said.as_deref()?).ok()?;
    said.pointer("/data/result/0/value/1")?
        .as_str()?
        .parse()
        .ok()
}

fn is_within(metric: &Value, value: f64) -> bool {
    let bound = |field: &str| {
        metric
            .pointer(&format!("/thresholdRange/{field}"))?
            .as_f64()
    };
    bound("max").is_none_or(|most| value <= most) && bound("min").is_none_or(|least| value >= least)
}
