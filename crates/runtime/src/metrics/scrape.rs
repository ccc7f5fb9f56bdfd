//! Gauges that are computed from a snapshot when somebody asks: they vanish with what they are about.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::state::{Phase, Shared, State};

type Labels = Vec<(String, String)>;
type Number = Gauge<f64, AtomicU64>;

/// Gauges by name, with their help.
#[derive(Default)]
struct Gauges(BTreeMap<String, (String, Family<Labels, Number>)>);

impl Gauges {
    fn set(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        let (_, family) = self
            .0
            .entry(name.to_owned())
            .or_insert_with(|| (help.to_owned(), Family::default()));
        let labels: Labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        family.get_or_create(&labels).set(value);
    }
}

/// All that can be read off the state now.
pub(super) fn registry(shared: &Shared) -> Registry {
    let mut gauges = Gauges::default();
    let (stores, capabilities) = {
        let state = shared.lock();
        own(&mut gauges, &state);
        members(&mut gauges, shared, &state);
        (state.stores.clone(), state.capabilities.clone())
    };
    let now = shared.environment.now();
    for capability in &capabilities {
        let all = catch_unwind(AssertUnwindSafe(|| capability.gauges(&stores, now)));
        for gauge in all.unwrap_or_default() {
            let labels: Vec<(&str, &str)> = gauge
                .labels
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            gauges.set(gauge.name, gauge.help, &labels, gauge.value);
        }
    }
    let mut registry = Registry::default();
    for (name, (help, family)) in gauges.0 {
        registry.register(name, help, family);
    }
    registry
}

fn own(gauges: &mut Gauges, state: &State) {
    let now = Instant::now();
    for (controller, depth) in &state.depth {
        let labels = [("controller", *controller)];
        gauges.set(
            "slipway_queue_depth",
            "Keys that are due",
            &labels,
            count(*depth),
        );
    }
    gauges.set(
        "slipway_tasks",
        "Watches, writes, elections and all else that is under way",
        &[],
        count(state.tasks),
    );
    for (key, watch) in &state.home.watches {
        let cluster = key.cluster.to_string();
        let labels = [
            ("cluster", cluster.as_str()),
            ("kind", key.kind.kind.as_ref()),
        ];
        let age = now.duration_since(watch.control.heard()).as_secs_f64();
        let help = "Since anything came from the watch, if only a bookmark";
        gauges.set("slipway_watch_age_seconds", help, &labels, age);
    }
    for capability in &state.capabilities {
        let standing = state.standings.get(capability.lease());
        let acts = standing.is_some_and(|s| s.phase == Phase::Acting);
        let labels = [("controller", capability.name())];
        let help = "Whether this replica acts for the controller";
        gauges.set("slipway_leader", help, &labels, f64::from(u8::from(acts)));
    }
    for missing in &state.home.facts.missing {
        let feature = missing.to_string();
        gauges.set("slipway_feature_off", OFF, &[("feature", &feature)], 1.0);
    }
    if let Some(end) = state.certificate_ends {
        let help = "When the webhook certificate that is shown ends";
        let name = "slipway_certificate_end_timestamp_seconds";
        gauges.set(name, help, &[], end.as_duration().as_secs_f64());
    }
    let mut undecodable: BTreeMap<String, usize> = BTreeMap::new();
    for ((_, kind, _), store) in state.stores.iter() {
        let most = undecodable.entry(kind.kind.to_string()).or_default();
        *most = store.undecodable().max(*most);
    }
    for (kind, bad) in &undecodable {
        let help = "Objects that could not be understood";
        let labels = [("kind", kind.as_str())];
        gauges.set("slipway_undecodable_objects", help, &labels, count(*bad));
    }
    let mut blockers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (key, all) in &state.blockers {
        for blocker in all {
            *blockers
                .entry((key.controller, blocker.reason))
                .or_default() += 1;
        }
    }
    for ((controller, reason), n) in blockers {
        let labels = [("controller", controller), ("reason", reason)];
        gauges.set("slipway_blockers", "Why nothing happens", &labels, count(n));
    }
    let help = "Writes that the API refused, by object and who writes";
    gauges.set(
        "slipway_refusals",
        help,
        &[],
        count(state.home.facts.refused().count()),
    );
}

const OFF: &str = "Features that are off because a right or a definition is missing";

/// The members: how many there are in each state, and of the first ones how each of them is.
fn members(gauges: &mut Gauges, shared: &Shared, state: &State) {
    let mut by_state: BTreeMap<&'static str, usize> = BTreeMap::new();
    let now = shared.environment.now();
    for (at, (cluster, known)) in state.members.iter().enumerate() {
        let Some(member) = &known.member else {
            continue;
        };
        let blocker = member.blocker();
        let word = blocker.map_or("Ready", |blocker| blocker.reason);
        *by_state.entry(word).or_default() += 1;
        if at >= shared.settings.members.series {
            continue;
        }
        let labels = [("cluster", cluster.as_str())];
        let help = "Whether a member answers";
        let is_reached = f64::from(u8::from(member.state.is_reached()));
        gauges.set("slipway_member_reachable", help, &labels, is_reached);
        if let Some(contact) = member.state.contact {
            let help = "Since a member has last said which cluster it is";
            let age = now.duration_since(contact).as_secs_f64();
            gauges.set("slipway_member_contact_age_seconds", help, &labels, age);
        }
        for missing in &known.facts.missing {
            let feature = missing.to_string();
            let labels = [("cluster", cluster.as_str()), ("feature", &feature)];
            gauges.set("slipway_feature_off", OFF, &labels, 1.0);
        }
    }
    for (word, n) in by_state {
        let help = "Clusters besides home, by what keeps them from being worked on";
        gauges.set("slipway_members", help, &[("state", word)], count(n));
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "nobody has 2^52 of anything here"
)]
fn count(n: usize) -> f64 {
    n as f64
}
