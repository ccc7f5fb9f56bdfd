//! The value that the program knows canary by.

use std::sync::Arc;

use slipway_api::flagger::{GROUP, LEASE};
use slipway_api::{alert_provider, canary, metric_template};
use slipway_kernel::capability::{Capability, PeoplesRole, Profile};

use crate::reasons::Reason;
use crate::show::show;
use crate::{Canaries, NAME, Settings, access};

/// Canary, as the program knows it.
pub static CAPABILITY: Capability<Settings> = Capability {
    profile: Profile {
        name: NAME,
        lease: LEASE,
        permissions: access::PERMISSIONS,
        registrations: &[],
        webhook_permissions: &[],
        peoples_roles: PEOPLES_ROLES,
        open_roles: &[],
        definitions: || {
            let all = [
                alert_provider::definition(),
                canary::definition(),
                metric_template::definition(),
            ];
            all.iter().map(serde_json::to_value).collect()
        },
        pages: &["AlertProvider", "Canary", "MetricTemplate"],
        reasons: Reason::MEANINGS,
        show,
        names: None,
    },
    controller: |settings| Arc::new(Canaries::new(settings.clone())),
    webhooks: |_| Vec::new(),
};

/// What people have in their namespaces.
const RESOURCES: &[&str] = &["canaries", "metrictemplates", "alertproviders"];

const PEOPLES_ROLES: &[PeoplesRole] = &[
    PeoplesRole {
        name: "slipway-canary-viewer-role",
        to: &["view", "edit", "admin"],
        group: GROUP,
        resources: RESOURCES,
        verbs: &["get", "list", "watch"],
    },
    PeoplesRole {
        name: "slipway-canary-editor-role",
        to: &["edit", "admin"],
        group: GROUP,
        resources: RESOURCES,
        verbs: &["create", "update", "patch", "delete", "deletecollection"],
    },
];
