//! The values that the program knows the fleet and its agents by.

use std::sync::Arc;

use slipway_api::fleet::names::{AGENT_LEASE, BINDINGS, LEASE};
use slipway_api::fleet::{GROUP, assemblage, definitions};
use slipway_kernel::capability::{Capability, OpenRole, PeoplesRole, Profile};

use crate::reasons::Reason;
use crate::show::{show, show_agent};
use crate::{AGENT, Agent, Hub, NAME, Settings, access, agent};

/// The fleet, as the program knows it.
pub static CAPABILITY: Capability<Settings> = Capability {
    profile: Profile {
        name: NAME,
        lease: LEASE,
        permissions: access::PERMISSIONS,
        registrations: &[],
        webhook_permissions: &[],
        peoples_roles: ROLES,
        open_roles: &[BINDINGS_ROLE],
        definitions: || definitions().iter().map(serde_json::to_value).collect(),
        pages: &[
            "Assemblage",
            "BootstrapModule",
            "Module",
            "RemoteAssemblage",
            "Rollout",
        ],
        reasons: Reason::MEANINGS,
        show,
        names: None,
    },
    controller: |settings| Arc::new(Hub::new(settings.clone())),
    webhooks: |_| Vec::new(),
};

/// The agent, as the program knows it.
pub static AGENT_CAPABILITY: Capability<()> = Capability {
    profile: Profile {
        name: AGENT,
        lease: AGENT_LEASE,
        permissions: agent::access::PERMISSIONS,
        registrations: &[],
        webhook_permissions: &[],
        peoples_roles: &[],
        open_roles: &[BINDINGS_ROLE],
        definitions: || Ok(vec![serde_json::to_value(assemblage::definition())?]),
        pages: &[],
        reasons: Reason::MEANINGS,
        show: show_agent,
        names: None,
    },
    controller: |()| Arc::new(Agent),
    webhooks: |()| Vec::new(),
};

/// What bindings may read besides `ConfigMaps` and Secrets: administrators say so by roles with this label.
const BINDINGS_ROLE: OpenRole = OpenRole {
    name: "slipway-fleet-bindings",
    label: BINDINGS,
};

/// Who may edit a namespace may roll configuration out in it; who may view it sees how far that is. Assemblages are what
/// third parties drive, and are not for everybody to edit.
const ROLES: &[PeoplesRole] = &[
    PeoplesRole {
        name: "slipway-fleet-view",
        to: &["view", "edit", "admin"],
        group: GROUP,
        resources: &[
            "assemblages",
            "bootstrapmodules",
            "modules",
            "remoteassemblages",
            "rollouts",
        ],
        verbs: &["get", "list", "watch"],
    },
    PeoplesRole {
        name: "slipway-fleet-edit",
        to: &["edit", "admin"],
        group: GROUP,
        resources: &["bootstrapmodules", "modules", "rollouts"],
        verbs: &["create", "update", "patch", "delete"],
    },
];
