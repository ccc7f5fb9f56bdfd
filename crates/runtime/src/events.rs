//! Tells events, once each.
//!
//! An event's name is made of what it says, so that the same event told again, by another leader, is already there. No work
//! waits for one that cannot be told: it is told when there is cause for it again, or never.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use serde_json::json;
use slipway_api::purpose::runtime as purpose;
use slipway_kernel::event::Event;
use slipway_kernel::identity::{ClusterId, kinds};

use crate::lease::micro;
use crate::request::ApiRequest;

/// How many events are remembered as told.
const MOST: usize = 4_096;
/// The longest name the API allows.
const LONGEST_NAME: usize = 253;
/// The longest note the API allows.
const LONGEST_NOTE: usize = 1_024;
/// Where events about objects outside of namespaces go.
const DEFAULT_NAMESPACE: &str = "default";

/// The cluster, the namespace and the name of an event.
pub(crate) type Slot = (ClusterId, String, String);

/// Where an event is told.
pub(crate) fn slot(event: &Event) -> Slot {
    let cluster = event.regarding.cluster.clone();
    (cluster, namespace(event).to_owned(), name(event))
}

/// An event that has yet to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// For the first time.
    First,
    /// It could not be told before.
    Again,
}

/// Why no event can be told in a namespace.
#[derive(Debug)]
pub(crate) enum Untold {
    /// The API says that there is no right to.
    NoRight(String),
    /// It is forbidden for another cause, such as a quota.
    Refused(String),
    /// The member does not say that it is the cluster that was confirmed.
    Elsewhere,
}

/// What has been told.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Whether each was.
    told: BTreeMap<Slot, bool>,
    order: VecDeque<Slot>,
}

impl Recorder {
    /// Whether this event has yet to be told; from now on it has been.
    pub(crate) fn take(&mut self, event: &Event) -> Option<Telling> {
        let slot = slot(event);
        match self.told.entry(slot.clone()) {
            Entry::Occupied(mut told) => {
                let is_told = std::mem::replace(told.get_mut(), true);
                return (!is_told).then_some(Telling::Again);
            }
            Entry::Vacant(room) => room.insert(true),
        };
        self.order.push_back(slot);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.told.remove(&oldest);
        }
        Some(Telling::First)
    }

    /// Forgets what was told in a cluster.
    pub(crate) fn drop_cluster(&mut self, cluster: &ClusterId) {
        self.told.retain(|slot, _| slot.0 != *cluster);
        self.order.retain(|slot| slot.0 != *cluster);
    }

    /// It was not told after all.
    pub(crate) fn untold(&mut self, slot: &Slot) {
        if let Some(told) = self.told.get_mut(slot) {
            *told = false;
        }
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
pub(crate) fn render(event: &Event, controller: &str, replica: &str, now: Timestamp) -> ApiRequest {
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
    ApiRequest::create(&kinds::EVENT, namespace, body).traced(context)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use slipway_kernel::event::EventType;
    use slipway_kernel::identity::ObjectRef;

    use super::*;

    fn event(name: &str, note: &str) -> Event {
        Event {
            regarding: ObjectRef::local(kinds::POD, "default", name),
            uid: "u".to_owned(),
            severity: EventType::Normal,
            reason: "Restarted",
            action: "Restart",
            note: note.to_owned(),
            instance: String::new(),
        }
    }

    #[test]
    fn the_same_event_has_the_same_name_and_is_told_once() {
        let mut recorder = Recorder::default();
        assert_eq!(recorder.take(&event("a", "x")), Some(Telling::First));
        assert_eq!(recorder.take(&event("a", "x")), None);
        assert_eq!(recorder.take(&event("a", "y")), Some(Telling::First));
        assert_eq!(name(&event("a", "x")), name(&event("a", "x")));
        assert_ne!(name(&event("a", "x")), name(&event("a", "y")));
    }

    #[test]
    fn what_was_refused_is_told_when_there_is_cause_for_it_again() {
        let mut recorder = Recorder::default();
        let refused = event("a", "x");
        recorder.take(&refused);
        recorder.untold(&slot(&refused));
        assert_eq!(recorder.take(&refused), Some(Telling::Again));
        assert_eq!(recorder.take(&refused), None);
    }

    #[test]
    fn it_remembers_a_bounded_number() {
        let mut recorder = Recorder::default();
        for n in 0..=MOST {
            assert!(recorder.take(&event("a", &n.to_string())).is_some());
        }
        assert_eq!(recorder.told.len(), MOST);
        let oldest = recorder.take(&event("a", "0"));
        assert!(oldest.is_some(), "the oldest was forgotten");
        assert_eq!(recorder.take(&event("a", &MOST.to_string())), None);
    }

    #[test]
    fn long_names_and_notes_are_cut_to_what_the_api_takes() {
        let long = event(&"n".repeat(253), &"ä".repeat(2_000));
        assert_eq!(name(&long).len(), 253);
        let wanted = render(&long, "toy", "r", Timestamp::UNIX_EPOCH);
        let body: serde_json::Value = serde_json::from_slice(&wanted.body.unwrap()).unwrap();
        let note = body["note"].as_str().unwrap().len();
        assert_eq!(note, LONGEST_NOTE);
    }
}
