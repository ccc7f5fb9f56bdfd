//! A capability of a few dozen lines: registered by one line it is in every place where capabilities are.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::Arc;

use clap::{Args, FromArgMatches};
use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::admission::Admit;
use slipway_kernel::capability::show::{Objects, Row, text};
use slipway_kernel::capability::{Capability, Gauge, PeoplesRole, Profile, Registration};
use slipway_kernel::identity::kinds;
use slipway_kernel::interest::Interest;
use slipway_kernel::parts::Parts;
use slipway_kernel::permission::{Permission, Scope};
use slipway_kernel::store::{Projection, Undecodable};
use slipway_kernel::{Controller, Facts, Fence, Key, Plan, Stores};
use slipway_sim::oracles::{Findings, Fleeting, Oracle, Specifics};
use slipway_sim::runner;
use slipway_sim::trial::Trial;

use super::{PROGRAM, Registry};
use crate::args::{Command, Manifests};
use crate::capabilities::{Entry, Running, take};
use crate::{command, model, scenarios};

/// A planner that looks at everything and does nothing.
struct Toy;

#[derive(Debug)]
struct Nothing;

impl Projection for Nothing {
    const READS: Parts = Parts::NONE;

    fn project(_: &Value) -> Result<Self, Undecodable> {
        Ok(Self)
    }
}

impl Controller for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn interests(&self) -> Vec<Interest> {
        vec![Interest::of::<Nothing>(kinds::CONFIG_MAP, |_, _, _| {
            Vec::new()
        })]
    }

    fn lease(&self) -> &'static str {
        CAPABILITY.profile.lease
    }

    fn fence(&self) -> Fence {
        Fence::WaitOut
    }

    fn keys(&self, _: &Stores) -> Vec<Key> {
        Vec::new()
    }

    fn plan(&self, _: &Stores, _: &Facts, _: &Key, _: Timestamp) -> Option<Plan> {
        None
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}

/// What its crate would export.
static CAPABILITY: Capability<ToyOptions> = Capability {
    profile: Profile {
        name: "toy",
        lease: "toy.slipway.dev",
        permissions: &[Permission {
            group: "",
            resource: "configmaps",
            verbs: &["list", "watch"],
            names: &[],
            scope: Scope::Watched,
            why: "to play with them",
        }],
        registrations: &[Registration {
            name: "toy-guard",
            domain: "example.com",
            kind: "ValidatingWebhookConfiguration",
            side_effects: "None",
            groups: &["example.com"],
            operations: &["UPDATE"],
            resources: &["toys"],
            labelled: None,
        }],
        webhook_permissions: &[],
        peoples_roles: &[PeoplesRole {
            name: "toy-viewer",
            to: &["view"],
            group: "example.com",
            resources: &["toys"],
            verbs: &["get"],
        }],
        open_roles: &[],
        definitions: || Ok(vec![definition()]),
        pages: &["Toy"],
        reasons: &[("Broken", "Somebody has to mend it.")],
        show: |objects| {
            let toys = objects.all("example.com/toys");
            let row = |toy: &Value| Row {
                namespace: text(toy, "/metadata/namespace"),
                title: format!("Toy/{}", text(toy, "/metadata/name")),
                ..Row::default()
            };
            toys.map(row).collect()
        },
        names: None,
    },
    controller: |_| Arc::new(Toy),
    webhooks: |_| Vec::<Arc<dyn Admit>>::new(),
};

fn definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Toy", "listKind": "ToyList", "plural": "toys", "singular": "toy"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

#[derive(Debug, Default, clap::Args, serde::Deserialize)]
#[command(next_help_heading = "Toy")]
#[serde(default)]
struct ToyOptions {
    /// How fast it does nothing
    #[arg(long = "toy-speed", default_value_t = 1)]
    speed: u32,
}

fn running(options: &ToyOptions) -> Running {
    Running {
        controller: (CAPABILITY.controller)(options),
        hooks: (CAPABILITY.webhooks)(options),
        cluster_label: Some(options.speed.to_string()),
    }
}

/// What its file in `capabilities/` would hold.
static ENTRY: Entry = Entry {
    profile: &CAPABILITY.profile,
    options: ToyOptions::augment_args,
    from_options: |matches, _| Ok(running(&ToyOptions::from_arg_matches(matches)?)),
    from_scenario: |asked, _| Ok(running(&take(asked, &["speed"])?)),
    scenarios: &[(
        "toy",
        "{name: toy, about: Nothing happens., duration: 1m, settings: {controllers: [toy], speed: 2}}",
    )],
    specifics: &Specifics {
        name: "toy",
        lease: CAPABILITY.profile.lease,
        oracles: &[Oracle {
            id: "TOY1",
            what: "nothing happens",
            check: |case| {
                let mut findings = Findings::default();
                let deeds = case.history.requests.iter().filter(|r| r.is_write());
                let deeds = deeds.filter(|r| !r.path().contains("/leases")).count();
                findings.check(case.history.end, deeds == 0, || format!("{deeds} writes"));
                findings
            },
        }],
        maps: &[],
        copies: &[],
        fleeting: Fleeting::NONE,
        statuses: &[],
        orders: &[],
        superseded: &[],
        follows: |_, _| false,
        is_unconditional: |_| false,
        has_secret: |_| false,
        may_change: |_, _, _| false,
        harmless: &[],
        nothing_left: |_, _| {},
    },
    abroad: &[],
};

/// The program with one line more.
fn registry() -> Registry {
    Registry::of(&[PROGRAM, &[&ENTRY]].concat())
}

fn parsed(line: &str) -> Command {
    let line = line.split_whitespace().map(Into::into);
    registry().parse(line).unwrap().command
}

fn installed(line: &str) -> Vec<Value> {
    let Command::Manifests(arguments) = parsed(line) else {
        panic!("{line}");
    };
    let arguments: Manifests = arguments;
    command::manifests::objects(&registry(), &arguments).unwrap()
}

#[test]
fn it_is_run_with_its_own_options() {
    let Command::Run(arguments) = parsed("slipway run --controllers zones,toy --toy-speed 3")
    else {
        panic!("run");
    };
    let operation = command::run::operation(&registry(), &arguments).unwrap();
    let names: Vec<&str> = operation.capabilities.iter().map(|c| c.name()).collect();
    assert_eq!(names, ["zones", "toy"]);
    assert_eq!(operation.label.as_deref(), Some("3"));
}

#[test]
fn it_is_installed_with_its_rights_kinds_roles_and_webhooks() {
    let objects = installed("slipway manifests --controllers toy --webhooks");
    let text = serde_json::to_string(&objects).unwrap();
    for part in [
        "toys.example.com",
        "toy-viewer",
        "toy.slipway.dev",
        "/admission/toy-guard",
        "toy-guard-rollout.example.com",
        "configmaps",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert!(!text.contains("flipper") && !text.contains("pod-eviction"));
}

#[test]
fn its_pages_are_in_the_reference() {
    let page = |name: &str| command::reference::text(&registry(), name).unwrap();
    assert!(page("toy").contains("# Toy"));
    assert!(page("cli").contains("--toy-speed"));
    assert!(page("permissions").contains("to play with them"));
    assert!(page("reasons").contains("| `Broken` | Somebody has to mend it. |"));
}

/// A cluster with one toy.
struct OneToy(Value);

impl Objects for OneToy {
    fn all<'a>(&'a self, resource: &str) -> Box<dyn Iterator<Item = &'a Value> + 'a> {
        let is_asked = resource == "example.com/toys";
        Box::new(is_asked.then_some(&self.0).into_iter())
    }
}

#[test]
fn it_is_shown_beside_the_others() {
    let toy = OneToy(json!({"metadata": {"name": "duck", "namespace": "bath"}}));
    let now = Timestamp::UNIX_EPOCH;
    let seen = model::gather(&registry().profiles(), "hub", &toy, now);
    let bath = seen.namespaces.first().unwrap();
    assert_eq!((bath.name.as_str(), bath.rows.len()), ("bath", 1));
    assert_eq!(bath.rows[0].title, "Toy/duck");
}

#[test]
fn its_scenarios_are_played_and_its_oracles_judge() {
    let registry = registry();
    let all = scenarios::all_of(&registry).unwrap();
    let toy = all.iter().find(|scenario| scenario.name == "toy").unwrap();
    let wiring = scenarios::wiring_of(&registry);
    let (_, verdicts) = runner::judge(toy, &wiring, &Trial::calm(), None).unwrap();
    let verdict = verdicts
        .iter()
        .find(|verdict| verdict.id == "TOY1")
        .unwrap();
    assert_eq!(verdict.findings.checked, 1);
    assert!(
        verdict.findings.violations.is_empty(),
        "{:?}",
        verdict.findings
    );
}
