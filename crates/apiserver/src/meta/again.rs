//! What kinds judge again. All updates are judged by rules for metadata that all kinds share; most kinds ask the same rules once
//! or twice more among their own, so that a client is told one cause several times. How often depends on the kind and is as the real server
//! does it: the behaviours `update::causes_*` hold it.

use serde_json::Value;

use super::validate;
use crate::builtin::names;
use crate::field::FieldErrors;
use crate::resource::{Part, Resource};
use crate::value::text;

/// How often a kind's own rules for an update judge metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Again {
    /// As that of an object that is changed.
    changed: usize,
    /// As that of a new object.
    new: usize,
}

/// What most kinds do.
const MOST: Again = Again { changed: 1, new: 0 };
const BOTH: Again = Again { changed: 1, new: 1 };
const AS_NEW: Again = Again { changed: 0, new: 1 };
const NEVER: Again = Again { changed: 0, new: 0 };
/// Rules for a new one are asked twice.
const TWICE: Again = Again { changed: 0, new: 2 };

/// Kinds by group and plural, with what they do on an update.
const MAIN: &[(&str, &[&str], Again)] = &[
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "pods",
            "secrets",
            "serviceaccounts",
        ],
        BOTH,
    ),
    ("", &["limitranges"], AS_NEW),
    ("", &["events"], NEVER),
    ("", &["persistentvolumes"], TWICE),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
        AS_NEW,
    ),
    ("apps", &["controllerrevisions"], BOTH),
    ("batch", &["jobs"], BOTH),
    ("certificates.k8s.io", &["certificatesigningrequests"], BOTH),
    ("discovery.k8s.io", &["endpointslices"], AS_NEW),
    (
        "networking.k8s.io",
        &["ingressclasses", "ingresses", "ipaddresses"],
        BOTH,
    ),
    ("policy", &["poddisruptionbudgets"], NEVER),
    (
        "rbac.authorization.k8s.io",
        &[
            "clusterrolebindings",
            "clusterroles",
            "rolebindings",
            "roles",
        ],
        BOTH,
    ),
    (
        "resource.k8s.io",
        &["deviceclasses", "resourceclaims", "resourceclaimtemplates"],
        BOTH,
    ),
    (
        "storage.k8s.io",
        &[
            "csistoragecapacities",
            "storageclasses",
            "volumeattributesclasses",
        ],
        BOTH,
    ),
    ("storage.k8s.io", &["csinodes", "volumeattachments"], AS_NEW),
];

/// The same for their subresources.
const SUBRESOURCES: &[(&str, &[&str], Again)] = &[
    ("batch", &["cronjobs"], NEVER),
    ("certificates.k8s.io", &["certificatesigningrequests"], BOTH),
    ("policy", &["poddisruptionbudgets"], NEVER),
];

/// Built-in kinds that take any name for a finalizer, as custom ones do.
const ANY_FINALIZER: &[(&str, &[&str])] = &[
    ("", &["events"]),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("coordination.k8s.io", &["leases"]),
    ("policy", &["poddisruptionbudgets"]),
];

fn again(resource: &Resource, part: Part) -> Again {
    let table = match part {
        Part::Main | Part::Scale => MAIN,
        Part::Status => SUBRESOURCES,
    };
    let (group, plural) = (&resource.names.group, &resource.names.plural);
    let found = table
        .iter()
        .find(|(of, plurals, _)| *of == group && plurals.contains(&plural.as_str()));
    match found {
        Some((_, _, again)) if !resource.custom => *again,
        _ => MOST,
    }
}

/// Whether finalizers of a kind have to be qualified names.
pub fn has_standard_finalizers(resource: &Resource) -> bool {
    let (group, plural) = (&resource.names.group, &resource.names.plural);
    let takes_any = ANY_FINALIZER
        .iter()
        .any(|(of, plurals)| *of == group && plurals.contains(&plural.as_str()));
    !resource.custom && !takes_any
}

/// Errors that the kind's own rules for an update of `part` find in metadata, after [`validate_update`](super::validate_update).
pub fn validate_update_again(
    resource: &Resource,
    part: Part,
    object: &Value,
    old: &Value,
) -> FieldErrors {
    let again = again(resource, part);
    let is_standard = has_standard_finalizers(resource);
    let namespaced = !text(old, "metadata.namespace").is_empty();
    let mut wrong = FieldErrors::new();
    let mut ask = |errors: FieldErrors| {
        wrong.extend(errors);
        if is_standard {
            wrong.extend(validate::validate_standard_finalizers(object));
        }
    };
    for _ in 0..again.changed {
        ask(validate::unchangeable(object, old));
    }
    for _ in 0..again.new {
        ask(validate::new_metadata(
            object,
            namespaced,
            names::path_segment,
        ));
    }
    wrong
}
