//! The target of the runtime that `SLIPWAY_FUZZ_TARGET` names, under libFuzzer; `kubeconfig` if it names none.
#![no_main]

#[path = "../../crates/runtime/tests/fuzz"]
mod fuzz {
    #[path = "../../../apiserver/tests/fuzz/generate.rs"]
    pub(crate) mod generate;
    #[path = "../../../apiserver/tests/fuzz/tape.rs"]
    pub(crate) mod tape;
    #[path = "../../../apiserver/tests/fuzz/target.rs"]
    pub(crate) mod target;
    pub(crate) mod targets;
}

use std::sync::LazyLock;

use fuzz::targets::{TARGETS, Target};

static CHOSEN: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("SLIPWAY_FUZZ_TARGET").unwrap_or_else(|_| "kubeconfig".to_owned());
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("there is no target {name}"))
});

libfuzzer_sys::fuzz_target!(|tape: &[u8]| (CHOSEN.run)(tape));
