//! What must come of a scenario, besides what the oracles say of all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{Named, Scenario, length, maybe_length};

/// A time in which something always or never holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct During {
    /// From when.
    #[serde(deserialize_with = "length")]
    pub from: Duration,
    /// Until when.
    #[serde(deserialize_with = "length")]
    pub to: Duration,
}

/// What is right as well.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instead {
    /// Whose field.
    pub object: Named,
    /// Which field.
    pub path: String,
    /// The field's value.
    pub is: Value,
}

/// One expectation: a field of an object, how often workloads were restarted, or an event that was told.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Expectation {
    /// How long after the start; at the end if nothing is said.
    #[serde(deserialize_with = "maybe_length")]
    pub at: Option<Duration>,
    /// In which cluster; at home if nothing is said. Whoever takes the place of `east` is called `east~2`, `east~3`, ….
    pub cluster: Option<String>,
    /// Whether it depends on each of the other clusters: it is what home says of all, or waits for as many as are ready.
    pub of_all: bool,
    /// All the time, instead of at one moment.
    pub during: Option<During>,
    /// Whose field; with neither `is` nor `isNot` the object is not there.
    pub object: Option<Named>,
    /// Which field.
    pub path: Option<String>,
    /// The field's value.
    pub is: Option<Value>,
    /// What the field's value is not.
    pub is_not: Option<Value>,
    /// Whether the field, or the object without a path, is there.
    pub exists: Option<bool>,
    /// Where something went wrong, this is right too: then nothing else is expected here.
    pub unless: Option<Instead>,
    /// How often the operator restarted workloads until then.
    pub restarts: BTreeMap<Named, u64>,
    /// Reasons of events that were told on objects until then.
    pub events: BTreeMap<Named, String>,
    /// What it is good for.
    pub why: Option<String>,
}

/// When an expectation must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At a moment.
    At(Duration),
    /// All the time.
    During(Duration, Duration),
}

impl Expectation {
    /// When it must hold.
    pub fn when(&self, scenario: &Scenario) -> When {
        match (&self.during, self.at) {
            (Some(during), _) => When::During(during.from, during.to),
            (None, at) => When::At(at.unwrap_or(scenario.duration)),
        }
    }

    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        if self.at.is_some() && self.during.is_some() {
            return Err("at and during exclude each other".to_owned());
        }
        let cluster = self.cluster.as_deref();
        let cluster = cluster.map(|name| name.split_once('~').map_or(name, |(name, _)| name));
        if scenario.place(cluster).is_none() {
            return Err("cluster: there is no such".to_owned());
        }
        let last = match self.when(scenario) {
            When::At(at) => at,
            When::During(from, to) if from < to => to,
            When::During(..) => return Err("during: it ends before it begins".to_owned()),
        };
        if last > scenario.duration {
            return Err("this is after the end of the scenario".to_owned());
        }
        let about_field = self.is.is_some() || self.is_not.is_some() || self.exists.is_some();
        if about_field && self.object.is_none() {
            return Err("is, isNot and exists are about an object; name it".to_owned());
        }
        if self.object.is_some() && !about_field {
            return Err("say what of the object: is, isNot or exists".to_owned());
        }
        if !about_field && self.restarts.is_empty() && self.events.is_empty() {
            return Err("nothing is expected".to_owned());
        }
        if self.during.is_some() && !about_field {
            return Err("during is for fields; restarts and events have a moment".to_owned());
        }
        Ok(())
    }
}
