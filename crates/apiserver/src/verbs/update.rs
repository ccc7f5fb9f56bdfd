//! Replacing an object, and the compare-and-swap loop that all changes to existing objects go through.

use serde_json::Value;

use super::create::{self, Created, check_manager};
use super::{admit, render, write};
use crate::apply::{self, Operation, Owner};
use crate::authorize::Attributes;
use crate::builtin::certificates;
use crate::builtin::core::namespace;
use crate::builtin::pod::subresource;
use crate::cluster::Cluster;
use crate::exchange::{Exchange, Reply};
use crate::field::{FieldError, FieldErrors};
use crate::options::WriteOptions;
use crate::resource::Part;
use crate::status::{Outcome, Status};
use crate::store::Refused;
use crate::{admission, meta, value};

/// How often a change that names no resource version is tried again when somebody else was faster.
const ATTEMPTS: usize = 5;

/// What a change makes of the live object (none: it is not there). The result is decoded, defaulted and has its
/// owners tracked.
pub(super) type Transform<'a> = dyn Fn(Option<&Value>) -> Outcome<Value> + Send + Sync + 'a;

/// How a change is to be carried out.
pub(super) struct Change<'a> {
    pub(super) part: Part,
    pub(super) dry_run: bool,
    /// Create the object if it is not there.
    pub(super) upsert: bool,
    /// The uid in the new object is a precondition, as in PUT; otherwise it is a field like others.
    pub(super) names_uid: bool,
    pub(super) transform: &'a Transform<'a>,
}

/// Answers PUT.
pub(super) async fn put(ex: &Exchange<'_>, part: Part) -> Outcome<Reply> {
    let options = WriteOptions::parse(&ex.query, "UpdateOptions")?;
    check_manager(&options, false, "UpdateOptions")?;
    let (mut object, mut warnings) = ex.decode_object("UpdateOptions")?;
    meta::match_namespace(&mut object, &ex.target.namespace)?;
    meta::match_name(&object, &ex.target.name)?;
    warnings.extend(meta::dedup_owner_references(&mut object));
    let manager = ex.manager(&options.field_manager);
    let api_version = ex.api_version();
    let transform = |live: Option<&Value>| {
        let mut new = object.clone();
        track(ex, part, live, &mut new, &manager, &api_version)?;
        Ok(new)
    };
    let upsert = part == Part::Main && ex.resource.strategy.create_on_update();
    let change = Change {
        part,
        dry_run: options.dry_run,
        upsert,
        names_uid: true,
        transform: &transform,
    };
    let (result, created) = change_object(ex, &change, &mut warnings).await?;
    create::answer(ex, if created { 201 } else { 200 }, result, warnings)
}

/// Records who owns what after a change that is not an apply.
pub(super) fn track(
    ex: &Exchange<'_>,
    part: Part,
    live: Option<&Value>,
    new: &mut Value,
    manager: &str,
    api_version: &str,
) -> Outcome<()> {
    let subresource = &ex.target.subresource;
    let owner = Owner {
        manager,
        operation: Operation::Update,
        api_version,
        subresource,
        now: ex.now,
    };
    let reset = ex.resource.strategy.reset_fields(part);
    let others = live.map_or_else(Vec::new, |live| other_versions(ex, live, new));
    apply::track_update_across(&ex.version()?.schema, live, new, &owner, &reset, &others);
    if ex.resource.custom && !fits_owners(ex, new) {
        value::take(new, "metadata.managedFields");
    }
    Ok(())
}

/// The live and the new object in the other versions of a built-in kind whose versions differ.
fn other_versions(ex: &Exchange<'_>, live: &Value, new: &Value) -> Vec<apply::OtherVersion> {
    if ex.resource.custom || ex.resource.stored_in.is_some() || ex.resource.as_is() {
        return Vec::new();
    }
    let asked = ex.target.version.as_str();
    let others = ex.resource.versions.iter().filter(|v| v.name != asked);
    others
        .map(|version| {
            let convert = |object: &Value| {
                let mut object = object.clone();
                value::take(&mut object, "metadata.managedFields");
                let stored = ex.resource.to_storage(&object, asked);
                ex.resource.from_storage(stored, &version.name)
            };
            apply::OtherVersion {
                api_version: ex.resource.api_version(&version.name),
                schema: version.schema.clone(),
                old: convert(live),
                new: convert(new),
            }
        })
        .collect()
}

/// Whether an object can be read in the versions of all its owners. Where it cannot, the real server gives up on
/// ownership altogether.
fn fits_owners(ex: &Exchange<'_>, object: &Value) -> bool {
    value::items(object, "metadata.managedFields")
        .iter()
        .all(|entry| {
            let api_version = value::text(entry, "apiVersion");
            let version = api_version.rsplit('/').next().unwrap_or_default();
            if version == ex.target.version {
                return true;
            }
            ex.resource
                .version(version)
                .is_none_or(|v| crate::crd::prune(&v.schema, &mut object.clone()).is_empty())
        })
}

/// Changes the object that the path names, until nobody interferes. Gives the result and whether it was created.
pub(super) async fn change_object(
    ex: &Exchange<'_>,
    change: &Change<'_>,
    warnings: &mut Vec<String>,
) -> Outcome<(Created, bool)> {
    let (namespace, name) = (&ex.target.namespace, &ex.target.name);
    for _ in 0..ATTEMPTS {
        let stored = ex.cluster.store.get(&ex.bucket(), namespace, name);
        let Some(stored) = stored else {
            if !change.upsert {
                return Err(ex.not_found(name));
            }
            may_create(ex)?;
            let mut object = (change.transform)(None)?;
            value::take(&mut object, "metadata.resourceVersion");
            meta::match_namespace(&mut object, namespace)?;
            write::check_namespace(ex, name)?;
            return Ok((
                create::insert(ex, object, change.dry_run, warnings).await?,
                true,
            ));
        };
        let old = render::decode(ex, &stored);
        let new = (change.transform)(Some(&old))?;
        if change.names_uid {
            check_uid(ex, &new, &old)?;
        }
        let asked = check_version(ex, &new, &old)?;
        let mut seen = Vec::new();
        let new = admit::mutate(
            ex,
            admission::Operation::Update,
            new,
            Some(&old),
            change.dry_run,
            &mut seen,
        )
        .await?;
        let (mut new, mut told) = prepare(ex, change.part, new, &old)?;
        apply::keep_times(&old, &mut new);
        seen.append(&mut told);
        admit::validate(
            ex,
            admission::Operation::Update,
            Some(&new),
            Some(&old),
            change.dry_run,
            &mut seen,
        )
        .await?;
        warnings.append(&mut seen);
        if change.dry_run {
            value::copy(&mut new, &old, "metadata.resourceVersion");
            return Ok((Created::DryRun(new), false));
        }
        match commit(ex, &stored, &new, change.part) {
            Ok(created) => return Ok((created, false)),
            Err(Refused::Moved) if !asked => {}
            Err(_) => return Err(moved(ex)),
        }
    }
    Err(moved(ex))
}

/// Who creates through an update or an apply must be allowed to create.
fn may_create(ex: &Exchange<'_>) -> Outcome<()> {
    let attributes = Attributes {
        user: &ex.user,
        verb: "create",
        group: ex.group(),
        version: &ex.target.version,
        resource: ex.plural(),
        subresource: "",
        namespace: &ex.target.namespace,
        name: &ex.target.name,
        path: None,
    };
    let decision = ex.cluster.policy().decide(&attributes);
    ex.cluster.audit().note(&attributes, &decision);
    decision.enforce(&attributes)
}

fn moved(ex: &Exchange<'_>) -> Box<Status> {
    Box::new(Status::modified(ex.group(), ex.plural(), &ex.target.name))
}

/// Whether the change names a resource version; fails if it is not the live one.
fn check_version(ex: &Exchange<'_>, new: &Value, old: &Value) -> Outcome<bool> {
    let asked = value::text(new, "metadata.resourceVersion");
    if asked.is_empty() || asked == "0" {
        if ex.resource.strategy.unconditional_update() {
            return Ok(false);
        }
        let status = meta::missing_resource_version(ex.group(), ex.plural(), &ex.target.name);
        return Err(Box::new(status));
    }
    if let Err(why) = crate::options::parse_uint(asked) {
        let error = FieldError::invalid_str("metadata.resourceVersion", asked, why);
        return Err(write::judge(ex, &ex.target.name, &[error])
            .err()
            .unwrap_or_else(|| moved(ex)));
    }
    if asked == value::text(old, "metadata.resourceVersion") {
        Ok(true)
    } else {
        Err(moved(ex))
    }
}

fn check_uid(ex: &Exchange<'_>, new: &Value, old: &Value) -> Outcome<()> {
    let (asked, live) = (
        value::text(new, "metadata.uid"),
        value::text(old, "metadata.uid"),
    );
    if asked.is_empty() || asked == live {
        return Ok(());
    }
    let key = ex.storage_key(value::text(old, "metadata.namespace"), &ex.target.name);
    Err(Box::new(meta::wrong_uid(
        ex.group(),
        ex.plural(),
        &key,
        &ex.target.name,
        asked,
        live,
    )))
}

/// Puts back what this part may not change, and judges the rest. Gives what the client is to be warned of as well.
fn prepare(
    ex: &Exchange<'_>,
    part: Part,
    mut new: Value,
    old: &Value,
) -> Outcome<(Value, Vec<String>)> {
    meta::prepare_update(&mut new, old);
    match ex.target.subresource.as_str() {
        "ephemeralcontainers" => {
            return prepare_by(
                ex,
                new,
                old,
                subresource::prepare_ephemeral,
                subresource::validate_ephemeral,
            );
        }
        "finalize" => {
            return prepare_by(ex, new, old, namespace::prepare_finalize, |new, _| {
                namespace::validate_finalize(new)
            });
        }
        "approval" => {
            certificates::prepare_approval(&mut new, old, &ex.context());
            return prepare_by(ex, new, old, |_, _| (), certificates::validate_approval);
        }
        "resize" => {
            return prepare_by(
                ex,
                new,
                old,
                subresource::prepare_resize,
                subresource::validate_resize,
            );
        }
        _ => {}
    }
    ex.resource
        .strategy
        .prepare_update(part, &mut new, old, &ex.context());
    write::bump_generation(ex, part, &mut new, old);
    super::allocate::on_update(ex, &mut new, old)?;
    create::check_kind(ex, &new)?;
    let (errors, warnings) = write::judged_update(ex, part, &new, old);
    write::judge(ex, &ex.target.name, &errors)?;
    super::escalation::check(ex, &new, Some(old))?;
    Ok((new, warnings))
}

/// As [`prepare`] for a subresource that has rules of its own.
fn prepare_by(
    ex: &Exchange<'_>,
    mut new: Value,
    old: &Value,
    prepare: fn(&mut Value, &Value),
    validate: fn(&Value, &Value) -> FieldErrors,
) -> Outcome<(Value, Vec<String>)> {
    prepare(&mut new, old);
    write::bump_generation(ex, Part::Main, &mut new, old);
    let mut errors = meta::validate_update(&new, old);
    errors.extend(meta::validate_update_again(
        &ex.resource,
        Part::Status,
        &new,
        old,
    ));
    errors.extend(validate(&new, old));
    write::judge(ex, &ex.target.name, &errors)?;
    let strategy = &ex.resource.strategy;
    let warnings = strategy.warnings(&new, Some(old), &ex.context());
    Ok((new, warnings))
}

/// Stores the new form; removes the object instead if this was the last finalizer of one that is being deleted.
fn commit(
    ex: &Exchange<'_>,
    stored: &std::sync::Arc<crate::store::Stored>,
    new: &Value,
    part: Part,
) -> Result<Created, Refused> {
    let (namespace, name) = (&stored.header.namespace, &stored.header.name);
    let kept = if part == Part::Status {
        "spec"
    } else {
        "status"
    };
    let form = write::to_storage_over(ex, new, stored, &[kept]);
    if stored.same(&form) {
        return Ok(Created::Stored(stored.clone()));
    }
    if super::delete::is_finished(&ex.resource, &form) {
        let last = ex
            .cluster
            .store
            .delete(&ex.bucket(), namespace, name, stored.version)?;
        super::delete::after(ex, &last);
        // The answer shows the version that the client knows; watches see that of the deletion.
        let mut shown = new.clone();
        value::put(
            &mut shown,
            "metadata.resourceVersion",
            stored.version.to_string(),
        );
        return Ok(Created::DryRun(shown));
    }
    let updated =
        ex.cluster
            .store
            .update(&ex.bucket(), namespace, name, stored.version, |version| {
                Cluster::encode(&ex.resource, &form, version)
            })?;
    write::after(ex, &updated, form);
    Ok(Created::Stored(updated))
}
