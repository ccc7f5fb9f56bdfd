//! Restarts, as this program runs, installs, plays and judges them.

mod oracles;
mod specifics;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::{Args, FromArgMatches};
use serde::Deserialize;
use slipway_kernel::duration;
use slipway_restarts::settings::{DEFAULT_INTERVAL, SYSTEM_NAMESPACE};
use slipway_restarts::{CAPABILITY, DefaultCriteria, Scope, Settings};

use super::{Common, Entry, Running, scenarios, take};
use crate::args;

/// Restarts.
pub(crate) static ENTRY: Entry = Entry {
    profile: &CAPABILITY.profile,
    options: RestartsOptions::augment_args,
    from_options: |matches, common| {
        let given = RestartsOptions::from_arg_matches(matches)?;
        Ok(running(&settings(&given, common)))
    },
    from_scenario: |asked, common| {
        let asked: Asked = take(asked, FIELDS)?;
        Ok(running(&as_asked(&asked, common)?))
    },
    scenarios: scenarios![
        "nightly-restart",
        "restart-daily",
        "restart-after-downtime",
        "restart-during-rollout",
        "flipper-changes",
        "flipper-invalid",
        "flipper-typo",
        "leader-failover",
        "statefulset-daemonset",
        "opt-out-pause-zero",
        "pdb",
        "overlap",
        "max-concurrent-many",
        "label-later",
        "flipper-suspended",
        "stamp-removed",
        "restart-hours",
        "restart-jitter",
    ],
    specifics: &specifics::SPECIFICS,
    abroad: &[],
};

fn running(settings: &Settings) -> Running {
    Running {
        controller: (CAPABILITY.controller)(settings),
        hooks: (CAPABILITY.webhooks)(settings),
        cluster_label: None,
    }
}

/// Options of restarts.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Restarts")]
struct RestartsOptions {
    /// Whether a Flipper reaches all namespaces, or its own only
    #[arg(long = "restarts-scope", value_enum, default_value_t = Reach::OwnNamespace)]
    scope: Reach,
    /// Namespaces whose workloads are restarted only by a Flipper that names them
    #[arg(
        long = "restarts-protected-namespaces",
        value_delimiter = ',',
        default_value = SYSTEM_NAMESPACE,
        value_name = "NS,…"
    )]
    protected_namespaces: Vec<String>,
    /// Whether workloads are restarted while there is no Flipper
    #[arg(
        long = "restarts-default-criteria",
        action = clap::ArgAction::Set,
        default_value_t = false,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "true|false"
    )]
    default_criteria: bool,
    /// How often, while there is no Flipper and the default criteria are on
    #[arg(long = "restarts-default-interval", default_value = "10m", value_parser = args::duration, value_name = "DURATION")]
    default_interval: Duration,
    /// Which, while there is no Flipper and the default criteria are on: those with one of these labels
    #[arg(long = "restarts-default-labels", value_delimiter = ',', default_value = "mesh=true", value_parser = label, value_name = "KEY=VALUE,…")]
    default_labels: Vec<(String, String)>,
    /// Minimum interval; shorter ones are raised
    #[arg(long = "restarts-min-interval", value_parser = args::duration, value_name = "DURATION")]
    min_interval: Option<Duration>,
    /// How many workloads of the whole cluster may be rolling at once; without it, any number
    #[arg(long = "restarts-max-concurrent", value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    max_concurrent: Option<u32>,
}

/// Whose workloads a Flipper is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Reach {
    /// All namespaces
    Cluster,
    /// The namespace that the Flipper is in
    OwnNamespace,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// What the options come to.
fn settings(given: &RestartsOptions, common: &Common<'_>) -> Settings {
    let usual = Settings::default();
    Settings {
        default_criteria: given.default_criteria.then(|| DefaultCriteria {
            labels: given.default_labels.iter().cloned().collect(),
            interval: given.default_interval,
            ..DefaultCriteria::default()
        }),
        scope: match given.scope {
            Reach::Cluster => Scope::Cluster,
            Reach::OwnNamespace => Scope::OwnNamespace,
        },
        protected_namespaces: given.protected_namespaces.iter().cloned().collect(),
        own_deployment: common
            .deployment
            .map(|name| (common.namespace.to_owned(), name.to_owned())),
        operator_namespace: Some(common.namespace.to_owned()),
        floor: given.min_interval.unwrap_or(usual.floor),
        max_concurrent: given.max_concurrent.and_then(|n| usize::try_from(n).ok()),
        ..usual
    }
}

/// What a scenario says about restarts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Asked {
    /// Whether the default criteria are on.
    default_criteria: bool,
    /// The interval of the default criteria.
    default_interval: Option<String>,
    /// Whether Flippers reach all namespaces.
    cluster_wide: bool,
    /// Namespaces that are left alone unless a policy names them.
    protected_namespaces: Option<BTreeSet<String>>,
    /// How many workloads may be rolling at once, over all policies.
    max_concurrent: Option<usize>,
}

const FIELDS: &[&str] = &[
    "defaultCriteria",
    "defaultInterval",
    "clusterWide",
    "protectedNamespaces",
    "maxConcurrent",
];

fn as_asked(asked: &Asked, common: &Common<'_>) -> Result<Settings, String> {
    let interval = match &asked.default_interval {
        None => DEFAULT_INTERVAL,
        Some(text) => duration::parse(text).map_err(|error| format!("defaultInterval: {error}"))?,
    };
    let usual = Settings::default();
    let protected = asked.protected_namespaces.clone();
    Ok(Settings {
        default_criteria: asked.default_criteria.then(|| criteria(interval)),
        scope: if asked.cluster_wide {
            Scope::Cluster
        } else {
            Scope::OwnNamespace
        },
        protected_namespaces: protected.unwrap_or(usual.protected_namespaces),
        operator_namespace: Some(common.namespace.to_owned()),
        max_concurrent: asked.max_concurrent,
        ..usual
    })
}

fn criteria(interval: Duration) -> DefaultCriteria {
    DefaultCriteria {
        interval,
        labels: BTreeMap::from([("mesh".to_owned(), "true".to_owned())]),
        ..DefaultCriteria::default()
    }
}
