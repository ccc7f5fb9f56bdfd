//! How a change reaches the clusters: one first, and then so many at a time.

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::identity::ClusterId;
use slipway_sim::history::{Change, History, Image, Object};
use slipway_sim::oracles::{Case, Findings};

use super::{
    ASSEMBLAGES, Place, REMOTES, ROLLOUTS, at, deeds, entries, excuses, is_ready, is_told,
    kustomization, labels, place, selects, template, text, was_ready,
};

/// One cluster is given a revision of an incremental rollout.
pub(super) struct Step<'a> {
    pub(super) at: Timestamp,
    pub(super) cluster: String,
    pub(super) rollout: Object,
    pub(super) image: &'a Image,
    /// What it had.
    before: Option<String>,
    /// What it is given.
    pub(super) after: String,
}

/// All of them, in order.
fn steps(history: &History) -> Vec<Step<'_>> {
    let home = ClusterId::local();
    let mut all = Vec::new();
    for resource in [REMOTES, ASSEMBLAGES] {
        for (change, _) in deeds(history, &home, resource) {
            all.extend(steps_of(history, change));
        }
    }
    all.sort_by_key(|step| step.at);
    all
}

fn steps_of<'a>(history: &'a History, change: &Change) -> Vec<Step<'a>> {
    let (before, after) = (
        entries(change.before.as_deref()),
        entries(change.after.as_deref()),
    );
    let (resource, namespace, name) = &change.object;
    let cluster = match &**resource {
        ASSEMBLAGES => name.strip_suffix("-bootstrap").unwrap_or(name),
        _ => name,
    };
    let steps = after.iter().filter_map(|(name, entry)| {
        let by = text(entry, "/assignedBy")?.strip_prefix("Rollout/")?;
        let rollout: Object = (ROLLOUTS.into(), namespace.clone(), by.into());
        let image = at(&history.changes, &rollout, change.at)?;
        let is_incremental = matches!(image.text("/spec/strategy"), None | Some("Incremental"));
        let revision = text(entry, "/revision")?.to_owned();
        let was = before.get(name).and_then(|entry| text(entry, "/revision"));
        let is_step = is_incremental && was != Some(revision.as_str());
        is_step.then(|| Step {
            at: change.at,
            cluster: cluster.to_owned(),
            rollout,
            image,
            before: was.map(str::to_owned),
            after: revision,
        })
    });
    steps.collect()
}

impl Step<'_> {
    pub(super) fn place(&self) -> Place {
        place(&self.rollout, self.image, &self.cluster)
    }

    pub(super) fn sync(&self) -> &str {
        &self.rollout.2
    }
}

/// R14, R16: no second cluster is given a version before one is ready with it.
pub(in super::super) fn first(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    if !is_told(history) {
        return findings;
    }
    let all = steps(history);
    for (n, step) in all.iter().enumerate() {
        let earlier = all.iter().take(n).filter(|other| {
            other.rollout == step.rollout && template(&other.after) == template(&step.after)
        });
        let earlier: Vec<&Step<'_>> = earlier.collect();
        let mut others = earlier
            .iter()
            .filter(|other| other.cluster != step.cluster)
            .peekable();
        if others.peek().is_none() {
            continue;
        }
        let is_proven = earlier.iter().any(|other| {
            let time = (other.at, step.at);
            was_ready(history, &other.place(), other.sync(), &other.after, time)
        });
        findings.check(step.at, is_proven, || {
            format!(
                "{} got {}, and no cluster was ready with it",
                step.cluster, step.after
            )
        });
    }
    findings
}

/// How many clusters may be unready.
fn most(rollout: &Image, total: usize) -> usize {
    let asked = rollout.at("/spec/rollout/maxUnreadyClusters");
    let percent = |percent: usize| (total * percent / 100).max(1);
    match asked {
        Some(Value::Number(number)) => number
            .as_u64()
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(1),
        Some(Value::String(text)) => match text.strip_suffix('%') {
            Some(text) => percent(text.parse().unwrap_or(10)),
            None => text.parse().unwrap_or(1),
        },
        _ => percent(10),
    }
}

/// The assignments of a Rollout at a moment, each with the moment since which it is so.
fn assigned<'a>(all: &'a [Step<'_>], rollout: &Object, until: usize) -> Vec<&'a Step<'a>> {
    let mut latest: std::collections::BTreeMap<&str, &Step<'_>> = std::collections::BTreeMap::new();
    for step in all
        .iter()
        .take(until)
        .filter(|step| step.rollout == *rollout)
    {
        latest.insert(&step.cluster, step);
    }
    latest.into_values().collect()
}

/// R15: a cluster that is ready is only given a version while fewer are unready with theirs than may be.
pub(in super::super) fn budget(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    if !is_told(history) {
        return findings;
    }
    let all = steps(history);
    for (n, step) in all.iter().enumerate() {
        let before = assigned(&all, &step.rollout, n);
        let is_unready = |other: &&&Step<'_>| {
            let time = (other.at, step.at);
            !was_ready(history, &other.place(), other.sync(), &other.after, time)
        };
        let clusters = labels(history, &step.rollout.1, step.at);
        let selected = |name: &str| {
            clusters
                .get(name)
                .is_some_and(|labels| selects(step.image, labels))
        };
        let mut unready: Vec<&&Step<'_>> = before
            .iter()
            .filter(is_unready)
            .filter(|other| selected(&other.cluster))
            .collect();
        // Who is unready already costs nothing.
        let is_unready = unready.iter().any(|other| other.cluster == step.cluster);
        if step.before.is_none() || is_unready || is_broken(history, step) {
            continue;
        }
        // Nor who had nothing before: that one gets what has proved itself, at once. Nor who was unready when the change began.
        unready.retain(|other| {
            other.before.is_some() && !excuses::is_excused(history, &all, other, step)
        });
        let total = clusters
            .values()
            .filter(|labels| selects(step.image, labels))
            .count();
        let most = most(step.image, total);
        findings.check(step.at, unready.len() < most, || {
            let names: Vec<&str> = unready.iter().map(|other| other.cluster.as_str()).collect();
            format!(
                "{} got {} while {names:?} were unready, and {most} may be",
                step.cluster, step.after
            )
        });
    }
    findings
}

/// Whether a cluster is not ready with what it has when a step comes. What happens there at the same moment may come of the step.
fn is_broken(history: &History, step: &Step<'_>) -> bool {
    let place = step.place();
    let object = kustomization(&place, step.sync());
    let changes = history.changes_in(&place.expanded_in).iter();
    let earlier = changes.take_while(|change| change.at < step.at);
    let last = earlier.filter(|change| change.object == object).last();
    let found = last.and_then(|change| change.after.as_deref());
    let is_well = |(found, before): (&Image, &str)| is_ready(found, before);
    !found.zip(step.before.as_deref()).is_some_and(is_well)
}

/// What is left in the end is explained: a Rollout is ready, or says what it waits for.
pub(in super::super) fn explained(case: &Case<'_>, findings: &mut Findings) {
    let history = case.history;
    if history.lacks_definition() {
        return;
    }
    let rollouts = super::all_at(&history.changes, ROLLOUTS, history.end);
    for (object, rollout) in rollouts {
        let conditions = rollout.at("/status/conditions").and_then(Value::as_array);
        let is_ready = conditions.into_iter().flatten().any(|condition| {
            text(condition, "/type") == Some("Ready") && text(condition, "/status") == Some("True")
        });
        let waits = rollout.at("/status/waitingFor").and_then(Value::as_array);
        let is_explained = waits.is_some_and(|waits| !waits.is_empty());
        findings.check(history.end, is_ready || is_explained, || {
            format!(
                "Rollout {}/{} is not ready, and does not say why",
                object.1, object.2
            )
        });
    }
}
