//! What is fuzzed here.

mod kubeconfigs;

use super::target::target;
pub(crate) use super::target::{Target, told};

/// All of them.
pub(crate) const TARGETS: &[Target] = &[target("kubeconfig", 240, 20_000, kubeconfigs::kubeconfig)];
