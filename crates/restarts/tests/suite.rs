//! All tests of restarts that go through the planner as the runtime does: objects into stores, a world out of these,
//! a plan out of the world.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

#[path = "suite/cases.rs"]
mod cases;
#[path = "suite/conformance.rs"]
mod conformance;
#[path = "suite/defects.rs"]
mod defects;
#[path = "suite/exhaustive.rs"]
mod exhaustive;
#[path = "suite/objects.rs"]
mod objects;
#[path = "suite/properties.rs"]
mod properties;
