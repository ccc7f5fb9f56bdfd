//! Kinds that restarts speak of: those that everybody knows, and their own.

use slipway_kernel::Kind;
pub use slipway_kernel::identity::kinds::*;

/// The API group of Flippers.
pub const FLIPPER_GROUP: &str = "flipper.io.github.com";
/// flipper.io.github.com/v1alpha1 Flipper.
pub const FLIPPER: Kind = Kind::namespaced(FLIPPER_GROUP, "v1alpha1", "Flipper", "flippers");
