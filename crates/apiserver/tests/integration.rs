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
    clippy::similar_names,
    reason = "tests"
)]

mod integration {
    mod audit;
    mod bad_address;
    mod bad_input;
    mod cost;
    mod custom;
    mod definitions;
    mod determinism;
    mod faults;
    mod hostile;
    mod objects;
    mod openapi;
    #[path = "../../../../xtask/src/generate/outline.rs"]
    #[allow(
        dead_code,
        unreachable_pub,
        reason = "what writes them is for whoever generates"
    )]
    mod outline;
    mod outside;
    mod scenario;
    mod stage;
    mod verdict;
    mod watch_faults;
    mod webhooks;
    mod wire;
}
