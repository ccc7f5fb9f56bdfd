//! Damaged, odd and hostile input to what reads other people's texts in the runtime. See `crates/apiserver/tests/fuzz.rs`,
//! whose driver this is.
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
#![allow(dead_code, reason = "not every target needs all that is shared")]

mod fuzz {
    #[path = "../../../apiserver/tests/fuzz/driver.rs"]
    pub(crate) mod driver;
    #[path = "../../../apiserver/tests/fuzz/generate.rs"]
    pub(crate) mod generate;
    #[path = "../../../apiserver/tests/fuzz/harness.rs"]
    pub(crate) mod harness;
    #[path = "../../../apiserver/tests/fuzz/panics.rs"]
    pub(crate) mod panics;
    #[path = "../../../apiserver/tests/fuzz/tape.rs"]
    pub(crate) mod tape;
    #[path = "../../../apiserver/tests/fuzz/target.rs"]
    pub(crate) mod target;
    pub(crate) mod targets;
}

fn main() -> std::process::ExitCode {
    fuzz::harness::main()
}
