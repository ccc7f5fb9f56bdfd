//! Which kinds are looked at: besides Deployments and Services those that some Canary needs, for as long as it does. Nobody is
//! asked for the routers that no Canary uses.

use std::collections::BTreeSet;

use slipway_api::canary::Canary;
use slipway_kernel::interest::Interest;
use slipway_kernel::store::Seen;
use slipway_kernel::{ClusterId, Kind, Stores};

use super::abandoned::{CLAIMED, index_claimed};
use super::projections::{CONFIGS, index_configs, read, unread};
use super::{
    CanarySeen, MapSeen, ProviderSeen, SecretSeen, TemplateSeen, Whole, on_config, on_object,
    on_template,
};
use crate::kinds;
use crate::places::Places;
use crate::provider::Provider;
use crate::router;
use crate::settings::Settings;
use crate::standalone::readiness::Workload;

/// The index of Canaries by the kinds that they need and others may not.
pub(super) const NEEDS: &str = "needs";

/// In [`NEEDS`]: the kinds of the router that counts where a Canary names none.
const USUAL: &str = "usual";

/// Kinds of objects that a Canary is about besides Deployments and Services, where its traffic is shifted by this.
pub(super) fn kinds_of(canary: &Canary, provider: Option<Provider>) -> Vec<Kind> {
    let spec = &canary.spec;
    let kind = &spec.target_ref.kind;
    // Of a kind that nobody can follow, it may have been a DaemonSet when something was taken.
    let is_begun = canary.status.as_ref().is_some_and(|one| one.run.is_some());
    let is_unknown = is_begun && Workload::of(kind).is_none();
    let is_daemon_set = is_unknown || Places::has_daemon_set(canary);
    let daemon_set = is_daemon_set.then_some(kinds::DAEMON_SET);
    let autoscaler = spec.autoscaler_ref.as_ref().map(|_| kinds::AUTOSCALER);
    let routed = provider.into_iter().flat_map(router::kinds);
    daemon_set
        .into_iter()
        .chain(autoscaler)
        .chain(routed)
        .collect()
}

/// What [`NEEDS`] finds a Canary by.
pub(super) fn index_needs(seen: &Seen) -> Vec<String> {
    let Some(canary) = read(seen) else {
        // The claim on what its run is about is renewed all the same.
        let kept = unread(seen).and_then(|places| places.kind);
        return kept.iter().map(|_| called(&kinds::DAEMON_SET)).collect();
    };
    let said = Provider::said(canary);
    let usual = said.is_none().then(|| USUAL.to_owned());
    let mut needed = kinds_of(canary, said.and_then(Result::ok));
    // What the last run went by may have to be given back.
    needed.extend(Provider::of_run(canary).into_iter().flat_map(router::kinds));
    let analysis = canary.spec.analysis().unwrap_or_default();
    let mut metrics = analysis.metrics.iter();
    if metrics.any(|one| one.template_ref.is_some()) {
        needed.push(kinds::METRIC_TEMPLATE);
    }
    if !analysis.alerts.is_empty() {
        needed.push(kinds::ALERT_PROVIDER);
    }
    needed.iter().map(called).chain(usual).collect()
}

/// What a kind is called in [`NEEDS`].
fn called(kind: &Kind) -> String {
    format!("{} {}", kind.api_version(), kind.kind)
}

/// What canary wants to see for the Canaries that there are.
pub fn interests_in(settings: &Settings, stores: &Stores, cluster: &ClusterId) -> Vec<Interest> {
    let mut canaries = stores.list::<CanarySeen>(cluster, &kinds::CANARY);
    if canaries.next().is_none() {
        return Vec::new();
    }
    let has =
        |value: &str| stores.count_indexed::<CanarySeen>(cluster, &kinds::CANARY, NEEDS, value) > 0;
    let is_usual = has(USUAL);
    let usual = is_usual.then(|| router::kinds(settings.provider));
    let usual = usual.unwrap_or_default();
    let mut all = some(has, &usual);
    if settings.config_tracking {
        all.push(Interest::of::<MapSeen>(kinds::CONFIG_MAP, on_config));
        all.push(Interest::of::<SecretSeen>(kinds::SECRET, on_config));
    }
    all.into_iter().map(Interest::optional).collect()
}

/// Kinds that some Canary needs, by what `has` says of them, and those that are needed anyway.
fn some(has: impl Fn(&str) -> bool, anyway: &[Kind]) -> Vec<Interest> {
    let is_needed = |kind: &Kind| anyway.contains(kind) || has(&called(kind));
    let providers = Provider::all().map(|(_, provider)| provider);
    let routed: BTreeSet<Kind> = providers.flat_map(router::kinds).collect();
    let whole = |kind: Kind| Interest::of::<Whole>(kind, on_object);
    let mut all = vec![
        whole(kinds::DAEMON_SET)
            .indexed(CONFIGS, index_configs)
            .indexed(CLAIMED, index_claimed),
        whole(kinds::AUTOSCALER),
        Interest::of::<TemplateSeen>(kinds::METRIC_TEMPLATE, on_template),
        Interest::of::<ProviderSeen>(kinds::ALERT_PROVIDER, on_template),
    ];
    all.extend(routed.into_iter().map(whole));
    all.retain(|interest| is_needed(&interest.kind));
    all
}
