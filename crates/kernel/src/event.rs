//! Events, as plans ask for them.

use crate::identity::ObjectRef;

/// Whether an event is good to know or bad to miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Good to know.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Something to be told on an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// About which object.
    pub regarding: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// Normal or Warning.
    pub severity: EventType,
    /// A word that programs can match on.
    pub reason: &'static str,
    /// What was done or tried.
    pub action: &'static str,
    /// A sentence for people.
    pub note: String,
    /// Tells two events of the same text apart; the same event asked for again is told once.
    pub instance: String,
}

impl Event {
    /// Tells something on an object of this uid: severity, reason and action, then a sentence.
    pub fn on(
        regarding: ObjectRef,
        uid: &str,
        (severity, reason, action): (EventType, &'static str, &'static str),
        note: String,
        instance: &str,
    ) -> Self {
        Self {
            regarding,
            uid: uid.to_owned(),
            severity,
            reason,
            action,
            note,
            instance: instance.to_owned(),
        }
    }
}
