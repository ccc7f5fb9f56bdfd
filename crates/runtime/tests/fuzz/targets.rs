//! What is fuzzed here.

mod addresses;
mod kubeconfigs;
mod prometheus;
mod templates;

use super::target::target;
pub(crate) use super::target::{Target, told};

/// All of them.
pub(crate) const TARGETS: &[Target] = &[
    target("addresses", 80, 20_000, addresses::addresses),
    target("prometheus", 120, 20_000, prometheus::prometheus),
    target("templates", 120, 20_000, templates::templates),
    target("kubeconfig", 240, 20_000, kubeconfigs::kubeconfig),
];
