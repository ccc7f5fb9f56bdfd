//! Acts as the API takes them: objects of our own that are made, patches of what is there, copies of what values are in.

use serde_json::{Value, json};
use slipway_api::flagger::REVISION;
use slipway_api::purpose::canary as purpose;
use slipway_kernel::action::CopyOf;
use slipway_kernel::{Action, FieldManager, Kind, ObjectRef, Purpose, Target};

use crate::kinds;
use crate::observe::World;
use crate::router::{Write, lacking};
use crate::standalone::acts::Act;
use crate::standalone::configs::{Config, ConfigKind, Copy, owners};
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

/// A `ConfigMap` or Secret in the Canary's namespace.
pub fn config(world: &World, config: &Config) -> ObjectRef {
    object(world, kind_of(config.kind), &config.name)
}

fn kind_of(kind: ConfigKind) -> Kind {
    match kind {
        ConfigKind::ConfigMap => kinds::CONFIG_MAP,
        ConfigKind::Secret => kinds::SECRET,
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
        Write::Apply { kind, name, body } => Some(apply(world, kind, &name, body, purpose)),
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

/// An object of ours is made where there is none, and changed from the version that was seen where there is one: nothing is
/// taken from anybody by force.
fn apply(world: &World, kind: Kind, name: &str, body: Value, purpose: Purpose) -> Action {
    let key = (kind.kind.to_string(), name.to_owned());
    let seen = world.metas.get(&key).zip(world.objects.0.get(&key));
    let object = object(world, kind, name);
    match seen {
        Some((meta, seen)) => Action::Patch {
            target: Target::seen(object, meta),
            purpose,
            body: lacking(seen, &body),
        },
        None => Action::Apply {
            object,
            purpose,
            body,
            by: FieldManager::default().without_force(),
        },
    }
}

/// What a write is for.
fn purpose_of(stand: &Stand, write: &Write) -> Purpose {
    let (kind, name, body) = match write {
        Write::Apply { kind, name, body } | Write::Patch { kind, name, body } => (kind, name, body),
    };
    let is_workload = [kinds::DEPLOYMENT, kinds::DAEMON_SET].contains(kind);
    // A new version is written on the copy with its template.
    let annotations = body.pointer("/metadata/annotations");
    let is_version = annotations.is_some_and(|all| all.get(REVISION).is_some());
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
    let kind = kind_of(copy.config.kind);
    let Config { name, .. } = &copy.config;
    let (meta, _) = world.config_metas.get(&copy.config)?;
    let known = world.config_metas.get(&copy.copy());
    let others = known.map(|(_, owners)| json!({"metadata": {"ownerReferences": owners}}));
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
            "ownerReferences": owners(&others.unwrap_or_default(), &owner),
        },
    });
    let to = object(world, kind.clone(), &copy.to);
    Some(Action::Copy(Box::new(CopyOf {
        from: Target::seen(object(world, kind, name), meta),
        over: known.map(|(meta, _)| Target::seen(to.clone(), meta)),
        object: to,
        purpose: purpose::CONFIGURE,
        body,
        fields: &["data", "binaryData", "type"],
    })))
}
