//! What a capability exports: one value that registry, command line, manifests, webhooks, definitions and reference read.

use std::sync::Arc;

use serde_json::Value;

use super::Controller;
use super::show::Show;
use crate::admission::Admit;
use crate::permission::Permission;

/// A capability, as the program knows it. `S` is what a person decides about it.
#[derive(Debug)]
pub struct Capability<S: 'static> {
    /// What holds whatever the settings are.
    pub profile: Profile,
    /// The planner.
    pub controller: fn(&S) -> Arc<dyn Controller>,
    /// What it is asked by API servers; nothing where it serves no webhooks.
    pub webhooks: fn(&S) -> Vec<Arc<dyn Admit>>,
}

/// What is known of a capability before it is set up.
#[derive(Debug)]
pub struct Profile {
    /// Names it in keys, metrics, logs, events and claims, and on the command line.
    pub name: &'static str,
    /// The Lease that its replicas and predecessors share.
    pub lease: &'static str,
    /// What it may do.
    pub permissions: &'static [Permission],
    /// How its webhooks are registered.
    pub registrations: &'static [Registration],
    /// What its webhooks may do besides.
    pub webhook_permissions: &'static [Permission],
    /// What people get who may view or edit a namespace.
    pub peoples_roles: &'static [PeoplesRole],
    /// What administrators may let it do besides.
    pub open_roles: &'static [OpenRole],
    /// The definitions of its own kinds, ordered by name.
    pub definitions: fn() -> serde_json::Result<Vec<Value>>,
    /// Those of its kinds that have a page of the reference.
    pub pages: &'static [&'static str],
    /// Why it may wait, and what each reason means.
    pub reasons: &'static [(&'static str, &'static str)],
    /// How it is shown.
    pub show: Show,
    /// What the operator's objects are called where it runs nothing else; none for the usual names.
    pub names: Option<Names>,
}

/// What the operator's objects are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// Its Deployment.
    pub deployment: &'static str,
    /// Its service account.
    pub account: &'static str,
    /// Its roles and their bindings.
    pub role: &'static str,
    /// Labels of its pods besides ours, by which others find them.
    pub labels: &'static [(&'static str, &'static str)],
}

/// One webhook, as it is registered.
#[derive(Debug)]
pub struct Registration {
    /// `no-downscale`: part of the path and of the names.
    pub name: &'static str,
    /// What its name ends with, as names of webhooks must.
    pub domain: &'static str,
    /// `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
    pub kind: &'static str,
    /// `None` or `NoneOnDryRun`.
    pub side_effects: &'static str,
    /// The API groups of what is asked about.
    pub groups: &'static [&'static str],
    /// What is done to it.
    pub operations: &'static [&'static str],
    /// What is asked about, whatever its labels.
    pub resources: &'static [&'static str],
    /// What is asked about if it has this label, before or after the change.
    pub labelled: Option<(&'static str, &'static [&'static str])>,
}

/// A role of the operator that administrators fill: it has the rules of all roles that carry a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenRole {
    /// Its name.
    pub name: &'static str,
    /// The label of the roles that it is made of, with the value `true`.
    pub label: &'static str,
}

/// A role that is added to those that people have in their namespaces.
#[derive(Debug)]
pub struct PeoplesRole {
    /// Its name.
    pub name: &'static str,
    /// Whose role it is added to: `view`, `edit`, `admin`.
    pub to: &'static [&'static str],
    /// The API group of what it is about.
    pub group: &'static str,
    /// What it is about.
    pub resources: &'static [&'static str],
    /// What may be done to it.
    pub verbs: &'static [&'static str],
}
