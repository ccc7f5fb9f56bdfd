//! What is fuzzed: each target makes a case out of a tape and asserts what holds for every case.

mod apply;
mod cel;
mod decoders;
mod objects;
mod pages;
mod parsers;
mod patches;
mod protobuf;
mod selectors;
mod server;
mod strategic;
mod yaml;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// One thing to fuzz.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// The longest tape.
    pub(crate) longest: usize,
    /// Cases in the test command, which has less time.
    pub(crate) few: u64,
    pub(crate) run: fn(&[u8]),
}

const fn target(name: &'static str, longest: usize, few: u64, run: fn(&[u8])) -> Target {
    Target {
        name,
        longest,
        few,
        run,
    }
}

/// A target that looks at nothing, to see that this is seen.
#[allow(dead_code, reason = "libFuzzer needs none")]
pub(crate) const BLIND: Target = target("blind", 8, 10, |_| {});

/// All of them, cheap ones first.
pub(crate) const TARGETS: &[Target] = &[
    target("label-selectors", 120, 20_000, selectors::labels),
    target("field-selectors", 80, 20_000, selectors::fields),
    target("parsers", 80, 20_000, parsers::parsers),
    target("json", 200, 10_000, decoders::json),
    target("yaml", 200, 10_000, yaml::yaml),
    target("protobuf", 160, 10_000, protobuf::protobuf),
    target("objects", 160, 10_000, objects::objects),
    target("strategies", 200, 6_000, objects::strategies),
    target("json-patch", 240, 10_000, patches::json),
    target("merge-patch", 200, 10_000, patches::merge),
    target("strategic-patch", 240, 10_000, strategic::strategic),
    target("apply", 400, 4_000, apply::owners),
    target("managed-fields", 240, 4_000, apply::managed_fields),
    target("cel", 200, 2_000, cel::cel),
    target("pages", 120, 1_000, pages::pages),
    target("server", 240, 2_000, server::server),
];

static TELLING: AtomicBool = AtomicBool::new(false);

/// Targets print their cases from now on.
pub(crate) fn tell() {
    TELLING.store(true, Ordering::Relaxed);
}

/// Prints a part of a case, if it is wanted.
fn told(text: impl FnOnce() -> String) {
    if TELLING.load(Ordering::Relaxed) {
        println!("  {}", text());
    }
}

thread_local! {
    static JUDGED: Cell<bool> = const { Cell::new(false) };
}

/// The case has come to a law: more is known of it now than that nothing broke.
fn law() {
    JUDGED.set(true);
}

/// Whether the case of this thread came to a law; the next one begins anew.
#[allow(dead_code, reason = "libFuzzer counts nothing")]
pub(crate) fn was_judged() -> bool {
    JUDGED.replace(false)
}
