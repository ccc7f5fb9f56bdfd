//! Projected volumes: several sources in one folder.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{check, volume};
use crate::field::{FieldError, FieldErrors};
use crate::value::{has, integer, items, text};

/// Judges a projected volume.
pub(super) fn validate(errors: &mut FieldErrors, path: &str, projected: &Value) {
    check::file_mode(errors, projected, path, "defaultMode");
    let mut paths = BTreeSet::new();
    for (i, source) in items(projected, "sources").iter().enumerate() {
        let here = format!("{path}.sources[{i}]");
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            if let Some(projection) = source.get(kind).filter(|v| !v.is_null()) {
                count += 1;
                let here = format!("{here}.{kind}");
                check::required(errors, projection, &here, "name");
                for (j, item) in items(projection, "items").iter().enumerate() {
                    volume::validate_key_to_path(errors, &format!("{here}.items[{j}]"), item);
                    let name = text(projection, "name");
                    take(errors, path, &mut paths, text(item, "path"), name);
                }
            }
        }
        if has(source, "downwardAPI") {
            count += 1;
            for file in items(source, "downwardAPI.items") {
                volume::validate_downward_file(errors, &format!("{here}.downwardAPI"), file);
                let at = text(file, "path");
                take(errors, path, &mut paths, at, at);
            }
        }
        if let Some(token) = source.get("serviceAccountToken").filter(|v| !v.is_null()) {
            count += 1;
            validate_token(errors, path, &format!("{here}.serviceAccountToken"), token);
        }
        for kind in ["clusterTrustBundle", "podCertificate"] {
            count += i32::from(has(source, kind));
        }
        if count > 1 {
            errors.push(FieldError::forbidden(
                here,
                "may not specify more than 1 volume type per source",
            ));
        }
    }
}

fn take<'a>(
    errors: &mut FieldErrors,
    path: &str,
    taken: &mut BTreeSet<&'a str>,
    target: &'a str,
    shown: &str,
) {
    if !target.is_empty() && !taken.insert(target) {
        errors.push(FieldError::invalid_str(
            path,
            shown,
            "conflicting duplicate paths",
        ));
    }
}

fn validate_token(errors: &mut FieldErrors, volume: &str, path: &str, token: &Value) {
    let seconds = integer(token, "expirationSeconds").unwrap_or(0);
    let at = format!("{path}.expirationSeconds");
    if seconds < 600 {
        errors.push(check::number(
            &at,
            seconds,
            "may not specify a duration less than 10 minutes",
        ));
    }
    if seconds > 1 << 32 {
        errors.push(check::number(
            &at,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        ));
    }
    if check::required(errors, token, volume, "path") {
        check::unreserved_path(errors, &format!("{volume}.path"), text(token, "path"));
    }
}
