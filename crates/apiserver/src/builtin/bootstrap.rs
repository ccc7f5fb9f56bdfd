//! The objects that a fresh cluster has, and those that controllers put into every namespace.
//!
//! The roles are those that people and `kubectl auth can-i` meet. The roles of single controllers
//! (`system:controller:…`) are left out: a cluster here has no such controllers, and has to stay small.

use serde_json::{Value, json};

use super::rbac;
use crate::value;

/// The address at which the service `default/kubernetes` is answered, unless the caller knows better.
pub const ENDPOINT: (&str, u16) = ("192.0.2.1", 6443);

const RBAC: &str = include_str!("bootstrap/rbac.json");

/// The annotation and the label of roles that the server brings.
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";

/// All objects of a fresh cluster: group, kind and object, in the order in which they can be created.
pub fn objects() -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    let mut add = |group: &str, kind: &str, mut object: Value| {
        let version = if group.is_empty() {
            "v1".to_owned()
        } else {
            format!("{group}/v1")
        };
        value::put(&mut object, "apiVersion", version);
        value::put(&mut object, "kind", kind);
        all.push((group.to_owned(), kind.to_owned(), object));
    };
    for name in NAMESPACES {
        add("", "Namespace", json!({"metadata": {"name": name}}));
    }
    for name in NAMESPACES {
        add("", "ServiceAccount", service_account(name));
    }
    for (name, number, description) in PRIORITIES {
        let class = json!({
            "metadata": {"name": name}, "value": number, "description": description
        });
        add("scheduling.k8s.io", "PriorityClass", class);
    }
    for object in roles() {
        let kind = value::text(&object, "kind").to_owned();
        add("rbac.authorization.k8s.io", &kind, object);
    }
    let (ip, port) = ENDPOINT;
    add("", "Service", kubernetes_service(port));
    add("", "Endpoints", kubernetes_endpoints(ip, port));
    add(
        "discovery.k8s.io",
        "EndpointSlice",
        kubernetes_endpoint_slice(ip, port),
    );
    all
}

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

const PRIORITIES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

/// The service account that a controller puts into every namespace, and that pods without another one get.
pub fn service_account(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}})
}

/// The config map with the CA of the server (PEM) that a controller puts into every namespace.
pub fn root_ca(namespace: &str, ca: &str) -> Value {
    let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
                       such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                       distributions of Kubernetes clusters.";
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "kube-root-ca.crt",
            "namespace": namespace,
            "annotations": {"kubernetes.io/description": description}
        },
        "data": {"ca.crt": ca}
    })
}

fn kubernetes_service(port: u16) -> Value {
    json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"}
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
        }
    })
}

fn kubernetes_endpoints(ip: &str, port: u16) -> Value {
    json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}
        },
        "subsets": [{
            "addresses": [{"ip": ip}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}]
        }]
    })
}

fn kubernetes_endpoint_slice(ip: &str, port: u16) -> Value {
    json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"}
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}]
    })
}

/// Roles and bindings; the aggregated ones hold their rules, as if a controller had been there.
fn roles() -> Vec<Value> {
    let mut all: Vec<Value> = serde_json::from_str(RBAC).unwrap_or_default();
    for object in &mut all {
        for (map, key, text) in [
            ("metadata.annotations", AUTOUPDATE, "true"),
            ("metadata.labels", BOOTSTRAPPING, "rbac-defaults"),
        ] {
            if let Some(entries) = value::slot(object, map) {
                if entries.is_null() {
                    *entries = json!({});
                }
                if let Some(entries) = entries.as_object_mut() {
                    entries.insert(key.to_owned(), text.into());
                }
            }
        }
    }
    // Each of these takes in the one before it.
    for name in ["view", "edit", "admin"] {
        let is_it =
            |o: &Value| value::text(o, "metadata.name") == name && value::has(o, "aggregationRule");
        let Some(rules) = all
            .iter()
            .find(|o| is_it(o))
            .map(|role| rbac::aggregate(role, &all))
        else {
            continue;
        };
        for role in all.iter_mut().filter(|o| is_it(o)) {
            value::put(role, "rules", rules.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;
    use crate::builtin;
    use crate::resource::Context;

    fn find<'a>(all: &'a [(String, String, Value)], kind: &str, name: &str) -> &'a Value {
        let hit = all
            .iter()
            .find(|(_, k, o)| k == kind && o["metadata"]["name"] == name);
        &hit.unwrap().2
    }

    #[test]
    fn everything_is_valid_by_its_own_rules() {
        let cx = Context {
            version: "v1",
            now: jiff::Timestamp::UNIX_EPOCH,
            user: None,
        };
        let resources = builtin::resources();
        for (group, kind, mut object) in objects() {
            let resource = resources
                .iter()
                .find(|r| r.names.group == group && r.names.kind == kind)
                .unwrap();
            assert_eq!(
                resource.namespaced,
                value::has(&object, "metadata.namespace"),
                "{kind}"
            );
            resource.strategy.default(&mut object, &cx);
            resource.strategy.prepare_create(&mut object, &cx);
            let errors = resource.strategy.validate(&object, &cx);
            assert!(
                errors.is_empty(),
                "{kind} {}: {errors:?}",
                object["metadata"]["name"]
            );
        }
    }

    #[test]
    fn admin_holds_what_edit_and_view_hold() {
        let all = objects();
        let count = |name| {
            find(&all, "ClusterRole", name)["rules"]
                .as_array()
                .unwrap()
                .len()
        };
        assert_eq!((count("view"), count("edit"), count("admin")), (12, 27, 29));
    }

    #[test]
    fn the_api_has_a_service() {
        let all = objects();
        assert_eq!(
            find(&all, "Service", "kubernetes")["spec"]["clusterIP"],
            "10.0.0.1"
        );
        assert_eq!(
            find(&all, "Endpoints", "kubernetes")["subsets"][0]["ports"][0]["port"],
            ENDPOINT.1
        );
    }

    #[test]
    fn it_stays_small() {
        let bytes: usize = objects().iter().map(|(_, _, o)| o.to_string().len()).sum();
        assert!(bytes < 40_000, "{bytes}");
    }
}
