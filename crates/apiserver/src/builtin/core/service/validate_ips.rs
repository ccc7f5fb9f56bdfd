//! What is wrong with a service's cluster IPs and IP families.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{is_headless, kind};
use crate::builtin::checks::{self, each};
use crate::field::{FieldError, FieldErrors};
use crate::value;

const IPS: &str = "spec.clusterIPs";
const FAMILIES: &str = "spec.ipFamilies";
const POLICY: &str = "spec.ipFamilyPolicy";
const UNCHANGING: &str = "may not change once set";

fn list(object: &Value, path: &str) -> Value {
    value::at(object, path).cloned().unwrap_or(Value::Null)
}

/// Cluster IPs, families and the policy as they stand; the allocator asks this before it hands anything out.
pub(super) fn cluster_ips(object: &Value, old: Option<&Value>) -> FieldErrors {
    if kind(object) == "ExternalName" {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let ips = value::items(object, IPS);
    let first = ips.first().and_then(Value::as_str);
    match (value::text(object, "spec.clusterIP"), first) {
        ("", None) => (),
        ("", Some(_)) => {
            let detail = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(IPS, &list(object, IPS), detail));
        }
        (_, None) => errors.push(FieldError::required(IPS, "")),
        (single, Some(first)) if single != first => {
            let detail = "first value must match `clusterIP`";
            errors.push(FieldError::invalid(IPS, &list(object, IPS), detail));
        }
        _ => (),
    }
    errors.extend(families(object));
    let known = old.map_or(&[][..], |o| value::items(o, IPS));
    let mut unreadable = false;
    for (i, (at, ip)) in each(object, "", IPS).enumerate() {
        if i == 0 && ip == "None" {
            if ips.len() > 1 {
                unreadable = true;
                let detail = "'None' must be the first and only value";
                errors.push(FieldError::invalid(IPS, &list(object, IPS), detail));
            }
            continue;
        }
        if !known.contains(ip) {
            let wrong = checks::ip(&at, ip.as_str().unwrap_or_default());
            unreadable |= !wrong.is_empty();
            errors.extend(wrong);
        }
    }
    if ips.len() > 2 {
        let detail = "may only hold up to 2 values";
        errors.push(FieldError::invalid(IPS, &list(object, IPS), detail));
    }
    if !unreadable {
        errors.extend(match_families(object));
    }
    errors
}

fn families(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, family) in each(object, "", FAMILIES) {
        let text = family.as_str().unwrap_or_default();
        if !["IPv4", "IPv6"].contains(&text) {
            let supported = ["IPv4", "IPv6"];
            errors.push(FieldError::not_supported(at.as_str(), family, &supported));
        }
        if !seen.insert(text) {
            errors.push(FieldError::duplicate(at, family));
        }
    }
    if value::has(object, POLICY) {
        let supported = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        let policy = value::text(object, POLICY);
        if !supported.contains(&policy) {
            errors.push(FieldError::not_supported(
                POLICY,
                &policy.into(),
                &supported,
            ));
        }
    }
    errors
}

fn match_families(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let ips = value::items(object, IPS);
    let is_v6 = |ip: &Value| ip.as_str().is_some_and(|t| t.contains(':'));
    if ips.len() > 1 {
        let v6 = ips.iter().filter(|ip| is_v6(ip)).count();
        if v6 == 0 || v6 == ips.len() {
            let detail = "may specify no more than one IP for each IP family";
            errors.push(FieldError::invalid(IPS, &list(object, IPS), detail));
        }
    }
    if is_headless(object) {
        return errors;
    }
    for ((i, (at, ip)), family) in each(object, "", IPS)
        .enumerate()
        .zip(value::items(object, FAMILIES))
    {
        let wanted = match family.as_str() {
            Some("IPv4") if is_v6(ip) => "IPv4",
            Some("IPv6") if !is_v6(ip) => "IPv6",
            _ => continue,
        };
        let detail = format!("expected an {wanted} value as indicated by `ipFamilies[{i}]`");
        errors.push(FieldError::invalid(at, ip, detail));
    }
    errors
}

/// Cluster IPs stay; only a second one may come or go.
pub(super) fn cluster_ips_update(object: &Value, old: &Value) -> FieldErrors {
    if kind(object) == "ExternalName"
        || kind(old) == "ExternalName"
        || (is_headless(object) && is_headless(old))
    {
        return Vec::new();
    }
    let (new_ips, old_ips) = (value::items(object, IPS), value::items(old, IPS));
    let changed =
        |i: usize| FieldError::invalid(format!("{IPS}[{i}]"), &list(object, IPS), UNCHANGING);
    if new_ips.len() == old_ips.len() {
        let pairs = new_ips.iter().zip(old_ips).enumerate();
        return pairs
            .filter(|(_, (new, old))| new != old)
            .map(|(i, _)| changed(i))
            .collect();
    }
    let mut errors = Vec::new();
    if new_ips.is_empty() {
        let detail = "primary clusterIP can not be unset";
        errors.push(FieldError::invalid(
            format!("{IPS}[0]"),
            &list(object, IPS),
            detail,
        ));
    } else if !old_ips.is_empty() && new_ips.first() != old_ips.first() {
        errors.push(changed(0));
    }
    if old_ips.len() > new_ips.len()
        && new_ips.len() == 1
        && value::text(object, POLICY) != "SingleStack"
    {
        let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        errors.push(FieldError::invalid(POLICY, &list(object, POLICY), detail));
    }
    errors
}

/// Families stay; only a second one may come or go.
pub(super) fn families_update(object: &Value, old: &Value) -> FieldErrors {
    if kind(object) == "ExternalName"
        || kind(old) == "ExternalName"
        || is_headless(object)
        || is_headless(old)
    {
        return Vec::new();
    }
    let path = format!("{FAMILIES}[0]");
    let (new, before) = (value::items(object, FAMILIES), value::items(old, FAMILIES));
    if new.len() == before.len() {
        return new
            .iter()
            .zip(before)
            .filter(|(new, old)| new != old)
            .map(|_| FieldError::invalid(path.as_str(), &list(object, FAMILIES), UNCHANGING))
            .collect();
    }
    let mut errors = Vec::new();
    if !new.is_empty() && !before.is_empty() && new.first() != before.first() {
        errors.push(FieldError::invalid(
            path.as_str(),
            &list(object, IPS),
            UNCHANGING,
        ));
    }
    if before.len() > new.len() && new.len() == 1 && value::text(object, POLICY) != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        errors.push(FieldError::invalid(POLICY, &list(object, POLICY), detail));
    }
    errors
}
