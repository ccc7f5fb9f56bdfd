//! Panics of this thread, also those that somebody catches: a task that dies takes nobody with it.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes panics from now on, and prints none: the driver tells of the one that is left after shrinking.
pub(crate) fn note() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let text = panic.payload_as_str().unwrap_or("a panic");
            let place = panic
                .location()
                .map(ToString::to_string)
                .unwrap_or_default();
            LAST.with(|last| *last.borrow_mut() = Some(format!("{text} ({place})")));
        }));
    });
}

/// The last panic of this thread, which is forgotten.
pub(crate) fn take() -> Option<String> {
    LAST.with(|last| last.borrow_mut().take())
}

/// Runs something whose panics are known and caught elsewhere.
pub(crate) fn tolerated<T>(work: impl FnOnce() -> T) -> T {
    let before = take();
    let result = work();
    LAST.with(|last| *last.borrow_mut() = before);
    result
}
