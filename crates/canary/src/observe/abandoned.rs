//! Workloads that a Canary has left: it is deleted, and no other one is about them.

use serde_json::Value;
use slipway_kernel::fields::text;
use slipway_kernel::store::Seen;
use slipway_kernel::{Key, ObjectRef, Stores, Target};

use super::projections::{read, whole};
use super::{CanarySeen, Whole, on_object};
use crate::kinds;
use crate::router;

/// The index of workloads that bear a claim of ours, whether or not it still holds, by their namespaces.
pub(super) const CLAIMED: &str = "claimed";

/// What [`CLAIMED`] finds a workload by.
pub(super) fn index_claimed(seen: &Seen) -> Vec<String> {
    let is_claimed = whole(seen).is_some_and(Whole::is_claimed);
    let namespace = is_claimed.then(|| seen.meta.namespace.clone());
    namespace.into_iter().collect()
}

/// Workloads with a claim of ours in the namespace of a Canary that is gone, and that no Canary is about; none if it is there, or
/// nobody can tell: of a Canary that cannot be read nobody knows what it is about. Copies go with the Canary that made them.
pub fn abandoned(stores: &Stores, key: &Key) -> Vec<(Target, Value)> {
    let (cluster, namespace) = (&key.cluster, &key.namespace);
    let canaries = stores.typed::<CanarySeen>(cluster, &kinds::CANARY);
    let known = canaries.filter(|known| known.is_synced());
    let is_clear = known.is_some_and(|known| {
        let mut here = known.in_namespace(namespace);
        known.get(namespace, &key.name).is_none() && here.all(|seen| read(seen).is_some())
    });
    if !is_clear {
        return Vec::new();
    }
    let workloads = [kinds::DEPLOYMENT, kinds::DAEMON_SET];
    let claimed = workloads.iter().flat_map(|kind| {
        let claimed = stores.indexed::<Whole>(cluster, kind, CLAIMED, namespace);
        claimed.map(move |entry| (kind, entry))
    });
    let left = claimed.filter(|(_, entry)| on_object(cluster, entry.meta, stores).is_empty());
    let seen = left.map(|(kind, entry)| {
        let object = ObjectRef {
            cluster: cluster.clone(),
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: entry.meta.name.clone(),
        };
        (Target::seen(object, entry.meta), entry.body.value())
    });
    seen.filter(|(_, object)| !is_copy(object)).collect()
}

/// Whether a Canary controls it.
fn is_copy(object: &Value) -> bool {
    let controller = router::controller(object);
    controller.and_then(|one| text(one, "/kind")) == Some(slipway_api::canary::KIND)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::{Value, json};
    use slipway_api::names::DISRUPTION_CLAIM;
    use slipway_kernel::interest::Interest;
    use slipway_kernel::{ClusterId, Kind, Stores};

    use super::CLAIMED;
    use crate::kinds;
    use crate::observe::{Whole, interests, interests_in};
    use crate::settings::Settings;

    fn see(stores: &mut Stores, interest: &Interest, object: &Value) {
        let key = stores.open(&ClusterId::local(), interest);
        stores.store_mut(&key).unwrap().observe(object);
    }

    fn claimed_by(holder: &str) -> Value {
        let claim = json!({"holder": holder, "until": "2026-01-01T00:00:00Z"}).to_string();
        json!({DISRUPTION_CLAIM: claim})
    }

    fn of_kind(all: Vec<Interest>, kind: &Kind) -> Interest {
        all.into_iter().find(|one| one.kind == *kind).unwrap()
    }

    #[test]
    fn only_workloads_with_a_claim_of_ours_are_looked_at() {
        let (home, mut stores) = (ClusterId::local(), Stores::default());
        let canary = json!({
            "apiVersion": "flagger.app/v1beta1", "kind": "Canary",
            "metadata": {"name": "api", "namespace": "shop", "uid": "u", "resourceVersion": "1"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "api"},
                "service": {"port": 80},
                "analysis": {"interval": "10s", "threshold": 2, "stepWeight": 50},
            },
        });
        see(&mut stores, &of_kind(interests(), &kinds::CANARY), &canary);
        let needed = interests_in(&Settings::default(), &stores, &home);
        for interest in [
            of_kind(interests(), &kinds::DEPLOYMENT),
            of_kind(needed, &kinds::DAEMON_SET),
        ] {
            for (name, annotations) in [
                ("ours", claimed_by("canary")),
                ("theirs", claimed_by("zones")),
                ("free", json!({})),
                ("spoilt", json!({DISRUPTION_CLAIM: "canary"})),
            ] {
                let workload = json!({"metadata": {"name": name, "namespace": "shop", "uid": name,
                    "resourceVersion": "1", "annotations": annotations}});
                see(&mut stores, &interest, &workload);
            }
            let found = stores.indexed::<Whole>(&home, &interest.kind, CLAIMED, "shop");
            let found: Vec<&str> = found.map(|entry| entry.meta.name.as_str()).collect();
            assert_eq!(found, ["ours"], "{}", interest.kind.kind);
        }
    }
}
