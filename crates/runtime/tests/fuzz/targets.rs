//! What is fuzzed here.

mod addresses;
mod kubeconfigs;

use super::target::target;
pub(crate) use super::target::{Target, told};

/// All of them.
pub(crate) const TARGETS: &[Target] = &[
    target("addresses", 80, 20_000, addresses::addresses),
    target("kubeconfig", 240, 20_000, kubeconfigs::kubeconfig),
];
