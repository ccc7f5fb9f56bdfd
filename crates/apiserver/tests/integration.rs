//! The crate as its users see it: kube clients on the embedded server, faults, webhooks, the HTTPS shell, many
//! clusters in one process, and bad input.
#![allow(
    clippy::disallowed_methods,
    reason = "tests measure and wait in real time"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod integration {
    mod cost;
    mod stage;
}
