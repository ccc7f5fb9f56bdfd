//! The defects B1–B22 of the controller that this replaces, each as a test that would show it again.
//!
//! B19 (rights), B20 (names in documents) and B22 (one slow call delays all) are the runtime's and the manifests'; what a
//! planner can show of them is here. B12 (conflicts) is the executor's: a plan's part is to name the version it saw.

#[path = "defects/bounds.rs"]
mod bounds;
#[path = "defects/clocks.rs"]
mod clocks;
#[path = "defects/holding.rs"]
mod holding;
#[path = "defects/policies.rs"]
mod policies;
#[path = "defects/restarts.rs"]
mod restarts;
