//! Patching an object: JSON patch, merge patch, strategic merge patch, server-side apply.

use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::create::{self, check_manager};
use super::update::{Change, change_object, track};
use crate::apply::{self, Operation, Owner};
use crate::decode::{self, FieldValidation, Media};
use crate::exchange::{Exchange, Reply};
use crate::options::WriteOptions;
use crate::patch::{self, PatchKind};
use crate::resource::Part;
use crate::status::{Outcome, Status};
use crate::{meta, value};

/// Answers PATCH.
pub(super) async fn patch(ex: &Exchange<'_>, part: Part) -> Outcome<Reply> {
    let kind = PatchKind::parse(
        ex.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default(),
        ex.resource.custom,
    )?;
    let options = WriteOptions::parse(&ex.query, "PatchOptions")?;
    check_manager(&options, kind == PatchKind::Apply, "PatchOptions")?;
    let validation = FieldValidation::parse(ex.query.get("fieldValidation"))?;
    match kind {
        PatchKind::Apply => apply_patch(ex, part, &options, validation).await,
        kind => plain_patch(ex, part, kind, &options, validation).await,
    }
}

async fn plain_patch(
    ex: &Exchange<'_>,
    part: Part,
    kind: PatchKind,
    options: &WriteOptions,
    validation: FieldValidation,
) -> Outcome<Reply> {
    let manager = ex.manager(&options.field_manager);
    let api_version = ex.api_version();
    let warned = std::sync::Mutex::new(Vec::new());
    let transform = |live: Option<&Value>| {
        let live = live.ok_or_else(|| ex.not_found(&ex.target.name))?;
        let (patched, duplicates) = patched(ex, kind, live)?;
        let (mut new, mut warnings) = ex.shape(patched, duplicates, validation)?;
        meta::match_name(&new, &ex.target.name)?;
        meta::match_namespace(&mut new, &ex.target.namespace)?;
        warnings.extend(meta::dedup_owner_references(&mut new));
        track(ex, part, Some(live), &mut new, &manager, &api_version)?;
        if let Ok(mut warned) = warned.lock() {
            *warned = warnings;
        }
        Ok(new)
    };
    let change = Change { part, dry_run: options.dry_run, upsert: false, transform: &transform };
    let mut warnings = Vec::new();
    let (result, _) = change_object(ex, &change, &mut warnings).await?;
    if let Ok(mut warned) = warned.lock() {
        warned.append(&mut warnings);
        warnings = std::mem::take(&mut warned);
    }
    create::answer(ex, 200, result, warnings)
}

/// The patched document, and the duplicate fields of the patch itself.
pub(super) fn patched(ex: &Exchange<'_>, kind: PatchKind, live: &Value) -> Outcome<(Value, Vec<String>)> {
    match kind {
        PatchKind::Json => Ok((patch::json(live, &ex.body)?, Vec::new())),
        PatchKind::Merge => {
            let parsed = decode::parse(&ex.body, Media::Json).map_err(|e| Box::new(Status::bad_request(e.to_string())))?;
            Ok((patch::merge(live, &ex.body)?, parsed.duplicates))
        }
        PatchKind::Strategic => {
            let parsed = decode::parse(&ex.body, Media::Json).map_err(|e| Box::new(Status::bad_request(e.to_string())))?;
            Ok((patch::strategic(&ex.version()?.schema, live, &parsed.value)?, parsed.duplicates))
        }
        PatchKind::Apply => Err(Box::new(Status::internal("an apply is not a patch of this kind"))),
    }
}

async fn apply_patch(
    ex: &Exchange<'_>,
    part: Part,
    options: &WriteOptions,
    validation: FieldValidation,
) -> Outcome<Reply> {
    let config = decode_config(ex)?;
    let api_version = ex.api_version();
    let owner = Owner {
        manager: &options.field_manager,
        operation: Operation::Apply,
        api_version: &api_version,
        subresource: if part == Part::Status { "status" } else { "" },
        now: ex.now,
    };
    let reset = ex.resource.strategy.reset_fields(part);
    let strict = config_strictness(ex, &config)?;
    let warnings_of_config = validation.judge(strict)?;
    let transform = |live: Option<&Value>| {
        let merged =
            apply::apply(&ex.version()?.schema, live, &config, &owner, options.force.unwrap_or(false), &reset)?;
        let (new, _) = ex.shape(merged, Vec::new(), FieldValidation::Ignore)?;
        Ok(new)
    };
    let change = Change { part, dry_run: options.dry_run, upsert: part == Part::Main, transform: &transform };
    let mut warnings = warnings_of_config;
    let (result, created) = change_object(ex, &change, &mut warnings).await?;
    create::answer(ex, if created { 201 } else { 200 }, result, warnings)
}

/// The applied configuration, checked but not defaulted: only what the client said counts.
fn decode_config(ex: &Exchange<'_>) -> Outcome<Value> {
    let parsed = decode::parse(&ex.body, Media::Yaml)
        .map_err(|e| Box::new(Status::bad_request(format!("error decoding YAML: {e}"))))?;
    let mut config = parsed.value;
    decode::expect_kind(&mut config, &ex.resource, &ex.target.version)?;
    value::put_default(&mut config, "metadata.name", ex.target.name.as_str());
    meta::match_name(&config, &ex.target.name)?;
    meta::match_namespace(&mut config, &ex.target.namespace)?;
    Ok(config)
}

/// Unknown fields of the configuration.
fn config_strictness(ex: &Exchange<'_>, config: &Value) -> Outcome<Vec<String>> {
    let mut copy = config.clone();
    let version = ex.version()?;
    if ex.resource.custom {
        return Ok(crate::crd::prune(&version.schema, &mut copy));
    }
    decode::conform(&version.schema, &mut copy, &ex.api_version(), ex.kind())
}
