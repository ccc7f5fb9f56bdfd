//! The capabilities that this program has, one file each: beside the value that the capability exports, what needs the
//! command line or the simulator.

pub(crate) mod agent;
pub(crate) mod canary;
pub(crate) mod fleet;
pub(crate) mod restarts;
#[cfg(test)]
mod tests;
pub(crate) mod zones;

use std::sync::Arc;

use clap::{ArgMatches, Command};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use slipway_kernel::Controller;
use slipway_kernel::admission::Admit;
use slipway_kernel::capability::Profile;
use slipway_kernel::permission::Permission;
use slipway_sim::oracles::Specifics;

/// A capability, as the registry lists it.
pub(crate) struct Entry {
    /// What the capability itself says.
    pub(crate) profile: &'static Profile,
    /// Adds its options to those of `slipway run`.
    pub(crate) options: fn(Command) -> Command,
    /// Sets it up as these say.
    pub(crate) from_options: fn(&ArgMatches, &Common<'_>) -> Result<Running, clap::Error>,
    /// Sets it up as a scenario says, and takes what it understands out of the scenario's `settings`.
    pub(crate) from_scenario: fn(&mut Map<String, Value>, &Common<'_>) -> Result<Running, String>,
    /// Its scenarios: names and texts. The first of the first capability is the demo's.
    pub(crate) scenarios: &'static [(&'static str, &'static str)],
    /// What oracles must know of it, and its own oracles.
    pub(crate) specifics: &'static Specifics,
    /// What it may do in other clusters than the one that it runs in.
    pub(crate) abroad: &'static [Permission],
}

/// What every capability is told.
pub(crate) struct Common<'a> {
    /// The operator's own namespace.
    pub(crate) namespace: &'a str,
    /// The operator's own Deployment there, if it has one.
    pub(crate) deployment: Option<&'a str>,
    /// Whether there is no other replica.
    pub(crate) is_alone: bool,
    /// How webhooks are served, if they are.
    pub(crate) webhooks: Option<Served>,
}

/// How webhooks are served.
pub(crate) struct Served {
    /// Which webhook configurations are ours, as a label selector; none where nobody looks at them.
    pub(crate) selector: Option<String>,
    /// Whether what cannot be seen is refused.
    pub(crate) is_strict: bool,
}

/// A capability that is set up.
pub(crate) struct Running {
    /// Its planner.
    pub(crate) controller: Arc<dyn Controller>,
    /// Its webhooks, where webhooks are served.
    pub(crate) hooks: Vec<Arc<dyn Admit>>,
    /// The header `X-Cluster` of requests to pods, if it was told.
    pub(crate) cluster_label: Option<String>,
}

/// Embeds scenarios by name.
macro_rules! scenarios {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../scenarios/", $name, ".yaml")))),+]
    };
}
use scenarios;

/// Takes these fields out of a scenario's settings and reads them.
pub(crate) fn take<T: DeserializeOwned>(
    settings: &mut Map<String, Value>,
    fields: &[&str],
) -> Result<T, String> {
    let taken = fields
        .iter()
        .filter_map(|name| settings.remove_entry(*name));
    let taken: Map<String, Value> = taken.collect();
    serde_json::from_value(Value::Object(taken)).map_err(|error| error.to_string())
}
