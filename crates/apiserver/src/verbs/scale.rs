//! The `scale` subresource: replicas of anything that has them.

use http::Method;
use serde_json::{Value, json};

use super::create::Created;
use super::update::{Change, change_object, track};
use super::{get, render};
use crate::decode::{self, FieldValidation};
use crate::exchange::{Exchange, Reply};
use crate::field::{self, FieldError};
use crate::options::WriteOptions;
use crate::patch::{self, PatchKind};
use crate::resource::{Part, Scale};
use crate::schema::table;
use crate::selector;
use crate::status::{Outcome, Status};
use crate::value;

/// Answers any method on `scale`.
pub(super) async fn scale(ex: &Exchange<'_>, method: Method) -> Outcome<Reply> {
    let paths = ex.resource.scale.clone().ok_or_else(|| Box::new(Status::no_such_resource()))?;
    match method {
        Method::GET => {
            let stored = get::find(ex)?;
            Ok(Reply::value(200, view(&paths, &render::decode(ex, &stored))))
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
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(found) = object.get("metadata").and_then(|m| m.get(field)) {
            metadata[field] = found.clone();
        }
    }
    let mut spec = json!({});
    if let Some(replicas) = value::integer(object, path(&paths.spec_replicas)).filter(|r| *r != 0) {
        spec["replicas"] = json!(replicas);
    }
    let mut status = json!({"replicas": value::integer(object, path(&paths.status_replicas)).unwrap_or(0)});
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
    let kind_of_options = if *method == Method::PUT { "UpdateOptions" } else { "PatchOptions" };
    let options = WriteOptions::parse(&ex.query, kind_of_options)?;
    let manager = ex.manager(&options.field_manager);
    let api_version = ex.api_version();
    let sent = if *method == Method::PUT { Some(decode_scale(ex, decode::parse_body(&ex.body, ex.media()?, "Scale")?.value)?) } else { None };
    let transform = |live: Option<&Value>| {
        let live = live.ok_or_else(|| ex.not_found(&ex.target.name))?;
        let wanted = match &sent {
            Some(sent) => sent.clone(),
            None => patched(ex, paths, live)?,
        };
        let replicas = value::integer(&wanted, "spec.replicas").unwrap_or(0);
        if replicas < 0 {
            let error = FieldError::invalid("spec.replicas", &json!(replicas), "must be greater than or equal to 0");
            let (group, kind) = if ex.resource.custom { ("autoscaling", "Scale") } else { ("autoscaling", "Scale") };
            return Err(Box::new(field::invalid(group, kind, &ex.target.name, &[error])));
        }
        let mut new = live.clone();
        value::put(&mut new, path(&paths.spec_replicas), replicas);
        value::take(&mut new, "metadata.resourceVersion");
        if let Some(version) = value::at(&wanted, "metadata.resourceVersion").and_then(Value::as_str) {
            value::put(&mut new, "metadata.resourceVersion", version);
        } else if !ex.resource.strategy.unconditional_update() {
            value::copy(&mut new, live, "metadata.resourceVersion");
        }
        track(ex, Part::Scale, Some(live), &mut new, &manager, &api_version)?;
        Ok(new)
    };
    let change = Change { part: Part::Scale, dry_run: options.dry_run, upsert: false, transform: &transform };
    let mut warnings = Vec::new();
    let (result, _) = change_object(ex, &change, &mut warnings).await?;
    let object = match result {
        Created::Stored(stored) => render::decode(ex, &stored),
        Created::DryRun(object) => object,
    };
    Ok(Reply::value(200, view(paths, &object)).with_warnings(warnings))
}

/// The patched `Scale`.
fn patched(ex: &Exchange<'_>, paths: &Scale, live: &Value) -> Outcome<Value> {
    let content_type = ex.headers.get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let current = view(paths, live);
    let patched = match PatchKind::parse(content_type, ex.resource.custom)? {
        PatchKind::Json => patch::json(&current, &ex.body)?,
        PatchKind::Merge | PatchKind::Strategic => patch::merge(&current, &ex.body)?,
        PatchKind::Apply => {
            let config = decode::parse(&ex.body, decode::Media::Yaml).map_err(|e| Box::new(Status::bad_request(e.to_string())))?;
            let mut merged = current.clone();
            if let Some(replicas) = value::at(&config.value, "spec.replicas") {
                value::put(&mut merged, "spec.replicas", replicas.clone());
            }
            merged
        }
    };
    let mut wanted = decode_scale(ex, patched)?;
    // A patch that does not name a version is not bound to one.
    let named = decode::parse(&ex.body, decode::Media::Json)
        .is_ok_and(|p| value::has(&p.value, "metadata.resourceVersion"));
    if !named {
        value::take(&mut wanted, "metadata.resourceVersion");
    }
    Ok(wanted)
}

fn decode_scale(_ex: &Exchange<'_>, mut scale: Value) -> Outcome<Value> {
    if let Some(schema) = table::named("io.k8s.api.autoscaling.v1.Scale") {
        let unknown = decode::conform(&schema, &mut scale, "autoscaling/v1", "Scale")?;
        FieldValidation::Warn.judge(unknown)?;
    }
    Ok(scale)
}
