//! What is assigned to a cluster, read out of its assemblage.

use serde_json::Value;
use slipway_api::fleet::assemblage::SyncStatus;
use slipway_bindings::revision::template_of;
use slipway_kernel::fields::{integer, text};

use super::elements::Element;
use super::kept::Kept;
use super::{Entry, EntryStatus};

/// The sync of this name in a `RemoteAssemblage` or an `Assemblage`, as an assignment of `by` (`Rollout/name`).
pub fn entry(assemblage: &Kept, name: &str, by: &str) -> Option<Entry> {
    let found = assemblage.syncs().named(name)?;
    let status = assemblage.sync_status(name).map(status);
    let told = status
        .as_ref()
        .and_then(|status| status.observed.as_deref());
    let is_asked = found.module_revision().is_some();
    let told = told.filter(|_| is_asked || is_told(assemblage.object()));
    let revision = found.revision().or_else(|| of_module(found, told));
    Some(Entry {
        is_ours: found.assigned_by() == Some(by),
        revision: revision.map(str::to_owned),
        status,
    })
}

/// The revision of an entry that only names a module: what is told of it, which has its values in it. Not if the entry asks for
/// another revision of the module than what is told is of. Who asks for none means whatever the module is: only there it counts
/// whether what is told is of what the assemblage asks for now, which is something else whenever somebody changes another entry.
fn of_module<'a>(entry: &'a Element, told: Option<&'a str>) -> Option<&'a str> {
    entry.module()?;
    let asked = entry.module_revision();
    let is_asked = |told: &&str| asked.is_none_or(|asked| template_of(told) == asked);
    told.filter(is_asked).or(asked)
}

/// Whether a status is about what an assemblage asks for now.
fn is_told(assemblage: &Value) -> bool {
    integer(assemblage, "/status/observedGeneration") == integer(assemblage, "/metadata/generation")
}

/// How many syncs there are besides the one of this name.
pub fn others(assemblage: &Kept, name: &str) -> usize {
    let all = assemblage.syncs().iter();
    all.filter(|sync| sync.name() != Some(name)).count()
}

/// The Secret with the kubeconfig that an assemblage names.
pub fn kubeconfig(assemblage: &Value) -> Option<&str> {
    text(assemblage, "/spec/kubeconfigRef/name")
}

fn status(told: SyncStatus) -> EntryStatus {
    EntryStatus {
        observed: told.observed_revision,
        state: told.state,
        reason: told.reason,
        message: told.message,
        since: told.since.map(|time| time.0),
    }
}
