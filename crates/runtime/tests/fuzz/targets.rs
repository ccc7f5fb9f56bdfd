//! What is fuzzed here.

mod addresses;
mod heads;
mod kubeconfigs;
mod prometheus;
mod templates;

use super::target::target;
pub(crate) use super::target::{Target, law, told};

/// All of them.
pub(crate) const TARGETS: &[Target] = &[
    target("addresses", 80, 20_000, addresses::addresses),
    target("prometheus", 120, 20_000, prometheus::prometheus),
    target("templates", 120, 20_000, templates::templates),
    target("heads", 80, 20_000, heads::heads),
    target("kubeconfig", 240, 20_000, kubeconfigs::kubeconfig),
];
