//! Creating an object.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::{admit, render, write};
use crate::apply::{self, Operation, Owner};
use crate::cluster::Cluster;
use crate::exchange::{Exchange, Reply};
use crate::field::FieldError;
use crate::options::WriteOptions;
use crate::resource::Part;
use crate::schema::Schema;
use crate::status::{Outcome, Status};
use crate::store::{Refused, Stored};
use crate::{admission, field, meta, value};

/// How often a generated name is drawn again when it is taken.
const NAME_ATTEMPTS: usize = 8;

/// What came of a write.
pub(crate) enum Created {
    /// It is stored.
    Stored(Arc<Stored>),
    /// It is not stored (a dry run, or the end of the object), but this is what it looks like.
    DryRun(Value),
}

/// Answers POST to a collection.
pub(super) async fn create(ex: &Exchange<'_>) -> Outcome<Reply> {
    let options = WriteOptions::parse(&ex.query, "CreateOptions")?;
    check_manager(&options, false, "CreateOptions")?;
    let (mut object, mut warnings) = ex.decode_object("CreateOptions")?;
    meta::match_namespace(&mut object, &ex.target.namespace)?;
    write::check_namespace(ex, value::text(&object, "metadata.name"))?;
    warnings.extend(meta::dedup_owner_references(&mut object));
    meta::wipe_system_fields(&mut object);
    own(
        ex,
        &mut object,
        &options,
        &ex.version()?.schema,
        &ex.api_version(),
    );
    let created = insert(ex, object, options.dry_run, &mut warnings).await?;
    answer(ex, 201, created, warnings)
}

/// The refusal to create an object whose definition is being deleted.
pub(super) fn refuse_terminating(ex: &Exchange<'_>) -> Box<Status> {
    let name = ex
        .decode_object("CreateOptions")
        .map(|(object, _)| value::text(&object, "metadata.name").to_owned());
    let why = "create not allowed while custom resource definition is terminating";
    Box::new(Status::forbidden(
        ex.group(),
        ex.plural(),
        &name.unwrap_or_default(),
        why,
    ))
}

/// Records who owns the fields of a new object.
pub(super) fn own(
    ex: &Exchange<'_>,
    object: &mut Value,
    options: &WriteOptions,
    schema: &Schema,
    api_version: &str,
) {
    let manager = ex.manager(&options.field_manager);
    let subresource = &ex.target.subresource;
    let owner = Owner {
        manager: &manager,
        operation: Operation::Update,
        api_version,
        subresource,
        now: ex.now,
    };
    let reset = ex.resource.strategy.reset_fields(Part::Main);
    apply::track_update(schema, None, object, &owner, &reset);
}

/// The answer to a create.
pub(super) fn answer(
    ex: &Exchange<'_>,
    code: u16,
    created: Created,
    warnings: Vec<String>,
) -> Outcome<Reply> {
    match created {
        Created::Stored(stored) => render::object(ex, code, &stored, warnings),
        Created::DryRun(object) => render::value(ex, code, object, warnings),
    }
}

/// Refuses a bad `fieldManager`.
pub(super) fn check_manager(options: &WriteOptions, is_apply: bool, kind: &str) -> Outcome<()> {
    let errors = apply::validate_manager(&options.field_manager, is_apply, options.force);
    if errors.is_empty() {
        return Ok(());
    }
    Err(Box::new(field::invalid("meta.k8s.io", kind, "", &errors)))
}

/// Takes a decoded and defaulted object, whose owners are tracked, through admission and validation into the store.
pub(crate) async fn insert(
    ex: &Exchange<'_>,
    object: Value,
    dry_run: bool,
    warnings: &mut Vec<String>,
) -> Outcome<Created> {
    let mut object = admit::mutate(
        ex,
        admission::Operation::Create,
        object,
        None,
        dry_run,
        warnings,
    )
    .await?;
    super::priority::on_create(ex, &mut object)?;
    let generated = value::text(&object, "metadata.name").is_empty();
    let prefix = value::text(&object, "metadata.generateName").to_owned();
    if generated && !prefix.is_empty() {
        let name = meta::generate_name(&prefix, ex.cluster.environment.entropy.draw());
        value::put(&mut object, "metadata.name", name);
    }
    meta::prepare_create(&mut object, &ex.cluster.uid(), ex.now);
    let strategy = &ex.resource.strategy;
    strategy.prepare_create(&mut object, &ex.context());
    if strategy.has_generation() {
        value::put(&mut object, "metadata.generation", 1);
    }
    super::allocate::on_create(ex, &mut object)?;
    check_kind(ex, &object)?;
    let mut errors = meta::validate_create(&object, ex.resource.namespaced, &**strategy);
    if meta::has_standard_finalizers(&ex.resource) {
        errors.extend(meta::validate_standard_finalizers(&object));
    }
    errors.extend(strategy.validate(&object, &ex.context()));
    write::judge(ex, value::text(&object, "metadata.name"), &errors)?;
    super::escalation::check(ex, &object, None)?;
    super::priority::check_overhead(ex, &object)?;
    warnings.extend(strategy.warnings(&object, None, &ex.context()));
    admit::validate(
        ex,
        admission::Operation::Create,
        Some(&object),
        None,
        dry_run,
        warnings,
    )
    .await?;
    store(
        ex,
        object,
        dry_run,
        generated
            .then_some(prefix.as_str())
            .filter(|p| !p.is_empty()),
    )
}

/// A custom object must be of the kind that its URL serves; the message names the kind that it claims to be.
pub(super) fn check_kind(ex: &Exchange<'_>, object: &Value) -> Outcome<()> {
    let kind = value::text(object, "kind");
    if !ex.resource.custom || kind == ex.kind() {
        return Ok(());
    }
    let error = FieldError::invalid_str("kind", kind, format!("must be {}", ex.kind()));
    Err(Box::new(field::invalid(
        ex.group(),
        kind,
        value::text(object, "metadata.name"),
        &[error],
    )))
}

fn store(
    ex: &Exchange<'_>,
    mut object: Value,
    dry_run: bool,
    prefix: Option<&str>,
) -> Outcome<Created> {
    for attempt in 1.. {
        let name = value::text(&object, "metadata.name").to_owned();
        let namespace = value::text(&object, "metadata.namespace").to_owned();
        if dry_run {
            return match ex.cluster.store.get(&ex.bucket(), &namespace, &name) {
                Some(_) => Err(Box::new(Status::already_exists(
                    ex.group(),
                    ex.plural(),
                    &name,
                ))),
                None => Ok(Created::DryRun(object)),
            };
        }
        meta::refuse_resource_version(&object)?;
        let stored_form = write::to_storage(ex, &object);
        let result = ex
            .cluster
            .store
            .create(&ex.bucket(), &namespace, &name, |version| {
                Cluster::encode(&ex.resource, &stored_form, version)
            });
        match (result, prefix) {
            (Ok(stored), _) => {
                write::after(ex, &stored, Cow::Owned(stored_form));
                return Ok(Created::Stored(stored));
            }
            (Err(Refused::Exists), Some(prefix)) if attempt < NAME_ATTEMPTS => {
                let name = meta::generate_name(prefix, ex.cluster.environment.entropy.draw());
                value::put(&mut object, "metadata.name", name);
            }
            (Err(_), Some(_)) => {
                return Err(Box::new(meta::generated_name_taken(
                    ex.group(),
                    ex.plural(),
                    &name,
                )));
            }
            (Err(_), None) => {
                return Err(Box::new(Status::already_exists(
                    ex.group(),
                    ex.plural(),
                    &name,
                )));
            }
        }
    }
    Err(Box::new(Status::internal("no name was free")))
}
