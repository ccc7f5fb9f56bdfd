//! Bindings as the fleet uses them: what has to be read, what they come to, what travels.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::result_large_err,
    clippy::too_many_lines,
    missing_docs,
    reason = "tests"
)]

#[path = "suite/objects.rs"]
mod objects;
#[path = "suite/properties.rs"]
mod properties;
#[path = "suite/secrets.rs"]
mod secrets;
#[path = "suite/semantics.rs"]
mod semantics;
