//! The built-in kinds, one folder a group and one file a kind.
//!
//! A new kind is a new file and one line in its group's `resources`.

pub mod admissionregistration;
pub mod apps;
pub mod authorization;
pub mod autoscaling;
pub mod batch;
pub mod bootstrap;
pub mod cells;
pub mod certificates;
pub mod checks;
pub mod coordination;
pub mod core;
pub mod describe;
pub mod devices;
pub mod discovery;
pub mod events;
pub mod extensions;
pub mod names;
pub mod networking;
pub mod pod;
pub mod policy;
pub mod quantity;
pub mod rbac;
pub mod rules;
pub mod scheduling;
pub mod storage;

use crate::resource::Resource;

/// All built-in resources, in the order in which discovery lists their groups.
pub fn resources() -> Vec<Resource> {
    let mut all = Vec::new();
    all.extend(core::resources());
    all.extend(pod::resources());
    all.extend(events::resources());
    all.extend(apps::resources());
    all.extend(authorization::resources());
    all.extend(autoscaling::resources());
    all.extend(batch::resources());
    all.extend(certificates::resources());
    all.extend(networking::resources());
    all.extend(policy::resources());
    all.extend(rbac::resources());
    all.extend(storage::resources());
    all.extend(admissionregistration::resources());
    all.extend(extensions::resources());
    all.extend(scheduling::resources());
    all.extend(coordination::resources());
    all.extend(discovery::resources());
    all.extend(devices::resources());
    all
}
