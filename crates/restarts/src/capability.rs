//! The value that the program knows restarts by.

use std::sync::Arc;

use slipway_api::{flipper, names};
use slipway_kernel::capability::{Capability, PeoplesRole, Profile};

use crate::reasons::Reason;
use crate::show::show;
use crate::{NAME, Restarts, Settings, access, kinds};

/// Restarts, as the program knows them.
pub static CAPABILITY: Capability<Settings> = Capability {
    profile: Profile {
        name: NAME,
        lease: names::RESTARTS_LEASE,
        permissions: access::PERMISSIONS,
        registrations: &[],
        webhook_permissions: &[],
        peoples_roles: PEOPLES_ROLES,
        open_roles: &[],
        definitions: || Ok(vec![serde_json::to_value(flipper::definition())?]),
        pages: &["Flipper"],
        reasons: Reason::MEANINGS,
        show,
        names: None,
    },
    controller: |settings| Arc::new(Restarts::new(settings.clone())),
    webhooks: |_| Vec::new(),
};

/// Flippers are part of what people have in their namespaces.
const PEOPLES_ROLES: &[PeoplesRole] = &[
    PeoplesRole {
        name: "rollout-flipper-viewer-role",
        to: &["view", "edit", "admin"],
        group: kinds::FLIPPER_GROUP,
        resources: &["flippers"],
        verbs: &["get", "list", "watch"],
    },
    PeoplesRole {
        name: "rollout-flipper-editor-role",
        to: &["edit", "admin"],
        group: kinds::FLIPPER_GROUP,
        resources: &["flippers"],
        verbs: &["create", "update", "patch", "delete", "deletecollection"],
    },
];
