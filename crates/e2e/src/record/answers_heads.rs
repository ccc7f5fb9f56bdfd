//! Metadata of lists: the same list in protobuf and in JSON, at a moment at which nobody writes.

use std::path::Path;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::asked::{Asked, Question};
use crate::prepared::{Kind, prepare};

const NAMESPACE: &str = "/api/v1/namespaces/heads";

/// A list in both forms, and the file that it is kept in.
const LISTS: [(&str, &str); 4] = [
    ("pods", "/api/v1/namespaces/heads/pods"),
    ("page", "/api/v1/namespaces/heads/pods?limit=2"),
    ("none", "/api/v1/namespaces/heads/persistentvolumeclaims"),
    ("custom", "/apis/heads.example/v1/namespaces/heads/ships"),
];

pub(crate) async fn record(asked: &Asked, folder: &Path) -> Result<usize> {
    let ship = Kind {
        group: "heads.example",
        plural: "ships",
        singular: "ship",
        name: "Ship",
        version: json!({"schema": {"openAPIV3Schema": {"type": "object"}}}),
    };
    prepare(asked, "heads", ship).await?;
    pods(asked).await?;
    ships(asked).await?;
    for (name, path) in LISTS {
        let protobuf = list(asked, path, "vnd.kubernetes.protobuf").await?;
        let json = list(asked, path, "json").await?;
        std::fs::write(folder.join(name).with_extension("pb"), protobuf)?;
        // Only so that people can read it.
        let json: Value = serde_json::from_slice(&json)?;
        let json = format!("{json:#}\n");
        std::fs::write(folder.join(name).with_extension("json"), json)?;
    }
    Ok(2 * LISTS.len())
}

async fn list(asked: &Asked, path: &str, form: &str) -> Result<Vec<u8>> {
    let accept = format!("application/{form};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let question = Question {
        method: Method::GET,
        path,
        media: "application/json",
        accept: &accept,
        body: Vec::new(),
    };
    let (code, kind, answer) = asked.ask(question).await?;
    let is_form = kind.starts_with(&format!("application/{form}"));
    ensure!(code == 200 && is_form, "{path}: {code} {kind}");
    Ok(answer)
}

/// Pods with all that metadata can have, one of which is being deleted.
async fn pods(asked: &Asked) -> Result<()> {
    let path = format!("{NAMESPACE}/pods");
    let spec = json!({"containers": [{"name": "app", "image": "app:1"}]});
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "zone-a", "uid": "0b5a39b3-6f1f-4f8e-8a0c-6a5c3f0b7a11",
        "controller": true, "blockOwnerDeletion": true,
    });
    for metadata in [
        json!({"name": "zone-a-0", "labels": {"rollout-group": "ingester"}, "ownerReferences": [owner]}),
        json!({"name": "zone-a-1", "annotations": {"note": "grüße ✓"}, "finalizers": ["heads.example/kept"]}),
        json!({"name": "zone-a-2", "generateName": "zone-a-"}),
    ] {
        let pod = json!({"metadata": metadata, "spec": spec});
        asked.create(&path, &pod).await?;
    }
    let gone = format!("{path}/zone-a-1");
    let (code, _) = asked
        .send(Method::DELETE, &gone, "application/json", &json!({}))
        .await?;
    ensure!(code == 200, "{gone}: {code}");
    Ok(())
}

/// Two of a kind of their own.
async fn ships(asked: &Asked) -> Result<()> {
    for name in ["albatross", "beagle"] {
        let ship =
            json!({"apiVersion": "heads.example/v1", "kind": "Ship", "metadata": {"name": name}});
        asked
            .create("/apis/heads.example/v1/namespaces/heads/ships", &ship)
            .await?;
    }
    Ok(())
}
