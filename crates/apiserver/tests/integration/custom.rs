//! Custom resources, discovery and objects without types, through kube.

use std::time::Duration;

use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, ResourceExt,
};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Discovery, Scope, verbs};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Client, CustomResource, CustomResourceExt};
use serde_json::{Value, json};

use super::stage::{client, cluster, refused, typed, virtually};

/// A ship.
#[derive(
    CustomResource,
    Debug,
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Ship",
    namespaced,
    status = "ShipStatus",
    shortname = "sh"
)]
#[kube(scale(
    spec_replicas_path = ".spec.masts",
    status_replicas_path = ".status.raised"
))]
#[kube(printcolumn(name = "Masts", type_ = "integer", json_path = ".spec.masts"))]
pub(crate) struct ShipSpec {
    #[schemars(range(min = 1, max = 7))]
    masts: i32,
    #[serde(default = "flag")]
    flag: String,
}

/// How it goes.
#[derive(
    Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub(crate) struct ShipStatus {
    raised: Option<i32>,
}

fn flag() -> String {
    "white".to_owned()
}

async fn launch(client: &Client) -> Api<Ship> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("test").force();
    definitions
        .patch("ships.example.com", &apply, &Patch::Apply(Ship::crd()))
        .await
        .unwrap();
    let established = await_condition(
        definitions,
        "ships.example.com",
        conditions::is_crd_established(),
    );
    tokio::time::timeout(Duration::from_secs(5), established)
        .await
        .unwrap()
        .unwrap();
    Api::default_namespaced(client.clone())
}

#[test]
fn a_derived_definition_is_installed_and_used() {
    virtually(async {
        let ships = launch(&client(&cluster(), "test")).await;
        let spec = |masts| ShipSpec {
            masts,
            flag: flag(),
        };
        let made = ships
            .create(&PostParams::default(), &Ship::new("a", spec(3)))
            .await
            .unwrap();
        assert_eq!(made.metadata.generation, Some(1));
        let bad = refused(
            ships
                .create(&PostParams::default(), &Ship::new("b", spec(8)))
                .await,
        );
        assert_eq!((bad.code, &*bad.reason), (422, "Invalid"));
        assert_eq!(bad.details.unwrap().causes[0].field, "spec.masts");
        let bare = json!({"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "c"}, "spec": {"masts": 1}});
        let bare = ships
            .patch("c", &PatchParams::apply("test"), &Patch::Apply(bare))
            .await
            .unwrap();
        assert_eq!(bare.spec.flag, "white", "filled in by the schema's default");
        let status = Patch::Merge(json!({"status": {"raised": 2}, "spec": {"masts": 6}}));
        let changed = ships
            .patch_status("a", &PatchParams::default(), &status)
            .await
            .unwrap();
        assert_eq!(
            (changed.spec.masts, changed.status.unwrap().raised),
            (3, Some(2))
        );
        let scale = ships.get_scale("a").await.unwrap();
        assert_eq!(
            (scale.spec.unwrap().replicas, scale.status.unwrap().replicas),
            (Some(3), 2)
        );
    });
}

#[test]
fn the_objects_go_with_their_definition() {
    virtually(async {
        let client = client(&cluster(), "test");
        let ships = launch(&client).await;
        let ship = Ship::new(
            "a",
            ShipSpec {
                masts: 1,
                flag: flag(),
            },
        );
        ships.create(&PostParams::default(), &ship).await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(client);
        definitions
            .delete("ships.example.com", &DeleteParams::default())
            .await
            .unwrap();
        assert_eq!(refused(ships.list(&ListParams::default()).await).code, 404);
        assert!(
            definitions
                .get_opt("ships.example.com")
                .await
                .unwrap()
                .is_none()
        );
    });
}

#[test]
fn discovery_shows_everything_in_both_forms() {
    virtually(async {
        let client = client(&cluster(), "test");
        launch(&client).await;
        let classic = Discovery::new(client.clone()).run().await.unwrap();
        let aggregated = Discovery::new(client.clone())
            .run_aggregated()
            .await
            .unwrap();
        for discovery in [classic, aggregated] {
            let gvk = GroupVersionKind::gvk("example.com", "v1", "Ship");
            let (resource, capabilities) = discovery.resolve_gvk(&gvk).unwrap();
            assert_eq!(
                (&*resource.plural, &capabilities.scope),
                ("ships", &Scope::Namespaced)
            );
            assert!(capabilities.supports_operation(verbs::WATCH));
            assert_eq!(capabilities.subresources.len(), 2);
            for group in [
                "apps",
                "batch",
                "policy",
                "rbac.authorization.k8s.io",
                "coordination.k8s.io",
            ] {
                assert!(discovery.has_group(group), "{group}");
            }
        }
        let apps = discovery::group(&client, "apps").await.unwrap();
        assert_eq!(apps.preferred_version(), Some("v1"));
    });
}

#[test]
fn objects_without_types_work() {
    virtually(async {
        let client = client(&cluster(), "test");
        launch(&client).await;
        let gvk = GroupVersionKind::gvk("example.com", "v1", "Ship");
        let (resource, _) = discovery::pinned_kind(&client, &gvk).await.unwrap();
        let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
        let object =
            DynamicObject::new("a", &resource).data(json!({"spec": {"masts": 2}, "extra": true}));
        let made = api.create(&PostParams::default(), &object).await.unwrap();
        assert_eq!(
            made.data,
            json!({"spec": {"masts": 2, "flag": "white"}}),
            "pruned and defaulted"
        );
        let shown = api.get_metadata("a").await.unwrap();
        assert_eq!(shown.types.as_ref().unwrap().kind, "PartialObjectMetadata");
        assert_eq!(shown.uid(), made.uid());
    });
}

#[test]
fn tables_have_the_columns_of_the_definition() {
    virtually(async {
        let client = client(&cluster(), "test");
        let ships = launch(&client).await;
        let ship: Ship = typed(json!({"apiVersion": "example.com/v1", "kind": "Ship",
            "metadata": {"name": "a"}, "spec": {"masts": 2}}));
        ships.create(&PostParams::default(), &ship).await.unwrap();
        let request = Request::get("/apis/example.com/v1/namespaces/default/ships")
            .header(
                "accept",
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            )
            .body(Vec::new())
            .unwrap();
        let table: Value = client.request(request).await.unwrap();
        assert_eq!(table["kind"], "Table");
        assert_eq!(table["columnDefinitions"][1]["name"], "Masts");
        assert_eq!(table["rows"][0]["cells"], json!(["a", 2]));
    });
}
