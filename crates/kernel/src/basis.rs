//! What a decision was made on.

use std::collections::BTreeMap;

use crate::identity::{ClusterId, Kind};
use crate::store::Stores;

/// The newest version seen of each kind.
pub type Basis = BTreeMap<(ClusterId, Kind), u64>;

/// What is decided on by who looks at a cluster now. Of a kind that is kept by several projections the last one counts, in
/// the order of their names.
pub fn basis(stores: &Stores, cluster: &ClusterId) -> Basis {
    stores
        .of_cluster(cluster)
        .map(|((of, kind, _), store)| ((of.clone(), kind.clone()), store.version()))
        .collect()
}
