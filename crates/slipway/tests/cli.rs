//! The program as people run it: its output, its exit codes, and what it leaves behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod cli {
    pub(crate) mod cores;
    pub(crate) mod demo;
    pub(crate) mod files;
    pub(crate) mod install;
    pub(crate) mod operator;
    pub(crate) mod program;
    pub(crate) mod readme;
    pub(crate) mod rollout_controller;
    pub(crate) mod rollout_operator;
    pub(crate) mod safety;
    pub(crate) mod usage;
    pub(crate) mod webhooks;
    pub(crate) mod zones;
}
