//! The `AdmissionReview` on the wire: what goes out, and what comes back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::AdmissionRequest;
use super::call::Failure;
use super::hook::Invocation;
use crate::field::quote;
use crate::value;

const GROUP: &str = "admission.k8s.io";

/// The review around a request.
pub(super) fn envelope(version: &str, request: &Value) -> Value {
    json!({
        "kind": "AdmissionReview",
        "apiVersion": format!("{GROUP}/{version}"),
        "request": request,
    })
}

/// The `request` part. Empty texts are left out, absent objects are `null`.
pub(super) fn request(
    invocation: &Invocation<'_>,
    request: &AdmissionRequest<'_>,
    uid: &str,
) -> Value {
    let kind = |k: &super::Gvk| json!({"group": k.group, "version": k.version, "kind": k.kind});
    let resource =
        |r: &super::Gvr| json!({"group": r.group, "version": r.version, "resource": r.resource});
    let mut out = json!({
        "uid": uid,
        "kind": kind(&invocation.kind),
        "resource": resource(&invocation.resource),
        "requestKind": kind(&request.kind),
        "requestResource": resource(&request.resource),
        "operation": request.operation.as_str(),
        "userInfo": request.user.info(),
        "object": invocation.object(request),
        "oldObject": invocation.old_object(request),
        "dryRun": request.dry_run,
        "options": request.options,
    });
    for (field, text) in [
        ("subResource", request.subresource),
        ("requestSubResource", request.subresource),
        ("name", request.name),
        ("namespace", request.namespace),
    ] {
        if !text.is_empty() {
            value::put(&mut out, field, text);
        }
    }
    out
}

/// The `response` part of what a webhook sent, checked.
pub(super) fn response(
    code: u16,
    body: &Bytes,
    version: &str,
    uid: &str,
    mutating: bool,
) -> Result<Value, Failure> {
    let call = |why: String| Failure::Call(format!("failed to call webhook: {why}"));
    if !(200..=206).contains(&code) {
        return Err(call(http_error(code, body)));
    }
    if body.is_empty() {
        return Err(call(format!(
            "0-length response with status code: {code} and content type: application/json"
        )));
    }
    let review = decode(body, version).map_err(call)?;
    verify(&review, version, uid, mutating)
        .map_err(|why| Failure::Call(format!("received invalid webhook response: {why}")))?;
    Ok(review.get("response").cloned().unwrap_or_default())
}

/// The text with which a Kubernetes client reports an answer that is not a success.
fn http_error(code: u16, body: &Bytes) -> String {
    let text = String::from_utf8_lossy(body);
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(status) if value::text(&status, "kind") == "Status" => {
            let message = value::text(&status, "message");
            if !message.is_empty() {
                return message.to_owned();
            }
            "unknown"
        }
        Ok(_) => "unknown",
        Err(_) if text.trim().is_empty() => "unknown",
        Err(_) => text.trim(),
    };
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 406 | 415 => text.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => {
            "the server has received too many requests and has asked us to try again later"
                .to_owned()
        }
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        500.. => format!(
            "an error on the server ({}) has prevented the request from succeeding",
            quote(text)
        ),
        _ => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    }
}

/// Decodes as the real server does into its Go type, with the texts of its errors.
fn decode(body: &Bytes, version: &str) -> Result<Value, String> {
    // Whatever is no JSON passes there as YAML: as one long string.
    let review: Value = serde_json::from_slice(body).unwrap_or(Value::String(String::new()));
    let Some(fields) = review.as_object() else {
        return Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            go_type(&review)
        ));
    };
    check_kind(fields, version)?;
    for (field, wanted, go) in [
        ("uid", "string", "types.UID"),
        ("allowed", "bool", "bool"),
        ("status", "object", "v1.Status"),
        ("patch", "string", "[]uint8"),
        ("patchType", "string", "v1.PatchType"),
        ("auditAnnotations", "object", "map[string]string"),
        ("warnings", "array", "[]string"),
    ] {
        let found = value::at(&review, "response").and_then(|r| r.get(field));
        let found = found.filter(|f| !f.is_null());
        if let Some(found) = found
            && go_type(found) != wanted
        {
            return Err(format!(
                "json: cannot unmarshal {} into Go struct field AdmissionResponse.response.{field} of type {go}",
                go_type(found)
            ));
        }
    }
    if STANDARD
        .decode(value::text(&review, "response.patch"))
        .is_err()
    {
        return Err("illegal base64 data at input byte 0".to_owned());
    }
    Ok(review)
}

fn check_kind(fields: &Map<String, Value>, version: &str) -> Result<(), String> {
    let text = |field: &str| {
        fields
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let other = if version == "v1" { "v1beta1" } else { "v1" };
    let known = |v: &str| api_version == format!("{GROUP}/{v}");
    if api_version.is_empty() || (known(version) && matches!(kind, "" | "AdmissionReview")) {
        return Ok(());
    }
    if known(other) && kind == "AdmissionReview" {
        return Err(format!(
            "converting ({other}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        ));
    }
    Err(format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        quote(kind),
        quote(api_version)
    ))
}

fn go_type(found: &Value) -> &'static str {
    match found {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn verify(review: &Value, version: &str, uid: &str, mutating: bool) -> Result<(), String> {
    if !value::has(review, "response") {
        return Err("webhook response was absent".to_owned());
    }
    if version != "v1" {
        return Ok(());
    }
    let text = |path: &str| value::text(review, path);
    let found = text("response.uid");
    if found != uid {
        return Err(format!(
            "expected response.uid={}, got {}",
            quote(uid),
            quote(found)
        ));
    }
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version != format!("{GROUP}/v1") || kind != "AdmissionReview" {
        let shown = if api_version.contains('/') {
            api_version.to_owned()
        } else {
            format!("/{api_version}")
        };
        return Err(format!(
            "expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {shown}, Kind={kind}"
        ));
    }
    let patch = !text("response.patch").is_empty();
    let typed = value::has(review, "response.patchType");
    match (mutating, patch, typed) {
        (true, true, false) => {
            Err("webhook returned response.patch but not response.patchType".to_owned())
        }
        (true, false, true) => {
            Err("webhook returned response.patchType but not response.patch".to_owned())
        }
        (true, true, true) if text("response.patchType").is_empty() => {
            Err("webhook returned invalid response.patchType of \"\"".to_owned())
        }
        (false, true, _) => Err("validating webhook may not return response.patch".to_owned()),
        (false, _, true) => Err("validating webhook may not return response.patchType".to_owned()),
        _ => Ok(()),
    }
}

/// The operations of the patch in a verified response; none if there is nothing to do.
pub(super) fn patch(
    response: &Value,
    version: &str,
    mutating: bool,
) -> Result<Option<Vec<Value>>, Failure> {
    let bytes = STANDARD
        .decode(value::text(response, "patch"))
        .unwrap_or_default();
    if !mutating || bytes.is_empty() {
        return Ok(None);
    }
    let undecodable = |why: String| {
        Failure::Call(format!(
            "received undecodable patch in webhook response: {why}"
        ))
    };
    let operations = match serde_json::from_slice(&bytes) {
        Ok(Value::Array(operations)) => operations,
        Ok(other) => {
            return Err(undecodable(format!(
                "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
                go_type(&other)
            )));
        }
        Err(error) => return Err(undecodable(error.to_string())),
    };
    if operations.is_empty() {
        return Ok(None);
    }
    let kind = value::text(response, "patchType");
    if version == "v1" && kind != "JSONPatch" {
        return Err(Failure::Call(format!(
            "unsupported patch type {}",
            quote(kind)
        )));
    }
    Ok(Some(operations))
}
