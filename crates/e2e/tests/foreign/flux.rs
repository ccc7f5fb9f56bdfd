//! Flux: a source-controller that fetches from git, and a kustomize-controller that applies and prunes.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::git::Repository;

use crate::stage::{Place, Stage, managers};

/// A commit becomes objects with values put in; a file that goes takes its object with it.
pub(crate) fn apply_and_prune(stage: &Stage) -> Result<()> {
    let place = stage.place("foreign-flux")?;
    let repository = Repository::start()?;
    repository.commit("settings.yaml", Some(&map(&place, "settings", "${colour}")))?;
    repository.commit("extra.yaml", Some(&map(&place, "extra", "plain")))?;
    place.apply(&json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "config"},
        "spec": {"interval": "2s", "url": repository.url(), "ref": {"branch": "main"}},
    }))?;
    place.apply(&json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "config"},
        "spec": {
            "interval": "1m",
            "retryInterval": "5s",
            "path": "./",
            "prune": true,
            "wait": true,
            "sourceRef": {"kind": "GitRepository", "name": "config"},
            "postBuild": {"substitute": {"colour": "blue"}},
        },
    }))?;
    let settings = colour(&place, "settings", "blue")?;
    colour(&place, "extra", "plain")?;
    ensure!(
        managers(&settings).any(|who| who == "kustomize-controller"),
        "kustomize-controller applied it: {settings}"
    );
    let first = applied(&place, "")?;
    repository.commit("extra.yaml", None)?;
    place.eventually("the object of a removed file is gone", || {
        Ok(place.find("configmap", "extra")?.is_none().then_some(()))
    })?;
    let second = applied(&place, &first)?;
    ensure!(
        place.find("configmap", "settings")?.is_some(),
        "what is still in git stays"
    );
    place.kubectl(&[
        "delete",
        "kustomization.kustomize.toolkit.fluxcd.io",
        "config",
    ])?;
    place.eventually("a deleted kustomization takes its objects along", || {
        Ok(place.find("configmap", "settings")?.is_none().then_some(()))
    })?;
    place.say(&format!(
        "source-controller fetched {first} and {second}; kustomize-controller applied 2 config maps with colour=blue, \
         pruned 1 with its file and 1 with the kustomization"
    ));
    Ok(())
}

fn map(place: &Place<'_>, name: &str, colour: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {}\ndata:\n  colour: \"{colour}\"\n",
        place.name
    )
}

fn colour(place: &Place<'_>, name: &str, wanted: &str) -> Result<Value> {
    place.eventually(&format!("the config map {name} says {wanted}"), || {
        let found = place.find("configmap", name)?;
        Ok(found.filter(|map| map.pointer("/data/colour") == Some(&Value::from(wanted))))
    })
}

/// The revision that is applied and ready, once it is another one than `before`; shortened.
fn applied(place: &Place<'_>, before: &str) -> Result<String> {
    place.eventually(&format!("a revision after {before:?} is applied"), || {
        let object = place.json(&["get", "kustomization.kustomize.toolkit.fluxcd.io", "config"])?;
        let ready = object
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let revision = object
            .pointer("/status/lastAppliedRevision")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let short: String = revision.chars().take("main@sha1:".len() + 8).collect();
        Ok((ready && !short.is_empty() && short != before).then_some(short))
    })
}
