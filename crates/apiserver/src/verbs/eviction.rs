//! Evicting a pod: a delete that asks the disruption budgets first.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{admit, delete, get, render};
use crate::admission::Gvk;
use crate::builtin::policy::eviction;
use crate::cluster::Cluster;
use crate::exchange::{Exchange, Reply};
use crate::options::DeleteOptions;
use crate::resource::{Resource, bucket};
use crate::status::{Outcome, Status};
use crate::store::Stored;
use crate::value;

/// How often an eviction starts over when the pod or a budget changed under it.
const ATTEMPTS: usize = 5;

/// Answers POST on `eviction`.
pub(super) async fn evict(ex: &Exchange<'_>) -> Outcome<Reply> {
    let body = ex.decode_as("policy/v1", "Eviction", "io.k8s.api.policy.v1.Eviction")?;
    eviction::validate(&body, &ex.target.name)?;
    let mut options = DeleteOptions::parse(
        &ex.query,
        Some(body.get("deleteOptions").unwrap_or(&json!({}))),
    )?;
    options.dry_run |= ex.query.get("dryRun") == Some("All");
    let mut warnings = Vec::new();
    let pod = ex.for_object(&ex.target.namespace, &ex.target.name);
    get::find(&pod)?;
    let kind = Gvk::new("policy", "v1", "Eviction");
    admit::create_subresource(ex, kind, body.clone(), options.dry_run, &mut warnings).await?;
    let mut budget = String::new();
    for _ in 0..ATTEMPTS {
        match attempt(&pod, &body, &options, &mut warnings).await? {
            Attempt::Done => return Ok(done(warnings)),
            Attempt::Again(name) => budget = name,
        }
    }
    Err(Box::new(eviction::still_processing(&budget)))
}

enum Attempt {
    Done,
    /// Something changed in between; the name of the budget that was asked.
    Again(String),
}

fn done(warnings: Vec<String>) -> Reply {
    let status = Status::success(201);
    Reply::status(&status).with_warnings(warnings)
}

async fn attempt(
    pod: &Exchange<'_>,
    body: &Value,
    options: &DeleteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Attempt> {
    let stored = get::find(pod)?;
    let object = render::decode(pod, &stored);
    let verdict = eviction::judge(&object, &budgets(pod), pod.now)?;
    if !options.dry_run
        && let Some(budget) = &verdict.budget
        && !spend(pod, budget)
    {
        return Ok(Attempt::Again(verdict.budget_name));
    }
    eviction::check_preconditions(body, &object)?;
    let mut stored = stored;
    if !options.dry_run {
        match mark(pod, &stored, object) {
            Some(marked) => stored = marked,
            None => return Ok(Attempt::Again(verdict.budget_name)),
        }
    }
    let mut options = options.clone();
    // The client's own precondition was about the pod before it was marked.
    options.version = verdict.require_version.then(|| stored.version.to_string());
    match delete::remove(pod, &options, warnings).await {
        Ok(_) => Ok(Attempt::Done),
        Err(status) if verdict.require_version && status.code == 409 => {
            Ok(Attempt::Again(verdict.budget_name))
        }
        Err(status) => Err(status),
    }
}

fn budgets(ex: &Exchange<'_>) -> Vec<Value> {
    ex.cluster
        .store
        .list(
            &bucket("policy", "poddisruptionbudgets"),
            &ex.target.namespace,
            &|_| true,
        )
        .objects
        .iter()
        .map(|stored| stored.decode())
        .collect()
}

/// Writes the budget's new status; false if the budget changed in between.
fn spend(ex: &Exchange<'_>, budget: &Value) -> bool {
    let registry = ex.cluster.registry();
    let Some(resource) = registry.find("policy", "poddisruptionbudgets") else {
        return false;
    };
    let (namespace, name) = (
        value::text(budget, "metadata.namespace"),
        value::text(budget, "metadata.name"),
    );
    let Some(stored) = ex.cluster.store.get(&resource.bucket(), namespace, name) else {
        return false;
    };
    let mut budget = budget.clone();
    ex.cluster.own(
        resource,
        "kube-apiserver",
        "status",
        &stored.decode(),
        &mut budget,
    );
    write(ex, resource, &budget).is_some()
}

/// Notes on the pod why it goes; none if it changed in between.
fn mark(ex: &Exchange<'_>, stored: &Arc<Stored>, mut pod: Value) -> Option<Arc<Stored>> {
    eviction::mark(&mut pod, ex.now);
    if stored.same(&pod) {
        return Some(stored.clone());
    }
    write(ex, &ex.resource, &pod)
}

fn write(ex: &Exchange<'_>, resource: &Resource, object: &Value) -> Option<Arc<Stored>> {
    let expected = value::text(object, "metadata.resourceVersion")
        .parse()
        .ok()?;
    let (namespace, name) = (
        value::text(object, "metadata.namespace"),
        value::text(object, "metadata.name"),
    );
    ex.cluster
        .store
        .update(&resource.bucket(), namespace, name, expected, |version| {
            Cluster::encode(resource, object, version)
        })
        .ok()
}
