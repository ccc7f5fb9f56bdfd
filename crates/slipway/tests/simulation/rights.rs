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

/// An operator of a scenario, and the rights that it has where it runs.
struct Operator<'a> {
    scenario: &'a str,
    settings: &'a Value,
    setup: Setup,
    rights: fn(&Setup) -> BTreeSet<Right>,
}

impl Operator<'_> {
    /// Its capabilities.
    fn capabilities(&self) -> Vec<&'static str> {
        let all = self.setup.capabilities.iter();
        all.map(|capability| capability.name()).collect()
    }

    /// Whether it has the capabilities that its settings name.
    fn has_all_named(&self) -> bool {
        let has = self.capabilities();
        let named = self.settings["controllers"].as_array();
        let mut named = named.into_iter().flatten().filter_map(Value::as_str);
        named.all(|name| has.contains(&name))
    }
}

/// The operators of these scenarios: those at home, and those within other clusters.
fn operators<'a>(wiring: &Wiring, chosen: &'a [Scenario]) -> Vec<Operator<'a>> {
    let mut all = Vec::new();
    for scenario in chosen.iter().filter(|scenario| scenario.asks("S2")) {
        let mut add = |settings: &'a Value, rights: fn(&Setup) -> BTreeSet<Right>| {
            all.push(Operator {
                scenario: &scenario.name,
                settings,
                setup: (wiring.operator)(settings).unwrap(),
                rights,
            });
        };
        add(&scenario.settings, rights);
        let within = scenario.clusters.iter().filter_map(|c| c.operator.as_ref());
        within.for_each(|within| add(&within.settings, rights_within));
    }
    all
}

/// All rights of these operators, and whether each was needed in some run. That they are the rights of what the scenarios name is
/// noted: with other capabilities, other rights would be looked at.
fn all(operators: &[Operator<'_>], report: &mut Report) -> BTreeMap<Named, bool> {
    let mut all: BTreeMap<Named, bool> = BTreeMap::new();
    for operator in operators {
        let text = format!("{}: not all of its rights are looked at", operator.scenario);
        report.note("S2", operator.has_all_named(), &text);
        let names = operator.capabilities().join(" ");
        for (role, rule, verb, about) in (operator.rights)(&operator.setup) {
            let is_used = report.used.contains(&(role, rule, verb.clone()));
            *all.entry((names.clone(), about, verb)).or_default() |= is_used;
        }
    }
    all
}

/// Tells which rights nothing needed so far: where only some scenarios are played, others may need them.
pub(crate) fn tell(wiring: &Wiring, chosen: &[Scenario], report: &mut Report) {
    let unused = all(&operators(wiring, chosen), report).into_iter();
    for ((capability, about, verb), _) in unused.filter(|(_, is_used)| !is_used) {
        println!("not needed here: {capability}: {verb} {about}");
    }
}

/// S2, the other side: every right of every capability is used in some run.
pub(crate) fn unused(wiring: &Wiring, chosen: &[Scenario], report: &mut Report) {
    for ((capability, about, verb), is_used) in all(&operators(wiring, chosen), report) {
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
