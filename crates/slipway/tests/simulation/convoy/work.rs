//! Which work there is, and which changes it is about.

use slipway_kernel::Key;
use slipway_kernel::identity::ClusterId;
use slipway_kernel::interest::Triggers;
use slipway_kernel::store::{Meta, Stores};

use super::{Convoy, NAME, PLACE, Slip, maps, named};

/// What a mutant's name of work in a member begins with.
pub(super) const IN: &str = "app in ";

pub(super) fn home_key(name: &str) -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: NAME,
        namespace: PLACE.to_owned(),
        name: name.to_owned(),
    }
}

pub(super) fn member_key(cluster: &ClusterId) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: NAME,
        namespace: PLACE.to_owned(),
        name: "app".to_owned(),
    }
}

/// The work in a member. A mutant calls it work at home.
fn work<const FORGETS: bool>(cluster: &ClusterId) -> Key {
    if FORGETS {
        return home_key(&format!("{IN}{cluster}"));
    }
    member_key(cluster)
}

/// A change at home may free the budget for any member, or begin a turn; one in a member is about this member.
fn on_map<const FORGETS: bool>(cluster: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    if !cluster.is_local() {
        return vec![work::<FORGETS>(cluster)];
    }
    let mut keys: Vec<Key> = maps(stores)
        .map(|(member, _)| home_key(member.as_str()))
        .collect();
    keys.extend(named(&meta.name).map(|member| work::<FORGETS>(&member)));
    keys
}

/// Whether a turn is done is seen in the member, and written down at home.
fn on_app<const FORGETS: bool>(cluster: &ClusterId, _: &Meta, _: &Stores) -> Vec<Key> {
    vec![work::<FORGETS>(cluster), home_key(cluster.as_str())]
}

fn on_hold<const FORGETS: bool>(cluster: &ClusterId, _: &Meta, _: &Stores) -> Vec<Key> {
    vec![work::<FORGETS>(cluster)]
}

impl Convoy {
    /// The work in a member.
    pub(super) fn work(self, cluster: &ClusterId) -> Key {
        if self.has(Slip::Key) {
            return work::<true>(cluster);
        }
        work::<false>(cluster)
    }

    /// Which work changes are: of maps, of Deployments, of what holds a member.
    pub(super) fn triggers(self) -> [Triggers; 3] {
        if self.has(Slip::Key) {
            return [on_map::<true>, on_app::<true>, on_hold::<true>];
        }
        [on_map::<false>, on_app::<false>, on_hold::<false>]
    }
}
