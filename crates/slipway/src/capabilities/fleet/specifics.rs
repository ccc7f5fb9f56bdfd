//! What oracles must know of the fleet and of its agent.

use serde_json::Value;
use slipway_api::fleet::names::{APPLIED_SPEC, ASSEMBLAGE, VALUES_FOR};
use slipway_api::purpose::fleet as purpose;
use slipway_api::purpose::runtime;
use slipway_fleet::{AGENT_CAPABILITY, CAPABILITY};
use slipway_sim::history::{Change, Image, Request};
use slipway_sim::oracles::{Case, Fleeting, Oracle, Specifics, Stable};

use super::oracles;
use super::oracles::{ASSEMBLAGES, KUSTOMIZATIONS, REMOTES, ROLLOUTS, SECRETS, SOURCES};

pub(super) static SPECIFICS: Specifics = Specifics {
    name: CAPABILITY.profile.name,
    lease: CAPABILITY.profile.lease,
    oracles: ORACLES,
    maps: &[],
    copies: &[],
    fleeting: Fleeting {
        // Of which object an assemblage was written: one that was made a moment later has another uid, and another generation.
        annotations: &[
            "fleet.squaremo.dev/written-by",
            "fleet.squaremo.dev/written-generation",
        ],
        times: &["started", "finished", "canaryPassed"],
        lists: &["syncs"],
        annals: &["history"],
        hashes: &["observedSync", APPLIED_SPEC, "fleet.squaremo.dev/written"],
        stable: Some(Stable {
            hides: "the ends of revisions, and of names of Secrets with values",
            of: stable,
        }),
        ..Fleeting::NONE
    },
    statuses: &[
        (ROLLOUTS, "Rollout"),
        ("fleet.squaremo.dev/modules", "Module"),
        ("fleet.squaremo.dev/bootstrapmodules", "BootstrapModule"),
        (REMOTES, "RemoteAssemblage"),
        (ASSEMBLAGES, "Assemblage"),
    ],
    orders: &["rollouts", "modules", "bootstrapmodules"],
    superseded: &[REMOTES, ASSEMBLAGES, KUSTOMIZATIONS],
    follows: |_, _| false,
    is_unconditional: is_own_apply,
    has_secret,
    may_change,
    harmless: &[runtime::STATUS, purpose::GUARD],
    nothing_left: oracles::explained,
};

/// The same of the agent: what is true of it is true of the fleet.
pub(crate) static AGENT_SPECIFICS: Specifics = Specifics {
    name: AGENT_CAPABILITY.profile.name,
    lease: AGENT_CAPABILITY.profile.lease,
    oracles: &[],
    maps: &[],
    copies: &[],
    fleeting: Fleeting::NONE,
    statuses: &[],
    orders: &[],
    superseded: &[],
    follows: |_, _| false,
    is_unconditional: is_own_apply,
    has_secret,
    may_change,
    harmless: &[runtime::STATUS],
    nothing_left: |_, _| {},
};

/// Where values are secret, revisions and the names of Secrets with values have the versions of the Secrets in them that the values
/// came from.
fn stable(name: &str) -> Option<&str> {
    const VALUES: &str = "-values-";
    if let Some(at) = name.find(VALUES) {
        return name.get(..at + VALUES.len());
    }
    let (template, values) = name.split_once('-')?;
    let is_hash = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|one| one.is_ascii_hexdigit())
    };
    (is_hash(template, 10) && is_hash(values, 8)).then_some(template)
}

/// Kinds of which it applies objects, each with a field manager for what is its own of them.
const APPLIED: &[&str] = &[
    "/apis/fleet.squaremo.dev/v1alpha1/",
    "/apis/source.toolkit.fluxcd.io/v1/",
    "/apis/kustomize.toolkit.fluxcd.io/v1/",
    "/apis/apps/v1/",
];

/// An apply of what is its own: fields of an entry, or an object that nobody else makes.
fn is_own_apply(request: &Request) -> bool {
    let path = request.path();
    let is_namespace = path.starts_with("/api/v1/namespaces/") && path.matches('/').count() == 4;
    let is_known = APPLIED.iter().any(|root| path.starts_with(root))
        && (!path.contains("/apps/") || path.contains("/controllerrevisions/"));
    request.media.starts_with("application/apply-patch")
        && (is_known || is_namespace || has_secret(request))
}

/// Secrets with values: they say for which cluster, or for which assemblage; when they are deleted, their names do.
fn has_secret(request: &Request) -> bool {
    let labels = request.body.pointer("/metadata/labels");
    let is_labelled = labels.is_some_and(|labels| {
        let has = |label: &str| labels.get(label).is_some_and(Value::is_string);
        has(VALUES_FOR) || has(ASSEMBLAGE)
    });
    let is_collected = request.method == "DELETE" && request.path().contains("-values-");
    request.path().contains("/secrets") && (is_labelled || is_collected)
}

/// Its own kinds, what it keeps and makes of them, and Secrets with values.
fn may_change(_: &Case<'_>, change: &Change, request: &Request) -> bool {
    match &*change.object.0 {
        SOURCES | KUSTOMIZATIONS => {
            let image = change.before.as_deref().or(change.after.as_deref());
            image.is_some_and(|image| image.label(ASSEMBLAGE).is_some())
        }
        SECRETS => has_secret(request),
        "apps/controllerrevisions" => true,
        "/namespaces" => request.method == "PATCH" && is_as_before(change),
        own => own.starts_with("fleet.squaremo.dev/"),
    }
}

/// Whether a namespace is made, or stays as it is: who applies one of which nobody was ever recorded is told of as having a part in
/// it.
fn is_as_before(change: &Change) -> bool {
    let plain = |image: &Image| {
        let mut value = image.value().clone();
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.retain(|key, _| key != "managedFields" && key != "resourceVersion");
        }
        value
    };
    let before = change.before.as_deref().map(plain);
    before.is_none_or(|before| change.after.as_deref().map(plain) == Some(before))
}

const ORACLES: &[Oracle] = &[
    Oracle {
        id: "F1",
        what: "an assignment is replaced in one write, and taken away only when nobody assigns it",
        check: oracles::atomic,
    },
    Oracle {
        id: "F2",
        what: "a Kustomization stays the same object for as long as its sync is there",
        check: oracles::kept,
    },
    Oracle {
        id: "F3",
        what: "a Kustomization is changed only when its own assignment was",
        check: oracles::apart,
    },
    Oracle {
        id: "F4",
        what: "an assignment is changed only by who made it, and never one of an external rollout",
        check: oracles::others,
    },
    Oracle {
        id: "F5",
        what: "no second cluster gets a version before one is ready with it",
        check: oracles::first,
    },
    Oracle {
        id: "F6",
        what: "a ready cluster gets a version only while fewer are unready than may be",
        check: oracles::budget,
    },
    Oracle {
        id: "F7",
        what: "a source never changes",
        check: oracles::immutable,
    },
    Oracle {
        id: "F8",
        what: "a Kustomization is switched only to a source that has been fetched",
        check: oracles::fetched,
    },
    Oracle {
        id: "F9",
        what: "where nothing is wrong, whatever is written changes something",
        check: oracles::no_writes,
    },
    Oracle {
        id: "F10",
        what: "no value of a Secret is written anywhere but into Secrets",
        check: oracles::no_secrets,
    },
    Oracle {
        id: "F11",
        what: "no cluster is said to be reachable while nobody may see what is in it",
        check: oracles::sighted,
    },
];
