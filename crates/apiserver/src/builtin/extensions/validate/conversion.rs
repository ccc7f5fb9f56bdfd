//! `spec.conversion`.

use serde_json::Value;

use super::approval;
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors, quote};
use crate::value;

const PATH: &str = "spec.conversion";

/// Judges the conversion of a definition; `any_bundle` tolerates a CA bundle that cannot be read.
pub(super) fn validate(crd: &Value, any_bundle: bool, errors: &mut FieldErrors) {
    let Some(conversion) = value::at(crd, PATH).filter(|v| v.is_object()) else {
        return;
    };
    let strategy = value::text(conversion, "strategy");
    let at = format!("{PATH}.strategy");
    if strategy != "None" && value::flag(crd, "spec.preserveUnknownFields") {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid_str(&*at, strategy, why));
    }
    match strategy {
        "" => errors.push(FieldError::required(at, "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported_text(
            at,
            &Value::from(other),
            &["None", "Webhook"],
        )),
    }
    let config = value::at(conversion, "webhook.clientConfig").filter(|v| v.is_object());
    let config_path = format!("{PATH}.webhookClientConfig");
    let reviews = value::items(conversion, "webhook.conversionReviewVersions");
    let reviews_path = format!("{PATH}.conversionReviewVersions");
    if strategy == "Webhook" {
        if let Some(config) = config {
            client(config, &config_path, any_bundle, errors);
        } else {
            let why = "required when strategy is set to Webhook";
            errors.push(FieldError::required(config_path, why));
        }
        review_versions(reviews, &reviews_path, errors);
        return;
    }
    let why = "should not be set when strategy is not set to Webhook";
    if config.is_some() {
        errors.push(FieldError::forbidden(config_path, why));
    }
    if !reviews.is_empty() {
        errors.push(FieldError::forbidden(reviews_path, why));
    }
}

fn client(config: &Value, path: &str, any_bundle: bool, errors: &mut FieldErrors) {
    match (
        config.get("url").and_then(Value::as_str),
        config.get("service").filter(|v| v.is_object()),
    ) {
        (Some(url), None) => errors.extend(judge_url(url, &format!("{path}.url"))),
        (None, Some(service)) => judge_service(service, &format!("{path}.service"), errors),
        _ => errors.push(FieldError::required(
            path,
            "exactly one of url or service is required",
        )),
    }
    let bundle = value::text(config, "caBundle");
    if !bundle.is_empty() && !any_bundle && !approval::is_ca_bundle(bundle) {
        let why = "unable to load root certificates: unable to parse bytes as PEM block";
        let mut error = FieldError::invalid_str(format!("{path}.caBundle"), "", why);
        error.shown = quote(bundle);
        errors.push(error);
    }
}

fn judge_url(url: &str, path: &str) -> FieldErrors {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut errors = FieldErrors::new();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if url.contains("://") {
        rest.split('/').next().unwrap_or_default()
    } else {
        ""
    };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut refuse =
        |shown: &str, why: String| errors.push(FieldError::invalid_str(path, shown, why));
    if scheme != "https" {
        refuse(
            scheme,
            format!("'https' is the only allowed URL scheme{FORM}"),
        );
    }
    if host.is_empty() {
        refuse(host, format!("host must be specified{FORM}"));
    }
    if !user.is_empty() {
        refuse(
            user,
            "user information is not permitted in the URL".to_owned(),
        );
    }
    if !fragment.is_empty() {
        refuse(
            fragment,
            "fragments are not permitted in the URL".to_owned(),
        );
    }
    if !query.is_empty() {
        refuse(
            query,
            "query parameters are not permitted in the URL".to_owned(),
        );
    }
    errors
}

fn judge_service(service: &Value, path: &str, errors: &mut FieldErrors) {
    // The real server confuses the two: a missing namespace is reported as a missing name, and the reverse.
    for (missing, reported) in [("namespace", "name"), ("name", "namespace")] {
        if value::text(service, missing).is_empty() {
            errors.push(FieldError::required(format!("{path}.{reported}"), ""));
        }
    }
    let port = value::integer(service, "port").unwrap_or_default();
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(
            format!("{path}.port"),
            &Value::from(port),
            why,
        ));
    }
    let Some(url_path) = service.get("path").and_then(Value::as_str) else {
        return;
    };
    let mut refuse = |why: String| {
        errors.push(FieldError::invalid_str(
            format!("{path}.path"),
            url_path,
            why,
        ));
    };
    match url_path {
        "" | "/" => return,
        "//" => return refuse("segment[0] may not be empty".to_owned()),
        _ => {}
    }
    if !url_path.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    let inner = url_path.get(1..).unwrap_or_default();
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (i, step) in inner.split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{i}] may not be empty"));
            continue;
        }
        for why in names::subdomain(step) {
            refuse(format!("segment[{i}]: {why}"));
        }
    }
}

fn review_versions(versions: &[Value], path: &str, errors: &mut FieldErrors) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        let at = format!("{path}[{i}]");
        let text = version.as_str().unwrap_or_default();
        if versions.iter().take(i).any(|other| other == version) {
            errors.push(FieldError::invalid_str(at, text, "duplicate version"));
            continue;
        }
        for why in names::label_1035(text) {
            errors.push(FieldError::invalid_str(&*at, text, why));
        }
    }
    if !versions.iter().any(|v| v == "v1" || v == "v1beta1") {
        let why = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, &Value::from(versions), why));
    }
}
