//! Bugs on purpose: each must be found by an oracle that is there for it, in a run that the gate always makes with the operator
//! itself, and without comparing it with the sound operator.
//!
//! A mutant bends a capability from outside: what it sees (projections), when it believes to be, what it plans; or it
//! tampers with requests, or with the operator's times. Nothing of it is in the product.

/// A projection that sees a changed object.
macro_rules! sees {
    ($kind:ty, $change:expr) => {
        |object: &Value| {
            let mut object = object.clone();
            let change: fn(&mut Value) = $change;
            change(&mut object);
            Ok(Arc::new(<$kind as Projection>::project(&object)?))
        }
    };
}

mod bent;
#[path = "canary.rs"]
mod canary;
#[path = "fleet.rs"]
mod fleet;
#[path = "killers.rs"]
pub(crate) mod killers;
#[path = "zones.rs"]
mod zones;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use slipway_api::purpose;
use slipway_kernel::admission::Admit;
use slipway_kernel::store::Project;
use slipway_kernel::store::Projection;
use slipway_kernel::{Facts, Kind, Plan};
use slipway_restarts::observe::{Flipper, Workload};
use slipway_runtime::{Election, WithoutLease};
use slipway_sim::explore::{self, Hunt, Known, Reach};
use slipway_sim::stage::{Feign, Probe, Setup, Wiring};

use crate::BOUNDED;
use bent::Bent;
use zones::{Twist, Twisted};

/// How a mutant differs.
pub(crate) enum Bend {
    /// Workloads look different to it.
    Workloads(Project),
    /// Flippers look different to it.
    Flippers(Project),
    /// Its clock is ahead by these seconds, for decisions only.
    Ahead(i64),
    /// It believes something else of what it can see.
    Facts(fn(&mut Facts)),
    /// It plans something else.
    Plans(fn(&mut Plan)),
    /// It plans on what it had seen before the last change, and sends no precondition along.
    Stale,
    /// Its requests are different.
    Requests(slipway_sim::stage::Tamper),
    /// It runs differently.
    Settings(fn(&mut slipway_runtime::Settings)),
    /// Objects of a kind look different to it.
    Sees(Kind, Project),
    /// Reservations of evictions look different to it.
    Reservations(Project),
    /// Its webhooks are different.
    Hooks(Twist),
    /// A new leader touches nothing.
    NoTouch,
    /// The API seems to answer otherwise.
    Answers(Feign),
    /// It believes to be the only one as soon as it is refused its Lease.
    Lonely,
    /// It tells otherwise whether it is ready.
    Probe(Probe),
    /// It is set up otherwise.
    Instead(fn(Setup) -> Setup),
}

/// A bug on purpose.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// Scenarios in which it should show.
    pub(crate) scenarios: &'static [&'static str],
    /// The oracles that are there for it: one of these must object, whoever else does.
    pub(crate) by: &'static [&'static str],
    pub(crate) bend: fn() -> Bend,
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Mutant> {
    let convoy = crate::convoy::mutants::ALL;
    let lookout = crate::lookout::mutants::ALL;
    let ours = ALL.iter().chain(zones::ALL);
    let ours = ours.chain(canary::ALL).chain(fleet::ALL);
    ours.chain(convoy).chain(lookout)
}

macro_rules! workloads {
    ($change:expr) => {
        || Bend::Workloads(sees!(Workload, $change))
    };
}

macro_rules! flippers {
    ($change:expr) => {
        || Bend::Flippers(sees!(Flipper, $change))
    };
}

/// Takes a field away.
fn hide(object: &mut Value, parent: &str, field: &str) {
    if let Some(fields) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.remove(field);
    }
}

/// The patches of a plan that restart something.
fn restarts(plan: &mut Plan) -> impl Iterator<Item = &mut Value> {
    plan.steps
        .iter_mut()
        .filter_map(|step| match &mut step.action {
            slipway_kernel::Action::Patch { purpose, body, .. }
                if *purpose == purpose::restarts::RESTART =>
            {
                Some(body)
            }
            _ => None,
        })
}

const ANNOTATIONS: &str = "/metadata/annotations";

/// Those of restarts.
const ALL: &[Mutant] = &[
    Mutant {
        name: "the rollout gate is gone",
        scenarios: &["restart-during-rollout", "nightly-restart"],
        by: &["R3"],
        bend: workloads!(|object| object["status"] = json!({})),
    },
    Mutant {
        name: "only the status' generation is looked at",
        scenarios: &["restart-during-rollout", "nightly-restart"],
        by: &["R3"],
        bend: workloads!(|object| {
            let replicas = object["spec"]["replicas"].clone();
            for field in [
                "replicas",
                "updatedReplicas",
                "availableReplicas",
                "readyReplicas",
            ] {
                object["status"][field] = replicas.clone();
            }
            hide(object, "/status", "conditions");
        }),
    },
    Mutant {
        name: "observedGeneration is not compared",
        scenarios: &["restart-during-rollout", "max-concurrent-many"],
        // What was just restarted looks as if it had come up: nobody is seen rolling.
        by: &["R2", "R3"],
        bend: workloads!(|object| object["status"]["observedGeneration"] =
            object["metadata"]["generation"].clone()),
    },
    Mutant {
        name: "paused workloads are restarted",
        scenarios: &["opt-out-pause-zero"],
        by: &["R3"],
        bend: workloads!(|object| hide(object, "/spec", "paused")),
    },
    Mutant {
        name: "workloads without replicas are restarted",
        scenarios: &["opt-out-pause-zero"],
        by: &["R3"],
        bend: workloads!(|object| hide(object, "/spec", "replicas")),
    },
    Mutant {
        name: "opting out is ignored",
        scenarios: &["opt-out-pause-zero"],
        by: &["R3"],
        bend: workloads!(|object| hide(object, ANNOTATIONS, "slipway.dev/restarts")),
    },
    Mutant {
        name: "a snooze is ignored",
        scenarios: &["opt-out-pause-zero"],
        by: &["R3"],
        bend: workloads!(|object| hide(object, ANNOTATIONS, "slipway.dev/restart-not-before")),
    },
    Mutant {
        name: "somebody else's claim is ignored",
        scenarios: &["opt-out-pause-zero"],
        by: &["R3"],
        bend: workloads!(|object| hide(object, ANNOTATIONS, "slipway.dev/disruption-claim")),
    },
    Mutant {
        name: "a restart by hand does not count",
        scenarios: &["restart-during-rollout"],
        by: &["R1"],
        bend: workloads!(|object| {
            let path = "/spec/template/metadata/annotations";
            hide(object, path, "kubectl.kubernetes.io/restartedAt");
        }),
    },
    Mutant {
        name: "nobody looks who wrote the template's restartedAt",
        scenarios: &["stamp-removed"],
        by: &["expect"],
        bend: workloads!(|object| hide(object, "/metadata", "managedFields")),
    },
    Mutant {
        name: "an empty label matches everything",
        scenarios: &["restart-daily"],
        by: &["G4"],
        bend: workloads!(|object| {
            let labels = object
                .pointer_mut("/metadata/labels")
                .and_then(Value::as_object_mut);
            if let Some(labels) = labels.filter(|labels| labels.values().any(|v| v == "")) {
                labels.insert("mesh".to_owned(), json!("true"));
            }
        }),
    },
    Mutant {
        name: "maxConcurrent is ignored",
        scenarios: &["max-concurrent-many", "nightly-restart"],
        by: &["R2"],
        bend: flippers!(|object| hide(object, "/spec", "maxConcurrent")),
    },
    Mutant {
        name: "maxConcurrent is off by one",
        scenarios: &["nightly-restart", "max-concurrent-many"],
        by: &["R2"],
        bend: flippers!(|object| {
            let most = object
                .pointer("/spec/maxConcurrent")
                .and_then(Value::as_i64);
            if let Some(most) = most {
                object["spec"]["maxConcurrent"] = json!(most + 1);
            }
        }),
    },
    Mutant {
        name: "windows are ignored",
        scenarios: &["nightly-restart", "restart-hours"],
        by: &["R10"],
        bend: flippers!(|object| hide(object, "/spec", "windows")),
    },
    Mutant {
        name: "a window stays open for ten minutes more",
        scenarios: &["restart-hours"],
        by: &["R10"],
        bend: flippers!(|object| {
            if let Some(window) = object.pointer_mut("/spec/windows/0") {
                window["duration"] = json!("15m");
            }
        }),
    },
    Mutant {
        name: "excluded days are ignored",
        scenarios: &["restart-hours"],
        by: &["R11"],
        bend: flippers!(|object| hide(object, "/spec", "excludeDates")),
    },
    Mutant {
        name: "a schedule is taken for one of twenty minutes before",
        scenarios: &["restart-hours"],
        by: &["R12"],
        bend: flippers!(|object| {
            if let Some(schedule) = object.pointer_mut("/spec/schedule") {
                schedule["cron"] = json!("0 0 * * tue");
            }
        }),
    },
    Mutant {
        name: "jitter is ignored",
        scenarios: &["restart-jitter"],
        by: &["R13"],
        bend: flippers!(|object| hide(object, "/spec", "jitter")),
    },
    Mutant {
        name: "disruption budgets are ignored",
        scenarios: &["pdb"],
        by: &["R3"],
        bend: flippers!(|object| hide(object, "/spec", "respectPodDisruptionBudgets")),
    },
    Mutant {
        name: "an invalid interval counts as ten minutes",
        scenarios: &["flipper-invalid"],
        by: &["R3"],
        bend: flippers!(|object| {
            let interval = object.pointer("/spec/interval").and_then(Value::as_str);
            if interval.is_some_and(|text| slipway_kernel::duration::parse(text).is_err()) {
                object["spec"]["interval"] = json!("10m");
            }
        }),
    },
    Mutant {
        name: "restarts come four minutes early",
        scenarios: &["restart-daily"],
        by: &["R8"],
        bend: || Bend::Ahead(240),
    },
    Mutant {
        name: "the stamp is left out",
        scenarios: &["restart-daily"],
        by: &["R5"],
        bend: || {
            Bend::Plans(|plan| {
                for body in restarts(plan) {
                    hide(body, ANNOTATIONS, "flipper.io/rollout-last-restart");
                }
            })
        },
    },
    Mutant {
        name: "the template is touched twice",
        scenarios: &["restart-daily"],
        by: &["R5"],
        bend: || {
            Bend::Plans(|plan| {
                for body in restarts(plan) {
                    body["spec"]["template"]["metadata"]["annotations"]["slipway.dev/again"] =
                        json!("yes");
                }
            })
        },
    },
    Mutant {
        name: "no status is written",
        scenarios: &["stamp-removed"],
        by: &["L1"],
        bend: || Bend::Plans(|plan| plan.statuses.clear()),
    },
    Mutant {
        name: "patches have no precondition",
        scenarios: &["restart-daily"],
        by: &["G1"],
        bend: || {
            Bend::Requests(|method, _, body| {
                if method == "PATCH" {
                    hide(body, "/metadata", "resourceVersion");
                    hide(body, "/metadata", "uid");
                }
            })
        },
    },
    Mutant {
        name: "own writes are not read, and patches have no precondition",
        scenarios: &["restart-daily", "max-concurrent-many"],
        by: &["R1"],
        bend: || Bend::Stale,
    },
    Mutant {
        name: "readiness latches off after an outage",
        scenarios: &["flipper-suspended"],
        by: &["V1"],
        bend: || Bend::Probe(Probe::LatchesOff),
    },
    Mutant {
        name: "a replica without the API stays ready",
        scenarios: &["flipper-suspended"],
        by: &["V1"],
        bend: || Bend::Probe(Probe::LatchesOn),
    },
    Mutant {
        name: "a kind that is not found is not defined, whatever discovery says",
        scenarios: &["flipper-suspended"],
        by: &["R9"],
        bend: || {
            Bend::Answers(|_, path| {
                path.starts_with("/apis/flipper.io.github.com")
                    .then_some(404)
                    .filter(|_| path.matches('/').count() <= 3)
            })
        },
    },
    Mutant {
        name: "refusals of a moment make a second leader",
        scenarios: &["leader-failover", "zone-failover"],
        by: &["G6"],
        bend: || Bend::Lonely,
    },
    Mutant {
        name: "a leader that has died is waited for for eleven minutes",
        scenarios: &["leader-failover"],
        by: &["L4"],
        bend: || {
            Bend::Settings(|settings| {
                if let Some(election) = &mut settings.election {
                    election.lease_duration = Duration::from_mins(11);
                    election.renew_deadline = Duration::from_mins(10);
                }
            })
        },
    },
];

impl Mutant {
    /// The operator with this bug.
    fn wiring(&self, sound: &Wiring) -> Wiring {
        let operator = sound.operator.clone();
        let bend = self.bend;
        Wiring {
            operator: Arc::new(move |settings: &Value| Ok(bend_setup(operator(settings)?, bend()))),
            definitions: sound.definitions.clone(),
            oracles: sound.oracles.clone(),
            shares: sound.shares.clone(),
        }
    }

    /// Whether all its scenarios are among these.
    pub(crate) fn needs_only(&self, known: &[Arc<Known>]) -> bool {
        let mut names = self.scenarios.iter();
        names.all(|name| known.iter().any(|known| known.scenario.name == *name))
    }

    /// Looks for it: as far as the gate goes, or up to so many runs.
    pub(crate) fn hunt(
        &self,
        known: &[Arc<Known>],
        sound: &Wiring,
        beyond: Option<usize>,
    ) -> Catch {
        let named = |name: &str| known.iter().find(|known| known.scenario.name == name);
        let chosen: Vec<Arc<Known>> = self
            .scenarios
            .iter()
            .filter_map(|name| named(name).cloned())
            .collect();
        let mut bounded = sound
            .shares
            .iter()
            .filter(|one| BOUNDED.contains(&one.name));
        let reach = Reach {
            kept: killers::of(self.name).filter(|_| beyond.is_none()),
            is_bounded: bounded.any(|one| self.scenarios.iter().any(|name| one.has(name))),
            beyond,
        };
        let both = (sound, &self.wiring(sound));
        let hunt = explore::hunt(&chosen, both, self.by, &reach).unwrap();
        Catch {
            mutant: self.name,
            by: self.by,
            hunt,
        }
    }
}

/// What came of looking for a mutant.
pub(crate) struct Catch {
    pub(crate) mutant: &'static str,
    pub(crate) by: &'static [&'static str],
    pub(crate) hunt: Hunt,
}

impl Catch {
    /// The oracle that objected, of those that are meant to.
    pub(crate) fn killer(&self) -> Option<&'static str> {
        let (failure, _) = self.hunt.caught.as_ref()?;
        let mut ids = failure.violations.iter().map(|(id, _)| *id);
        ids.find(|id| self.by.contains(id))
    }
}

/// Asks whether it has a right that nobody has, so that every refusal looks like a missing right.
pub(crate) fn no_right(_: &str, path: &str, body: &mut Value) {
    if path.ends_with("/selfsubjectaccessreviews") {
        body["spec"]["resourceAttributes"]["resource"] = json!("nothings");
    }
}

fn bend_setup(mut setup: Setup, bend: Bend) -> Setup {
    match bend {
        Bend::Requests(tamper) => setup.tamper = Some(tamper),
        Bend::Settings(change) => change(&mut setup.settings),
        Bend::Answers(feign) => setup.feign = Some(feign),
        Bend::Lonely => {
            setup.tamper = Some(no_right);
            setup.settings.election = Some(Election {
                lease_duration: Duration::from_secs(3),
                renew_deadline: Duration::from_secs(2),
                retry_period: Duration::from_millis(500),
                without_lease: WithoutLease::Alone,
                ..Election::default()
            });
        }
        Bend::Probe(probe) => setup.probe = probe,
        Bend::Instead(other) => return other(setup),
        Bend::Hooks(twist) => {
            let hooks = setup.hooks.into_iter();
            setup.hooks = hooks
                .map(|inner| Arc::new(Twisted { inner, twist }) as Arc<dyn Admit>)
                .collect();
        }
        bend => {
            if matches!(bend, Bend::Stale) {
                setup.tamper = Some(|method, path, body| {
                    if method == "PATCH" && path.contains("/deployments/") {
                        hide(body, "/metadata", "resourceVersion");
                    }
                });
            }
            let bend = Arc::new(bend);
            let bent = setup.capabilities.into_iter();
            setup.capabilities = bent
                .map(|inner| Bent::around(inner, bend.clone()))
                .collect();
        }
    }
    setup
}
