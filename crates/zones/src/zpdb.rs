//! A `ZoneAwarePodDisruptionBudget`, read once: by the webhook that guards it, and by the watch that uses it.
//!
//! A [`Budget`] that exists makes sense; what does not is an error with the text that the original gives.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value};
use slipway_api::zpdb::KIND;
use slipway_kernel::duration::{self, NotADuration};
use slipway_kernel::parts::Parts;
use slipway_kernel::selector::Selector;
use slipway_kernel::store::{Projection, Undecodable};

use crate::grammar::{is_label_key, is_label_value};
use crate::group::go_duration;

/// How many pods may be away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Most {
    /// So many.
    Pods(i64),
    /// So many percent of a zone.
    Percent(i64),
}

/// What of a pod's name is its partition.
#[derive(Debug, Clone)]
pub struct Partition {
    regex: Regex,
    group: usize,
}

impl Partition {
    /// The partition of a pod; none if its name has none.
    pub fn of<'a>(&self, pod: &'a str) -> Option<&'a str> {
        let found = self.regex.captures(pod)?.get(self.group)?.as_str();
        (!found.is_empty()).then_some(found)
    }
}

/// A budget that makes sense.
#[derive(Debug, Clone)]
pub struct Budget {
    /// How many pods may be away at once.
    pub most: Most,
    /// All of these labels are on the pods and `StatefulSets` it is about.
    pub selector: Selector,
    /// Set where partitions are counted instead of zones.
    pub partition: Option<Partition>,
    /// How long a pod must have been ready to count as such in another zone.
    pub delay: Duration,
}

/// Why an object is no budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// There is no object.
    #[error("unexpected end of JSON input")]
    NoObject,
    /// It has no spec.
    #[error("no spec found in unstructured object")]
    NoSpec,
    /// It is something else.
    #[error("unexpected object kind - expecting {KIND}")]
    Kind,
    /// Both limits are given.
    #[error("invalid value: only one of maxUnavailable or maxUnavailablePercentage may be set")]
    BothLimits,
    /// A field has the wrong type.
    #[error("failed to extract value from config field {0}")]
    Field(&'static str),
    /// The limit is negative.
    #[error("invalid value: max unavailable must be 0 <= val, got {0}")]
    MaxUnavailable(i64),
    /// The limit is no percentage.
    #[error("invalid value: max unavailable percentage must be 0 <= val <= 100, got {0}")]
    Percentage(i64),
    /// The regular expression, or the group within it, is wrong.
    #[error("invalid value: regex is not valid, got {0}")]
    Regex(String),
    /// There is no selector.
    #[error("invalid value: selector is not found")]
    NoSelector,
    /// The selector is wrong.
    #[error("invalid value: selector is not valid, got {0}")]
    Selector(String),
    /// The delay is no duration.
    #[error("invalid value: crossZoneEvictionDelay is not a valid duration, got {0}")]
    Delay(String),
    /// The delay is negative.
    #[error("invalid value: crossZoneEvictionDelay must be >= 0, got {0}")]
    NegativeDelay(String),
    /// A delay is of use between partitions only.
    #[error("invalid value: crossZoneEvictionDelay requires podNamePartitionRegex to be set")]
    DelayWithoutPartition,
    /// A percentage of what?
    #[error("invalid value: max unavailable percentage can not be used with partition awareness")]
    PercentageOfPartition,
}

impl Budget {
    /// Reads a budget.
    pub fn parse(object: &Value) -> Result<Self, Invalid> {
        if object.is_null() {
            return Err(Invalid::NoObject);
        }
        let spec = object.get("spec").and_then(Value::as_object);
        let spec = spec.ok_or(Invalid::NoSpec)?;
        if object.get("kind").and_then(Value::as_str) != Some(KIND) {
            return Err(Invalid::Kind);
        }
        let most = most(spec)?;
        let partition = partition(spec)?;
        let selector = selector(object)?;
        let delay = delay(spec, partition.is_some())?;
        if partition.is_some() && matches!(most, Most::Percent(_)) {
            return Err(Invalid::PercentageOfPartition);
        }
        Ok(Self {
            most,
            selector,
            partition,
            delay,
        })
    }

    /// Whether an object with these labels is one that the budget is about.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.selects(labels)
    }

    /// How many pods of a zone, or of a partition, may be away, given the replicas of the zone as asked for and as are.
    pub fn max_unavailable(&self, asked: i64, are: i64) -> i64 {
        match self.most {
            Most::Pods(pods) => pods,
            Most::Percent(percent) => {
                let replicas = asked.min(are).max(0);
                if replicas == 0 || percent == 0 {
                    return 0;
                }
                (replicas.saturating_mul(percent) / 100).max(1)
            }
        }
    }
}

fn most(spec: &Map<String, Value>) -> Result<Most, Invalid> {
    let pods = integer(spec, "maxUnavailable");
    let percent = integer(spec, "maxUnavailablePercentage");
    if spec.contains_key("maxUnavailable") && spec.contains_key("maxUnavailablePercentage") {
        return Err(Invalid::BothLimits);
    }
    if let Some(percent) = percent? {
        return match percent {
            0..=100 => Ok(Most::Percent(percent)),
            _ => Err(Invalid::Percentage(percent)),
        };
    }
    match pods?.unwrap_or(1) {
        pods @ 0.. => Ok(Most::Pods(pods)),
        pods => Err(Invalid::MaxUnavailable(pods)),
    }
}

fn integer(spec: &Map<String, Value>, field: &'static str) -> Result<Option<i64>, Invalid> {
    let value = spec.get(field);
    let number = value.map(|value| value.as_i64().ok_or(Invalid::Field(field)));
    number.transpose()
}

/// A text that is not empty.
fn text<'a>(spec: &'a Map<String, Value>, field: &'static str) -> Result<Option<&'a str>, Invalid> {
    let value = spec.get(field);
    let text = value.map(|value| value.as_str().ok_or(Invalid::Field(field)));
    Ok(text.transpose()?.filter(|text| !text.is_empty()))
}

fn partition(spec: &Map<String, Value>) -> Result<Option<Partition>, Invalid> {
    let group = integer(spec, "podNameRegexGroup")?;
    let Some(pattern) = text(spec, "podNamePartitionRegex")? else {
        return Ok(None);
    };
    let wrong = |why: &str| Invalid::Regex(why.to_owned());
    // Without a group around it, as the original has it: budgets that exist rely on what that matches.
    let regex = Regex::new(&format!("^{pattern}$")).map_err(|error| wrong(&error.to_string()))?;
    let groups = regex.captures_len() - 1;
    let group = match (groups, group) {
        (0, _) => {
            return Err(wrong(
                "regular expression requires at least one subexpression",
            ));
        }
        (1, None) => 1,
        (_, None) => {
            return Err(wrong(
                "regular expression has multiple subexpressions and requires podNameRegexGroup to be set",
            ));
        }
        (_, Some(group)) => usize::try_from(group)
            .ok()
            .filter(|group| (1..=groups).contains(group))
            .ok_or_else(|| wrong("regular expression subexpression index out of range"))?,
    };
    Ok(Some(Partition { regex, group }))
}

fn delay(spec: &Map<String, Value>, has_partition: bool) -> Result<Duration, Invalid> {
    let Some(text) = text(spec, "crossZoneEvictionDelay")? else {
        return Ok(Duration::ZERO);
    };
    if matches!(duration::parse(text), Err(NotADuration::Negative(_))) {
        return Err(Invalid::NegativeDelay(text.to_owned()));
    }
    let delay = go_duration(text).map_err(|_| Invalid::Delay(text.to_owned()))?;
    if !has_partition {
        return Err(Invalid::DelayWithoutPartition);
    }
    Ok(delay)
}

/// The labels that the objects of a budget have, also where the rest of it makes no sense.
fn selector(object: &Value) -> Result<Selector, Invalid> {
    let wrong = |why: &str| Invalid::Selector(why.to_owned());
    let selector = object
        .pointer("/spec/selector")
        .ok_or(Invalid::NoSelector)?;
    let selector = selector.as_object().ok_or_else(|| wrong("no object"))?;
    let expressions = selector.get("matchExpressions");
    if expressions.is_some_and(|all| all.as_array().is_none_or(|all| !all.is_empty())) {
        return Err(wrong("matchExpressions, of which there is no use here"));
    }
    let labels = match selector.get("matchLabels") {
        None | Some(Value::Null) => return Ok(Selector::default()),
        Some(labels) => labels
            .as_object()
            .ok_or_else(|| wrong("matchLabels that are no map"))?,
    };
    let mut all = BTreeMap::new();
    for (key, value) in labels {
        let value = value
            .as_str()
            .ok_or_else(|| wrong(&format!("a value for {key} that is no text")))?;
        if !is_label_key(key) || !is_label_value(value) {
            return Err(wrong(&format!("{key}={value}")));
        }
        all.insert(key.clone(), value.to_owned());
    }
    Ok(Selector::labels(all))
}

/// What is kept of a budget: also of one that makes no sense, which must not look like none.
#[derive(Debug, Clone)]
pub struct BudgetSeen {
    /// The budget, or what is wrong with it.
    pub budget: Result<Budget, Invalid>,
    selector: Option<Selector>,
}

impl BudgetSeen {
    /// Whether it is, or may be meant to be, about an object with these labels.
    pub fn concerns(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.selector.as_ref();
        selector.is_none_or(|selector| selector.selects(labels))
    }
}

impl Projection for BudgetSeen {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self {
            budget: Budget::parse(object),
            selector: selector(object).ok(),
        })
    }
}

/// How the arrival of a budget is counted in `rollout_operator_zpdb_configurations_observed_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// It is new or changed.
    Updated,
    /// It is known already, or something else.
    Ignored,
    /// It makes no sense.
    Invalid,
    /// It is gone.
    Deleted,
    /// A deletion of what is not known, or of an earlier object of the name.
    DeleteIgnored,
}

impl Observed {
    /// The value of the label `result`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Ignored => "ignored",
            Self::Invalid => "invalid",
            Self::Deleted => "deleted",
            Self::DeleteIgnored => "delete-ignored",
        }
    }

    /// How an object that a watch brought is counted; `is_new` if the store took it in.
    pub fn of(object: &Value, is_new: bool) -> Self {
        match Budget::parse(object) {
            Err(Invalid::Kind) => Self::Ignored,
            _ if !is_new => Self::Ignored,
            Err(_) => Self::Invalid,
            Ok(_) => Self::Updated,
        }
    }

    /// How a deletion is counted; `is_new` if the store took it in.
    pub fn of_deletion(is_new: bool) -> Self {
        if is_new {
            Self::Deleted
        } else {
            Self::DeleteIgnored
        }
    }
}

#[cfg(test)]
mod tests;
