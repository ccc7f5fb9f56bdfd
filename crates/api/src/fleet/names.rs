//! Labels, annotations, finalizers and field managers of the fleet's objects.

/// On a Rollout or a module: what it was assigned to is taken away before it goes.
pub const FINALIZER: &str = "fleet.squaremo.dev/assignments";

/// On what was made for a sync: the name of its assemblage.
pub const ASSEMBLAGE: &str = "fleet.squaremo.dev/assemblage";

/// On what was made for a sync: the whole name of its assemblage, which it is known by. Not an owner reference: a restored assemblage
/// has another uid, and what was made for it would be taken for nobody's.
pub const MADE_FOR: &str = "fleet.squaremo.dev/made-for";

/// On what was made for a sync: the name of the sync.
pub const SYNC: &str = "fleet.squaremo.dev/sync";

/// On a module: the Rollout whose revision it is.
pub const ROLLOUT: &str = "fleet.squaremo.dev/rollout";

/// On a module and on a `ControllerRevision`: the revision of its spec.
pub const REVISION: &str = "fleet.squaremo.dev/revision";

/// On a Secret with a kubeconfig: it is a cluster of its own, without Cluster API.
pub const CLUSTER: &str = "fleet.squaremo.dev/cluster";

/// On a Secret with values for one cluster: the name of that cluster, the only one that it is copied to.
pub const VALUES_FOR: &str = "fleet.squaremo.dev/values-for";

/// On a Secret with values in a workload cluster: the `RemoteAssemblage` for which it was written there, and which deletes it.
pub const COPIED_FOR: &str = "fleet.squaremo.dev/copied-for";

/// On a Secret with values for one cluster: who made it, `Rollout.name`.
pub const ASSIGNED_BY: &str = "fleet.squaremo.dev/assigned-by";
/// On a `ClusterRole`: what bindings may read.
pub const BINDINGS: &str = "fleet.squaremo.dev/bindings";
/// On an `Assemblage` in a workload cluster: what was made for it is taken away before it goes.
pub const EXPANDED: &str = "fleet.squaremo.dev/expanded";
/// On a `RemoteAssemblage`: its cluster is cleared before it goes.
pub const CLEARED: &str = "fleet.squaremo.dev/cluster";
/// On a Kustomization: the revision of the sync that it was made from.
pub const APPLIED: &str = "fleet.squaremo.dev/applied-revision";

/// On a Kustomization: a hash of what we asked for. Others may ask for more, which is theirs.
pub const APPLIED_SPEC: &str = "fleet.squaremo.dev/applied-spec";

/// On a source or a Kustomization: a hash of what somebody else made of it and we put right. If it is so again, somebody insists.
pub const PUT_RIGHT: &str = "fleet.squaremo.dev/put-right";

/// On a Rollout: how many clusters may lose its configuration at once. On a `RemoteAssemblage`: how many syncs may be taken away that
/// its cluster has and nobody has assigned there. A person's word; it is taken away when it has been followed.
pub const CONFIRM_UNASSIGN: &str = "fleet.squaremo.dev/confirm-unassign";

/// On a `RemoteAssemblage`: the control plane whose place this one takes in the cluster, by the uid of its `kube-system`. A person's
/// word; it is taken away when it has been followed.
pub const TAKE_OVER: &str = "fleet.squaremo.dev/take-over";

/// The key of a kubeconfig in its Secret, as Cluster API has it.
pub const KUBECONFIG_KEY: &str = "value";

/// What a name of a kubeconfig Secret of Cluster API ends with.
pub const KUBECONFIG_SUFFIX: &str = "-kubeconfig";

/// What the name of the Assemblage with a cluster's bootstrap modules ends with.
pub const BOOTSTRAP_SUFFIX: &str = "-bootstrap";

/// The Lease of the fleet.
pub const LEASE: &str = "slipway-fleet";
/// The Lease of the agent.
pub const AGENT_LEASE: &str = "slipway-agent";

/// The field manager of the assignments of one Rollout, or of one module with a selector: so each owns its own entries, and
/// nobody's writes conflict with another's. Field managers have at most 128 characters; longer names end in their hash.
pub fn field_manager(owner: &str) -> String {
    const LONGEST: usize = 128;
    let whole = format!("slipway-fleet/{owner}");
    if whole.len() <= LONGEST {
        return whole;
    }
    let hash = format!("-{:016x}", fnv(owner));
    let mut cut = LONGEST - hash.len();
    while !whole.is_char_boundary(cut) {
        cut -= 1;
    }
    format!("{}{hash}", whole.get(..cut).unwrap_or_default())
}

/// FNV-1a: spreads, and is the same everywhere.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::field_manager;

    #[test]
    fn every_owner_has_a_field_manager_of_its_own_that_the_api_accepts() {
        let short = field_manager("Rollout/app");
        assert_eq!(short, "slipway-fleet/Rollout/app");
        let long = |end: &str| field_manager(&format!("Rollout/{}{end}", "a".repeat(250)));
        assert!(long("b").len() <= 128 && long("c").len() <= 128);
        assert_ne!(long("b"), long("c"));
    }
}
