//! Acts as the API takes them: applies of our own objects, patches of what is there, copies of what values are in.

use serde_json::json;
use slipway_api::purpose::canary as purpose;
use slipway_kernel::{Action, Kind, ObjectRef, Purpose, Target};

use crate::kinds;
use crate::observe::World;
use crate::router::Write;
use crate::standalone::acts::Act;
use crate::standalone::configs::{Config, ConfigKind, Copy};
use crate::standalone::scene::Stand;

/// The Canary.
pub fn canary(world: &World) -> ObjectRef {
    object(world, kinds::CANARY, &world.canary.meta().name)
}

/// An object in the Canary's namespace.
pub fn object(world: &World, kind: Kind, name: &str) -> ObjectRef {
    ObjectRef {
        cluster: world.cluster.clone(),
        kind,
        namespace: world.canary.meta().namespace.clone(),
        name: name.to_owned(),
    }
}

/// An act as an action; none if the object that it changes was not seen.
pub fn act(world: &World, stand: &Stand, act: Act) -> Option<Action> {
    match act {
        Act::Write(one) => {
            let purpose = purpose_of(stand, &one);
            write(world, one, purpose)
        }
        Act::Copy(one) => copy(world, stand, &one),
    }
}

/// A write as an action.
pub fn write(world: &World, write: Write, purpose: Purpose) -> Option<Action> {
    match write {
        Write::Apply { kind, name, body } => {
            Some(Action::apply(object(world, kind, &name), purpose, body))
        }
        Write::Patch { kind, name, body } => {
            let key = (kind.kind.to_string(), name.clone());
            let meta = world.metas.get(&key)?;
            Some(Action::Patch {
                target: Target::seen(object(world, kind, &name), meta),
                purpose,
                body,
            })
        }
    }
}

/// What a write is for.
fn purpose_of(stand: &Stand, write: &Write) -> Purpose {
    let (kind, name, body) = match write {
        Write::Apply { kind, name, body } | Write::Patch { kind, name, body } => (kind, name, body),
    };
    let is_workload = [kinds::DEPLOYMENT, kinds::DAEMON_SET].contains(kind);
    // A new version is written on the copy with its template.
    let is_version = body.pointer("/metadata/annotations").is_some();
    if is_workload && *name == stand.names.primary && is_version {
        purpose::SERVE
    } else if is_workload {
        purpose::SIZE
    } else if *kind == kinds::SERVICE {
        purpose::LEAD
    } else if *kind == kinds::AUTOSCALER {
        purpose::AUTOSCALE
    } else {
        purpose::ROUTE
    }
}

/// A config is copied with all that is in it. The copy is the Canary's as well as others': nobody controls it.
fn copy(world: &World, stand: &Stand, copy: &Copy) -> Option<Action> {
    let kind = match copy.config.kind {
        ConfigKind::ConfigMap => kinds::CONFIG_MAP,
        ConfigKind::Secret => kinds::SECRET,
    };
    let Config { name, .. } = &copy.config;
    let meta = world.config_metas.get(&copy.config)?;
    let mut owner = stand.owner.clone();
    if let Some(fields) = owner.as_object_mut() {
        fields.insert("controller".to_owned(), json!(false));
    }
    let body = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {
            "name": copy.to,
            "namespace": world.canary.meta().namespace,
            "ownerReferences": [owner],
        },
    });
    Some(Action::Copy {
        from: Target::seen(object(world, kind.clone(), name), meta),
        object: object(world, kind, &copy.to),
        purpose: purpose::CONFIGURE,
        body,
        fields: &["data", "binaryData", "type"],
    })
}
