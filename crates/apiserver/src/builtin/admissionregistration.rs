//! The `admissionregistration.k8s.io` kinds: webhook configurations, and admission policies, which are stored but
//! not run.

mod client;
mod policy;
mod rule;
mod webhook;

use std::sync::Arc;

use super::describe::{Description, resource};
use super::rules::Rules;
use crate::resource::Resource;

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let kind = |kind: &str, plural: &str, rules: Rules| -> Description {
        let group = "admissionregistration.k8s.io";
        resource(group, "v1", kind, plural, Arc::new(rules)).cluster_scoped()
    };
    vec![
        kind(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            webhook::MUTATING,
        )
        .category("api-extensions")
        .build(),
        kind(
            "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies",
            policy::POLICY,
        )
        .category("api-extensions")
        .status()
        .build(),
        kind(
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
            policy::BINDING,
        )
        .category("api-extensions")
        .build(),
        kind(
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            webhook::VALIDATING,
        )
        .category("api-extensions")
        .build(),
    ]
}

#[cfg(test)]
mod tests;
