//! What create, update, patch and delete share: namespaces, validation, and what follows a write.

use std::borrow::Cow;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::exchange::Exchange;
use crate::field::{self, FieldError, FieldErrors};
use crate::resource::Part;
use crate::status::{Cause, Outcome, Status};
use crate::store::Stored;
use crate::{meta, value};

/// Refuses to create in a namespace that is not there or about to go.
pub(super) fn check_namespace(ex: &Exchange<'_>, name: &str) -> Outcome<()> {
    let namespace = &ex.target.namespace;
    if !ex.resource.namespaced || namespace.is_empty() {
        return Ok(());
    }
    let Some(stored) = ex.cluster.store.get("/namespaces", "", namespace) else {
        return Err(Box::new(Status::not_found("", "namespaces", namespace)));
    };
    if !stored.header.deleting {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    Err(Box::new(
        Status::forbidden(ex.group(), ex.plural(), name, &why).with_causes(vec![Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        }]),
    ))
}

/// 422 if there are errors.
pub(super) fn judge(ex: &Exchange<'_>, name: &str, errors: &[FieldError]) -> Outcome<()> {
    if errors.is_empty() {
        return Ok(());
    }
    // Messages name the group in which the object is kept.
    let group = ex
        .resource
        .stored_in
        .map_or(ex.group(), |other| other.group);
    Err(Box::new(field::invalid(group, ex.kind(), name, errors)))
}

/// Errors of an update of `part`, and what the client is to be warned of if there are none.
pub(super) fn judged_update(
    ex: &Exchange<'_>,
    part: Part,
    new: &Value,
    old: &Value,
) -> (FieldErrors, Vec<String>) {
    let mut errors = meta::validate_update(new, old);
    errors.extend(meta::validate_update_again(&ex.resource, part, new, old));
    let strategy = &ex.resource.strategy;
    let (found, warnings) = strategy.judge_update(part, new, old, &ex.context());
    errors.extend(found);
    (errors, warnings)
}

/// Makes an object's generation right after an update of `part`.
pub(super) fn bump_generation(ex: &Exchange<'_>, part: Part, new: &mut Value, old: &Value) {
    let strategy = &ex.resource.strategy;
    if !strategy.has_generation() {
        value::copy(new, old, "metadata.generation");
        return;
    }
    let before = value::integer(old, "metadata.generation").unwrap_or(0);
    let changed = part != Part::Status && strategy.generation_changed(new, old);
    let now = before + i64::from(changed);
    if now > 0 {
        value::put(new, "metadata.generation", now);
    }
}

/// The stored form of an object in the version of the request.
pub(super) fn to_storage(ex: &Exchange<'_>, object: &Value) -> Value {
    let mut stored = ex.resource.to_storage(object, &ex.target.version);
    let version = match ex.resource.stored_in {
        Some(_) => &ex.target.version,
        None => &ex.resource.storage_version,
    };
    if !ex.resource.custom
        && let Some(version) = ex.resource.version(version)
    {
        crate::decode::settle_empty(&version.schema, &mut stored);
    }
    stored
}

/// As [`to_storage`] for an object that is there already: `kept` are the parts that the write leaves alone. They stay
/// as they are stored, which says more than what the version of the request shows of them. Where both forms are one, nothing is copied.
pub(super) fn to_storage_over<'a>(
    ex: &Exchange<'_>,
    object: &'a Value,
    live: &Stored,
    kept: &[&str],
) -> Cow<'a, Value> {
    let resource = &ex.resource;
    let is_own = resource.custom && resource.stored_in.is_none();
    if is_own && resource.storage_version == ex.target.version {
        return Cow::Borrowed(object);
    }
    let mut form = to_storage(ex, object);
    if ex.is_converted() {
        let live = live.decode();
        for part in kept {
            value::copy(&mut form, &live, part);
        }
    }
    Cow::Owned(form)
}

/// What follows a write of `form`: what the server itself makes of it, and derived state.
pub(super) fn after(ex: &Exchange<'_>, stored: &Stored, form: Cow<'_, Value>) {
    if !stored.header.deleting {
        settle(ex, stored, form);
    }
    ex.cluster.written(&ex.resource);
}

/// Gives an object the status that is the server's to give: a second write, as the real server's own controller
/// makes it.
fn settle(ex: &Exchange<'_>, stored: &Stored, object: Cow<'_, Value>) {
    let others = || {
        let another = |other: &Stored| other.header.name != stored.header.name;
        let all = ex.cluster.store.list(&ex.bucket(), "", &another);
        all.objects.iter().map(|other| other.decode()).collect()
    };
    let strategy = &ex.resource.strategy;
    let Some(status) = strategy.settled_status(&object, &others, ex.now) else {
        return;
    };
    if object.get("status") == Some(&status) {
        return;
    }
    let mut object = object.into_owned();
    // The spec stays as it is: who owns it is no question.
    let spec = value::take(&mut object, "spec");
    let old = object.clone();
    value::put(&mut object, "status", status);
    let manager = "kube-apiserver";
    ex.cluster
        .own(&ex.resource, manager, "status", &old, &mut object);
    if let Some(spec) = spec {
        value::put(&mut object, "spec", spec);
    }
    let (name, version) = (&stored.header.name, stored.version);
    let _ = ex
        .cluster
        .store
        .update(&ex.bucket(), "", name, version, |version| {
            Cluster::encode(&ex.resource, &object, version)
        });
}
