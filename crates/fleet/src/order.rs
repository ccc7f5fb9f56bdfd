//! In which order clusters are changed.
//!
//! It is the same whenever it is asked for, but another one for each Rollout: else the cluster whose name is first would be
//! everybody's canary.

use slipway_bindings::revision::digest;

/// The place of a cluster in the order of a Rollout: the lowest goes first.
pub fn place(rollout: &str, cluster: &str) -> (String, String) {
    // A separator that is in no name.
    let hash = digest(&format!("{rollout}/{cluster}"), 16);
    (hash, cluster.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::place;

    #[test]
    fn every_rollout_has_an_order_of_its_own() {
        let clusters = ["a", "b", "c", "d", "e", "f"];
        let first = |rollout: &str| clusters.into_iter().min_by_key(|c| place(rollout, c));
        let names: Vec<String> = (0..40).map(|n| format!("shop/rollout-{n}")).collect();
        let canaries: BTreeSet<_> = names.iter().map(|name| first(name)).collect();
        assert!(canaries.len() > 3, "{canaries:?}");
        assert_eq!(first("shop/web"), first("shop/web"));
    }
}
