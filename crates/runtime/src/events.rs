//! Tells events, once each.
//!
//! An event's name is made of what it says, so that the same event told again, by another leader, is already there. What
//! cannot be told is lost: no work waits for it.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use serde_json::json;
use slipway_api::purpose::runtime as purpose;
use slipway_kernel::event::Event;
use slipway_kernel::identity::kinds;

use crate::lease::micro;
use crate::request::Wanted;

/// How many events are remembered as told.
const MOST: usize = 4_096;
/// The longest name the API allows.
const LONGEST_NAME: usize = 253;
/// The longest note the API allows.
const LONGEST_NOTE: usize = 1_024;
/// Where events about objects outside of namespaces go.
const DEFAULT_NAMESPACE: &str = "default";

/// What has been told.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    told: BTreeSet<(String, String)>,
    order: VecDeque<(String, String)>,
}

impl Recorder {
    /// Whether this event has yet to be told; from now on it has been.
    pub(crate) fn is_new(&mut self, event: &Event) -> bool {
        let slot = (namespace(event).to_owned(), name(event));
        if !self.told.insert(slot.clone()) {
            return false;
        }
        self.order.push_back(slot);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.told.remove(&oldest);
        }
        true
    }
}

fn namespace(event: &Event) -> &str {
    if event.regarding.namespace.is_empty() {
        DEFAULT_NAMESPACE
    } else {
        &event.regarding.namespace
    }
}

/// The object's name and a hash of what is said.
fn name(event: &Event) -> String {
    let mut hasher = DefaultHasher::new();
    (&event.uid, event.reason, &event.note, &event.instance).hash(&mut hasher);
    let suffix = format!(".{:016x}", hasher.finish());
    let base = cut(&event.regarding.name, LONGEST_NAME - suffix.len());
    // A cut may leave a character that a name cannot end with.
    let base = base.trim_end_matches(['.', '-']);
    format!("{base}{suffix}")
}

/// As much of a text as fits.
fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The request that tells an event.
pub(crate) fn render(event: &Event, controller: &str, replica: &str, now: Timestamp) -> Wanted {
    let namespace = namespace(event);
    let object = &event.regarding;
    let mut regarding = json!({
        "apiVersion": object.kind.api_version(),
        "kind": object.kind.kind,
        "name": object.name,
        "uid": event.uid,
    });
    if !object.namespace.is_empty() {
        regarding["namespace"] = json!(object.namespace);
    }
    let body = json!({
        "apiVersion": kinds::EVENT.api_version(),
        "kind": kinds::EVENT.kind,
        "metadata": {"name": name(event), "namespace": namespace},
        "eventTime": micro(now),
        "reportingController": format!("slipway.dev/{controller}"),
        "reportingInstance": cut(replica, 128),
        "action": event.action,
        "reason": event.reason,
        "regarding": regarding,
        "note": cut(&event.note, LONGEST_NOTE),
        "type": event.severity.as_str(),
    });
    let purpose = purpose::EVENT;
    let context = format!("controller={controller};replica={replica};purpose={purpose}");
    Wanted::create(&kinds::EVENT, namespace, body).traced(context)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use slipway_kernel::event::Severity;
    use slipway_kernel::identity::ObjectRef;

    use super::*;

    fn event(name: &str, note: &str) -> Event {
        Event {
            regarding: ObjectRef::local(kinds::POD, "default", name),
            uid: "u".to_owned(),
            severity: Severity::Normal,
            reason: "Restarted",
            action: "Restart",
            note: note.to_owned(),
            instance: String::new(),
        }
    }

    #[test]
    fn the_same_event_has_the_same_name_and_is_told_once() {
        let mut recorder = Recorder::default();
        assert!(recorder.is_new(&event("a", "x")));
        assert!(!recorder.is_new(&event("a", "x")));
        assert!(recorder.is_new(&event("a", "y")));
        assert_eq!(name(&event("a", "x")), name(&event("a", "x")));
        assert_ne!(name(&event("a", "x")), name(&event("a", "y")));
    }

    #[test]
    fn it_remembers_a_bounded_number() {
        let mut recorder = Recorder::default();
        for n in 0..=MOST {
            assert!(recorder.is_new(&event("a", &n.to_string())));
        }
        assert_eq!(recorder.told.len(), MOST);
        assert!(
            recorder.is_new(&event("a", "0")),
            "the oldest was forgotten"
        );
        assert!(!recorder.is_new(&event("a", &MOST.to_string())));
    }

    #[test]
    fn long_names_and_notes_are_cut_to_what_the_api_takes() {
        let long = event(&"n".repeat(253), &"ä".repeat(2_000));
        assert_eq!(name(&long).len(), 253);
        let wanted = render(&long, "toy", "r", Timestamp::UNIX_EPOCH);
        let note = wanted.body.unwrap()["note"].as_str().unwrap().len();
        assert_eq!(note, LONGEST_NOTE);
    }
}
