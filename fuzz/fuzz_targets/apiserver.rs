//! The target that `SLIPWAY_FUZZ_TARGET` names, under libFuzzer; `server` if it names none.
#![no_main]

#[path = "../../crates/apiserver/tests/fuzz"]
mod fuzz {
    pub(crate) mod corpus;
    pub(crate) mod generate;
    pub(crate) mod panics;
    pub(crate) mod tape;
    pub(crate) mod target;
    pub(crate) mod targets;
    #[path = "../integration/verdict.rs"]
    pub(crate) mod verdict;
}

use std::sync::LazyLock;

use fuzz::targets::{TARGETS, Target};

static CHOSEN: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("SLIPWAY_FUZZ_TARGET").unwrap_or_else(|_| "server".to_owned());
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("there is no target {name}"))
});

libfuzzer_sys::fuzz_target!(|tape: &[u8]| (CHOSEN.run)(tape));
