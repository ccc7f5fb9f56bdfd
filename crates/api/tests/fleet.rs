//! The fleet's kinds as people write them, on an API server: what is accepted, what is refused, and what it says then.
//!
//! `fleet/designs.yaml` has every snippet of the two designs, `fleet/edges.yaml` what else people get wrong. Each is tried as
//! kubectl sends it (unknown fields are errors) and as other clients do (unknown fields are dropped).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

use std::path::Path;
use std::sync::Arc;

use http::Request;
use serde::Deserialize;
use serde_json::{Value, json};
use slipway_apiserver::cluster::Config;

const MODULES: &str = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/default/modules";
const REMOTES: &str = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/default/remoteassemblages";

/// One object, and what becomes of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Snippet {
    name: String,
    object: Value,
    /// What kubectl is told; nothing where it is accepted.
    refused: Option<String>,
    /// What clients are told that do not ask for unknown fields to be errors. Absent: the same. Empty: it is accepted.
    otherwise: Option<String>,
}

/// An API server with the fleet's kinds.
struct Api(kube::Client);

impl Api {
    async fn new() -> Self {
        let config = Config::seeded("test", 1, Arc::default()).with_admin("token");
        let api = Self(kube::Client::new(
            config.build().service("token"),
            "default",
        ));
        for definition in slipway_api::fleet::definitions() {
            let definition = serde_json::to_value(definition).unwrap();
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            api.send("POST", path, &definition).await.unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        api
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let kind = match method {
            "PATCH" if path.contains("fieldManager") => "application/apply-patch+yaml",
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", kind);
        let body = request.body(serde_json::to_vec(body).unwrap()).unwrap();
        let answer = self.0.request::<Value>(body).await;
        answer.map_err(|error| error.to_string())
    }

    /// Creates an object without keeping it.
    async fn tried(&self, object: &Value, is_strict: bool) -> Result<Value, String> {
        let kind = object["kind"].as_str().unwrap().to_lowercase();
        let validation = if is_strict { "Strict" } else { "Ignore" };
        let path = format!(
            "/apis/fleet.squaremo.dev/v1alpha1/namespaces/default/{kind}s?dryRun=All&fieldValidation={validation}"
        );
        self.send("POST", &path, object).await
    }
}

fn virtually<F: Future>(work: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(work)
}

fn check(told: &Result<Value, String>, refused: Option<&str>, name: &str) {
    match (told, refused) {
        (Ok(_), None) => {}
        (Err(message), Some(text)) if message.contains(text) => {}
        (Ok(_), Some(text)) => panic!("{name}: accepted, and not refused with {text:?}"),
        (Err(message), None) => panic!("{name}: refused with {message}"),
        (Err(message), Some(text)) => panic!("{name}: {message}\ndoes not say {text:?}"),
    }
}

fn snippets(file: &str) -> Vec<Snippet> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fleet")
        .join(file);
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn are_as_the_table_says(file: &str) {
    virtually(async {
        let api = Api::new().await;
        for snippet in snippets(file) {
            let refused = snippet.refused.as_deref();
            let told = api.tried(&snippet.object, true).await;
            check(&told, refused, &snippet.name);
            let otherwise = snippet.otherwise.as_deref().or(refused);
            let told = api.tried(&snippet.object, false).await;
            check(
                &told,
                otherwise.filter(|text| !text.is_empty()),
                &snippet.name,
            );
        }
    });
}

#[test]
fn every_snippet_of_the_designs_is_accepted_or_refused_as_the_table_says() {
    are_as_the_table_says("designs.yaml");
}

#[test]
fn what_people_get_wrong_is_refused_with_what_to_do() {
    are_as_the_table_says("edges.yaml");
}

/// What is accepted can be read by whoever works on it.
#[test]
fn what_the_api_server_accepts_can_be_read() {
    use slipway_api::fleet::{assemblage, bootstrap_module, module, remote_assemblage, rollout};
    fn read<T: serde::de::DeserializeOwned>(object: &Value) {
        let read = serde_json::from_value::<T>(object.clone());
        assert!(read.is_ok(), "{object}: {:?}", read.err());
    }
    virtually(async {
        let api = Api::new().await;
        let all = snippets("designs.yaml")
            .into_iter()
            .chain(snippets("edges.yaml"));
        for snippet in all.filter(|snippet| snippet.refused.is_none()) {
            let stored = api.tried(&snippet.object, true).await.unwrap();
            match stored["kind"].as_str().unwrap() {
                "Rollout" => read::<rollout::Rollout>(&stored),
                "Module" => read::<module::Module>(&stored),
                "BootstrapModule" => read::<bootstrap_module::BootstrapModule>(&stored),
                "RemoteAssemblage" => read::<remote_assemblage::RemoteAssemblage>(&stored),
                "Assemblage" => read::<assemblage::Assemblage>(&stored),
                kind => panic!("{kind}"),
            }
        }
    });
}

fn sync(tag: &str) -> Value {
    json!({"source": {"git": {"url": "https://example.com/a.git", "version": {"tag": tag}}}})
}

fn module(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "Module", "metadata": {"name": name}, "spec": spec})
}

#[test]
fn an_immutable_module_stays_as_it_is() {
    virtually(async {
        let api = Api::new().await;
        let spec = json!({"immutable": true, "sync": sync("v1")});
        api.send("POST", MODULES, &module("a", &spec))
            .await
            .unwrap();
        let path = format!("{MODULES}/a");
        let change = json!({"spec": {"sync": sync("v2")}});
        let told = api.send("PATCH", &path, &change).await.unwrap_err();
        assert!(told.contains("change the Rollout's template"), "{told}");
        let loose = json!({"spec": {"immutable": null}});
        assert!(api.send("PATCH", &path, &loose).await.is_err());
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        api.send("PATCH", &path, &label).await.unwrap();
        // One that is not is changed as ever.
        let spec = json!({"sync": sync("v1")});
        api.send("POST", MODULES, &module("b", &spec))
            .await
            .unwrap();
        api.send("PATCH", &format!("{MODULES}/b"), &change)
            .await
            .unwrap();
    });
}

/// Each entry has an owner of its own: nobody takes away, or changes, what another one assigned.
#[test]
fn two_managers_apply_their_own_syncs_to_one_cluster() {
    virtually(async {
        let api = Api::new().await;
        let object = |entries: &Value| {
            json!({
                "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "RemoteAssemblage", "metadata": {"name": "c"},
                "spec": {"kubeconfigRef": {"name": "c-kubeconfig"}, "assemblage": {"syncs": entries}},
            })
        };
        let entry = |name: &str, tag: &str| {
            let mut entry = sync(tag);
            entry["name"] = name.into();
            entry
        };
        let apply = async |manager: &str, entries: Value| {
            let path = format!("{REMOTES}/c?fieldManager={manager}");
            api.send("PATCH", &path, &object(&entries)).await
        };
        apply("one", json!([entry("a", "v1")])).await.unwrap();
        apply("two", json!([entry("b", "v1")])).await.unwrap();
        let both = apply("one", json!([entry("a", "v2")])).await.unwrap();
        let syncs = &both["spec"]["assemblage"]["syncs"];
        assert_eq!(*syncs, json!([entry("a", "v2"), entry("b", "v1")]));
        // The source is one thing: a commit in the place of the tag leaves no tag behind.
        let mut commit = entry("a", "v2");
        commit["source"]["git"]["version"] = json!({"revision": "bd6ef78"});
        let changed = apply("one", json!([commit.clone()])).await.unwrap();
        assert_eq!(changed["spec"]["assemblage"]["syncs"][0], commit);
        let conflict = apply("two", json!([entry("b", "v1"), entry("a", "v9")])).await;
        assert!(conflict.unwrap_err().contains("conflict"));
        let without = apply("one", json!([])).await.unwrap();
        assert_eq!(
            without["spec"]["assemblage"]["syncs"],
            json!([entry("b", "v1")])
        );
    });
}

#[test]
fn names_groups_and_short_names_clash_with_nobody_s() {
    let mut short = std::collections::BTreeSet::new();
    for definition in slipway_api::fleet::definitions() {
        let definition = serde_json::to_value(definition).unwrap();
        assert_eq!(definition["spec"]["group"], "fleet.squaremo.dev");
        assert_eq!(definition["spec"]["scope"], "Namespaced");
        let names = &definition["spec"]["names"];
        assert_eq!(names["categories"], json!(["fleet"]));
        let version = &definition["spec"]["versions"][0];
        assert_eq!(version["name"], "v1alpha1");
        assert_eq!(version["subresources"], json!({"status": {}}));
        let schema = &version["schema"]["openAPIV3Schema"];
        assert_eq!(schema["required"], json!(["spec"]));
        let status = &schema["properties"]["status"];
        assert_eq!(status["default"], json!({"observedGeneration": -1}));
        for name in names["shortNames"].as_array().unwrap() {
            // The names that others are known by.
            assert!(!["ro", "mod", "rollout", "ks", "asm"].contains(&name.as_str().unwrap()));
            assert!(short.insert(name.to_string()), "{name} is there twice");
        }
    }
}

#[test]
fn every_field_tells_what_it_is() {
    fn look(path: &str, schema: &Value) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            assert!(
                field["description"].is_string(),
                "{path} has no description"
            );
            look(&path, field);
            look(&path, &field["items"]);
        }
    }
    for definition in slipway_api::fleet::definitions() {
        let definition = serde_json::to_value(definition).unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        look(&format!("{kind}.spec"), &schema["properties"]["spec"]);
        look(&format!("{kind}.status"), &schema["properties"]["status"]);
    }
}
