//! Which IP families a service has. This cluster has IPv4 only; services without a selector and without cluster IPs
//! may claim both, because nothing is handed out to them.

use serde_json::{Value, json};

use super::kind;
use super::validate_ips::cluster_ips;
use crate::builtin::checks::parse_ip;
use crate::field::{FieldError, FieldErrors};
use crate::value;

const IPS: &str = "spec.clusterIPs";
const FAMILIES: &str = "spec.ipFamilies";
const POLICY: &str = "spec.ipFamilyPolicy";

/// Fills in policy and families, or says why it cannot.
pub(super) fn init_families(service: &mut Value, old: Option<&Value>) -> FieldErrors {
    if kind(service) == "ExternalName" {
        return Vec::new();
    }
    let selected = value::map(service, "spec.selector").is_some_and(|s| !s.is_empty());
    let selfmade = value::text(service, "spec.clusterIP") == "None" && !selected;
    if !value::has(service, POLICY) {
        let policy = match old.map(|o| value::text(o, POLICY)) {
            Some(policy) if !policy.is_empty() => policy.to_owned(),
            _ if selfmade => "RequireDualStack".to_owned(),
            _ => "SingleStack".to_owned(),
        };
        value::put(service, POLICY, policy);
    }
    let mut errors = cluster_ips(service, old);
    if !errors.is_empty() {
        return errors;
    }
    errors.extend(single_stack(service));
    errors.extend(families_of_ips(service));
    if !errors.is_empty() {
        return errors;
    }
    if selfmade {
        claim_both(service);
        return errors;
    }
    errors.extend(unconfigured(service));
    if errors.is_empty() && value::items(service, FAMILIES).is_empty() {
        value::put(service, FAMILIES, json!(["IPv4"]));
    }
    errors
}

fn single_stack(service: &Value) -> FieldErrors {
    let policy: Value = value::text(service, POLICY).into();
    if policy != "SingleStack" {
        return Vec::new();
    }
    [(IPS, "cluster IPs"), (FAMILIES, "IP families")]
        .into_iter()
        .filter(|(list, _)| value::items(service, list).len() == 2)
        .map(|(_, what)| {
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            FieldError::invalid(POLICY, &policy, detail)
        })
        .collect()
}

fn claim_both(service: &mut Value) {
    let mut families = value::items(service, FAMILIES).to_vec();
    if families.is_empty() {
        families.push("IPv4".into());
    }
    if families.len() < 2 && value::text(service, POLICY) != "SingleStack" {
        let is_v4 = families.first().is_some_and(|f| f == "IPv4");
        families.push(if is_v4 { "IPv6" } else { "IPv4" }.into());
    }
    value::put(service, FAMILIES, families);
}

fn unconfigured(service: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let policy: Value = value::text(service, POLICY).into();
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(POLICY, &policy, detail));
    }
    for (i, family) in value::items(service, FAMILIES).iter().enumerate() {
        if family != "IPv4" {
            let path = format!("{FAMILIES}[{i}]");
            let detail = "not configured on this cluster";
            errors.push(FieldError::invalid(path, family, detail));
        }
    }
    errors
}

/// The families follow the cluster IPs where a client names only these.
fn families_of_ips(service: &mut Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut families = value::items(service, FAMILIES).to_vec();
    for (i, ip) in value::items(service, IPS).iter().enumerate() {
        let text = ip.as_str().unwrap_or_default();
        if text == "None" {
            break;
        }
        if i < families.len() {
            continue;
        }
        if parse_ip(text).is_some_and(|ip| ip.is_ipv4()) {
            families.push("IPv4".into());
        } else {
            let path = format!("{IPS}[{i}]");
            let shown = value::at(service, IPS).unwrap_or(&Value::Null);
            let detail = "IPv6 is not configured on this cluster";
            errors.push(FieldError::invalid(path, shown, detail));
        }
    }
    if !families.is_empty() {
        value::put(service, FAMILIES, families);
    }
    errors
}
