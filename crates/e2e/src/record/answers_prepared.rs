//! What a recording needs before its first question: a namespace of its own and a kind of its own, on a server that nobody else
//! uses.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::asked::Asked;

/// How long something may take that others do.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A kind in namespaces, served as `v1`.
pub(crate) struct Kind<'a> {
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) singular: &'a str,
    pub(crate) name: &'a str,
    /// Its `schema` and whatever else its version has.
    pub(crate) version: Value,
}

/// Makes both, and waits until the kind is served.
pub(crate) async fn prepare(asked: &Asked, namespace: &str, kind: Kind<'_>) -> Result<()> {
    let own = json!({"metadata": {"name": namespace}});
    asked
        .create("/api/v1/namespaces", &own)
        .await
        .context("it takes a control plane that nobody else uses")?;
    let Kind {
        group,
        plural,
        singular,
        ..
    } = kind;
    let mut version = kind.version;
    version["name"] = json!("v1");
    version["served"] = json!(true);
    version["storage"] = json!(true);
    let list = format!("{}List", kind.name);
    let definition = json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind.name, "listKind": list},
            "versions": [version],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    asked.create(definitions, &definition).await?;
    let path = format!("/apis/{group}/v1/namespaces/{namespace}/{plural}");
    let started = Instant::now();
    // Not found at first, and then for a moment not ready (429).
    while !matches!(asked.find(&path).await, Ok(Some(_))) {
        ensure!(started.elapsed() < SOON, "{plural} are not served");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // Defined a moment ago: its schema may come to whoever applies a little later than it is served.
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(())
}
