//! One file a subcommand.

pub(crate) mod apiserver;
