//! Admission: the same shape as planning, asked by an API server in the middle of a request.
//!
//! `judge` is pure. Where it cannot decide yet it names what it needs (a question, or objects as they are now); the
//! runtime gathers, and asks again until the deadline, when `expire` gives the verdict and what has to be undone.

pub mod review;

use jiff::Timestamp;
use serde_json::Value;

use crate::action::Action;
use crate::fact::Facts;
pub use crate::fact::{Collection, Reading};
use crate::parts::Parts;
use crate::store::Stores;

/// What an API server asks about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Review {
    /// The request's own id, which the answer repeats.
    pub uid: String,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// The API group of the resource; empty for the core.
    pub group: String,
    /// The version of the resource.
    pub version: String,
    /// The resource: `statefulsets`.
    pub resource: String,
    /// The subresource: `scale`, `eviction`, or empty.
    pub subresource: String,
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The object as it would be.
    pub object: Value,
    /// The object as it is.
    pub old: Value,
    /// Whether nothing is to be changed by it.
    pub is_dry_run: bool,
}

impl Review {
    /// The same, of whose objects only these parts are read.
    #[must_use]
    pub fn read_with(mut self, reads: Parts) -> Self {
        reads.keep(&mut self.object);
        reads.keep(&mut self.old);
        self
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on.
    Allowed {
        /// What is told with it, or empty.
        message: String,
        /// Warnings that the client shows.
        warnings: Vec<String>,
    },
    /// It may not.
    Denied {
        /// The HTTP code that the client sees; none leaves it to the API server.
        code: Option<u16>,
        /// Why.
        message: String,
    },
}

impl Verdict {
    /// It may go on, and nothing is told.
    pub fn allowed() -> Self {
        Self::Allowed {
            message: String::new(),
            warnings: Vec::new(),
        }
    }

    /// It may go on, with a warning.
    pub fn warned(warning: impl Into<String>) -> Self {
        Self::Allowed {
            message: String::new(),
            warnings: vec![warning.into()],
        }
    }

    /// It may not; the API server chooses the code.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::Denied {
            code: None,
            message: message.into(),
        }
    }

    /// It may not, with this code.
    pub fn refused(code: u16, message: impl Into<String>) -> Self {
        Self::Denied {
            code: Some(code),
            message: message.into(),
        }
    }
}

/// What came of a look at a review.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// It is decided; the actions are done by the replica that serves, before it answers.
    Decide(Verdict, Vec<Action>),
    /// It cannot be decided before these have been done.
    Need(Vec<Action>),
    /// It cannot be decided on what the stores hold of these now: they are to be read after the review arrived. What came
    /// of that is in [`Facts::readings`] of the next look, and whatever was read is in its stores.
    Read(Vec<Collection>),
}

/// The verdict when time is up, and what has to be undone.
#[derive(Debug, Clone, PartialEq)]
pub struct Expiry {
    /// What is answered.
    pub verdict: Verdict,
    /// What is done afterwards, in this order, as often as it takes; a write that finds its object changed is done.
    pub undo: Vec<Action>,
}

/// One more on a counter at `/metrics`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// The metric's name.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// Labels.
    pub labels: Vec<(&'static str, String)>,
}

/// Something that was let go and is still seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Its uid.
    pub uid: String,
    /// Until when it may go. It counts as away until a read that began after that finds it still there.
    pub until: Timestamp,
    /// Where it is.
    pub within: Collection,
}

/// What is noted beside a verdict, by the replica that serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// What is counted.
    pub count: Option<Count>,
    /// What has to be remembered in [`Facts::evictions_allowed_here`] before the next review is looked at.
    pub hold: Option<Hold>,
    /// What the log tells of besides: a line of these words about each of these pods.
    pub notes: Option<(&'static str, Vec<String>)>,
}

/// A gauge at `/metrics` of the reviews that a webhook is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// The metric's name.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
}

/// One webhook. All functions are total and pure.
///
/// What a review needs is asked for with [`Action::Ask`]. A question whose address begins with `/` is a request to the
/// API of the cluster that the review came from (a read, a write that names the version it changes, or a JSON merge
/// patch); any other goes to a pod. Questions carry the review's uid, and their answers are facts of that review only.
pub trait Admit: Send + Sync + 'static {
    /// Where it is served: `/admission/no-downscale`.
    fn path(&self) -> &'static str;
    /// Who is said to have judged, in log lines: what people look for there.
    fn judge_name(&self) -> &'static str {
        self.path()
    }
    /// The gauge of its reviews under way, if dashboards look for one.
    fn in_flight(&self) -> Option<InFlight> {
        None
    }
    /// Whether it judges by the review and its answers alone: then it is given neither stores nor other facts, and a
    /// flood of its reviews has nothing to do with anything else in the process.
    fn is_self_contained(&self) -> bool {
        false
    }
    /// Which large parts of the objects under review it reads; it is given no others.
    fn reads(&self) -> Parts;
    /// Judges a review, and says what is noted beside the verdict.
    fn judge(
        &self,
        review: &Review,
        stores: &Stores,
        facts: &Facts,
        now: Timestamp,
    ) -> (Admission, Remarks);
    /// Judges a review for which there is no time left.
    fn expire(&self, review: &Review, stores: &Stores, facts: &Facts, now: Timestamp) -> Expiry;
}
