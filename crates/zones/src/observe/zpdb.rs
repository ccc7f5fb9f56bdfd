//! Zone-aware pod disruption budgets, as far as a rollout has to respect them.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;
use slipway_kernel::fields::{integer, strings, text};
use slipway_kernel::store::{Projection, Undecodable};

use crate::group::go_duration;

/// What is kept of a zone-aware budget. One that cannot be followed keeps its selector, so that what it is about is left
/// alone.
#[derive(Debug, Clone)]
pub struct ZoneBudget {
    /// The labels of its pods and `StatefulSet`s.
    pub selector: BTreeMap<String, String>,
    /// What it asks for, or what is wrong with that.
    pub terms: Result<Terms, String>,
}

/// What a budget asks for.
#[derive(Debug, Clone)]
pub struct Terms {
    /// How many pods may be unavailable.
    pub most: Most,
    /// How pods are told apart into partitions.
    pub partitions: Option<Partitions>,
    /// How long a pod of another zone must have been ready again.
    pub delay: Duration,
}

/// How many pods may be unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Most {
    /// So many.
    Pods(i64),
    /// A part of the replicas.
    Percent(i64),
}

/// How the partition of a pod is found in its name.
#[derive(Debug, Clone)]
pub struct Partitions {
    expression: Regex,
    group: usize,
}

impl Partitions {
    /// The partition of the pod of this name.
    pub fn of<'a>(&self, pod: &'a str) -> Option<&'a str> {
        let found = self.expression.captures(pod)?.get(self.group)?;
        Some(found.as_str()).filter(|partition| !partition.is_empty())
    }
}

impl Projection for ZoneBudget {
    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self {
            selector: strings(object, "/spec/selector/matchLabels"),
            terms: terms(object),
        })
    }
}

fn terms(object: &Value) -> Result<Terms, String> {
    let number = |path: &str| match object.pointer(path) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_i64()
            .map(Some)
            .ok_or_else(|| format!("{path} is no whole number")),
    };
    let partitions = partitions(object)?;
    let pods = number("/spec/maxUnavailable")?;
    let percent = number("/spec/maxUnavailablePercentage")?;
    let most = match (pods, percent) {
        (Some(_), Some(_)) => {
            return Err("only one of maxUnavailable or maxUnavailablePercentage may be set".into());
        }
        (Some(pods), None) if pods >= 0 => Most::Pods(pods),
        (None, Some(percent)) if (0..=100).contains(&percent) => Most::Percent(percent),
        (None, None) => Most::Pods(1),
        _ => return Err("max unavailable is out of range".into()),
    };
    if partitions.is_some() && percent.is_some() {
        return Err("max unavailable percentage can not be used with partition awareness".into());
    }
    let delay = match text(object, "/spec/crossZoneEvictionDelay") {
        None | Some("") => Duration::ZERO,
        Some(delay) => {
            go_duration(delay).map_err(|error| format!("crossZoneEvictionDelay: {error}"))?
        }
    };
    if object.pointer("/spec/selector/matchLabels").is_none() {
        return Err("selector is not found".into());
    }
    Ok(Terms {
        most,
        partitions,
        delay,
    })
}

fn partitions(object: &Value) -> Result<Option<Partitions>, String> {
    let Some(expression) =
        text(object, "/spec/podNamePartitionRegex").filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    let expression = Regex::new(&format!("^{expression}$"))
        .map_err(|error| format!("podNamePartitionRegex: {error}"))?;
    let group = integer(object, "/spec/podNameRegexGroup").unwrap_or(1);
    let group = usize::try_from(group).unwrap_or_default();
    if group == 0 || group >= expression.captures_len() {
        return Err("podNameRegexGroup: subexpression index out of range".into());
    }
    Ok(Some(Partitions { expression, group }))
}

impl ZoneBudget {
    /// Whether it is about an object with these labels.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        // Without a selector that can be read nobody knows what it is about; the original ignores it too.
        let is_readable = self.terms.is_ok() || !self.selector.is_empty();
        is_readable
            && self
                .selector
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
    }
}
