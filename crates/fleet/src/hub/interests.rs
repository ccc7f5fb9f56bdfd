//! What the hub looks at.

use slipway_api::fleet::names;
use slipway_kernel::Kind;
use slipway_kernel::interest::{Interest, Triggers, Where};

use super::triggers::{
    by_assemblage, by_bootstrap_module, by_cluster, by_kubeconfig, by_kustomization, by_leaf,
    by_made, by_member, by_module, by_one_kubeconfig, by_remote, by_revision, by_source, by_values,
    itself, means_itself, meant_by_kubeconfig, meant_by_remote, naming, naming_bootstrap_modules,
    naming_cluster, of_bootstrap_uid, of_cluster, of_kubeconfig, of_uid, of_values,
};
use crate::assemblage::{KustomizationSeen, SourceSeen};
use crate::kinds;
use crate::observe::seen::{Assembled, Bare, Installed, LeafSeen, RemoteSeen, Whole};

/// Secrets that stand for clusters.
pub(crate) const CLUSTERS: &str = "clusters";
/// Kubeconfigs of Cluster API.
pub(crate) const KUBECONFIGS: &str = "kubeconfigs";
/// Secrets that were made for Kustomizations.
pub(crate) const MADE: &str = "made";
/// Secrets with values in a member.
pub(crate) const COPIED: &str = "copied";
/// `RemoteAssemblages` by the cluster that they are about; `Assemblages` by the one that they name.
pub(crate) const OF_CLUSTER: &str = "cluster";

/// `RemoteAssemblages` by the kubeconfig that they name: each of a thousand clusters may have one of Cluster API.
pub(crate) const OF_KUBECONFIG: &str = "kubeconfig";

/// `RemoteAssemblages`, and `Assemblages`, by the uid of the cluster that they recorded.
pub(crate) const OF_UID: &str = "uid";

/// Assemblages by the modules that they name, as `namespace/name`; all `RemoteAssemblages` that name any: under [`MODULES`].
pub(crate) const NAMING: &str = "naming";
/// What those are found by.
pub(crate) const MODULES: &str = "modules";

/// Secrets with values by what their labels say of whom they are for, and who made them.
pub(crate) const VALUES: &str = "values";

/// The namespace by whose uid a cluster is known.
pub(crate) const SYSTEM: &str = "kube-system";

/// What Cluster API puts on the kubeconfig of a cluster.
const API_CLUSTER: &str = "cluster.x-k8s.io/cluster-name";

/// The store of one kubeconfig that nobody has labelled.
pub(crate) fn one_kubeconfig(namespace: &str, name: &str) -> String {
    format!("kubeconfig {namespace}/{name}")
}

/// All that the hub looks at, whatever objects there are.
pub(crate) fn interests() -> Vec<Interest> {
    let cluster = |kind: Kind| {
        let all = Interest::of::<Whole>(kind, by_cluster).meaning(means_itself);
        all.where_defined()
    };
    vec![
        Interest::of::<Whole>(kinds::ROLLOUT, itself),
        Interest::of::<Whole>(kinds::MODULE, by_module),
        Interest::of::<Whole>(kinds::BOOTSTRAP_MODULE, by_bootstrap_module),
        Interest::of::<RemoteSeen>(kinds::REMOTE_ASSEMBLAGE, by_remote)
            .indexed(OF_CLUSTER, of_cluster)
            .indexed(OF_KUBECONFIG, of_kubeconfig)
            .indexed(OF_UID, of_uid)
            .indexed(NAMING, naming)
            .meaning(meant_by_remote),
        Interest::of::<Assembled>(kinds::ASSEMBLAGE, by_assemblage)
            .indexed(NAMING, naming_bootstrap_modules)
            .indexed(OF_CLUSTER, naming_cluster)
            .indexed(OF_UID, of_bootstrap_uid),
        Interest::of::<Whole>(kinds::CONTROLLER_REVISION, by_revision).labelled(names::ROLLOUT),
        cluster(kinds::CLUSTER),
        cluster(kinds::CLUSTER_BEFORE),
        Interest::of::<Bare>(kinds::SECRET, by_cluster)
            .labelled(names::CLUSTER)
            .in_slot(CLUSTERS)
            .meaning(means_itself),
        Interest::of::<Bare>(kinds::SECRET, by_kubeconfig)
            .labelled(API_CLUSTER)
            .in_slot(KUBECONFIGS)
            .meaning(meant_by_kubeconfig),
        values(by_values),
        made(by_made),
        sources(by_source),
        kustomizations(by_kustomization),
        // Which control plane this is, is said in each cluster; it never changes. Without the right to know it all else goes on, and
        // what is not written into clusters says why.
        Interest::of::<Bare>(kinds::NAMESPACE, |_, _, _| Vec::new())
            .only("", SYSTEM)
            .in_slot(namespace_slot(SYSTEM))
            .where_defined(),
        // Before its agent is installed a cluster has no such kind.
        Interest::of::<LeafSeen>(kinds::ASSEMBLAGE, by_leaf)
            .at(Where::Members)
            .where_defined(),
        Interest::of::<Bare>(kinds::SECRET, by_member)
            .labelled(names::VALUES_FOR)
            .in_slot(COPIED)
            .at(Where::Members),
    ]
}

/// Secrets with values for one cluster.
pub(crate) fn values(triggers: Triggers) -> Interest {
    let all = Interest::of::<Whole>(kinds::SECRET, triggers).labelled(names::VALUES_FOR);
    all.indexed(VALUES, of_values)
}

/// Secrets that were made for Kustomizations.
pub(crate) fn made(triggers: Triggers) -> Interest {
    Interest::of::<Bare>(kinds::SECRET, triggers)
        .labelled(names::ASSEMBLAGE)
        .in_slot(MADE)
}

/// Sources that were made for assemblages.
pub(crate) fn sources(triggers: Triggers) -> Interest {
    Interest::of::<SourceSeen>(kinds::GIT_REPOSITORY, triggers)
        .labelled(names::ASSEMBLAGE)
        .where_defined()
}

/// Kustomizations, also of others, whose names are not ours to take.
pub(crate) fn kustomizations(triggers: Triggers) -> Interest {
    Interest::of::<KustomizationSeen>(kinds::KUSTOMIZATION, triggers).where_defined()
}

/// The store of one namespace.
pub(crate) fn namespace_slot(namespace: &str) -> String {
    format!("namespace {namespace}")
}

/// A namespace that something is to be in.
pub(crate) fn namespace(name: &str, triggers: Triggers) -> Interest {
    Interest::of::<Bare>(kinds::NAMESPACE, triggers)
        .only("", name)
        .in_slot(namespace_slot(name))
        .optional()
}

/// The name of the definition of a kind.
pub(crate) fn definition_of(kind: &Kind) -> String {
    format!("{}.{}", kind.plural, kind.group)
}

/// The definition of a kind of ours: with it all its objects go, and nobody has said that what they stand for may.
pub(crate) fn definition(kind: &Kind, triggers: Triggers) -> Interest {
    let name = definition_of(kind);
    Interest::of::<Installed>(kinds::DEFINITION, triggers)
        .only("", name.clone())
        .in_slot(name)
}

/// A kubeconfig that nobody has labelled.
pub(crate) fn kubeconfig(namespace: &str, name: &str) -> Interest {
    Interest::of::<Bare>(kinds::SECRET, by_one_kubeconfig)
        .only(namespace, name)
        .in_slot(one_kubeconfig(namespace, name))
        .meaning(meant_by_kubeconfig)
        .optional()
}
