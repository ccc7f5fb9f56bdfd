//! The fleet's controllers through the runtime, on embedded API servers: a hub and three clusters, each with an agent and somebody
//! who stands in for Flux.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "tests"
)]

mod bad_input;
mod bindings;
mod bootstrap;
mod clusters;
mod crowded;
mod definitions;
mod flux;
mod forgotten;
#[path = "../../../runtime/tests/integration/ground.rs"]
mod ground;
mod hazards;
mod hubs;
mod incremental;
mod late;
#[path = "../../../runtime/tests/integration/members/line.rs"]
#[allow(dead_code, reason = "others use all of it")]
mod line;
mod mistakes;
mod parties;
mod refusals;
mod replace;
mod returned;
mod stage;
mod unsaid;
