//! Damaged, odd and hostile input to every part that reads some, and the laws that hold for all of it.
//!
//! Each target turns a tape of bytes into a case and asserts laws about it. `cargo test --test fuzz` runs each for some
//! cases from a fixed seed, and the cases that once failed (`fuzz/regressions`); `cargo xtask fuzz` runs a million
//! each. The same targets run under libFuzzer from the folder `fuzz` of the repository.
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

/// Cases allocate a lot and keep nothing.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod fuzz {
    pub(crate) mod command;
    pub(crate) mod corpus;
    pub(crate) mod driver;
    pub(crate) mod generate;
    pub(crate) mod panics;
    pub(crate) mod tape;
    pub(crate) mod targets;
    #[path = "../integration/verdict.rs"]
    pub(crate) mod verdict;
}

use std::process::ExitCode;

fn main() -> ExitCode {
    fuzz::command::main()
}
