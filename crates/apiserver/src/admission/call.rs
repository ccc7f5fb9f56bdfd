//! Asking one webhook.

use serde_json::Value;

use super::hook::Invocation;
use super::{AdmissionRequest, Gate, review};
use crate::environment::{Call, uuid};
use crate::field::quote;
use crate::status::{Cause, Details, Status};
use crate::value;

/// Why a webhook did not let a request pass.
#[derive(Debug)]
pub(super) enum Failure {
    /// It could not be asked or its answer made no sense: the failure policy decides.
    Call(String),
    /// The request is refused whatever the failure policy says.
    Refused(Box<Status>),
}

impl Failure {
    pub(super) fn internal(why: impl std::fmt::Display) -> Self {
        Self::Refused(Box::new(Status::internal(why)))
    }

    pub(super) fn into_status(self, hook: &str) -> Box<Status> {
        match self {
            Self::Call(why) => Box::new(Status::internal(format!(
                "failed calling webhook {}: {why}",
                quote(hook)
            ))),
            Self::Refused(status) => status,
        }
    }
}

/// Asks a webhook; gives the patch it wants applied, if any.
pub(super) async fn ask(
    gate: &Gate<'_>,
    invocation: &Invocation<'_>,
    request: &AdmissionRequest<'_>,
    mutating: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<Vec<Value>>, Failure> {
    let hook = invocation.hook;
    if request.dry_run && !hook.supports_dry_run() {
        let why = format!(
            "admission webhook {} does not support dry run",
            quote(hook.name())
        );
        return Err(Failure::Refused(Box::new(Status::bad_request(why))));
    }
    let Some(version) = hook.review_version() else {
        return Err(Failure::Call(
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)".to_owned(),
        ));
    };
    let Some(url) = hook.url() else {
        return Err(Failure::Call(
            "could not get REST client: webhook configuration must have either service or URL"
                .to_owned(),
        ));
    };
    if let Some((namespace, name)) = hook.service()
        && !gate.shapes.has_service(namespace, name)
        && !gate.dial.knows(&url)
    {
        return Err(Failure::Call(format!(
            "failed to call webhook: Post {}: service {} not found",
            quote(&url),
            quote(name)
        )));
    }
    let uid = uuid(gate.entropy.draw());
    let body = review::envelope(version, &review::request(invocation, request, &uid));
    let call = Call {
        url: url.clone(),
        ca_bundle: hook.ca_bundle(),
        body: body.to_string().into(),
        timeout: hook.timeout(),
    };
    let (code, body) = gate.dial.call(call).await.map_err(|error| {
        Failure::Call(format!(
            "failed to call webhook: Post {}: {error}",
            quote(&url)
        ))
    })?;
    let response = review::response(code, &body, version, &uid, mutating)?;
    warnings.extend(
        value::items(&response, "warnings")
            .iter()
            .filter_map(|w| w.as_str().map(str::to_owned)),
    );
    if !value::flag(&response, "allowed") {
        return Err(Failure::Refused(Box::new(denied(hook.name(), &response))));
    }
    review::patch(&response, version, mutating)
}

/// The refusal as the webhook words it, with the code, reason and details it gives.
fn denied(hook: &str, response: &Value) -> Status {
    let result = response.get("status").unwrap_or(&Value::Null);
    let text = |field: &str| value::text(result, field);
    let by = format!("admission webhook {} denied the request", quote(hook));
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = value::integer(result, "code").unwrap_or_default();
    let code = u16::try_from(code)
        .ok()
        .filter(|code| (400..1000).contains(code))
        .unwrap_or(400);
    let mut status = Status::failure(code, text("reason"), message);
    status.details = value::has(result, "details").then(|| details(result));
    status
}

fn details(result: &Value) -> Details {
    let text = |field: &str| value::text(result, &format!("details.{field}")).to_owned();
    let retry = value::integer(result, "details.retryAfterSeconds");
    let causes = value::items(result, "details.causes").iter();
    Details {
        name: text("name"),
        group: text("group"),
        kind: text("kind"),
        uid: text("uid"),
        causes: causes
            .map(|cause| Cause {
                reason: value::text(cause, "reason").to_owned(),
                message: value::text(cause, "message").to_owned(),
                field: value::text(cause, "field").to_owned(),
            })
            .collect(),
        retry_after_seconds: retry.and_then(|s| u32::try_from(s).ok()).filter(|s| *s > 0),
    }
}
