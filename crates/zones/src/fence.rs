//! What a new leader has to change before it acts, so that nothing that a former one has sent is still done.

use jiff::Timestamp;
use slipway_kernel::Target;
use slipway_kernel::claim::Claim;
use slipway_kernel::identity::kinds;
use slipway_kernel::store::Item;

use crate::observe::{Owner, Pod, Set, World, Zone};

/// The pods of a group with pending work, up to date or not: the former leader may have known another revision. And
/// `StatefulSet`s whose replicas we set: a former decision about one zone is not to meet a new one about another.
///
/// A pod that is terminating is lost already, and one that we do not own is never deleted.
pub fn objects_to_bump(world: &World) -> Vec<Target> {
    let mut all = Vec::new();
    for zone in &world.zones {
        let set = zone.set.body();
        let scaled = &set.scaling;
        if scaled.leader.is_some() || scaled.mirror.is_some() || scaled.force.is_some() {
            all.push(Target::seen(world.set_ref(zone), zone.set.meta()));
        }
    }
    if !world.zones.iter().any(is_pending) {
        return all;
    }
    for pod in world.zones.iter().flat_map(|zone| &zone.pods) {
        let owned = matches!(pod.body().owner, Owner::Set(_));
        if owned && !pod.body().is_deleting {
            let object = world.object(kinds::POD, &pod.meta().name);
            all.push(Target::seen(object, pod.meta()));
        }
    }
    all
}

/// Whether pods of the zone are being replaced, or are to be.
fn is_pending(zone: &Zone) -> bool {
    let set = zone.set.body();
    let revision = Some(set.status.update_revision.as_str());
    let is_late = |pod: &Item<Pod>| {
        let pod = pod.body();
        pod.revision() != revision || pod.is_deleting || !pod.is_ready
    };
    let present = i64::try_from(zone.pods.len()).unwrap_or(i64::MAX);
    is_claimed(set) || present < set.desired() || set.gap() > 0 || zone.pods.iter().any(is_late)
}

/// Whether we have claimed it, and be it long ago.
fn is_claimed(set: &Set) -> bool {
    let claim = set.claim.as_deref();
    claim
        .and_then(|claim| Claim::read(claim, Timestamp::MIN))
        .is_some_and(|claim| claim.holder == crate::NAME)
}
