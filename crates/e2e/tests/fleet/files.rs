//! What is in the repositories.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use slipway_e2e::install::printed;

/// The files of a version. The third one never becomes ready.
pub(crate) fn of(version: &str) -> Result<BTreeMap<String, String>> {
    let mut spec = json!({"terminationGracePeriodSeconds": 0, "containers": [{"name": "web", "image": format!("web:{version}")}]});
    if version == "v3" {
        spec["nodeSelector"] = json!({"no": "where"});
    }
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec},
        },
    });
    let values = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "values"},
        "data": {
            "literal": "${LITERAL}", "cluster": "${CLUSTER}", "label": "${LABEL}", "control": "${CONTROL}",
            "local": "${LOCAL}", "module": "${MODULE}",
        },
    });
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"token": "${TOKEN}"}});
    let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}, "data": {"version": version}});
    let recipe = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "recipe"}, "data": {"value": "${VALUE}"}});
    // Whoever reads this repository finds a kustomization, and not only manifests.
    let kustomization = "resources: [all.yaml]\n".to_owned();
    let mut files = BTreeMap::new();
    for (folder, manifests) in [
        ("deploy", vec![deployment]),
        ("values", vec![values, token]),
        ("plain", vec![plain]),
        ("recipe", vec![recipe]),
        ("agent", agent()?),
    ] {
        let texts: Vec<String> = manifests.iter().map(Value::to_string).collect();
        files.insert(format!("{folder}/all.yaml"), texts.join("\n---\n"));
        files.insert(
            format!("{folder}/kustomization.yaml"),
            kustomization.clone(),
        );
    }
    files.insert("adapted/kustomization.yaml".to_owned(), ADAPTED.to_owned());
    Ok(files)
}

/// What is made of somebody else's configuration, which has no markers: one is patched in.
const ADAPTED: &str = r#"resources: [base]
patches:
- target: {kind: ConfigMap, name: recipe}
  patch: |-
    - op: replace
      path: /data/value
      value: "${VALUE}"
"#;

/// Somebody else's configuration.
pub(crate) fn theirs() -> BTreeMap<String, String> {
    let recipe = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "recipe"}, "data": {"value": "theirs", "other": "theirs"},
    });
    let kustomization = "resources: [recipe.yaml]\n".to_owned();
    let recipe = ("recipe.yaml".to_owned(), recipe.to_string());
    BTreeMap::from([recipe, ("kustomization.yaml".to_owned(), kustomization)])
}

/// What `slipway` installs for the agent.
fn agent() -> Result<Vec<Value>> {
    printed(&[
        "manifests",
        "--controllers",
        "agent",
        "--operator-namespace",
        crate::leaf::AGENT_NAMESPACE,
    ])
}
