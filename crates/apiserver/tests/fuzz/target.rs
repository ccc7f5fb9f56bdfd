//! What a target is, whichever program has it.

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
