//! The `scale` subresource: replicas of anything that has them.

use http::Method;
use serde_json::{Value, json};

use super::create::Created;
use super::update::{Change, change_object};
use super::{get, render};
use crate::apply::{self, Operation, Owner};
use crate::decode;
use crate::exchange::{Exchange, Reply};
use crate::field::{self, FieldError};
use crate::options::WriteOptions;
use crate::patch::{self, PatchKind, Reading};
use crate::resource::{Part, Scale};
use crate::schema::{Schema, table};
use crate::selector;
use crate::status::{Outcome, Status};
use crate::value;

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// Answers any method on `scale`.
pub(super) async fn scale(ex: &Exchange<'_>, method: Method) -> Outcome<Reply> {
    let paths = ex
        .resource
        .scale
        .clone()
        .ok_or_else(|| Box::new(Status::no_such_resource()))?;
    match method {
        Method::GET => {
            let stored = get::find(ex)?;
            let object = render::decode(ex, &stored);
            if ex.resource.custom && value::integer(&object, path(&paths.spec_replicas)).is_none() {
                let why = format!(
                    "the spec replicas field {} does not exist",
                    field::quote(&paths.spec_replicas)
                );
                return Err(Box::new(Status::internal(why)));
            }
            render::scale(ex, view(&paths, &object))
        }
        Method::PUT | Method::PATCH => change(ex, &paths, &method).await,
        _ => Err(Box::new(Status::method_not_allowed_here())),
    }
}

fn path(dotted: &str) -> &str {
    dotted.trim_start_matches('.')
}

/// The `Scale` of an object.
pub(super) fn view(paths: &Scale, object: &Value) -> Value {
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(found) = object.get("metadata").and_then(|m| m.get(field)) {
            metadata[field] = found.clone();
        }
    }
    let mut spec = json!({});
    if let Some(replicas) = value::integer(object, path(&paths.spec_replicas)).filter(|r| *r != 0) {
        spec["replicas"] = json!(replicas);
    }
    let mut status =
        json!({"replicas": value::integer(object, path(&paths.status_replicas)).unwrap_or(0)});
    if !paths.selector.is_empty() {
        let text = match value::at(object, path(&paths.selector)) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => selector::to_text(other),
            None => String::new(),
        };
        if !text.is_empty() {
            status["selector"] = json!(text);
        }
    }
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": spec, "status": status})
}

async fn change(ex: &Exchange<'_>, paths: &Scale, method: &Method) -> Outcome<Reply> {
    let is_put = *method == Method::PUT;
    let kind = if is_put {
        None
    } else {
        Some(PatchKind::of(ex.content_type(), ex.resource.custom)?)
    };
    let name_of_options = if is_put {
        "UpdateOptions"
    } else {
        "PatchOptions"
    };
    let options = WriteOptions::parse(&ex.query, name_of_options)?;
    super::create::check_manager(&options, kind == Some(PatchKind::Apply), name_of_options)?;
    let sent = if is_put {
        Some(ex.decode_as("autoscaling/v1", "Scale", SCALE)?)
    } else {
        None
    };
    if let Some(sent) = &sent {
        crate::meta::match_name(sent, &ex.target.name)?;
    }
    let transform = |live: Option<&Value>| {
        let live = live.ok_or_else(|| ex.not_found(&ex.target.name))?;
        let mut wanted = match (&sent, kind) {
            (Some(sent), _) => sent.clone(),
            (None, Some(kind)) => patched(ex, paths, live, kind, &options)?,
            (None, None) => return Err(Box::new(Status::method_not_allowed_here())),
        };
        if kind != Some(PatchKind::Apply) {
            own(ex, paths, live, &mut wanted, &options)?;
        }
        scaled(ex, paths, live, &wanted)
    };
    let change = Change {
        part: Part::Scale,
        dry_run: options.dry_run,
        upsert: false,
        names_uid: false,
        transform: &transform,
    };
    let mut warnings = Vec::new();
    let (result, _) = change_object(ex, &change, &mut warnings).await?;
    let object = match result {
        Created::Stored(stored) => render::decode(ex, &stored),
        Created::DryRun(object) => object,
    };
    Ok(render::scale(ex, view(paths, &object))?.with_warnings(warnings))
}

fn schema() -> Outcome<Schema> {
    table::named(SCALE).ok_or_else(|| Box::new(Status::internal("no schema of Scale")))
}

/// The `Scale` of an object, with the entries that own its replicas.
fn owned_view(paths: &Scale, live: &Value) -> Value {
    let mut scale = view(paths, live);
    apply::entries_into_scale(live, path(&paths.spec_replicas), &mut scale);
    scale
}

/// Records who owns the replicas after a write that is no apply.
fn own(
    ex: &Exchange<'_>,
    paths: &Scale,
    live: &Value,
    wanted: &mut Value,
    options: &WriteOptions,
) -> Outcome<()> {
    let manager = ex.manager(&options.field_manager);
    let owner = owner(ex, &manager, Operation::Update);
    apply::track_update(
        &schema()?,
        Some(&owned_view(paths, live)),
        wanted,
        &owner,
        &["status"],
    );
    Ok(())
}

fn owner<'a>(ex: &Exchange<'_>, manager: &'a str, operation: Operation) -> Owner<'a> {
    Owner {
        manager,
        operation,
        api_version: "autoscaling/v1",
        subresource: "scale",
        now: ex.now,
    }
}

/// The object with the wanted replicas.
fn scaled(ex: &Exchange<'_>, paths: &Scale, live: &Value, wanted: &Value) -> Outcome<Value> {
    let replicas = value::integer(wanted, "spec.replicas").unwrap_or(0);
    if replicas < 0 && !ex.resource.custom {
        let error = FieldError::invalid(
            "spec.replicas",
            &json!(replicas),
            "must be greater than or equal to 0",
        );
        return Err(Box::new(field::invalid(
            "autoscaling",
            "Scale",
            &ex.target.name,
            &[error],
        )));
    }
    let mut new = live.clone();
    value::put(&mut new, path(&paths.spec_replicas), replicas);
    let api_version = ex.api_version();
    apply::entries_from_scale(&mut new, path(&paths.spec_replicas), wanted, &api_version);
    value::take(&mut new, "metadata.resourceVersion");
    match value::text(wanted, "metadata.resourceVersion") {
        "" if ex.resource.strategy.unconditional_update() => {}
        "" => value::copy(&mut new, live, "metadata.resourceVersion"),
        version => value::put(&mut new, "metadata.resourceVersion", version),
    }
    Ok(new)
}

/// The patched `Scale`. A patch that does not name a version is not bound to one.
fn patched(
    ex: &Exchange<'_>,
    paths: &Scale,
    live: &Value,
    kind: PatchKind,
    options: &WriteOptions,
) -> Outcome<Value> {
    let mut current = owned_view(paths, live);
    value::take(&mut current, "metadata.resourceVersion");
    let schema = schema()?;
    if kind == PatchKind::Apply {
        let config = decode::parse(&ex.body, decode::Media::Yaml).map_err(|error| {
            Box::new(Status::bad_request(format!("error decoding YAML: {error}")))
        })?;
        let owner = owner(ex, &options.field_manager, Operation::Apply);
        let force = options.force.unwrap_or(false);
        return apply::apply(
            &schema,
            Some(&current),
            &config.value,
            &owner,
            force,
            &["status"],
        );
    }
    let patched = patch::patch(kind, &schema, &current, &ex.body, Reading::Strict)?;
    let mut wanted = patched.object;
    decode::shape(&schema, &mut wanted)
        .map_err(|why| Box::new(patch::undecodable(&wanted.to_string(), &why)))?;
    Ok(wanted)
}
