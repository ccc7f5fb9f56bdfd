//! Log lines about what plans say: why nothing happens, what has been done, how passes end.
//!
//! The words are the capabilities'; here is only when a line is written, at which level, and which object it names.

use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::Severity;
use slipway_kernel::event::{Event, EventType};
use slipway_kernel::identity::{Key, ObjectRef, kinds};

/// One line about an object, under a key that says what it is.
macro_rules! line {
    ($level:expr, $object:expr, $reason:expr, $text:expr) => {{
        let (namespace, name) = (&$object.namespace, &$object.name);
        let reason = $reason;
        if $object.kind == kinds::POD {
            tracing::event!($level, pod = name, namespace, reason, "{}", $text);
        } else if $object.kind == kinds::STATEFUL_SET {
            tracing::event!($level, statefulset = name, namespace, reason, "{}", $text);
        } else {
            let kind = $object.kind.kind.as_ref();
            tracing::event!($level, kind, name, namespace, reason, "{}", $text);
        }
    }};
}

/// Something is waited for that was not before.
pub(crate) fn blocked(blocker: &Blocker, gravity: Severity) {
    let (object, text) = (&blocker.object, &blocker.message);
    match gravity {
        Severity::Error => line!(tracing::Level::ERROR, object, blocker.reason, text),
        Severity::Warning => line!(tracing::Level::WARN, object, blocker.reason, text),
        Severity::Expected => line!(tracing::Level::INFO, object, blocker.reason, text),
    }
}

/// Something is told, about what was done to an object if it was.
pub(crate) fn told(event: &Event, acted: Option<&ObjectRef>) {
    let object = acted.unwrap_or(&event.regarding);
    match event.severity {
        EventType::Warning => line!(tracing::Level::WARN, object, event.reason, event.note),
        EventType::Normal => line!(tracing::Level::INFO, object, event.reason, event.note),
    }
}

/// A pass over a key begins.
pub(crate) fn began(key: &Key) {
    let (pass, namespace) = (&key.name, &key.namespace);
    tracing::debug!(pass, namespace, "reconcile started");
}

/// A pass over a key has ended.
pub(crate) fn ended(key: &Key, failure: Option<&str>) {
    let (pass, namespace) = (&key.name, &key.namespace);
    match failure {
        None => tracing::debug!(pass, namespace, "reconcile done"),
        Some(err) => tracing::warn!(pass, namespace, err, "reconcile failed"),
    }
}
