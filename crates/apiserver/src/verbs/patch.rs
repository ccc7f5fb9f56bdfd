//! Patching an object: JSON patch, merge patch, strategic merge patch, server-side apply.

use std::sync::Mutex;

use serde_json::Value;

use super::create::{self, check_manager};
use super::update::{Change, change_object, track};
use crate::apply::{self, Operation, Owner};
use crate::decode::{self, FieldValidation, strict_error};
use crate::exchange::{Exchange, Reply};
use crate::meta;
use crate::options::WriteOptions;
use crate::patch::{self, PatchKind};
use crate::resource::Part;
use crate::status::{Outcome, Status};

/// Answers PATCH.
pub(super) async fn patch(ex: &Exchange<'_>, part: Part) -> Outcome<Reply> {
    let kind = PatchKind::of(ex.content_type(), ex.resource.custom)?;
    let options = WriteOptions::parse(&ex.query, "PatchOptions")?;
    check_manager(&options, kind == PatchKind::Apply, "PatchOptions")?;
    let validation = ex.validation("PatchOptions")?;
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
    let warned = Mutex::new(Vec::new());
    let transform = |live: Option<&Value>| {
        let live = live.ok_or_else(|| ex.not_found(&ex.target.name))?;
        let (mut new, mut warnings) = patched(ex, kind, live, validation)?;
        meta::match_name(&new, &ex.target.name)?;
        meta::match_namespace(&mut new, &ex.target.namespace)?;
        warnings.extend(meta::dedup_owner_references(&mut new));
        track(ex, part, Some(live), &mut new, &manager, &api_version)?;
        if let Ok(mut warned) = warned.lock() {
            *warned = warnings;
        }
        Ok(new)
    };
    let change = Change {
        part,
        dry_run: options.dry_run,
        upsert: false,
        names_uid: false,
        transform: &transform,
    };
    let mut later = Vec::new();
    let (result, _) = change_object(ex, &change, &mut later).await?;
    let mut warnings = warned.into_inner().unwrap_or_default();
    warnings.append(&mut later);
    create::answer(ex, 200, result, warnings)
}

/// The live object with the patch applied, in the shape of its schema, and the warnings for the client.
fn patched(
    ex: &Exchange<'_>,
    kind: PatchKind,
    live: &Value,
    validation: FieldValidation,
) -> Outcome<(Value, Vec<String>)> {
    let schema = &ex.version()?.schema;
    let patched = patch::patch(kind, schema, live, &ex.body, validation)?;
    if !ex.resource.custom {
        let target = decode::Target {
            group: ex.group(),
            version: &ex.target.version,
            kind: ex.kind(),
        };
        let settled = patch::settle(patched, schema, &target, validation)?;
        let mut object = settled.object;
        ex.resource.strategy.default(&mut object, &ex.context());
        return Ok((object, settled.warnings));
    }
    // What a refusal shows is made anew where there is one, which is seldom.
    let refuse = |why: &str| {
        let again = patch::patch(kind, schema, live, &ex.body, validation);
        let shown = again.map(|patched| patched.object.to_string());
        Box::new(patch::undecodable(&shown.unwrap_or_default(), why))
    };
    let mut strict = patched.complaints;
    let (new, unknown) = ex.shape(patched.object).map_err(|why| refuse(&why))?;
    strict.extend(unknown);
    match validation {
        FieldValidation::Strict if !strict.is_empty() => Err(refuse(&strict_error(&strict))),
        FieldValidation::Warn => Ok((new, strict)),
        FieldValidation::Strict | FieldValidation::Ignore => Ok((new, Vec::new())),
    }
}

async fn apply_patch(
    ex: &Exchange<'_>,
    part: Part,
    options: &WriteOptions,
    validation: FieldValidation,
) -> Outcome<Reply> {
    let (config, mut warnings) = decode_config(ex, validation)?;
    let api_version = ex.api_version();
    let owner = Owner {
        manager: &options.field_manager,
        operation: Operation::Apply,
        api_version: &api_version,
        subresource: if part == Part::Status { "status" } else { "" },
        now: ex.now,
    };
    let reset = ex.resource.strategy.reset_fields(part);
    let transform = |live: Option<&Value>| {
        let schema = &ex.version()?.schema;
        let merged = apply::apply(
            schema,
            live,
            &config,
            &owner,
            options.force.unwrap_or(false),
            &reset,
        )?;
        let (mut new, _) = ex
            .shape(merged)
            .map_err(|why| Box::new(Status::bad_request(why)))?;
        meta::match_namespace(&mut new, &ex.target.namespace)?;
        Ok(new)
    };
    let upsert = part == Part::Main;
    let change = Change {
        part,
        dry_run: options.dry_run,
        upsert,
        names_uid: false,
        transform: &transform,
    };
    let (result, created) = change_object(ex, &change, &mut warnings).await?;
    create::answer(ex, if created { 201 } else { 200 }, result, warnings)
}

/// The applied configuration, not defaulted: only what the client said counts.
fn decode_config(ex: &Exchange<'_>, validation: FieldValidation) -> Outcome<(Value, Vec<String>)> {
    let parsed = decode::parse(&ex.body, decode::Media::Yaml).map_err(|error| {
        Box::new(Status::bad_request(format!(
            "error decoding YAML: error converting YAML to JSON: {error}"
        )))
    })?;
    let config = parsed.value;
    if !config.is_object() {
        let text = "error decoding YAML: json: cannot unmarshal into Go value of type map[string]interface {}";
        return Err(Box::new(Status::bad_request(text)));
    }
    meta::match_name(&config, &ex.target.name)?;
    // Checked on a copy: who applies without a namespace does not own one.
    meta::match_namespace(&mut config.clone(), &ex.target.namespace)?;
    // Fields that the schema does not know are refused by the merge itself.
    let warnings = validation.judge(parsed.duplicates, &ex.api_version(), ex.kind())?;
    Ok((config, warnings))
}
