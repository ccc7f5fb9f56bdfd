//! The oracles' own reading of Flippers: which policies there were, and what they asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;
use slipway_api::names::RESTART_INTERVAL;
use slipway_kernel::duration;
use slipway_sim::history::{Change, History, Image, Object, Request};
use slipway_sim::oracles::workload;

use super::calendar::{Hours, Times};

/// `group/plural` of Flippers.
pub(in super::super) const FLIPPERS: &str = "flipper.io.github.com/flippers";
const DEFAULT_INTERVAL: Duration = Duration::from_mins(10);
const BY_DEFAULT: &str = "the default criteria";

fn flipper_name(object: &Object) -> String {
    format!("Flipper {}/{}", object.1, object.2)
}

/// What a policy asks for.
#[derive(Debug, Clone)]
pub(in super::super) struct Policy {
    pub(super) name: String,
    /// None for a schedule.
    pub(super) interval: Option<Duration>,
    pub(super) max_concurrent: Option<i64>,
    pub(super) ignores_rollouts: bool,
    pub(super) respects_budgets: bool,
    pub(super) acts: bool,
    /// When restarts may begin.
    pub(super) hours: Hours,
    /// When they are due, if not by an interval.
    pub(super) schedule: Option<Times>,
    /// How far they are spread.
    pub(super) jitter: Duration,
    labels: BTreeMap<String, String>,
    namespaces: Vec<String>,
    kinds: Vec<String>,
}

impl Policy {
    /// What applies while there is no Flipper.
    fn by_default() -> Self {
        Self {
            name: BY_DEFAULT.to_owned(),
            interval: Some(DEFAULT_INTERVAL),
            max_concurrent: None,
            ignores_rollouts: false,
            respects_budgets: false,
            acts: true,
            hours: Hours::any(),
            schedule: None,
            jitter: Duration::ZERO,
            labels: BTreeMap::from([("mesh".to_owned(), "true".to_owned())]),
            namespaces: Vec::new(),
            kinds: vec!["Deployment".to_owned()],
        }
    }

    /// A Flipper's policy with this interval.
    fn read(object: &Object, image: &Image, interval: Duration) -> Self {
        let null = Value::Null;
        let spec = image.at("/spec").unwrap_or(&null);
        let flag = |name: &str| spec.get(name).and_then(Value::as_bool).unwrap_or_default();
        let texts = |value: Option<&Value>| -> Vec<String> {
            let list = value.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let kinds = texts(spec.get("kinds"));
        let labels = spec.pointer("/match/labels").and_then(Value::as_object);
        let schedule = spec.get("schedule").and_then(Times::read);
        let jitter = spec.get("jitter").and_then(Value::as_str);
        let jitter = jitter.and_then(|text| duration::parse(text).ok());
        Self {
            name: flipper_name(object),
            interval: spec.get("schedule").is_none().then_some(interval),
            max_concurrent: spec.get("maxConcurrent").and_then(Value::as_i64),
            ignores_rollouts: spec.get("whenRolloutInProgress").and_then(Value::as_str)
                == Some("Ignore"),
            respects_budgets: flag("respectPodDisruptionBudgets"),
            acts: !flag("suspend") && !flag("dryRun"),
            hours: Hours::read(spec, schedule.as_ref()),
            schedule,
            jitter: jitter.unwrap_or_default(),
            labels: labels
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            namespaces: texts(spec.pointer("/match/namespaces")),
            kinds: if kinds.is_empty() {
                vec!["Deployment".to_owned()]
            } else {
                kinds
            },
        }
    }

    /// Whether it is the policy of this Flipper.
    pub(super) fn is_of(&self, flipper: &Object) -> bool {
        self.name == flipper_name(flipper)
    }

    /// Whether it is what applies while there is no Flipper.
    pub(super) fn is_default(&self) -> bool {
        self.name == BY_DEFAULT
    }

    /// Whether it is about a workload.
    pub(in super::super) fn matches(&self, object: &Object, image: &Image) -> bool {
        let kind = workload::kind(&object.0);
        let labelled = self.labels.is_empty()
            || self
                .labels
                .iter()
                .any(|(key, value)| image.label(key) == Some(value));
        let placed =
            self.namespaces.is_empty() || self.namespaces.iter().any(|name| **name == *object.1);
        labelled && placed && self.kinds.iter().any(|name| Some(name.as_str()) == kind)
    }
}

/// The interval that a Flipper asks for; none if it is nonsense.
fn asked(image: &Image) -> Option<Duration> {
    match image.at("/spec/interval") {
        None => Some(DEFAULT_INTERVAL),
        Some(value) => match duration::parse(value.as_str()?).ok()? {
            Duration::ZERO => Some(DEFAULT_INTERVAL),
            given => Some(given),
        },
    }
}

/// Whether a cron expression names only times that there are. Names of months and days are taken as they come.
fn is_cron(value: Option<&Value>) -> bool {
    let Some(text) = value.and_then(Value::as_str) else {
        return false;
    };
    let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];
    let fields: Vec<&str> = text.split_whitespace().collect();
    let is_time = |(field, (least, most)): (&&str, (u32, u32))| {
        let mut parts = field.split([',', '-', '/']);
        parts.all(|part| match part.parse::<u32>() {
            Ok(number) => (least..=most).contains(&number),
            Err(_) => part == "*" || part.chars().all(char::is_alphabetic) && !part.is_empty(),
        })
    };
    let is_whole = fields.len() == bounds.len() && fields.iter().zip(bounds).all(is_time);
    text.starts_with('@') || is_whole
}

/// Whether the times at which a Flipper acts can be followed.
fn is_timely(image: &Image) -> bool {
    let windows = image.at("/spec/windows").and_then(Value::as_array);
    let is_open = |window: &Value| {
        let length = window.get("duration").and_then(Value::as_str);
        let length = length.and_then(|text| duration::parse(text).ok());
        is_cron(window.get("cron")) && length.is_some_and(|length| !length.is_zero())
    };
    let schedule = image.at("/spec/schedule");
    windows.into_iter().flatten().all(is_open)
        && schedule.is_none_or(|schedule| is_cron(schedule.get("cron")))
}

/// A Flipper's policy; none if its interval, its schedule or one of its windows is nonsense.
pub(super) fn read(object: &Object, image: &Image) -> Option<Policy> {
    let interval = asked(image).filter(|_| is_timely(image))?;
    Some(Policy::read(object, image, interval))
}

/// The same, as far as it can be read: also one that is nonsense governs what it matches.
pub(super) fn leniently(object: &Object, image: &Image) -> Policy {
    Policy::read(object, image, asked(image).unwrap_or(DEFAULT_INTERVAL))
}

/// The policies in force at a version. An invalid Flipper asks for nothing, and keeps the default criteria away.
pub(super) fn at(history: &History, version: u64) -> Vec<Policy> {
    let flippers = history.states(FLIPPERS, version);
    let valid: Vec<Policy> = flippers
        .iter()
        .filter_map(|(object, image)| read(object, image))
        .collect();
    if flippers.is_empty() {
        vec![Policy::by_default()]
    } else {
        valid
    }
}

/// The policies that a deed of the operator was decided on: what it had seen, if it says so.
pub(in super::super) fn behind(
    history: &History,
    change: &Change,
    request: &Request,
) -> Vec<Policy> {
    let seen = request.context.basis.get("flippers").copied();
    let seen = seen.map(|version| version.max(listed(history, request)));
    at(history, seen.unwrap_or(change.version - 1))
}

/// Longer than a list waits to be planned on, and shorter than the time between two lists.
const TAKEN_IN: SignedDuration = SignedDuration::from_millis(50);

/// The cluster's version when the sender of a request last got a list of all Flippers. What a list does not have any
/// more leaves no version behind, so the basis does not tell of it.
fn listed(history: &History, request: &Request) -> u64 {
    let lists = history.requests.iter().rev().filter(|list| {
        list.replica == request.replica
            && list.path().ends_with("/flippers")
            && !list.is_write()
            && !list.uri.contains("watch=true")
            && !list.is_probe()
            && list.fault.is_none()
            && list.ending.is_done()
            && request.at.duration_since(list.at) >= TAKEN_IN
    });
    let last = lists.into_iter().find(|list| list.number < request.number);
    last.map_or(0, |list| list.versions.0)
}

/// The shortest interval that the policies and the workload itself ask for; none if only schedules do.
pub(super) fn interval(policies: &[&Policy], image: &Image) -> Option<Duration> {
    let own = image.annotation(RESTART_INTERVAL);
    if let Some(own) = own.and_then(|text| duration::parse(text).ok())
        && !own.is_zero()
    {
        return Some(own);
    }
    policies.iter().filter_map(|policy| policy.interval).min()
}
