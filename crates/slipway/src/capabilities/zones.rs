//! Zones, as this program runs, installs, plays and judges them.

mod oracles;
mod specifics;

use std::time::Duration;

use clap::{Args, FromArgMatches};
use serde::Deserialize;
use slipway_zones::admit::Switches;
use slipway_zones::{CAPABILITY, Replicas, Settings, Setup};

use super::{Common, Entry, Running, scenarios, take};
use crate::args::duration;

/// Zones.
pub(crate) static ENTRY: Entry = Entry {
    profile: &CAPABILITY.profile,
    options: ZonesOptions::augment_args,
    from_options: |matches, common| {
        let given = ZonesOptions::from_arg_matches(matches)?;
        let setup = setup(&given, common);
        Ok(running(&setup, given.cluster_label))
    },
    from_scenario: |asked, common| {
        let asked: Asked = take(asked, FIELDS)?;
        Ok(running(&as_asked(&asked, common), None))
    },
    scenarios: scenarios![
        "zone-rollout",
        "zone-order",
        "zone-budget",
        "zone-evict",
        "zone-partition",
        "zone-downscale",
        "zone-failover",
        "zone-follow",
        "zone-quiet",
        "zone-race",
        "zone-shared",
    ],
    specifics: &specifics::SPECIFICS,
    abroad: &[],
};

fn running(setup: &Setup, cluster_label: Option<String>) -> Running {
    Running {
        controller: (CAPABILITY.controller)(setup),
        hooks: (CAPABILITY.webhooks)(setup),
        cluster_label,
    }
}

/// Options of zones.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Zones")]
struct ZonesOptions {
    /// The DNS domain of the cluster, by which pods are reached
    #[arg(long, default_value = "cluster.local.", value_name = "DOMAIN")]
    cluster_domain: String,
    /// How long a pod may take to answer
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "DURATION")]
    pods_timeout: Duration,
    /// How often the scale of a mirrored resource is looked at
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "DURATION")]
    mirror_interval: Duration,
    /// The header X-Cluster of requests to pods; without it the namespace, if only one is looked after
    #[arg(long, value_name = "LABEL")]
    cluster_label: Option<String>,
    /// Keep the times of downscales in a `ConfigMap`
    #[arg(long)]
    use_zone_tracker: bool,
    /// The name of that `ConfigMap`
    #[arg(long, default_value = slipway_api::zones::ZONE_TRACKER, value_name = "NAME")]
    zone_tracker_config_map_name: String,
}

/// What the options come to.
fn setup(given: &ZonesOptions, common: &Common<'_>) -> Setup {
    let webhooks = common.webhooks.as_ref();
    Setup {
        settings: Settings {
            cluster_domain: given.cluster_domain.clone(),
            tracker: for_ever(&given.zone_tracker_config_map_name),
            poll: given.mirror_interval,
            question_timeout: given.pods_timeout,
            webhooks: webhooks.and_then(|served| served.selector.clone()),
            replicas: replicas(common),
            ..Settings::default()
        },
        webhooks: webhooks.map(|served| Switches {
            tracks_zones: given.use_zone_tracker,
            is_strict: served.is_strict,
        }),
    }
}

fn replicas(common: &Common<'_>) -> Replicas {
    if common.is_alone {
        Replicas::One
    } else {
        Replicas::Several
    }
}

/// A name that stays until the process ends.
pub(crate) fn for_ever(name: &str) -> &'static str {
    String::leak(name.to_owned())
}

/// What a scenario says about zones.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Asked {
    /// Whether the times of downscales are kept in the zone tracker.
    tracks_zones: bool,
}

const FIELDS: &[&str] = &["tracksZones"];

fn as_asked(asked: &Asked, common: &Common<'_>) -> Setup {
    let webhooks = common.webhooks.as_ref();
    Setup {
        settings: Settings {
            replicas: replicas(common),
            ..Settings::default()
        },
        webhooks: webhooks.map(|served| Switches {
            tracks_zones: asked.tracks_zones,
            is_strict: served.is_strict,
        }),
    }
}
