//! Fields that change with what is assigned: a value of one would change the assignment, which would change the value, for ever.

use slipway_api::fleet;
use slipway_api::foreign::{git_repository, kustomization};

use super::Place;
use crate::known::Reference;
use crate::pointer::Pointer;

/// Kinds of the fleet.
const OURS: [&str; 5] = [
    "Assemblage",
    "BootstrapModule",
    "Module",
    "RemoteAssemblage",
    "Rollout",
];

/// Those whose spec is what is assigned, where it is assigned.
const ASSIGNED: [&str; 2] = ["Assemblage", "RemoteAssemblage"];

/// What changes of an object with every write to it.
const COUNTED: [&str; 3] = ["generation", "managedFields", "resourceVersion"];

/// Whether a field changes with what is assigned.
pub(super) fn moves(place: &Place<'_>, reference: &Reference, pointer: &Pointer) -> bool {
    let Reference::Object {
        api_version, kind, ..
    } = reference
    else {
        return false;
    };
    let is_of = |group: &str| {
        let version = api_version.as_deref();
        version.is_none_or(|version| version.split_once('/').is_some_and(|(of, _)| of == group))
    };
    let kind = kind.as_str();
    let is_ours = OURS.contains(&kind) && is_of(fleet::GROUP);
    let is_made = (kind == kustomization::KIND && is_of(kustomization::GROUP))
        || (kind == git_repository::KIND && is_of(git_repository::GROUP));
    if !is_ours && !is_made {
        return false;
    }
    let tokens: Vec<&str> = pointer.tokens().iter().map(String::as_str).collect();
    match tokens.as_slice() {
        [] | ["metadata"] => true,
        ["metadata", field, ..] if COUNTED.contains(field) => true,
        ["metadata", "annotations"] => is_made,
        ["metadata", "annotations", key, ..] => is_made && key.starts_with(fleet::GROUP),
        ["status", "stableRevision"] => false,
        ["status", ..] => is_ours,
        ["spec", ..] => ASSIGNED.contains(&kind) && *place != Place::Workload,
        _ => false,
    }
}
