//! The actors in virtual time, by what a user would notice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests"
)]

#[path = "actors/deployments.rs"]
mod deployments;
#[path = "actors/flux.rs"]
mod flux;
#[path = "actors/gateway.rs"]
mod gateway;
#[path = "actors/others.rs"]
mod others;
#[path = "actors/replicas.rs"]
mod replicas;
#[path = "actors/services.rs"]
mod services;
#[path = "actors/shell.rs"]
mod shell;
#[path = "actors/stage.rs"]
mod stage;
#[path = "actors/statefulsets.rs"]
mod statefulsets;
