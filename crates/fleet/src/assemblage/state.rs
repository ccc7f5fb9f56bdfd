//! How far a sync is, by what Flux says of its Kustomization.
//!
//! Flux takes `Ready` to unknown and back whenever it looks again, and after a failure it leaves `observedGeneration` as it
//! was. A condition carries the generation that the object had when it was written, also where the attempt that it tells of
//! began before: so a failure counts only if it was tried with what the wanted source has. Nothing is made of a condition that
//! only says that Flux is looking.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::fleet::assemblage::{SyncState, SyncStatus};
use slipway_api::fleet::sync::NamedSync;
use slipway_api::foreign::kustomization::KustomizationStatus;

use super::{KustomizationSeen, SourceSeen};
use crate::reasons::Reason;
use crate::specialise::Substitutions;

/// How far a sync is: state, reason and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    state: SyncState,
    reason: String,
    message: String,
}

impl Told {
    /// It cannot be expanded.
    pub(crate) fn blocked(reason: Reason, message: &str) -> Self {
        Self::new(SyncState::Blocked, reason.as_str(), message.to_owned())
    }

    pub(super) fn new(state: SyncState, reason: &str, message: String) -> Self {
        Self {
            state,
            reason: reason.to_owned(),
            message,
        }
    }
}

/// How long a message of Flux may be: it may hold whole manifests.
const LONGEST_MESSAGE: usize = 512;

/// Reasons that are none of the configuration's: Flux waits for something, and tries again.
const WAITS: [&str; 2] = ["DependencyNotReady", "Progressing"];

/// There is nothing to be applied: the source is not there yet, or has no such folder.
const NO_ARTIFACT: &str = "ArtifactFailed";

/// How an attempt at a revision of the source fails. Which, is told as the last that was attempted.
const OF_AN_ATTEMPT: [&str; 4] = [
    "BuildFailed",
    "HealthCheckFailed",
    "PruneFailed",
    "ReconciliationFailed",
];

/// What a Kustomization that is as wanted says.
pub(super) fn told(
    seen: &KustomizationSeen,
    source: Option<&SourceSeen>,
    before: Option<&SyncStatus>,
    (sync, values): (&NamedSync, &Substitutions),
) -> Told {
    let quoted = |message: &str| quoted(message, values);
    let updating =
        |reason: &str, message: &str| Told::new(SyncState::Updating, reason, message.to_owned());
    let unseen = || {
        if seen.is_suspended {
            let message =
                "the Kustomization is suspended: Flux applies it when somebody resumes it";
            return Told::blocked(Reason::Suspended, message);
        }
        updating("Waiting", "Flux has not looked at it yet")
    };
    let Some(ready) = &seen.status.ready else {
        return unseen();
    };
    let about = ready
        .observed_generation
        .unwrap_or(seen.status.observed_generation);
    if about < seen.generation {
        return unseen();
    }
    let fetched = source.and_then(|source| source.status.revision.as_ref());
    let is_applied = seen.status.observed_generation >= seen.generation
        && (fetched.is_none() || seen.status.applied.as_ref() == fetched);
    match ready.status.as_str() {
        "True" if is_applied => Told::new(SyncState::Succeeded, "Applied", String::new()),
        "False" if is_late(&seen.status, &ready.reason, fetched) => {
            updating("Waiting", "Flux is at the version before")
        }
        "False" if has_failed(&seen.status, &ready.reason) => {
            Told::new(SyncState::Failed, &ready.reason, quoted(&ready.message))
        }
        // Flux looks again: what was true of this revision still is, until Flux says otherwise.
        "Unknown" => match before.filter(|before| before.observed_revision == sync.revision) {
            Some(before) if before.state == SyncState::Succeeded && is_applied => {
                Told::new(SyncState::Succeeded, "Applied", String::new())
            }
            Some(before) if before.state == SyncState::Failed => Told::new(
                SyncState::Failed,
                before.reason.as_deref().unwrap_or_default(),
                quoted(before.message.as_deref().unwrap_or_default()),
            ),
            _ => updating(&ready.reason, &quoted(&ready.message)),
        },
        _ => updating(&ready.reason, &quoted(&ready.message)),
    }
}

/// What Flux says, as it may be told: it quotes what it was refused, so where values are secret its words stay where they are.
fn quoted(message: &str, values: &Substitutions) -> String {
    if values.secret.is_empty() || message.is_empty() {
        return shortened(message);
    }
    "what Flux says is on its Kustomization: it may have secret values in it, and is not repeated here"
        .to_owned()
}

/// Whether a failure is of an attempt at another version than the wanted one.
fn is_late(status: &KustomizationStatus, reason: &str, fetched: Option<&String>) -> bool {
    let is_of_another = fetched.is_some() && status.attempted.as_ref() != fetched;
    OF_AN_ATTEMPT.contains(&reason) && is_of_another
}

/// Whether what Flux says is that the configuration failed.
fn has_failed(status: &KustomizationStatus, reason: &str) -> bool {
    if reason == NO_ARTIFACT {
        // It waits for a source; of a folder that is not there it says that it will try again.
        return status.is_retrying;
    }
    !WAITS.contains(&reason)
}

/// What a source that could not be fetched says; none while it is on its way.
pub(super) fn source_failed(seen: &SourceSeen) -> Option<Told> {
    let ready = seen.status.ready.as_ref()?;
    let about = ready
        .observed_generation
        .unwrap_or(seen.status.observed_generation);
    let has_failed = ready.status == "False" && about >= seen.generation;
    has_failed.then(|| Told::new(SyncState::Failed, &ready.reason, shortened(&ready.message)))
}

/// The beginning of a message.
pub(crate) fn shortened(message: &str) -> String {
    let end = message
        .char_indices()
        .nth(LONGEST_MESSAGE)
        .map(|(at, _)| at);
    match end.and_then(|end| message.get(..end)) {
        Some(beginning) => format!("{beginning}…"),
        None => message.to_owned(),
    }
}

/// The status of a sync; since when, where it is as it was, is as it was.
pub(crate) fn since(
    before: Option<&SyncStatus>,
    name: &str,
    revision: Option<String>,
    told: Told,
    now: Timestamp,
) -> SyncStatus {
    let known = before.filter(|b| b.observed_revision == revision && b.state == told.state);
    let since = known.and_then(|known| known.since.clone());
    SyncStatus {
        name: name.to_owned(),
        observed_revision: revision,
        observed_sync: None,
        state: told.state,
        reason: Some(told.reason).filter(|reason| !reason.is_empty()),
        message: Some(told.message).filter(|message| !message.is_empty()),
        since: Some(since.unwrap_or(Time(now))),
    }
}
