//! Match conditions: CEL expressions that keep a webhook from being asked.
#![allow(
    clippy::disallowed_types,
    reason = "the maps of the cel crate are HashMaps; nothing here iterates over one"
)]

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, ExecutionError, Program, Value as Cel};
use serde_json::Value;

use super::hook::Invocation;
use super::{AdmissionRequest, review};
use crate::authorize::aggregate_texts;
use crate::status::{Outcome, Status};
use crate::value;

/// Whether all conditions hold. One that is false wins over others that fail; if some fail, it depends on the
/// webhook's failure policy: refuse the request, or do not ask the webhook.
pub(super) fn matches(
    conditions: &[Value],
    fails_closed: bool,
    invocation: &Invocation<'_>,
    request: &AdmissionRequest<'_>,
) -> Outcome<bool> {
    if conditions.is_empty() {
        return Ok(true);
    }
    let context = context(invocation, request);
    let mut errors = Vec::new();
    for condition in conditions {
        let expression = value::text(condition, "expression");
        match evaluate(expression, &context) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(why) => errors.push(why),
        }
    }
    if errors.is_empty() {
        return Ok(true);
    }
    if !fails_closed {
        return Ok(false);
    }
    let resource = &request.resource;
    let why = aggregate_texts(&errors);
    Err(Box::new(Status::forbidden(
        &resource.group,
        &resource.resource,
        request.name,
        &why,
    )))
}

fn context<'c>(invocation: &Invocation<'_>, request: &AdmissionRequest<'_>) -> Context<'c> {
    let mut context = Context::default().with_all();
    let mut shown = review::request(invocation, request, "");
    for absent in ["uid", "object", "oldObject"] {
        value::take(&mut shown, absent);
    }
    let object = invocation.object(request).map_or(Cel::Null, to_cel);
    let old = invocation.old_object(request).map_or(Cel::Null, to_cel);
    context.add_variable_from_value("object", object);
    context.add_variable_from_value("oldObject", old);
    context.add_variable_from_value("request", to_cel(&shown));
    context
}

fn evaluate(expression: &str, context: &Context<'_>) -> Result<bool, String> {
    let program =
        Program::compile(expression).map_err(|error| format!("compilation error: {error}"))?;
    let result = program.execute(context);
    let why = match result {
        Ok(Cel::Bool(holds)) => return Ok(holds),
        Ok(_) => "no such overload".to_owned(),
        Err(ExecutionError::NoSuchKey(key)) => format!("no such key: {key}"),
        Err(other) => other.to_string(),
    };
    Err(format!(
        "expression '{expression}' resulted in error: {why}"
    ))
}

/// A JSON value as CEL sees it: whole numbers are `int`.
fn to_cel(json: &Value) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => number
            .as_i64()
            .map(Cel::Int)
            .or_else(|| number.as_f64().map(Cel::Float))
            .unwrap_or(Cel::Null),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            // The interpreter's own map type; nothing iterates over it but CEL macros.
            let map: HashMap<Key, Cel> = fields
                .iter()
                .map(|(key, content)| (Key::String(Arc::new(key.clone())), to_cel(content)))
                .collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}
