//! What the server fills into a pod, a pod template or a volume claim when it reads one.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::amount;
use crate::value::{at_mut, flag, has, integer, items_mut, put, put_default, take, text};

const GRACE: &str = "terminationGracePeriodSeconds";

/// Fills in a pod: what only pods get, then what every pod spec gets.
pub fn pod(object: &mut Value) {
    let Some(spec) = at_mut(object, "spec") else {
        return;
    };
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            requests_from_limits(container);
        }
    }
    pod_requests(spec);
    if integer(spec, GRACE).is_some_and(|grace| grace < 0) {
        put(spec, GRACE, 1);
    }
    put_default(spec, "enableServiceLinks", true);
    if flag(spec, "hostNetwork") {
        for list in ["containers", "initContainers"] {
            for container in items_mut(spec, list) {
                host_ports(container);
            }
        }
    }
    pod_spec(spec);
}

/// Fills in a pod template.
pub fn template(template: &mut Value) {
    if let Some(spec) = crate::value::slot(template, "spec") {
        if spec.is_null() {
            *spec = json!({});
        }
        pod_spec(spec);
    }
}

/// Fills in a pod spec wherever it stands.
pub fn pod_spec(spec: &mut Value) {
    // The old name of the field follows the new one, and fills in for it.
    let account = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        account => account,
    };
    if !account.is_empty() {
        let account = account.to_owned();
        put(spec, "serviceAccountName", account.clone());
        put(spec, "serviceAccount", account);
    }
    for volume in items_mut(spec, "volumes") {
        default_volume(volume);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in items_mut(spec, list) {
            default_container(container);
        }
    }
    default_text(spec, "dnsPolicy", "ClusterFirst");
    default_text(spec, "restartPolicy", "Always");
    put_default(spec, "securityContext", json!({}));
    put_default(spec, GRACE, 30);
    default_text(spec, "schedulerName", "default-scheduler");
    amount::round_up_list(spec, "overhead");
    take(spec, "schedulingGroup");
}

/// Fills in the spec of a persistent volume claim.
pub fn claim_spec(spec: &mut Value) {
    put_default(spec, "volumeMode", "Filesystem");
    amount::round_up_list(spec, "resources.limits");
    amount::round_up_list(spec, "resources.requests");
}

fn default_text(object: &mut Value, path: &str, value: &str) {
    if text(object, path).is_empty() {
        put(object, path, value);
    }
}

fn default_number(object: &mut Value, path: &str, value: i64) {
    if integer(object, path).unwrap_or(0) == 0 {
        put(object, path, value);
    }
}

fn requests_from_limits(container: &mut Value) {
    let Some(limits) = crate::value::map(container, "resources.limits").cloned() else {
        return;
    };
    for (name, limit) in limits {
        let requests = crate::value::slot(container, "resources.requests");
        let Some(requests) = requests else { return };
        if requests.is_null() {
            *requests = json!({});
        }
        if let Some(map) = requests.as_object_mut() {
            map.entry(name).or_insert(limit);
        }
    }
}

/// Pod-level requests come from the containers' sums, or from the pod-level limits.
fn pod_requests(spec: &mut Value) {
    if crate::value::map(spec, "resources.limits").is_none_or(serde_json::Map::is_empty) {
        return;
    }
    let sums = amount::container_requests(spec);
    let limits = crate::value::map(spec, "resources.limits")
        .cloned()
        .unwrap_or_default();
    let mut requests = crate::value::map(spec, "resources.requests")
        .cloned()
        .unwrap_or_default();
    for (name, sum) in sums {
        if name == "cpu" || name == "memory" {
            let sum = Value::String(sum.to_string());
            requests.entry(name).or_insert(sum);
        }
    }
    for (name, limit) in limits {
        if name == "cpu" || name == "memory" || name.starts_with("hugepages-") {
            requests.entry(name).or_insert(limit);
        }
    }
    if !requests.is_empty() {
        put(spec, "resources.requests", Value::Object(requests));
    }
}

fn host_ports(container: &mut Value) {
    for port in items_mut(container, "ports") {
        if integer(port, "hostPort").unwrap_or(0) == 0
            && let Some(number) = integer(port, "containerPort")
            && number != 0
        {
            put(port, "hostPort", number);
        }
    }
}

fn default_container(container: &mut Value) {
    if text(container, "imagePullPolicy").is_empty() {
        let policy = pull_policy(text(container, "image"));
        put(container, "imagePullPolicy", policy);
    }
    default_text(container, "terminationMessagePath", "/dev/termination-log");
    default_text(container, "terminationMessagePolicy", "File");
    for port in items_mut(container, "ports") {
        default_text(port, "protocol", "TCP");
    }
    for variable in items_mut(container, "env") {
        if has(variable, "valueFrom.fieldRef") {
            default_text(variable, "valueFrom.fieldRef.apiVersion", "v1");
        }
        if has(variable, "valueFrom.fileKeyRef") {
            put_default(variable, "valueFrom.fileKeyRef.optional", false);
        }
    }
    amount::round_up_list(container, "resources.limits");
    amount::round_up_list(container, "resources.requests");
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = at_mut(container, name) {
            default_probe(probe);
        }
    }
    // Behind gates that are closed.
    take(container, "lifecycle.stopSignal");
    for hook in ["lifecycle.postStart.httpGet", "lifecycle.preStop.httpGet"] {
        if let Some(get) = at_mut(container, hook) {
            default_http_get(get);
        }
    }
}

fn default_probe(probe: &mut Value) {
    if !probe.is_object() {
        return;
    }
    default_number(probe, "timeoutSeconds", 1);
    default_number(probe, "periodSeconds", 10);
    default_number(probe, "successThreshold", 1);
    default_number(probe, "failureThreshold", 3);
    if let Some(get) = at_mut(probe, "httpGet") {
        default_http_get(get);
    }
    if has(probe, "grpc") {
        put_default(probe, "grpc.service", "");
    }
}

fn default_http_get(get: &mut Value) {
    if get.is_object() {
        default_text(get, "path", "/");
        default_text(get, "scheme", "HTTP");
    }
}

fn default_volume(volume: &mut Value) {
    let bare = volume
        .as_object()
        .is_some_and(|v| v.iter().all(|(k, v)| k == "name" || v.is_null()));
    if bare {
        put(volume, "emptyDir", json!({}));
        return;
    }
    if has(volume, "hostPath") {
        put_default(volume, "hostPath.type", "");
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if has(volume, source) {
            put_default(volume, &format!("{source}.defaultMode"), 0o644);
        }
    }
    for file in items_mut(volume, "downwardAPI.items") {
        default_field_reference(file);
    }
    for source in items_mut(volume, "projected.sources") {
        for file in items_mut(source, "downwardAPI.items") {
            default_field_reference(file);
        }
        if has(source, "serviceAccountToken") {
            put_default(source, "serviceAccountToken.expirationSeconds", 3600);
        }
    }
    if has(volume, "image") && text(volume, "image.pullPolicy").is_empty() {
        let policy = pull_policy(text(volume, "image.reference"));
        put(volume, "image.pullPolicy", policy);
    }
    if let Some(claim) = at_mut(volume, "ephemeral.volumeClaimTemplate.spec") {
        claim_spec(claim);
    }
    default_legacy_volume(volume);
}

fn default_field_reference(file: &mut Value) {
    if has(file, "fieldRef") {
        default_text(file, "fieldRef.apiVersion", "v1");
    }
}

/// Volume kinds whose drivers are gone still get their defaults.
fn default_legacy_volume(volume: &mut Value) {
    if has(volume, "iscsi") {
        default_text(volume, "iscsi.iscsiInterface", "default");
    }
    if has(volume, "rbd") {
        default_text(volume, "rbd.pool", "rbd");
        default_text(volume, "rbd.user", "admin");
        default_text(volume, "rbd.keyring", "/etc/ceph/keyring");
    }
    if has(volume, "azureDisk") {
        put_default(volume, "azureDisk.cachingMode", "ReadWrite");
        put_default(volume, "azureDisk.fsType", "ext4");
        put_default(volume, "azureDisk.readOnly", false);
        put_default(volume, "azureDisk.kind", "Shared");
    }
    if has(volume, "scaleIO") {
        default_text(volume, "scaleIO.storageMode", "ThinProvisioned");
        default_text(volume, "scaleIO.fsType", "xfs");
    }
}

static REPOSITORY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(?::[0-9]+)?/)?[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$",
    )
    .ok()
});

/// `Always` for images whose tag is `latest` or missing, else `IfNotPresent`.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    let (repository, tag) = match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (name, None),
    };
    let hexadecimal = repository.len() == 64
        && repository
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let valid = !hexadecimal && REPOSITORY.as_ref().is_some_and(|r| r.is_match(repository));
    let latest = match tag {
        Some(tag) => tag == "latest",
        None => !digest,
    };
    if valid && latest {
        "Always"
    } else {
        "IfNotPresent"
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn pull_policy_follows_the_tag() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("url:5000/repo", "Always"),
            ("url:5000/repo:tag", "IfNotPresent"),
            ("repo@sha256:e3b0", "IfNotPresent"),
            ("repo:latest@sha256:e3b0", "Always"),
            ("ROOT", "IfNotPresent"),
            ("http://root", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn a_pod_gets_what_the_real_server_gives() {
        let mut pod = json!({"spec": {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "100m"}}, "readinessProbe": {"httpGet": {"port": 80}}}],
            "volumes": [{"name": "v"}, {"name": "c", "configMap": {"name": "x"}}]}});
        super::pod(&mut pod);
        let once = pod.clone();
        super::pod(&mut pod);
        assert_eq!(once, pod);
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["imagePullPolicy"], "Always");
        assert_eq!(container["resources"]["requests"], json!({"cpu": "100m"}));
        assert_eq!(container["ports"][0]["protocol"], "TCP");
        assert_eq!(
            container["readinessProbe"],
            json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})
        );
        assert_eq!(pod["spec"]["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(pod["spec"]["volumes"][1]["configMap"]["defaultMode"], 420);
        assert_eq!(pod["spec"]["enableServiceLinks"], true);
        assert_eq!(pod["spec"]["securityContext"], json!({}));
    }
}
