//! What a target is, whichever program has it.

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

/// Makes one.
pub(crate) const fn target(name: &'static str, longest: usize, few: u64, run: fn(&[u8])) -> Target {
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

static TELLING: AtomicBool = AtomicBool::new(false);

/// Targets print their cases from now on.
pub(crate) fn tell() {
    TELLING.store(true, Ordering::Relaxed);
}

/// Prints a part of a case, if it is wanted.
pub(crate) fn told(text: impl FnOnce() -> String) {
    if TELLING.load(Ordering::Relaxed) {
        println!("  {}", text());
    }
}

thread_local! {
    static JUDGED: Cell<bool> = const { Cell::new(false) };
}

/// The case has come to a law: more is known of it now than that nothing broke.
pub(crate) fn law() {
    JUDGED.set(true);
}

/// Whether the case of this thread came to a law; the next one begins anew.
#[allow(dead_code, reason = "libFuzzer counts nothing")]
pub(crate) fn was_judged() -> bool {
    JUDGED.replace(false)
}
