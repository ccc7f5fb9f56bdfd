//! The finalizers that keep claims and volumes from going while they are in use.
//!
//! The server itself puts them on every claim and volume. A claim is in use while a pod that is on a node names it, a
//! volume while it is bound.

use serde_json::Value;

use super::{Collector, Node, drop_finalizer};
use crate::builtin::core::{claim, volume};
use crate::store::Stored;
use crate::value;

pub(super) const PODS: &str = "/pods";
const CLAIMS: &str = "/persistentvolumeclaims";
const VOLUMES: &str = "/persistentvolumes";

impl Collector {
    /// Lets a claim or volume go that is being deleted, if nobody uses it.
    pub(super) fn release(&self, node: &Node) {
        // Other finalizers may have been worked off since the change.
        let Some(stored) = self.current(node).filter(|s| s.header.deleting) else {
            return;
        };
        let (finalizer, used) = match &*node.bucket {
            CLAIMS => (claim::PROTECTION, self.is_claim_used(&stored)),
            VOLUMES => (volume::PROTECTION, is_bound(&stored.decode())),
            _ => return,
        };
        let held =
            value::items(&stored.decode(), "metadata.finalizers").contains(&finalizer.into());
        if held && !used {
            self.change(node, &stored, "", |object| {
                drop_finalizer(object, finalizer);
            });
        }
    }

    /// A pod has changed or is gone: the claims that it used may go.
    pub(super) fn pod_changed(&self, pod: &Stored) {
        if self.cluster.store.count(CLAIMS) == 0 {
            return;
        }
        for (name, _) in claims_of(&pod.decode()) {
            let found = self.cluster.store.get(CLAIMS, &pod.header.namespace, &name);
            if let Some(claim) = found {
                self.release(&Node::of(CLAIMS, &claim));
            }
        }
    }

    fn is_claim_used(&self, claim: &Stored) -> bool {
        let uses = |pod: &Stored| {
            let object = pod.decode();
            let ended = matches!(value::text(&object, "status.phase"), "Succeeded" | "Failed");
            let own = claim.header.owners.contains(&pod.header.uid);
            !value::text(&object, "spec.nodeName").is_empty()
                && claims_of(&object).iter().any(|(name, ephemeral)| {
                    **name == *claim.header.name && (!ephemeral || own && !ended)
                })
        };
        let namespace = &claim.header.namespace;
        let pods = self.cluster.store.list(PODS, namespace, &|_| true);
        pods.objects.iter().any(|pod| uses(pod))
    }
}

fn is_bound(volume: &Value) -> bool {
    value::text(volume, "status.phase") == "Bound"
}

/// The claims of a pod's volumes, and whether they were made for the pod.
fn claims_of(pod: &Value) -> Vec<(String, bool)> {
    let volumes = value::items(pod, "spec.volumes").iter();
    volumes
        .filter_map(|volume| {
            if value::has(volume, "ephemeral") {
                let pod = value::text(pod, "metadata.name");
                return Some((format!("{pod}-{}", value::text(volume, "name")), true));
            }
            let name = value::text(volume, "persistentVolumeClaim.claimName");
            (!name.is_empty()).then(|| (name.to_owned(), false))
        })
        .collect()
}

#[cfg(test)]
mod tests;
