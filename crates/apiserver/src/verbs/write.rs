//! What create, update, patch and delete share: namespaces, validation, and what follows a write.

use std::sync::Arc;

use serde_json::Value;

use crate::exchange::Exchange;
use crate::field::{self, FieldError, FieldErrors};
use crate::resource::Part;
use crate::status::{Cause, Outcome, Status};
use crate::store::Stored;
use crate::{crd, meta, value};

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

/// Errors of an update of `part`.
pub(super) fn update_errors(
    ex: &Exchange<'_>,
    part: Part,
    new: &Value,
    old: &Value,
) -> FieldErrors {
    let mut errors = meta::validate_update(new, old);
    if !ex.resource.custom {
        errors.extend(meta::validate_standard_finalizers(new));
    }
    errors.extend(
        ex.resource
            .strategy
            .validate_update(part, new, old, &ex.context()),
    );
    errors
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
/// as they are stored, which says more than what the version of the request shows of them.
pub(super) fn to_storage_over(
    ex: &Exchange<'_>,
    object: &Value,
    live: &Stored,
    kept: &[&str],
) -> Value {
    let mut form = to_storage(ex, object);
    if ex.is_converted() {
        let live = live.decode();
        for part in kept {
            value::copy(&mut form, &live, part);
        }
    }
    form
}

/// What follows a write: derived state, and for definitions their acceptance.
pub(super) fn after(ex: &Exchange<'_>, stored: &Arc<Stored>) {
    let cluster = ex.cluster;
    if ex.group() == "apiextensions.k8s.io" && !stored.header.deleting {
        establish(ex, stored);
    }
    cluster.written(&ex.resource);
}

/// Accepts a definition: a second write, as the real server's own controller makes it.
fn establish(ex: &Exchange<'_>, stored: &Arc<Stored>) {
    let mut definition = render_definition(ex, stored);
    let others: Vec<Value> = ex
        .cluster
        .objects(ex.group(), ex.plural())
        .into_iter()
        .filter(|other| value::text(other, "metadata.name") != &*stored.header.name)
        .collect();
    let others: Vec<&Value> = others.iter().collect();
    let status = crd::establish(&definition, &others, ex.now);
    if definition.get("status") == Some(&status) {
        return;
    }
    let old = definition.clone();
    value::put(&mut definition, "status", status);
    ex.cluster.own(
        &ex.resource,
        "kube-apiserver",
        "status",
        &old,
        &mut definition,
    );
    let _ = ex.cluster.store.update(
        &ex.bucket(),
        "",
        &stored.header.name,
        stored.version,
        |version| crate::cluster::Cluster::encode(&ex.resource, &definition, version),
    );
}

fn render_definition(ex: &Exchange<'_>, stored: &Stored) -> Value {
    stored.decode_as(&ex.api_version(), ex.kind())
}
