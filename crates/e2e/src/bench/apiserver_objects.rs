//! The objects of the bench. Where `NAME` stands, each has its own name.

use serde_json::json;

/// Stands for the name.
const NAME: &str = "NAME";

/// An object with a place for its name.
pub(crate) struct Template(Vec<String>);

impl Template {
    fn new(text: &str) -> Self {
        Self(text.split(NAME).map(str::to_owned).collect())
    }

    /// The object of this name.
    pub(crate) fn named(&self, name: &str) -> String {
        self.0.join(name)
    }
}

/// A small one, as leases and markers are.
pub(crate) fn small() -> Template {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME},
        "data": {"key": "value"},
    });
    Template::new(&object.to_string())
}

/// A configuration of 1.2 KB as it is sent, which differs from object to object.
pub(crate) fn config_map() -> Template {
    let line = |n: usize| {
        format!(
            "server.{n}.address=NAME-{n}.internal.example.com:8080 # replica {n} of the service\n"
        )
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "labels": {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "bench", "team": "storage"},
            "annotations": {"example.com/owner": "storage@example.com"},
        },
        "data": {
            "application.properties": (0..10).map(line).collect::<String>(),
            "LOG_LEVEL": "info",
            "REGION": "eu-north-1",
        },
    });
    Template::new(&object.to_string())
}

/// A Pod as a Deployment makes it: two containers with probes, resources, variables and volumes.
pub(crate) fn pod() -> Template {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}, "periodSeconds": 10, "timeoutSeconds": 2});
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example.com/team/{name}:v1.27.3"),
            "args": ["--config=/etc/app/application.properties", "--log-format=json"],
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "GOMAXPROCS", "value": "2"},
            ],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "livenessProbe": probe("/healthz"),
            "readinessProbe": probe("/ready"),
            "securityContext": {"allowPrivilegeEscalation": false, "runAsNonRoot": true},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/app", "readOnly": true}],
        })
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": NAME,
            "labels": {"app": "web", "pod-template-hash": "6d4cf56db6"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d4cf56db6",
                "uid": "5f9d7f5e-3b2a-4b5e-9d5c-1f2e3d4c5b6a", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "containers": [container("app"), container("proxy")],
            "volumes": [{"name": "config", "configMap": {"name": NAME}}],
            "terminationGracePeriodSeconds": 30,
        },
    });
    Template::new(&object.to_string())
}
