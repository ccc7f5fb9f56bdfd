//! What a capability may do to the API: the one table that roles are made from, and that simulations run under.

use serde_json::{Value, json};

/// Where a permission is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In every watched namespace.
    Watched,
    /// In the operator's own namespace only.
    Own,
    /// On objects outside of namespaces.
    Cluster,
}

/// One line of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Only objects of these names; empty for all.
    pub names: &'static [&'static str],
    /// Where.
    pub scope: Scope,
    /// What for, in the words of the reference page.
    pub why: &'static str,
}

impl Permission {
    /// One that is needed in every watched namespace, for objects of whatever name.
    pub const fn watched(
        group: &'static str,
        resource: &'static str,
        verbs: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self {
            group,
            resource,
            verbs,
            names: &[],
            scope: Scope::Watched,
            why,
        }
    }
}

/// Whom roles are for, and what they are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grantee<'a> {
    /// The name of the roles and their bindings.
    pub role: &'a str,
    /// The operator's own namespace.
    pub namespace: &'a str,
    /// Its service account there.
    pub account: &'a str,
    /// The watched namespaces; empty for the whole cluster.
    pub watched: &'a [String],
}

/// The roles that grant exactly these permissions, and their bindings. One rule for each permission, in their order, so
/// that an audit by rule is an audit by permission.
pub fn roles(permissions: &[Permission], to: &Grantee<'_>) -> Vec<Value> {
    let of = |scope: Scope| -> Vec<Value> {
        permissions
            .iter()
            .filter(|permission| permission.scope == scope)
            .map(rule)
            .collect()
    };
    let mut all = Vec::new();
    let watched = of(Scope::Watched);
    if !watched.is_empty() && to.watched.is_empty() {
        all.extend(granted("ClusterRole", to.role, "", &watched, to));
    } else if !watched.is_empty() {
        for namespace in to.watched {
            all.extend(granted("Role", to.role, namespace, &watched, to));
        }
    }
    let own = of(Scope::Own);
    if !own.is_empty() {
        let name = format!("{}-own", to.role);
        all.extend(granted("Role", &name, to.namespace, &own, to));
    }
    let cluster = of(Scope::Cluster);
    if !cluster.is_empty() {
        // Named after the namespace too: operators of several namespaces share the cluster.
        let name = format!("{}-{}", to.role, to.namespace);
        all.extend(granted("ClusterRole", &name, "", &cluster, to));
    }
    all
}

fn rule(permission: &Permission) -> Value {
    let mut rule = json!({
        "apiGroups": [permission.group],
        "resources": [permission.resource],
        "verbs": permission.verbs,
    });
    if let (Some(fields), false) = (rule.as_object_mut(), permission.names.is_empty()) {
        fields.insert("resourceNames".to_owned(), json!(permission.names));
    }
    rule
}

/// A role and its binding.
fn granted(
    kind: &str,
    name: &str,
    namespace: &str,
    rules: &[Value],
    to: &Grantee<'_>,
) -> [Value; 2] {
    const API: &str = "rbac.authorization.k8s.io";
    let metadata = if namespace.is_empty() {
        json!({"name": name})
    } else {
        json!({"name": name, "namespace": namespace})
    };
    let version = format!("{API}/v1");
    [
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": version,
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": API, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": to.account, "namespace": to.namespace}],
        }),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    const TABLE: &[Permission] = &[
        Permission {
            group: "apps",
            resource: "deployments",
            verbs: &["list", "watch", "patch"],
            names: &[],
            scope: Scope::Watched,
            why: "to restart them",
        },
        Permission {
            group: "coordination.k8s.io",
            resource: "leases",
            verbs: &["get", "update"],
            names: &["lease"],
            scope: Scope::Own,
            why: "to elect a leader",
        },
    ];

    fn grantee(watched: &[String]) -> Grantee<'_> {
        Grantee {
            role: "slipway",
            namespace: "rollout",
            account: "controller-manager",
            watched,
        }
    }

    #[test]
    fn a_cluster_wide_operator_gets_a_cluster_role_and_a_role_at_home() {
        let made = roles(TABLE, &grantee(&[]));
        let kinds: Vec<&str> = made.iter().filter_map(|o| o["kind"].as_str()).collect();
        assert_eq!(
            kinds,
            ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
        );
        assert_eq!(
            made[0]["rules"][0]["verbs"],
            json!(["list", "watch", "patch"])
        );
        assert!(made[0]["rules"][0].get("resourceNames").is_none());
        assert_eq!(made[2]["metadata"]["namespace"], "rollout");
        assert_eq!(made[2]["rules"][0]["resourceNames"], json!(["lease"]));
        assert_eq!(made[3]["roleRef"]["name"], made[2]["metadata"]["name"]);
    }

    #[test]
    fn an_operator_of_two_namespaces_gets_no_cluster_role() {
        let watched = ["a".to_owned(), "b".to_owned()];
        let made = roles(TABLE, &grantee(&watched));
        assert!(made.iter().all(|o| o["kind"] != "ClusterRole"));
        assert_eq!(made.len(), 6);
    }
}
