//! Deleting an object: grace, finalizers, preconditions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{admit, render};
use crate::cluster::Cluster;
use crate::decode;
use crate::exchange::{Exchange, Reply};
use crate::options::{DeleteOptions, Propagation};
use crate::resource::Resource;
use crate::status::{Outcome, Status};
use crate::store::{Refused, Stored};
use crate::value;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// How often a delete without preconditions is tried again when somebody else was faster.
const ATTEMPTS: usize = 5;

/// What came of a delete.
pub(crate) enum Deleted {
    /// It is gone; this is its last form.
    Gone(Value),
    /// It stays until its grace is over or its finalizers are done.
    Marked(Value),
}

/// Answers DELETE on an object.
pub(super) async fn delete(ex: &Exchange<'_>) -> Outcome<Reply> {
    let options = options(ex)?;
    let mut warnings = Vec::new();
    let deleted = remove(ex, &options, &mut warnings).await?;
    match deleted {
        Deleted::Marked(object) => render::value(ex, 200, object, warnings),
        Deleted::Gone(object) if ex.resource.returns_deleted => {
            render::value(ex, 200, object, warnings)
        }
        Deleted::Gone(object) => {
            let uid = value::text(&object, "metadata.uid");
            let status = Status::deleted(ex.group(), ex.plural(), &ex.target.name, uid);
            Ok(Reply::status(&status).with_warnings(warnings))
        }
    }
}

/// The options: from the body if there is one, else from the query.
pub(super) fn options(ex: &Exchange<'_>) -> Outcome<DeleteOptions> {
    if ex.body.is_empty() {
        return DeleteOptions::parse(&ex.query, None);
    }
    let body = decode::delete_options(&ex.body, ex.media()?)?;
    DeleteOptions::parse(&ex.query, Some(&body))
}

/// Deletes the object that the path names.
pub(crate) async fn remove(
    ex: &Exchange<'_>,
    options: &DeleteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Deleted> {
    let (namespace, name) = (&ex.target.namespace, &ex.target.name);
    protect(ex)?;
    for _ in 0..ATTEMPTS {
        let Some(stored) = ex.cluster.store.get(&ex.bucket(), namespace, name) else {
            return Err(ex.not_found(name));
        };
        let old = render::decode(ex, &stored);
        check(ex, options, &old)?;
        let mut seen = Vec::new();
        admit::delete(ex, &old, options.dry_run, &mut seen).await?;
        warnings.append(&mut seen);
        let mark = mark(ex, options, old);
        if options.dry_run {
            let object = mark.object;
            return Ok(if mark.stays {
                Deleted::Marked(object)
            } else {
                Deleted::Gone(object)
            });
        }
        match commit(ex, &stored, &mark) {
            Ok(deleted) => return Ok(deleted),
            Err(Refused::Moved) => {}
            Err(_) => return Err(ex.not_found(name)),
        }
    }
    Err(Box::new(Status::modified(ex.group(), ex.plural(), name)))
}

/// Namespaces that the cluster cannot do without.
fn protect(ex: &Exchange<'_>) -> Outcome<()> {
    let name = ex.target.name.as_str();
    let kept = matches!(name, "default" | "kube-system" | "kube-public");
    if ex.group().is_empty() && ex.plural() == "namespaces" && kept {
        return Err(Box::new(Status::forbidden(
            "",
            "namespaces",
            name,
            "this namespace may not be deleted",
        )));
    }
    Ok(())
}

/// The preconditions of a delete.
fn check(ex: &Exchange<'_>, options: &DeleteOptions, old: &Value) -> Outcome<()> {
    let name = &ex.target.name;
    let refuse = |why: String| {
        Err(Box::new(Status::conflict(
            ex.group(),
            ex.kind(),
            name,
            &why,
        )))
    };
    let (uid, version) = (
        value::text(old, "metadata.uid"),
        value::text(old, "metadata.resourceVersion"),
    );
    match (&options.uid, &options.version) {
        (Some(asked), _) if asked != uid => refuse(format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have been \
             deleted and then recreated"
        )),
        (_, Some(asked)) if asked != version => refuse(format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). \
             The object might have been modified"
        )),
        _ => Ok(()),
    }
}

/// What a delete makes of an object.
struct Mark {
    /// It is not removed yet.
    stays: bool,
    /// It is removed, but its mark is written first, as for kinds that know grace.
    in_two_steps: bool,
    /// The server itself removes first what hangs on it.
    taken_apart: bool,
    object: Value,
}

fn mark(ex: &Exchange<'_>, options: &DeleteOptions, mut object: Value) -> Mark {
    let taken_apart = ex.resource.strategy.begin_delete(&mut object, ex.now);
    if taken_apart {
        return Mark {
            stays: true,
            in_two_steps: false,
            taken_apart,
            object,
        };
    }
    let asked = options
        .grace_seconds
        .map(|seconds| if seconds < 0 { 1 } else { seconds });
    let deleting = value::has(&object, "metadata.deletionTimestamp");
    let left = value::integer(&object, "metadata.deletionGracePeriodSeconds").unwrap_or(0);
    let mut graceful = false;
    let mut in_two_steps = false;
    if deleting && left > 0 {
        match asked {
            Some(seconds) if seconds < left => {
                shorten(&mut object, seconds, left, ex.now);
                graceful = seconds > 0;
                in_two_steps = !graceful;
            }
            // Already on its way, and not to be hurried.
            _ => {
                return Mark {
                    stays: true,
                    in_two_steps,
                    taken_apart,
                    object,
                };
            }
        }
    } else if !deleting {
        let seconds = ex.resource.strategy.grace_seconds(&object, asked);
        if seconds > 0 || ex.resource.strategy.is_graceful() {
            graceful = seconds > 0;
            in_two_steps = !graceful;
            bump(&mut object);
            let at = ex
                .now
                .checked_add(std::time::Duration::from_secs(seconds.unsigned_abs()))
                .unwrap_or(ex.now);
            value::put(
                &mut object,
                "metadata.deletionTimestamp",
                crate::meta::timestamp(at),
            );
            value::put(&mut object, "metadata.deletionGracePeriodSeconds", seconds);
        }
    }
    finalizers(ex, options, &mut object);
    let pending = !value::items(&object, "metadata.finalizers").is_empty()
        || super::namespace::is_pending(&ex.resource, &object);
    if !graceful && pending {
        if !deleting && !in_two_steps {
            bump(&mut object);
        }
        if !value::has(&object, "metadata.deletionTimestamp") {
            value::put(
                &mut object,
                "metadata.deletionTimestamp",
                crate::meta::timestamp(ex.now),
            );
        }
        if !super::namespace::mark(&ex.resource, &mut object) {
            value::put(&mut object, "metadata.deletionGracePeriodSeconds", 0);
        }
    }
    Mark {
        stays: graceful || pending,
        in_two_steps,
        taken_apart,
        object,
    }
}

/// A shorter grace counts from when the deletion began.
fn shorten(object: &mut Value, seconds: i64, left: i64, now: jiff::Timestamp) {
    let at: jiff::Timestamp = value::text(object, "metadata.deletionTimestamp")
        .parse()
        .unwrap_or(now);
    let at = at
        .checked_sub(std::time::Duration::from_secs(
            left.saturating_sub(seconds).unsigned_abs(),
        ))
        .unwrap_or(now);
    let (at, seconds) = if at < now {
        (now, i64::from(seconds != 0))
    } else {
        (at, seconds)
    };
    value::put(
        object,
        "metadata.deletionTimestamp",
        crate::meta::timestamp(at),
    );
    value::put(object, "metadata.deletionGracePeriodSeconds", seconds);
}

fn bump(object: &mut Value) {
    if let Some(generation) = value::integer(object, "metadata.generation").filter(|g| *g > 0) {
        value::put(object, "metadata.generation", generation + 1);
    }
}

/// Puts in or takes out the finalizers by which the garbage collector knows what to do with dependents.
fn finalizers(ex: &Exchange<'_>, options: &DeleteOptions, object: &mut Value) {
    let before: Vec<String> = value::items(object, "metadata.finalizers")
        .iter()
        .filter_map(|f| f.as_str().map(str::to_owned))
        .collect();
    let has = |name: &str| before.iter().any(|f| f == name);
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
        (Some(orphan), _) => (orphan, false),
        (None, Some(policy)) => (
            policy == Propagation::Orphan,
            policy == Propagation::Foreground,
        ),
        (None, None) => (has(ORPHAN), has(FOREGROUND) && !has(ORPHAN)),
    };
    let mut after: Vec<String> = before
        .iter()
        .filter(|f| *f != ORPHAN && *f != FOREGROUND)
        .cloned()
        .collect();
    if orphan {
        after.push(ORPHAN.to_owned());
    }
    if foreground {
        after.push(FOREGROUND.to_owned());
    }
    if before.iter().all(|f| after.contains(f)) && before.len() == after.len() {
        return;
    }
    let _ = ex;
    if after.is_empty() {
        value::take(object, "metadata.finalizers");
    } else {
        value::put(object, "metadata.finalizers", json!(after));
    }
}

fn commit(ex: &Exchange<'_>, stored: &Arc<Stored>, mark: &Mark) -> Result<Deleted, Refused> {
    let (namespace, name) = (&stored.header.namespace, &stored.header.name);
    let form = super::write::to_storage_over(ex, &mark.object, stored, &["spec", "status"]);
    if !mark.stays {
        let mut expected = stored.version;
        let mut shown = mark.object.clone();
        if mark.in_two_steps {
            let marked =
                ex.cluster
                    .store
                    .update(&ex.bucket(), namespace, name, expected, |version| {
                        Cluster::encode(&ex.resource, &form, version)
                    })?;
            expected = marked.version;
            shown = render::decode(ex, &marked);
        }
        let last = ex
            .cluster
            .store
            .delete(&ex.bucket(), namespace, name, expected)?;
        after(ex, &last);
        return Ok(Deleted::Gone(shown));
    }
    if stored.same(&form) {
        return Ok(Deleted::Marked(mark.object.clone()));
    }
    let updated =
        ex.cluster
            .store
            .update(&ex.bucket(), namespace, name, stored.version, |version| {
                Cluster::encode(&ex.resource, &form, version)
            })?;
    super::write::after(ex, &updated, form);
    if mark.taken_apart {
        ex.cluster.clean_up_definition(name);
    }
    Ok(Deleted::Marked(render::decode(ex, &updated)))
}

/// Whether nothing holds an object back any more that is being deleted.
pub(crate) fn is_finished(resource: &Resource, object: &Value) -> bool {
    value::has(object, "metadata.deletionTimestamp")
        && value::integer(object, "metadata.deletionGracePeriodSeconds").unwrap_or(0) == 0
        && value::items(object, "metadata.finalizers").is_empty()
        && !super::namespace::is_pending(resource, object)
}

/// What follows the end of an object.
pub(super) fn after(ex: &Exchange<'_>, _last: &Arc<Stored>) {
    ex.cluster.written(&ex.resource);
}
