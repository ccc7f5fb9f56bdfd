//! The machine on the embedded API server, in virtual time, with a toy capability.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "tests"
)]

mod answers;
mod drain;
mod election;
mod fencing;
mod flow;
mod rights;
mod stage;
mod toy;
mod watches;
mod webhook;
mod webhook_tls;
