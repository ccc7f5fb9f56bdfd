//! Canary, as this program runs, installs, plays and judges it.

mod oracles;
mod specifics;

use clap::{Args, FromArgMatches};
use serde::Deserialize;
use slipway_canary::provider::Provider;
use slipway_canary::settings::METRICS_SERVER;
use slipway_canary::{CAPABILITY, Settings};

use super::{Common, Entry, Running, scenarios, take};

/// Canary.
pub(crate) static ENTRY: Entry = Entry {
    profile: &CAPABILITY.profile,
    options: CanaryOptions::augment_args,
    from_options: |matches, common| {
        let given = CanaryOptions::from_arg_matches(matches)?;
        Ok(running(&settings(&given, common)))
    },
    from_scenario: |asked, common| {
        let asked: Asked = take(asked, FIELDS)?;
        Ok(running(&as_asked(&asked, common)?))
    },
    scenarios: scenarios![
        "canary-good",
        "canary-bad",
        "canary-gates",
        "canary-blue-green",
        "canary-changes",
        "canary-hpa",
        "canary-routes",
        "canary-crash",
        "canary-leaves",
        "canary-configs",
        "canary-mesh",
        "canary-ingress",
        "canary-replicas",
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

/// Options of canary.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Canary")]
struct CanaryOptions {
    /// What shifts traffic where a Canary does not say: istio, gatewayapi:v1, smi:v1alpha2, nginx, kubernetes, …
    #[arg(long = "canary-provider", default_value = "istio", value_parser = provider, value_name = "NAME")]
    provider: Provider,
    /// Where builtin metrics and inline queries are asked where a Canary does not say
    #[arg(long = "canary-metrics-server", default_value = METRICS_SERVER, value_name = "URL")]
    metrics_server: String,
    /// Labels by which a workload selects its pods, in the order in which they are looked for
    #[arg(
        long = "canary-selector-labels",
        value_delimiter = ',',
        default_value = "app,name,app.kubernetes.io/name",
        value_name = "LABEL,…"
    )]
    selector_labels: Vec<String>,
    /// What names of labels and annotations begin with that are copied to what serves; * for all
    #[arg(
        long = "canary-include-label-prefix",
        value_delimiter = ',',
        value_name = "PREFIX,…"
    )]
    include_label_prefix: Vec<String>,
    /// Do not track `ConfigMap`s and Secrets: then neither is looked at
    #[arg(long = "canary-no-config-tracking")]
    no_config_tracking: bool,
    /// Refuse Canaries that name templates and alert providers of other namespaces
    #[arg(long = "canary-no-cross-namespace-refs")]
    no_cross_namespace_refs: bool,
    /// Who is told everything about Canaries that name no webhook of type event
    #[arg(long = "canary-event-webhook", value_name = "URL")]
    event_webhook: Option<String>,
    /// What annotations of ingress-nginx begin with
    #[arg(
        long = "canary-ingress-annotations-prefix",
        default_value = slipway_api::foreign::ingress_nginx::PREFIX,
        value_name = "PREFIX"
    )]
    ingress_annotations_prefix: String,
}

fn provider(name: &str) -> Result<Provider, String> {
    Provider::of(name).map_err(|error| error.to_string())
}

/// What the options come to.
fn settings(given: &CanaryOptions, common: &Common<'_>) -> Settings {
    Settings {
        provider: given.provider,
        selector_labels: given.selector_labels.clone(),
        include_label_prefix: given.include_label_prefix.clone(),
        config_tracking: !given.no_config_tracking,
        ingress_prefix: given.ingress_annotations_prefix.clone(),
        metrics_server: given.metrics_server.clone(),
        event_webhook: given.event_webhook.clone(),
        operator_namespace: Some(common.namespace.to_owned()),
        cross_namespace: !given.no_cross_namespace_refs,
    }
}

/// What a scenario says about canary.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Asked {
    /// What shifts traffic where a Canary does not say.
    provider: Option<String>,
    /// Where metrics are asked where a Canary does not say.
    metrics_server: Option<String>,
}

const FIELDS: &[&str] = &["provider", "metricsServer"];

fn as_asked(asked: &Asked, common: &Common<'_>) -> Result<Settings, String> {
    let usual = Settings::default();
    let named = asked.provider.as_deref();
    let server = asked.metrics_server.clone();
    Ok(Settings {
        provider: named.map_or(Ok(usual.provider), provider)?,
        metrics_server: server.unwrap_or_else(|| usual.metrics_server.clone()),
        operator_namespace: Some(common.namespace.to_owned()),
        ..usual
    })
}
