//! Who may do what: the audit says which rule allowed it, and what was refused.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;

use super::stage::{ALICE, client, cluster, map, maps, refused, typed, virtually};

#[test]
fn the_audit_names_rules_and_refusals() {
    virtually(async {
        let cluster = cluster();
        let admin = client(&cluster, "test");
        let roles: Api<Role> = Api::default_namespaced(admin.clone());
        let role = typed(json!({"metadata": {"name": "reader"}, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["update"]}
        ]}));
        roles.create(&PostParams::default(), &role).await.unwrap();
        let bindings: Api<RoleBinding> = Api::default_namespaced(admin.clone());
        let binding = typed(json!({
            "metadata": {"name": "devs"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"}]
        }));
        bindings
            .create(&PostParams::default(), &binding)
            .await
            .unwrap();
        maps(&admin)
            .create(&PostParams::default(), &map("mine", "1"))
            .await
            .unwrap();
        assert!(
            cluster.audit().allowed().is_empty(),
            "system:masters needs no rule"
        );

        let alice = Client::new(cluster.service(ALICE), "default");
        let found = maps(&alice).get("mine").await.unwrap();
        maps(&alice).list(&ListParams::default()).await.unwrap();
        maps(&alice)
            .replace("mine", &PostParams::default(), &found)
            .await
            .unwrap();
        let refusal = refused(
            maps(&alice)
                .create(&PostParams::default(), &map("b", "1"))
                .await,
        );
        assert_eq!(refusal.code, 403);
        assert_eq!(
            refusal.message,
            "configmaps is forbidden: User \"alice\" cannot create resource \"configmaps\" in API group \"\" in the \
             namespace \"default\""
        );
        let pods: Api<Pod> = Api::all(alice);
        assert_eq!(refused(pods.list(&ListParams::default()).await).code, 403);

        let audit = cluster.audit();
        assert_eq!(audit.uses("Role default/reader", 0), 2);
        assert_eq!(audit.uses("Role default/reader", 1), 1);
        let (rule, uses) = audit.allowed().into_iter().next().unwrap();
        assert_eq!(rule.binding, "RoleBinding default/devs");
        let verbs: Vec<String> = uses.into_keys().map(|what| what.verb).collect();
        assert_eq!(verbs, ["get", "list"]);
        let denied: Vec<_> = audit.denied();
        let told: Vec<_> = denied
            .iter()
            .map(|d| (&*d.user, &*d.what.verb, &*d.what.resource, &*d.namespace))
            .collect();
        assert_eq!(
            told,
            [
                ("alice", "create", "configmaps", "default"),
                ("alice", "list", "pods", "")
            ]
        );
    });
}

#[test]
fn strangers_and_the_nameless_are_turned_away() {
    virtually(async {
        let cluster = cluster();
        let stranger = Client::new(cluster.service("no-such-token"), "default");
        let refusal = refused(maps(&stranger).list(&ListParams::default()).await);
        assert_eq!((refusal.code, &*refusal.reason), (401, "Unauthorized"));
        let nameless = slipway_apiserver::server::InProcessService::new(cluster.clone(), None);
        let refusal = refused(
            maps(&Client::new(nameless, "default"))
                .list(&ListParams::default())
                .await,
        );
        assert_eq!(refusal.code, 403);
        assert!(
            refusal.message.contains("system:anonymous"),
            "{}",
            refusal.message
        );
        let record = cluster.trace().records();
        assert_eq!(
            (&*record[0].user, &*record[1].user),
            ("", "system:anonymous")
        );
    });
}
