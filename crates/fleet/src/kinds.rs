//! Kinds that the fleet speaks of: those that everybody knows, its own, and those of Flux and Cluster API.

use slipway_api::fleet::{GROUP, VERSION};
use slipway_api::foreign::{cluster, git_repository, kustomization};
use slipway_kernel::Kind;
pub use slipway_kernel::identity::kinds::*;

/// `Rollout`.
pub const ROLLOUT: Kind = Kind::namespaced(GROUP, VERSION, "Rollout", "rollouts");
/// `Module`.
pub const MODULE: Kind = Kind::namespaced(GROUP, VERSION, "Module", "modules");
/// `BootstrapModule`.
pub const BOOTSTRAP_MODULE: Kind =
    Kind::namespaced(GROUP, VERSION, "BootstrapModule", "bootstrapmodules");
/// `RemoteAssemblage`.
pub const REMOTE_ASSEMBLAGE: Kind =
    Kind::namespaced(GROUP, VERSION, "RemoteAssemblage", "remoteassemblages");
/// `Assemblage`.
pub const ASSEMBLAGE: Kind = Kind::namespaced(GROUP, VERSION, "Assemblage", "assemblages");
/// Cluster API's `Cluster`, in the newest version that we read.
pub const CLUSTER: Kind = Kind::namespaced(cluster::GROUP, "v1beta2", cluster::KIND, "clusters");
/// The same in the version before.
pub const CLUSTER_BEFORE: Kind =
    Kind::namespaced(cluster::GROUP, "v1beta1", cluster::KIND, "clusters");
/// The definition of a kind.
pub const DEFINITION: Kind = Kind::clustered(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
);
/// apps/v1 `ControllerRevision`.
pub const CONTROLLER_REVISION: Kind =
    Kind::namespaced("apps", "v1", "ControllerRevision", "controllerrevisions");
/// Flux's `GitRepository`.
pub const GIT_REPOSITORY: Kind = Kind::namespaced(
    git_repository::GROUP,
    git_repository::VERSION,
    git_repository::KIND,
    "gitrepositories",
);
/// Flux's `Kustomization`.
pub const KUSTOMIZATION: Kind = Kind::namespaced(
    kustomization::GROUP,
    kustomization::VERSION,
    kustomization::KIND,
    "kustomizations",
);
