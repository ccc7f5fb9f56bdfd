//! A sync that only names a module's revision, filled in: so nobody who assigns modules has to evaluate bindings.

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_api::fleet::rollout::TemplateSpec;
use slipway_api::fleet::sync::{ModuleReference, NamedSync};
use slipway_bindings::{Given, Known};

use crate::reasons::Reason;
use crate::specialise::{Assigned, Assigning, Specialised, Template, assignment};

/// What a sync that names a module comes to for a cluster. `module` is that module, if it is there.
pub fn fill(
    cluster: &str,
    sync: &NamedSync,
    reference: &ModuleReference,
    module: Option<&Value>,
    given: &Given,
    known: &Known,
) -> Specialised<Assigned> {
    let spec = module.and_then(|module| module.get("spec")).cloned();
    let template = spec.and_then(|spec| serde_json::from_value::<TemplateSpec>(spec).ok());
    let Some(template) = template else {
        return gone(format!("module {} is not there", reference.name));
    };
    let template = Template::of(&template);
    let is = &template.revision;
    if let Some(asked) = reference.revision.as_ref().filter(|asked| *asked != is) {
        return gone(format!(
            "module {} is of revision {is}, and {asked} is asked for",
            reference.name
        ));
    }
    let assigning = Assigning {
        by: sync.assigned_by.as_deref().unwrap_or_default(),
        name: &sync.name,
        cluster,
    };
    match assignment(assigning, &template, given, known) {
        Specialised::Done(assigned) => Specialised::Done(Assigned {
            sync: NamedSync {
                assigned_by: sync.assigned_by.clone(),
                // What is assigned by hand may carry a revision of its own, by which it is looked for.
                revision: sync.revision.clone().or(assigned.sync.revision),
                name: assigned.sync.name,
                module: None,
                bindings: assigned.sync.bindings,
                source: assigned.sync.source,
                package: assigned.sync.package,
            },
            secret: assigned.secret,
            references: assigned.references,
        }),
        other => other,
    }
}

fn gone(message: String) -> Specialised<Assigned> {
    Specialised::Blocked {
        reason: Reason::RevisionGone.as_str(),
        message,
        references: BTreeSet::new(),
    }
}
