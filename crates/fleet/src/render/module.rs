//! The revisions of a Rollout, as modules.
//!
//! Incremental and External have a module for each revision, which never changes. Replace has one that is changed in place,
//! under the Rollout's own name, and keeps its earlier specs as `ControllerRevision`s.

use serde_json::{Value, json};
use slipway_api::fleet::names::{REVISION, ROLLOUT, field_manager};
use slipway_api::fleet::rollout::{RolloutSpec, Template};
use slipway_kernel::Kind;

use super::{Applied, object};
use crate::observe::Strategy;
use crate::{kinds, naming};

/// The Rollout that modules are made for.
#[derive(Debug, Clone, Copy)]
pub struct Maker<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// Its generation, which numbers the revisions.
    pub generation: i64,
    /// What it asks for.
    pub spec: &'a RolloutSpec,
}

/// What keeps a revision of a Rollout: its module, and for Replace the record of it as well.
pub fn revision(maker: Maker<'_>, strategy: Strategy, revision: &str) -> Vec<Applied> {
    let template = &maker.spec.template;
    let spec = spec(maker, template);
    if strategy == Strategy::Replace {
        let record = json!({
            "metadata": metadata(maker, revision, None),
            "revision": maker.generation,
            "data": {"spec": spec},
        });
        let name = naming::module(maker.name, revision);
        let record = applied(maker, kinds::CONTROLLER_REVISION, &name, &record);
        let module = json!({"metadata": metadata(maker, revision, Some(template)), "spec": spec});
        return vec![record, applied(maker, kind(maker), maker.name, &module)];
    }
    let mut rest = json!({"metadata": metadata(maker, revision, Some(template)), "spec": spec});
    slipway_kernel::fields::merge(&mut rest, &json!({"spec": {"immutable": true}}));
    let name = naming::module(maker.name, revision);
    vec![applied(maker, kind(maker), &name, &rest)]
}

/// What a Rollout makes.
fn kind(maker: Maker<'_>) -> Kind {
    match maker.spec.target_kind.as_deref() {
        Some("BootstrapModule") => kinds::BOOTSTRAP_MODULE,
        _ => kinds::MODULE,
    }
}

fn spec(maker: Maker<'_>, template: &Template) -> Value {
    let mut spec = serde_json::to_value(&template.spec).unwrap_or_default();
    if kind(maker) == kinds::BOOTSTRAP_MODULE {
        slipway_kernel::fields::merge(&mut spec, &json!({"sync": {"bindings": null}}));
    }
    spec
}

fn metadata(maker: Maker<'_>, revision: &str, template: Option<&Template>) -> Value {
    let of = template
        .and_then(|template| template.metadata.clone())
        .unwrap_or_default();
    let mut labels = json!(of.labels);
    let name = naming::fitted(&[maker.name], naming::LONGEST_LABEL);
    slipway_kernel::fields::merge(&mut labels, &json!({ROLLOUT: name, REVISION: revision}));
    json!({
        "labels": labels,
        "annotations": of.annotations,
        "ownerReferences": [{
            "apiVersion": kinds::ROLLOUT.api_version(), "kind": kinds::ROLLOUT.kind,
            "name": maker.name, "uid": maker.uid, "controller": true, "blockOwnerDeletion": false,
        }],
    })
}

fn applied(maker: Maker<'_>, kind: Kind, name: &str, rest: &Value) -> Applied {
    let (object, body) = object(kind, maker.namespace, name, rest);
    Applied {
        object,
        manager: field_manager(&format!("Rollout/{}", maker.name)),
        force: false,
        body,
    }
}
