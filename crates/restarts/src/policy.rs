//! A policy that can be followed, out of a Flipper's spec. The only place that judges a spec.
//!
//! It reads field by field, so that one wrong field is named and no other is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::civil::Date;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use slipway_api::flipper::{self, WhenRolloutInProgress, WorkloadKind};
use slipway_kernel::cron::{self, Cron, Schedule};
use slipway_kernel::duration;
use slipway_kernel::window::{Calendar, Window};

use crate::due::Cadence;
use crate::settings::{DEFAULT_INTERVAL, DefaultCriteria};

/// A spec that cannot be followed: what is wrong with it, field by field, and what it comes to all the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Invalid {
    problems: Vec<(String, String)>,
    /// The policy as far as it can be read. What it matches is held; a part of the match that cannot be read fits any
    /// workload.
    pub policy: Box<Policy>,
    /// Whether labels and namespaces could be read.
    pub is_match_known: bool,
    /// Whether interval or schedule could be read.
    pub is_cadence_known: bool,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (field, problem)) in self.problems.iter().enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            write!(f, "{separator}{field}: {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}

/// Which workloads, how often, and when not.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own in the spec"
)]
pub struct Policy {
    /// At least one of these labels; empty for any.
    pub labels: BTreeMap<String, String>,
    /// One of these namespaces; empty for any.
    pub namespaces: BTreeSet<String>,
    /// Kinds of workloads.
    pub kinds: BTreeSet<WorkloadKind>,
    /// How restarts follow one another.
    pub cadence: Cadence,
    /// Whether the interval is not the spec's, because that has none or zero.
    pub is_interval_defaulted: bool,
    /// When they may begin.
    pub calendar: Calendar,
    /// Each workload's offset is less than this.
    pub jitter: Duration,
    /// How many may be rolling at once.
    pub max_concurrent: Option<usize>,
    /// Whether a rollout that goes on does not matter.
    pub ignores_rollouts: bool,
    /// Whether pod disruption budgets matter.
    pub respects_budgets: bool,
    /// Whether it only reports.
    pub dry_run: bool,
    /// Whether it does nothing for now.
    pub suspended: bool,
}

impl Policy {
    /// The policy that applies while there is no other.
    pub fn by_default(criteria: &DefaultCriteria) -> Self {
        Self {
            labels: criteria.labels.clone(),
            namespaces: criteria.namespaces.clone(),
            ..Self::every(criteria.interval)
        }
    }

    fn every(interval: Duration) -> Self {
        Self {
            labels: BTreeMap::new(),
            namespaces: BTreeSet::new(),
            kinds: BTreeSet::from([WorkloadKind::Deployment]),
            cadence: Cadence::Every(interval),
            is_interval_defaulted: false,
            calendar: Calendar::default(),
            jitter: Duration::ZERO,
            max_concurrent: None,
            ignores_rollouts: false,
            respects_budgets: false,
            dry_run: false,
            suspended: false,
        }
    }

    /// Reads a Flipper's `spec`; null means that there is none.
    pub fn read(spec: &Value) -> Result<Self, Invalid> {
        let empty = Map::new();
        let fields = match spec {
            Value::Null => &empty,
            Value::Object(fields) => fields,
            _ => {
                return Err(Invalid {
                    problems: vec![("spec".to_owned(), "not an object".to_owned())],
                    policy: Box::new(Self {
                        kinds: WorkloadKind::ALL.into(),
                        ..Self::every(DEFAULT_INTERVAL)
                    }),
                    is_match_known: false,
                    is_cadence_known: false,
                });
            }
        };
        let mut reader = Reader {
            fields,
            problems: Vec::new(),
            is_match_known: true,
            is_cadence_known: true,
        };
        let policy = reader.policy();
        if reader.problems.is_empty() {
            return Ok(policy);
        }
        Err(Invalid {
            problems: reader.problems,
            policy: Box::new(policy),
            is_match_known: reader.is_match_known,
            is_cadence_known: reader.is_cadence_known,
        })
    }
}

struct Reader<'a> {
    fields: &'a Map<String, Value>,
    problems: Vec<(String, String)>,
    is_match_known: bool,
    is_cadence_known: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LooseMatch {
    labels: Option<Value>,
    namespaces: Option<Value>,
}

impl Reader<'_> {
    fn policy(&mut self) -> Policy {
        let (labels, namespaces) = self.matching();
        self.is_match_known = self.problems.is_empty();
        let before = self.problems.len();
        let (cadence, is_interval_defaulted) = self.cadence();
        self.is_cadence_known = self.problems.len() == before;
        let calendar = self.calendar(&cadence);
        let when: Option<WhenRolloutInProgress> = self.field("whenRolloutInProgress");
        Policy {
            labels,
            namespaces,
            kinds: self.kinds(),
            cadence,
            is_interval_defaulted,
            calendar,
            jitter: self.duration("jitter").unwrap_or_default(),
            max_concurrent: self.max_concurrent(),
            ignores_rollouts: when == Some(WhenRolloutInProgress::Ignore),
            respects_budgets: self
                .field("respectPodDisruptionBudgets")
                .unwrap_or_default(),
            dry_run: self.field("dryRun").unwrap_or_default(),
            suspended: self.field("suspend").unwrap_or_default(),
        }
    }

    /// The kinds; any, if they cannot be read.
    fn kinds(&mut self) -> BTreeSet<WorkloadKind> {
        let before = self.problems.len();
        let kinds: Vec<WorkloadKind> = self.field("kinds").unwrap_or_default();
        if self.problems.len() > before {
            return WorkloadKind::ALL.into();
        }
        if kinds.is_empty() {
            return BTreeSet::from([WorkloadKind::Deployment]);
        }
        kinds.into_iter().collect()
    }

    fn problem(&mut self, field: &str, problem: impl fmt::Display) {
        self.problems
            .push((format!("spec.{field}"), problem.to_string()));
    }

    /// A field of the spec; one that is null counts as absent.
    fn field<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.fields.get(name).filter(|value| !value.is_null())?;
        self.decode(name, value)
    }

    fn decode<T: DeserializeOwned>(&mut self, name: &str, value: &Value) -> Option<T> {
        self.kept(name, T::deserialize(value))
    }

    /// What could be read; otherwise the problem is noted.
    fn kept<T, E: fmt::Display>(&mut self, name: &str, read: Result<T, E>) -> Option<T> {
        read.map_err(|error| self.problem(name, error)).ok()
    }

    /// A field that has fields of its own.
    fn group<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.fields.get(name).filter(|value| !value.is_null())?;
        if value.is_object() {
            return self.decode(name, value);
        }
        self.problem(name, "not an object");
        None
    }

    fn duration(&mut self, name: &str) -> Option<Duration> {
        let text: String = self.field(name)?;
        self.kept(name, duration::parse(&text))
    }

    fn matching(&mut self) -> (BTreeMap<String, String>, BTreeSet<String>) {
        let loose: LooseMatch = self.group("match").unwrap_or_default();
        let labels = loose.labels.filter(|value| !value.is_null());
        let namespaces = loose.namespaces.filter(|value| !value.is_null());
        (
            labels
                .and_then(|value| self.decode("match.labels", &value))
                .unwrap_or_default(),
            namespaces
                .and_then(|value| self.decode("match.namespaces", &value))
                .unwrap_or_default(),
        )
    }

    /// The cadence, and whether it is the default one.
    fn cadence(&mut self) -> (Cadence, bool) {
        let interval = self.duration("interval").filter(|it| !it.is_zero());
        let schedule: Option<flipper::Schedule> = self.group("schedule");
        match (interval, schedule) {
            (Some(_), Some(_)) => {
                self.problem("schedule", "set interval or schedule, not both");
                (Cadence::Every(DEFAULT_INTERVAL), true)
            }
            (Some(interval), None) => (Cadence::Every(interval), false),
            (None, Some(schedule)) => {
                let zone = schedule.time_zone.as_deref();
                match self.schedule("schedule", &schedule.cron, zone) {
                    Some(schedule) => (Cadence::At(schedule), false),
                    None => (Cadence::Every(DEFAULT_INTERVAL), true),
                }
            }
            (None, None) => (Cadence::Every(DEFAULT_INTERVAL), true),
        }
    }

    fn schedule(&mut self, name: &str, text: &str, zone: Option<&str>) -> Option<Schedule> {
        let cron = Cron::parse(text);
        let zone = cron::zone(zone);
        if let Err(error) = &cron {
            self.problem(&format!("{name}.cron"), error);
        }
        if let Err(error) = &zone {
            self.problem(&format!("{name}.timeZone"), error);
        }
        Some(Schedule {
            cron: cron.ok()?,
            zone: zone.ok()?,
        })
    }

    fn calendar(&mut self, cadence: &Cadence) -> Calendar {
        let given: Vec<Value> = self.field("windows").unwrap_or_default();
        let mut windows = Vec::new();
        for (place, value) in given.iter().enumerate() {
            let name = format!("windows[{place}]");
            let Some(window) = self.decode::<flipper::Window>(&name, value) else {
                continue;
            };
            let opens = self.schedule(&name, &window.cron, window.time_zone.as_deref());
            match (opens, duration::parse(&window.duration)) {
                (_, Err(error)) => self.problem(&format!("{name}.duration"), error),
                (_, Ok(Duration::ZERO)) => {
                    self.problem(&format!("{name}.duration"), "it would never be open");
                }
                (Some(opens), Ok(duration)) => windows.push(Window { opens, duration }),
                (None, Ok(_)) => {}
            }
        }
        let zone = match cadence {
            Cadence::At(schedule) => Some(schedule.zone.clone()),
            Cadence::Every(_) => None,
        };
        Calendar {
            windows,
            excluded: self.excluded(),
            zone,
        }
    }

    fn excluded(&mut self) -> BTreeSet<Date> {
        let given: Vec<String> = self.field("excludeDates").unwrap_or_default();
        let mut dates = BTreeSet::new();
        for text in given {
            match text.parse::<Date>() {
                Ok(date) if date.to_string() == text => {
                    dates.insert(date);
                }
                _ => self.problem(
                    "excludeDates",
                    format_args!("{text:?} is not a valid date; write it as 2026-12-24"),
                ),
            }
        }
        dates
    }

    fn max_concurrent(&mut self) -> Option<usize> {
        let given: i64 = self.field("maxConcurrent")?;
        match usize::try_from(given) {
            Ok(most) if most > 0 => Some(most),
            _ => {
                self.problem("maxConcurrent", format_args!("{given} is less than 1"));
                None
            }
        }
    }
}
