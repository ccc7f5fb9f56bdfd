//! One file a subcommand.

pub(crate) mod apiserver;
pub(crate) mod crds;
