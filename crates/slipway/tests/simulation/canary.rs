//! Canary with bugs on purpose.

use std::sync::Arc;

use serde_json::{Value, json};
use slipway_api::purpose::canary as purpose;
use slipway_canary::kinds::{CANARY, DEPLOYMENT};
use slipway_canary::observe::{CanarySeen, Whole};
use slipway_kernel::fact::Answer;
use slipway_kernel::question::prometheus::{Measured, Reading};
use slipway_kernel::question::{Number, Reply, Value as Read};
use slipway_kernel::store::Projection;
use slipway_kernel::{Action, Facts, Plan, Purpose};

use super::{Bend, Mutant};

/// The patches of a plan that are for this.
fn patches(plan: &mut Plan, of: Purpose) -> impl Iterator<Item = &mut Value> {
    let steps = plan.steps.iter_mut();
    steps.filter_map(move |step| match &mut step.action {
        Action::Patch { purpose, body, .. } if *purpose == of => Some(body),
        _ => None,
    })
}

/// Whether a patch takes all traffic from the new version.
fn takes_back(action: &Action) -> bool {
    let Action::Patch { purpose, body, .. } = action else {
        return false;
    };
    let weight = body.pointer("/spec/backends/0/weight");
    *purpose == purpose::ROUTE && weight == Some(&json!(0))
}

/// Whatever was measured was good.
fn good(facts: &mut Facts) {
    for (_, answer) in facts.answers.values_mut() {
        if let Answer::Read(Reply {
            value: Read::Measured(measured),
            ..
        }) = answer
        {
            *measured = Measured::Whole(Reading::Vector(Number::Finite(0.0)));
        }
    }
}

/// All of them.
pub(super) const ALL: &[Mutant] = &[
    Mutant {
        name: "canary: a version is ready as soon as it is asked for",
        scenarios: &["canary-good"],
        by: &["C2"],
        bend: || {
            Bend::Sees(
                DEPLOYMENT,
                sees!(Whole, |object| {
                    let replicas = object["spec"]["replicas"].clone();
                    let generation = object["metadata"]["generation"].clone();
                    object["status"] = json!({"observedGeneration": generation, "replicas": replicas,
                        "updatedReplicas": replicas, "availableReplicas": replicas});
                }),
            )
        },
    },
    Mutant {
        name: "canary: weights do not sum up",
        scenarios: &["canary-good"],
        by: &["C1"],
        bend: || {
            Bend::Requests(|_, path, body| {
                if path.contains("/trafficsplits")
                    && let Some(weight) = body.pointer_mut("/spec/backends/1/weight")
                {
                    *weight = json!(100);
                }
            })
        },
    },
    Mutant {
        name: "canary: who is sent back keeps the traffic",
        scenarios: &["canary-bad"],
        by: &["C5"],
        bend: || Bend::Plans(|plan| plan.steps.retain(|step| !takes_back(&step.action))),
    },
    Mutant {
        name: "canary: the copy gets the replicas of a version at rest",
        scenarios: &["canary-good"],
        by: &["C4"],
        bend: || {
            Bend::Plans(|plan| {
                for body in patches(plan, purpose::SERVE) {
                    body["spec"]["replicas"] = json!(0);
                }
            })
        },
    },
    Mutant {
        name: "canary: a closed gate is taken for an open one",
        scenarios: &["canary-gates"],
        by: &["C6"],
        bend: || {
            Bend::Sees(
                CANARY,
                sees!(CanarySeen, |object| {
                    if object.pointer("/status/phase") == Some(&json!("Waiting")) {
                        object["status"]["phase"] = json!("Progressing");
                    }
                }),
            )
        },
    },
    Mutant {
        name: "canary: half of the traffic is enough to be promoted",
        scenarios: &["canary-good"],
        by: &["C3"],
        bend: || {
            Bend::Sees(
                CANARY,
                sees!(CanarySeen, |object| {
                    if object.pointer("/status/canaryWeight") == Some(&json!(50)) {
                        object["status"]["phase"] = json!("Promoting");
                    }
                }),
            )
        },
    },
    Mutant {
        name: "canary: a bad measure is a good one",
        scenarios: &["canary-bad"],
        by: &["expect"],
        bend: || Bend::Facts(good),
    },
];
