//! Canary on the embedded API server: the runtime, controllers that behave as the real ones do, a stand-in for a gateway, and
//! somebody outside who measures and approves. All in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

mod alerts;
mod beside;
mod blue_green;
mod configs;
mod crashes;
mod endings;
mod gates;
mod hostile;
mod idle;
#[path = "../../../runtime/tests/integration/records.rs"]
mod records;
mod scalers;
mod secrets;
#[path = "../../../runtime/tests/integration/spellings.rs"]
mod spellings;
mod stage;
mod weights;
mod world;
