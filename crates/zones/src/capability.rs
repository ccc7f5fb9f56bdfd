//! The value that the program knows zones by.

use std::sync::Arc;

use slipway_api::{replica_template, zones, zpdb};
use slipway_kernel::capability::{Capability, Names, Profile, Registration};

use crate::admit::{self, Switches};
use crate::reasons::Reason;
use crate::show::show;
use crate::{NAME, Settings, Zones, access};

/// What zones are set up with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setup {
    /// The settings of the planner, which webhooks share.
    pub settings: Settings,
    /// How webhooks judge; none where none are served.
    pub webhooks: Option<Switches>,
}

/// Zones, as the program knows them.
pub static CAPABILITY: Capability<Setup> = Capability {
    profile: Profile {
        name: NAME,
        lease: zones::LEASE,
        permissions: access::PERMISSIONS,
        registrations: REGISTRATIONS,
        webhook_permissions: admit::access::PERMISSIONS,
        peoples_roles: &[],
        open_roles: &[],
        definitions: || {
            let all = [replica_template::definition(), zpdb::definition()];
            all.iter().map(serde_json::to_value).collect()
        },
        pages: &[],
        reasons: Reason::MEANINGS,
        show,
        names: Some(Names {
            deployment: PROGRAM,
            account: PROGRAM,
            role: "rollout-operator-role",
            // As the Service of the design selects them.
            labels: &[("name", PROGRAM)],
        }),
    },
    controller: |setup| Arc::new(Zones::new(setup.settings.clone())),
    webhooks: |setup| {
        let hooks = setup
            .webhooks
            .map(|how| admit::webhooks(&setup.settings, how));
        hooks.into_iter().flatten().map(Arc::from).collect()
    },
};

/// What the program that zones replace is called.
const PROGRAM: &str = "rollout-operator";
/// What names of webhooks end with.
const DOMAIN: &str = "grafana.com";

const REGISTRATIONS: &[Registration] = &[
    Registration {
        name: "no-downscale",
        domain: DOMAIN,
        kind: "ValidatingWebhookConfiguration",
        side_effects: "None",
        groups: &["apps"],
        operations: &["UPDATE"],
        resources: &[
            "statefulsets/scale",
            "deployments/scale",
            "replicasets/scale",
        ],
        labelled: Some((
            zones::NO_DOWNSCALE,
            &["statefulsets", "deployments", "replicasets"],
        )),
    },
    Registration {
        name: "prepare-downscale",
        domain: DOMAIN,
        kind: "MutatingWebhookConfiguration",
        side_effects: "NoneOnDryRun",
        groups: &["apps"],
        operations: &["UPDATE"],
        resources: &["statefulsets/scale"],
        labelled: Some((zones::PREPARE_DOWNSCALE, &["statefulsets"])),
    },
    Registration {
        name: "pod-eviction",
        domain: DOMAIN,
        kind: "ValidatingWebhookConfiguration",
        // Whom it lets go is recorded, except in a dry run.
        side_effects: "NoneOnDryRun",
        groups: &[""],
        operations: &["CREATE"],
        resources: &["pods/eviction"],
        labelled: None,
    },
    Registration {
        name: "zpdb-validation",
        domain: DOMAIN,
        kind: "ValidatingWebhookConfiguration",
        side_effects: "None",
        groups: &["rollout-operator.grafana.com"],
        operations: &["CREATE", "UPDATE"],
        resources: &["zoneawarepoddisruptionbudgets"],
        labelled: None,
    },
];
