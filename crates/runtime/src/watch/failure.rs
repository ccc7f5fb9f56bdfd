//! Why a watch does not get on, by type and for people.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use kube::runtime::watcher;

use super::WatchKey;
use super::bounds::{self, TooMuch};

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    List,
    Watch,
}

impl Verb {
    fn of(error: &watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(_) => Self::List,
            _ => Self::Watch,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Watch => "watch",
        }
    }
}

/// The API did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs())]
pub(super) struct NoAnswer(pub(super) Duration);

/// Why a watch does not get on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There was no answer: this is the innermost cause.
    Unreachable(String),
    /// The API refused, or failed.
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The API's reason for machines: `Forbidden`, `NotFound`, ….
        reason: String,
        /// What cannot be done.
        what: String,
    },
    /// There is more of it than is taken in; of what.
    TooMuch(String),
}

impl Failure {
    pub(super) fn of(error: &kube::Error, verb: Verb, key: &WatchKey) -> Self {
        match error {
            kube::Error::Api(status) => Self::refused(status, verb, key),
            error => Self::Unreachable(innermost(error)),
        }
    }

    pub(super) fn of_watcher(error: &watcher::Error, key: &WatchKey) -> Self {
        match status(error) {
            Some(status) => Self::refused(status, Verb::of(error), key),
            None => match excess(error) {
                Some(excess) => Self::too_much(excess, key),
                None => Self::Unreachable(innermost(error)),
            },
        }
    }

    pub(super) fn too_much(excess: TooMuch, key: &WatchKey) -> Self {
        Self::TooMuch(format!("{}: {excess}", key.kind.plural))
    }

    pub(super) fn closed_at_once() -> Self {
        Self::Unreachable("each watch is closed as soon as it is opened".to_owned())
    }

    pub(super) fn no_answer(patience: Duration) -> Self {
        Self::Unreachable(NoAnswer(patience).to_string())
    }

    fn refused(status: &kube::core::Status, verb: Verb, key: &WatchKey) -> Self {
        let (verb, plural) = (verb.as_str(), &key.kind.plural);
        let what = if key.namespace.is_empty() {
            format!("cannot {verb} {plural}")
        } else {
            format!("cannot {verb} {plural} in namespace {}", key.namespace)
        };
        Self::Refused {
            code: status.code,
            reason: status.reason.clone(),
            what,
        }
    }

    /// The API's status code, if it answered.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Unreachable(_) | Self::TooMuch(_) => None,
            Self::Refused { code, .. } => Some(*code),
        }
    }

    /// Whether the API server as a whole fails or is not there: not this kind, and no right to it.
    pub(crate) fn is_about_the_server(&self) -> bool {
        !self.is_too_much() && self.code().is_none_or(|code| code >= 500 || code == 429)
    }

    /// Whether there is more of the kind than is taken in.
    pub(crate) fn is_too_much(&self) -> bool {
        matches!(self, Self::TooMuch(_))
    }

    /// Whether the kind may not be seen, or is not there.
    pub(super) fn is_about_the_kind(&self) -> bool {
        matches!(self.code(), Some(403 | 404))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(what) | Self::TooMuch(what) => f.write_str(what),
            Self::Refused { code, reason, what } => write!(f, "{code} {reason}: {what}"),
        }
    }
}

/// What the API said, if it did.
pub(super) fn status(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

/// Of what there is too much, if that is what is wrong.
fn excess(error: &watcher::Error) -> Option<TooMuch> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => bounds::too_much(error),
        _ => None,
    }
}

/// The text of the cause of all causes: what is around it says only through which layers it came.
fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
