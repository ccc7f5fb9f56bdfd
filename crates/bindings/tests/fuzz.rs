//! Damaged, odd and hostile bindings, selectors and pointers, and the laws that hold for all of them.
//!
//! The driver, its command line and how a case is drawn are those of the API server's targets: `cargo test --test fuzz` runs
//! some cases, `cargo xtask fuzz` a million of each.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test with an output of its own, which measures"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fuzz {
    #[path = "../../../apiserver/tests/fuzz/driver.rs"]
    pub(crate) mod driver;
    #[path = "../../../apiserver/tests/fuzz/harness.rs"]
    pub(crate) mod harness;
    #[path = "../../../apiserver/tests/fuzz/panics.rs"]
    #[allow(dead_code, reason = "other targets use all of it")]
    pub(crate) mod panics;
    #[path = "../../../apiserver/tests/fuzz/tape.rs"]
    #[allow(dead_code, reason = "other targets use all of it")]
    pub(crate) mod tape;
    #[path = "../../../apiserver/tests/fuzz/target.rs"]
    pub(crate) mod target;
    pub(crate) mod targets;
}

fn main() -> std::process::ExitCode {
    fuzz::harness::main()
}
