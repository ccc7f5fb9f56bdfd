//! What is assigned to a cluster, read out of its assemblage.

use serde_json::Value;
use slipway_api::fleet::assemblage::{AssemblageStatus, SyncStatus};
use slipway_api::fleet::sync::NamedSync;
use slipway_bindings::revision::template_of;
use slipway_kernel::fields::{integer, list, text};

use super::{Entry, EntryStatus};

/// The sync of this name in a `RemoteAssemblage` or an `Assemblage`, as an assignment of `by` (`Rollout/name`).
pub fn entry(assemblage: &Value, name: &str, by: &str) -> Option<Entry> {
    let remote = list(assemblage, "/spec/assemblage/syncs");
    let mut all = remote.chain(list(assemblage, "/spec/syncs"));
    let found = all.find(|sync| text(sync, "/name") == Some(name))?;
    let assigned_by = text(found, "/assignedBy");
    let mut statuses = list(assemblage, "/status/syncs");
    let status = statuses.find(|status| text(status, "/name") == Some(name));
    let status = status.and_then(self::status);
    let told = status
        .as_ref()
        .and_then(|status| status.observed.as_deref());
    let told = told.filter(|_| is_told(assemblage));
    let revision = text(found, "/revision").or_else(|| of_module(found, told));
    Some(Entry {
        is_ours: assigned_by == Some(by),
        revision: revision.map(str::to_owned),
        status,
    })
}

/// The revision of an entry that only names a module: what is told of it, which has its values in it. Not if the entry asks for
/// another revision of the module than what is told is of. Who asks for none means whatever the module is.
fn of_module<'a>(entry: &'a Value, told: Option<&'a str>) -> Option<&'a str> {
    text(entry, "/module/name")?;
    let asked = text(entry, "/module/revision");
    let is_asked = |told: &&str| asked.is_none_or(|asked| template_of(told) == asked);
    told.filter(is_asked).or(asked)
}

/// Whether a status is about what an assemblage asks for now.
fn is_told(assemblage: &Value) -> bool {
    integer(assemblage, "/status/observedGeneration") == integer(assemblage, "/metadata/generation")
}

/// How many syncs there are besides the one of this name.
pub fn others(assemblage: &Value, name: &str) -> usize {
    let remote = list(assemblage, "/spec/assemblage/syncs");
    let all = remote.chain(list(assemblage, "/spec/syncs"));
    all.filter(|sync| text(sync, "/name") != Some(name)).count()
}

/// The Secrets that bindings of its syncs refer to.
pub fn secrets(assemblage: &Value) -> impl Iterator<Item = &str> {
    let remote = list(assemblage, "/spec/assemblage/syncs");
    let all = remote.chain(list(assemblage, "/spec/syncs"));
    let bindings = all.flat_map(|sync| list(sync, "/bindings"));
    let fields = bindings.filter_map(|binding| binding.get("objectFieldRef"));
    let secrets = fields.filter(|field| text(field, "/kind") == Some("Secret"));
    secrets.filter_map(|field| text(field, "/name"))
}

/// The Secret with the kubeconfig that an assemblage names.
pub fn kubeconfig(assemblage: &Value) -> Option<&str> {
    text(assemblage, "/spec/kubeconfigRef/name")
}

fn status(status: &Value) -> Option<EntryStatus> {
    let read: SyncStatus = serde_json::from_value(status.clone()).ok()?;
    Some(EntryStatus {
        observed: read.observed_revision,
        state: read.state,
        reason: read.reason,
        message: read.message,
        since: read.since.map(|time| time.0),
    })
}

/// The syncs of an assemblage, with what its status said of each before.
pub fn syncs(assemblage: &Value) -> (Vec<NamedSync>, AssemblageStatus) {
    let all = list(assemblage, "/spec/syncs");
    let all = all.filter_map(|sync| serde_json::from_value(sync.clone()).ok());
    let status = assemblage.get("status").cloned();
    let status = status.and_then(|status| serde_json::from_value(status).ok());
    (all.collect(), status.unwrap_or_default())
}
