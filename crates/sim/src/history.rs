//! All that happened in a run: requests of the operator, changes of objects, and marks beside them.
//!
//! The history is the artefact; oracles read it and nothing else. Objects are decoded when somebody looks.

mod asked;
mod beginning;
mod build;
mod course;
mod definitions;
mod image;
mod line;
mod log;

pub use asked::Asked;
pub use beginning::Beginning;
pub use build::Recorder;
pub use course::Course;
pub use image::Image;
pub use line::tell;
pub use log::Log;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_api::purpose::Purpose;
use slipway_api::purpose::runtime::RIGHTS;
use slipway_kernel::identity::ClusterId;

use crate::spell::{Disturbance, Spell};

/// What the names of replicas begin with that run in other clusters than home.
pub(crate) const WITHIN: &str = "slipway@";

/// How a request of the operator ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It got this code.
    Answered(u16),
    /// It was carried out with this code, and the operator never knew.
    Lost(u16),
    /// It never arrived.
    Unreachable,
    /// The operator died or gave up before it arrived.
    GivenUp,
}

impl Ending {
    /// Whether the server carried it out.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Answered(code) | Self::Lost(code) if code < 300)
    }
}

/// What the operator says of itself with each request, in `X-Trace-Context`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// The controller.
    pub controller: String,
    /// The leadership under which it was decided.
    pub epoch: u64,
    /// What for, as the wire has it; oracles ask [`Request::is_for`].
    pub purpose: String,
    /// What it was decided on: plural → version.
    pub basis: BTreeMap<String, u64>,
}

impl Context {
    /// Reads `controller=..;replica=..;epoch=..;purpose=..;basis=deployments:12,pods:13`.
    pub fn read(text: &str) -> Self {
        let mut context = Self::default();
        for (key, value) in text.split(';').filter_map(|part| part.split_once('=')) {
            match key.trim() {
                "controller" => value.clone_into(&mut context.controller),
                "epoch" => context.epoch = value.parse().unwrap_or_default(),
                "purpose" => value.clone_into(&mut context.purpose),
                "basis" => {
                    context.basis = value
                        .split(',')
                        .filter_map(|part| part.rsplit_once(':'))
                        .filter_map(|(kind, version)| {
                            Some((kind.to_owned(), version.parse().ok()?))
                        })
                        .collect();
                }
                _ => {}
            }
        }
        context
    }
}

/// One request of the operator.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its place among all requests of the operator, to whatever cluster.
    pub number: u64,
    /// The cluster that it went to: of one that was replaced, the one that was there then.
    pub cluster: ClusterId,
    /// When it left.
    pub at: Timestamp,
    /// Which replica sent it.
    pub replica: String,
    /// `GET`, `PATCH`, ….
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// The media type of its body.
    pub media: String,
    /// Its body; null if there is none.
    pub body: Value,
    /// What the operator said of itself.
    pub context: Context,
    /// The fault it met.
    pub fault: Option<&'static str>,
    /// How it ended.
    pub ending: Ending,
    /// The cluster's version before and after it was carried out.
    pub versions: (u64, u64),
    /// How much had happened when it left that stays when a replica dies: a number that grows with every change in any cluster, with
    /// every question to a webhook, to a pod and to the world outside, and with every answer.
    pub tide: u64,
}

impl Request {
    /// Whether it went to the cluster that the operator runs in.
    pub fn is_home(&self) -> bool {
        self.cluster.is_local()
    }

    /// Whether it came from an operator that runs in the cluster that it went to, though that is not home.
    pub fn is_from_within(&self) -> bool {
        self.replica.starts_with(WITHIN)
    }

    /// Whether it could change something: asking for one's own rights does not.
    pub fn is_write(&self) -> bool {
        self.method != "GET" && !self.is_for(RIGHTS)
    }

    /// Whether it only asks whether the API is there: nothing of the answer is taken in.
    pub fn is_probe(&self) -> bool {
        let query = self.uri.split_once('?').map_or("", |(_, query)| query);
        self.method == "GET" && query.split('&').any(|part| part == "limit=1")
    }

    /// Whether it changed something.
    pub fn is_committed(&self) -> bool {
        self.ending.is_done() && self.versions.1 > self.versions.0
    }

    /// Whether this is what it was for.
    pub fn is_for(&self, purpose: Purpose) -> bool {
        self.context.purpose == purpose.as_str()
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        self.uri.split('?').next().unwrap_or_default()
    }
}

/// One question of the API server to a webhook of the operator.
#[derive(Debug, Clone)]
pub struct Review {
    /// Which replica was asked.
    pub replica: String,
    /// `/admission/…`.
    pub path: String,
    /// How long the API server waits.
    pub patience: Duration,
    /// When it was asked.
    pub at: Timestamp,
    /// When it answered, or when it was asked if it did not.
    pub ended: Timestamp,
    /// The review's `request`.
    pub asked: Value,
    /// The review's `response`; none if there was no answer.
    pub said: Option<Value>,
    /// The cluster's version when it was asked and when it answered.
    pub versions: (u64, u64),
}

impl Review {
    /// A text of the question.
    pub fn text(&self, pointer: &str) -> &str {
        let text = self.asked.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default()
    }

    /// Whether nothing was to be done.
    pub fn is_dry_run(&self) -> bool {
        self.asked.get("dryRun").and_then(Value::as_bool) == Some(true)
    }

    /// Whether it was let through.
    pub fn is_allowed(&self) -> bool {
        let said = self.said.as_ref().and_then(|said| said.get("allowed"));
        said.and_then(Value::as_bool) == Some(true)
    }

    /// Whether it was let through with a warning, because what it depends on could not be seen.
    pub fn is_open(&self) -> bool {
        let said = self.said.as_ref();
        let warnings = said.and_then(|said| said.get("warnings")?.as_array());
        self.path.contains("-downscale")
            && self.is_allowed()
            && warnings.is_some_and(|warnings| !warnings.is_empty())
    }
}

/// One request of the operator to a pod.
#[derive(Debug, Clone)]
pub struct Call {
    /// When it was made.
    pub at: Timestamp,
    /// By which replica.
    pub replica: String,
    /// `POST`, `DELETE`.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// The pod, by namespace and name.
    pub pod: (String, String),
    /// The pod's uid; empty if there was none.
    pub uid: String,
    /// What it answered; none if it could not be reached.
    pub code: Option<u16>,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// Which object: `group/plural`, namespace, name.
pub type Object = (Arc<str>, Arc<str>, Arc<str>);

/// One change of one object.
#[derive(Debug, Clone)]
pub struct Change {
    /// When it was committed.
    pub at: Timestamp,
    /// The version that it made.
    pub version: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// To which object.
    pub object: Object,
    /// The object before.
    pub before: Option<Arc<Image>>,
    /// The object after; none if it is gone.
    pub after: Option<Arc<Image>>,
    /// The operator's request that did it, by its number; none if somebody else did.
    pub by: Option<u64>,
}

/// Something that happened to a replica, or that somebody did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: Event,
}

/// See [`Mark`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A replica started.
    Started(String),
    /// A replica died.
    Crashed(String),
    /// A replica ended although nobody asked it to, with this error.
    Ended(String, String),
    /// A replica stands still for this time.
    Paused(String, Duration),
    /// A replica is cut off for this time.
    CutOff(String, Duration),
    /// A replica's clock is off by these seconds from here on.
    Skewed(String, i64),
    /// A watch event met a fault: in which cluster, of what kind, and which.
    Watch(ClusterId, String, &'static str),
    /// Somebody did or said something.
    User(String),
    /// Somebody's deed failed.
    Failed(String),
    /// Somebody's deed came out other than the scenario says, by what webhooks said or did not say.
    Otherwise(String),
    /// Something is wrong for a time from here on.
    Spell(Spell),
    /// Everything was put back to where it had been.
    Restored,
    /// A replica says that it is ready, or that it is not.
    Ready(String, bool),
    /// Code panicked.
    Panicked(String),
    /// The operator has made so many requests that it would never come to an end.
    Endless(u64),
}

/// All that happened in a run.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// When it began.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// When the last fault was over, or the start if there was none.
    pub calm: Timestamp,
    /// The version that everything began with.
    pub base: u64,
    /// How far the operator's clocks were off at most.
    pub skew: Duration,
    /// The operator's requests, in order.
    pub requests: Vec<Request>,
    /// All changes of objects at home, in order.
    pub changes: Log,
    /// What happened in the other clusters. One that took another's place is one of its own.
    pub members: BTreeMap<ClusterId, Course>,
    /// What else happened, in order.
    pub marks: Vec<Mark>,
    /// What webhooks were asked, in order.
    pub reviews: Vec<Review>,
    /// What pods were asked, in order.
    pub calls: Vec<Call>,
    /// What the world outside was asked, in order.
    pub asked: Vec<Asked>,
}

impl History {
    /// Whether anything went wrong on purpose.
    pub fn is_disturbed(&self) -> bool {
        let events = self.marks.iter();
        self.calm > self.start
            || self.requests.iter().any(|request| request.fault.is_some())
            || self.asked.iter().any(|call| call.fault.is_some())
            || events
                .map(|mark| &mark.what)
                .any(|what| matches!(what, Event::Watch(..)))
    }

    /// The spells of the run at home, each with the moment of its beginning.
    pub fn spells(&self) -> impl Iterator<Item = (Timestamp, &Spell)> {
        self.all_spells()
            .filter(|(_, spell)| spell.cluster.is_none())
    }

    /// The spells of the run in all clusters, each with the moment of its beginning.
    pub fn all_spells(&self) -> impl Iterator<Item = (Timestamp, &Spell)> {
        self.marks.iter().filter_map(|mark| match &mark.what {
            Event::Spell(spell) => Some((mark.at, spell)),
            _ => None,
        })
    }

    /// Whether everything was once put back to where it had been.
    pub fn is_restored(&self) -> bool {
        self.marks.iter().any(|mark| mark.what == Event::Restored)
    }

    /// Whether something that happened between these two moments was taken back by `until`: everything was put back to a
    /// time before it. What is older than that time stays as it was.
    pub fn is_taken_back(&self, (from, to): (Timestamp, Timestamp), until: Timestamp) -> bool {
        self.spells().any(|(restored, spell)| {
            let kept = restored.checked_sub(spell.lasts).unwrap_or(Timestamp::MIN);
            spell.disturbance == Disturbance::Restore
                && restored <= until
                && kept <= to
                && from <= restored
        })
    }

    /// Whether a clock was off for so long that what is due when is another question than in the scenario: what must never
    /// happen is judged all the same.
    pub fn is_out_of_time(&self) -> bool {
        self.spells()
            .any(|(_, spell)| matches!(spell.disturbance, Disturbance::Skew(_)))
    }

    /// Whether a definition was taken away: its objects go with it and come back as others, and while it is away the operator
    /// acts as if there were none.
    pub fn is_redefined(&self) -> bool {
        self.spells()
            .any(|(_, spell)| matches!(spell.disturbance, Disturbance::Undefined(_)))
    }

    /// Whether in another cluster things were for a time as they never are in the run without faults: it was replaced or put back,
    /// or somebody took a definition away.
    pub fn has_other_clusters(&self) -> bool {
        let abroad = self.all_spells().filter(|(_, s)| s.cluster.is_some());
        abroad.map(|(_, spell)| &spell.disturbance).any(|what| {
            matches!(
                what,
                Disturbance::Replaced | Disturbance::Restore | Disturbance::Undefined(_)
            )
        })
    }

    /// By how much the clocks of so many replicas are off in the end, one for each.
    pub fn clocks(&self, replicas: u32) -> Vec<SignedDuration> {
        let off = |index: u32| {
            let (name, process) = (format!("slipway-{index}"), format!("slipway-{index}-"));
            let mut marks = self.marks.iter().rev();
            let last = marks.find_map(|mark| match &mark.what {
                Event::Skewed(of, by) if *of == name || of.starts_with(&process) => Some(*by),
                _ => None,
            });
            SignedDuration::from_secs(last.unwrap_or_default())
        };
        (0..replicas).map(off).collect()
    }

    /// The request that did a change.
    pub fn request(&self, change: &Change) -> Option<&Request> {
        let at = usize::try_from(change.by?).ok()?;
        self.requests.get(at)
    }

    /// Changes that the operator made in a cluster, each with its request.
    pub fn deeds_in(&self, cluster: &ClusterId) -> impl Iterator<Item = (&Change, &Request)> {
        let changes = self.changes_in(cluster).iter();
        changes.filter_map(|change| Some((change, self.request(change)?)))
    }

    /// Changes that the operator made at home, each with its request.
    pub fn deeds(&self) -> impl Iterator<Item = (&Change, &Request)> {
        self.changes
            .iter()
            .filter_map(|change| Some((change, self.request(change)?)))
    }

    /// All changes of objects in a cluster, in order.
    pub fn changes_in(&self, cluster: &ClusterId) -> &[Change] {
        self.log_of(cluster).map_or(&[], |log| log.as_slice())
    }

    /// The same, to be asked for states; none if there is no such cluster.
    fn log_of(&self, cluster: &ClusterId) -> Option<&Log> {
        if cluster.is_local() {
            return Some(&self.changes);
        }
        self.members.get(cluster).map(|course| &course.changes)
    }

    /// The version that everything began with in a cluster.
    pub fn base_in(&self, cluster: &ClusterId) -> u64 {
        if cluster.is_local() {
            return self.base;
        }
        self.members.get(cluster).map_or(0, |course| course.base)
    }

    /// How an object at home was at a version.
    pub fn state(&self, object: &Object, version: u64) -> Option<&Arc<Image>> {
        self.changes.state(object, version)
    }

    /// How an object in a cluster was at a version of that.
    pub fn state_in(
        &self,
        cluster: &ClusterId,
        object: &Object,
        version: u64,
    ) -> Option<&Arc<Image>> {
        self.log_of(cluster)?.state(object, version)
    }

    /// All objects of a resource at home as they were at a version.
    pub fn states(&self, resource: &str, version: u64) -> BTreeMap<&Object, &Arc<Image>> {
        self.changes.states(resource, version)
    }

    /// The objects of the end at home, of all resources.
    pub fn last(&self) -> BTreeMap<&Object, &Arc<Image>> {
        self.changes.ends()
    }
}
