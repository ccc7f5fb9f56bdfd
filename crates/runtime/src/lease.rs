//! A Lease as a record: who holds it, for how long, how often it changed hands, and where it was not given up in good order.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::names::UNANSWERED;
use slipway_kernel::identity::{ClusterId, ObjectRef, kinds};
use slipway_kernel::store::Meta;
use tokio::time::Instant;

/// What a Lease says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// Empty if it was released.
    pub(crate) holder: String,
    pub(crate) duration: Duration,
    /// How often it has changed hands: the number of a leadership.
    pub(crate) epoch: i64,
    pub(crate) acquired: String,
    pub(crate) renewed: String,
    pub(crate) version: String,
    /// Of one that was released: the members in which something of its holder may be under way. None if it cannot be read which ones.
    pub(crate) unanswered: Option<BTreeSet<ClusterId>>,
}

impl Record {
    /// Reads a Lease; what is missing or makes no sense is nothing.
    pub(crate) fn read(lease: &Value) -> Self {
        let spec = lease.get("spec");
        let text = |field: &str| {
            let found = spec.and_then(|spec| spec.get(field)?.as_str());
            found.unwrap_or_default().to_owned()
        };
        let number = |field: &str| {
            let found = spec.and_then(|spec| spec.get(field)?.as_i64());
            found.unwrap_or_default()
        };
        let seconds = u64::try_from(number("leaseDurationSeconds")).unwrap_or_default();
        Self {
            holder: text("holderIdentity"),
            duration: Duration::from_secs(seconds),
            epoch: number("leaseTransitions"),
            acquired: text("acquireTime"),
            renewed: text("renewTime"),
            version: Meta::of(lease).version,
            unanswered: unanswered(lease),
        }
    }

    /// As an object, to be created or to replace the one of this version.
    pub(crate) fn render(&self, object: &ObjectRef) -> Value {
        let mut metadata = json!({"name": object.name, "namespace": object.namespace});
        if !self.version.is_empty() {
            metadata["resourceVersion"] = json!(self.version);
        }
        if let Some(unanswered) = self.unanswered.as_ref().filter(|all| !all.is_empty()) {
            let names: Vec<&str> = unanswered.iter().map(ClusterId::as_str).collect();
            metadata["annotations"] = json!({UNANSWERED: json!(names).to_string()});
        }
        json!({
            "apiVersion": kinds::LEASE.api_version(),
            "kind": kinds::LEASE.kind,
            "metadata": metadata,
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": self.duration.as_secs().max(1),
                "leaseTransitions": self.epoch,
                "acquireTime": self.acquired,
                "renewTime": self.renewed,
            }
        })
    }

    /// What changes when its holder is alive.
    fn sign_of_life(&self) -> (&str, i64, &str, &str) {
        (&self.holder, self.epoch, &self.acquired, &self.renewed)
    }
}

/// Who is named as unanswered: nobody where nothing is said, and none where what is said cannot be read.
fn unanswered(lease: &Value) -> Option<BTreeSet<ClusterId>> {
    let annotations = lease.pointer("/metadata/annotations");
    let Some(named) = annotations.and_then(|all| all.get(UNANSWERED)) else {
        return Some(BTreeSet::new());
    };
    let names: Vec<String> = serde_json::from_str(named.as_str()?).ok()?;
    let names = names.iter().map(String::as_str);
    Some(names.map(ClusterId::remote).collect())
}

/// A moment as Leases write it.
pub(crate) fn micro(now: Timestamp) -> String {
    format!("{now:.6}")
}

/// A record as it has been watched: its holder's clock is not trusted, only that it has not moved for a while.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    last: Option<(Record, Instant)>,
}

impl Observed {
    /// Takes in what the Lease says now.
    pub(crate) fn see(&mut self, record: Record, now: Instant) {
        let same = self
            .last
            .as_ref()
            .is_some_and(|(last, _)| last.sign_of_life() == record.sign_of_life());
        let since = match &self.last {
            Some((_, since)) if same => *since,
            _ => now,
        };
        self.last = Some((record, since));
    }

    /// Whether there has ever been a Lease.
    pub(crate) fn any(&self) -> bool {
        self.last.is_some()
    }

    /// Whose it is, as last seen.
    pub(crate) fn holder(&self) -> &str {
        self.last.as_ref().map_or("", |(record, _)| &record.holder)
    }

    /// The highest epoch seen.
    pub(crate) fn epoch(&self) -> i64 {
        self.last.as_ref().map_or(0, |(record, _)| record.epoch)
    }

    /// Whether the holder has given no sign of life for as long as it promised and we ask for.
    pub(crate) fn is_expired(&self, duration: Duration, now: Instant) -> bool {
        self.left(duration, now) == Some(Duration::ZERO)
    }

    /// How long the holder still has to give a sign of life; none if there has never been a Lease.
    pub(crate) fn left(&self, duration: Duration, now: Instant) -> Option<Duration> {
        let (record, since) = self.last.as_ref()?;
        let silent = now.saturating_duration_since(*since);
        Some(record.duration.max(duration).saturating_sub(silent))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use super::*;

    fn record(renewed: &str) -> Record {
        Record {
            holder: "a".to_owned(),
            duration: Duration::from_secs(15),
            epoch: 3,
            acquired: "2026-01-01T00:00:00.000000Z".to_owned(),
            renewed: renewed.to_owned(),
            version: "7".to_owned(),
            unanswered: Some(BTreeSet::new()),
        }
    }

    #[test]
    fn a_record_survives_being_written_and_read() {
        let object = ObjectRef::local(kinds::LEASE, "system", "toy");
        let made = record("2026-01-01T00:00:02.000000Z");
        assert_eq!(Record::read(&made.render(&object)), made);
        let torn = Record {
            unanswered: Some(["north", "west"].map(ClusterId::remote).into()),
            ..record("")
        };
        assert_eq!(Record::read(&torn.render(&object)), torn);
        let empty =
            Record::read(&json!({"spec": {"leaseDurationSeconds": -5, "leaseTransitions": "x"}}));
        assert_eq!(
            (empty.holder.as_str(), empty.duration, empty.epoch),
            ("", Duration::ZERO, 0)
        );
    }

    /// What is not known may be under way anywhere.
    #[test]
    fn members_that_cannot_be_read_are_not_taken_for_none() {
        let object = ObjectRef::local(kinds::LEASE, "system", "toy");
        let mut lease = record("").render(&object);
        assert_eq!(Record::read(&lease).unanswered, Some(BTreeSet::new()));
        for text in ["", "north", "{}", "[1]", "[\"north\""] {
            lease["metadata"]["annotations"] = json!({UNANSWERED: text});
            assert_eq!(Record::read(&lease).unanswered, None, "{text}");
        }
    }

    #[test]
    fn it_expires_by_our_own_clock_from_the_last_change_that_we_saw() {
        let (mut observed, t) = (Observed::default(), Instant::now());
        let ours = Duration::from_secs(10);
        let s = Duration::from_secs;
        // A renewal from the year 2000 is as good as any: the holder's clock is not looked at.
        observed.see(record("2000-01-01T00:00:00.000000Z"), t);
        assert!(
            !observed.is_expired(ours, t + s(14)),
            "the longer of both durations counts"
        );
        observed.see(record("2000-01-01T00:00:01.000000Z"), t + s(14));
        assert!(!observed.is_expired(ours, t + s(28)));
        // Somebody edits an annotation: no sign of life.
        let mut edited = record("2000-01-01T00:00:01.000000Z");
        edited.version = "8".to_owned();
        observed.see(edited, t + s(28));
        assert!(observed.is_expired(ours, t + s(29)));
    }

    #[test]
    fn times_have_six_digits() {
        let at = Timestamp::from_second(1_767_225_600).unwrap();
        assert_eq!(micro(at), "2026-01-01T00:00:00.000000Z");
    }
}
