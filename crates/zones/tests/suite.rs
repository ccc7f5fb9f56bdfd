//! All tests of zone rollouts that go through the planner as the runtime does: objects into stores, a world out of these,
//! a plan out of the world.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

#[path = "suite/budgets.rs"]
mod budgets;
#[path = "suite/cases.rs"]
mod cases;
#[path = "suite/claims.rs"]
mod claims;
#[path = "suite/controller.rs"]
mod controller;
#[path = "suite/defects.rs"]
mod defects;
#[path = "suite/delay.rs"]
mod delay;
#[path = "suite/exhaustive.rs"]
mod exhaustive;
#[path = "suite/fence.rs"]
mod fence;
#[path = "suite/mirror.rs"]
mod mirror;
#[path = "suite/objects.rs"]
mod objects;
#[path = "suite/policies.rs"]
mod policies;
#[path = "suite/properties.rs"]
mod properties;
#[path = "suite/replicas.rs"]
mod replicas;
#[path = "suite/shared_budgets.rs"]
mod shared_budgets;
#[path = "suite/triggers.rs"]
mod triggers;
