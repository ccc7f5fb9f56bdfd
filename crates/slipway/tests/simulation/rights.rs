//! Rights that no scenario needs, and that all others are needed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use slipway_sim::explore::Report;
use slipway_sim::scenario::Scenario;
use slipway_sim::stage::{Right, Setup, Wiring, rights, rights_within};

/// Rights that no scenario needs, and why they are asked for: capability, resource, verbs, reason.
const UNNEEDED: &[(&str, &str, &[&str], &str)] = &[
    (
        "zones",
        "deployments",
        &["get"],
        "no scenario scales a Deployment that is not to be scaled down; crates/zones/tests/admit/no_downscale.rs does",
    ),
    ("zones", "replicasets", &["get"], "the same of a ReplicaSet"),
    (
        "zones",
        "replicatemplates/scale",
        &["get"],
        "no scenario mirrors a ReplicaTemplate; crates/zones/tests/suite/mirror.rs does",
    ),
    (
        "zones",
        "replicatemplates/status",
        &["patch"],
        "the same: what is mirrored is told what came of it",
    ),
    (
        "zones",
        "zoneawarepoddisruptionbudgets",
        &["get"],
        "granted with list and watch, as the design's Role does",
    ),
    (
        "fleet",
        "leases",
        &["create", "get", "update"],
        "no scenario of the fleet has a second replica; crates/runtime/tests/integration/election.rs elects for all",
    ),
    (
        "agent",
        "leases",
        &["create", "get", "update"],
        "the same of an agent",
    ),
];

/// Capability, resource and verb.
type Named = (String, String, String);

/// All rights of the capabilities of these scenarios, and whether each was needed in some run.
fn all(wiring: &Wiring, chosen: &[Scenario], report: &Report) -> BTreeMap<Named, bool> {
    let mut all: BTreeMap<Named, bool> = BTreeMap::new();
    for scenario in chosen.iter().filter(|scenario| scenario.asks("S2")) {
        let mut look = |settings: &Value, rights: fn(&Setup) -> BTreeSet<Right>| {
            let setup = (wiring.operator)(settings).unwrap();
            let names: Vec<&str> = setup.capabilities.iter().map(|c| c.name()).collect();
            for (role, rule, verb, about) in rights(&setup) {
                let is_used = report.used.contains(&(role, rule, verb.clone()));
                *all.entry((names.join(" "), about, verb)).or_default() |= is_used;
            }
        };
        look(&scenario.settings, rights);
        let within = scenario.clusters.iter().filter_map(|c| c.operator.as_ref());
        within.for_each(|within| look(&within.settings, rights_within));
    }
    all
}

/// Tells which rights nothing needed so far: where only some scenarios are played, others may need them.
pub(crate) fn tell(wiring: &Wiring, chosen: &[Scenario], report: &Report) {
    let unused = all(wiring, chosen, report).into_iter();
    for ((capability, about, verb), _) in unused.filter(|(_, is_used)| !is_used) {
        println!("not needed here: {capability}: {verb} {about}");
    }
}

/// S2, the other side: every right of every capability is used in some run.
pub(crate) fn unused(wiring: &Wiring, chosen: &[Scenario], report: &mut Report) {
    for ((capability, about, verb), is_used) in all(wiring, chosen, report) {
        let reason = UNNEEDED
            .iter()
            .find(|known| (known.0, known.1) == (&capability, &about) && known.2.contains(&&*verb));
        let text = match reason {
            Some(_) if is_used => format!("{capability}: {verb} {about} is used after all"),
            _ => format!("{capability}: nothing ever needed to {verb} {about}"),
        };
        report.note("S2", is_used != reason.is_some(), &text);
    }
}
