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
use slipway_kernel::{Action, Facts, Kind, Plan, Purpose};

use super::{Bend, Mutant};

const HTTP_ROUTE: Kind =
    Kind::namespaced("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes");

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
    let weights = [
        "/spec/backends/0/weight",
        "/spec/rules/0/backendRefs/1/weight",
    ];
    let mut weights = weights.iter().filter_map(|pointer| body.pointer(pointer));
    *purpose == purpose::ROUTE && weights.any(|weight| *weight == json!(0))
}

/// The label by which a Service finds the pods of both versions.
const OF_BOTH: &str = "slipway.dev/canary";

/// Whether a patch leads the Service that clients know from the new version to what serves.
fn leads_back(action: &Action) -> bool {
    let Action::Patch { body, .. } = action else {
        return false;
    };
    let selector = body.pointer("/spec/selector").and_then(Value::as_object);
    selector.is_some_and(|all| all.get(OF_BOTH) == Some(&Value::Null))
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

/// A Deployment looks as if all its pods were available.
fn is_well(object: &mut Value) {
    let replicas = object["spec"]["replicas"].clone();
    let generation = object["metadata"]["generation"].clone();
    object["status"] = json!({"observedGeneration": generation, "replicas": replicas,
        "updatedReplicas": replicas, "availableReplicas": replicas});
}

fn is_called(object: &Value, name: &str) -> bool {
    object.pointer("/metadata/name") == Some(&json!(name))
}

/// All of them.
pub(super) const ALL: &[Mutant] = &[
    Mutant {
        name: "canary: a version is ready as soon as it is asked for",
        scenarios: &["canary-good", "canary-routes"],
        by: &["T2"],
        bend: || Bend::Sees(DEPLOYMENT, sees!(Whole, is_well)),
    },
    Mutant {
        name: "canary: weights do not sum up",
        scenarios: &["canary-good"],
        by: &["T1"],
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
        name: "canary: weights of a gateway's route do not sum up",
        scenarios: &["canary-routes"],
        by: &["T1"],
        bend: || {
            Bend::Requests(|_, path, body| {
                if path.contains("/httproutes")
                    && let Some(weight) = body.pointer_mut("/spec/rules/0/backendRefs/0/weight")
                {
                    *weight = json!(100);
                }
            })
        },
    },
    Mutant {
        name: "canary: who is sent back keeps the traffic",
        scenarios: &["canary-bad"],
        by: &["T5"],
        bend: || Bend::Plans(|plan| plan.steps.retain(|step| !takes_back(&step.action))),
    },
    Mutant {
        name: "canary: who is sent back keeps the traffic of a gateway",
        scenarios: &["canary-routes"],
        by: &["T5"],
        bend: || Bend::Plans(|plan| plan.steps.retain(|step| !takes_back(&step.action))),
    },
    Mutant {
        name: "canary: the copy gets the replicas of a version at rest",
        scenarios: &["canary-good"],
        by: &["T4"],
        bend: || {
            Bend::Plans(|plan| {
                for body in patches(plan, purpose::SERVE) {
                    body["spec"]["replicas"] = json!(0);
                }
            })
        },
    },
    Mutant {
        name: "canary: what is written is taken for what a gateway does",
        scenarios: &["canary-routes"],
        by: &["T4"],
        bend: || {
            Bend::Sees(
                HTTP_ROUTE,
                sees!(Whole, |object| {
                    let generation = object["metadata"]["generation"].clone();
                    let conditions = json!([{"type": "Accepted", "status": "True", "observedGeneration": generation}]);
                    let parent = json!({"parentRef": {"name": "public"}, "conditions": conditions});
                    object["status"] = json!({"parents": [parent]});
                }),
            )
        },
    },
    Mutant {
        name: "canary: the Service that clients know finds pods before they are there",
        scenarios: &["canary-replicas"],
        by: &["T2"],
        bend: || Bend::Sees(DEPLOYMENT, sees!(Whole, is_well)),
    },
    Mutant {
        name: "canary: the Service that clients know finds the new version alone",
        scenarios: &["canary-replicas"],
        by: &["T1"],
        bend: || {
            Bend::Requests(|_, path, body| {
                if path.contains("/services/web")
                    && let Some(selector) = body.pointer_mut("/spec/selector")
                    && selector.get(OF_BOTH).is_some_and(Value::is_string)
                {
                    *selector = json!({"app": "web", OF_BOTH: null});
                }
            })
        },
    },
    Mutant {
        name: "canary: who is sent back keeps its pods where clients find them",
        scenarios: &["canary-replicas"],
        by: &["T5"],
        bend: || Bend::Plans(|plan| plan.steps.retain(|step| !leads_back(&step.action))),
    },
    Mutant {
        name: "canary: a closed gate is taken for an open one",
        scenarios: &["canary-gates"],
        by: &["T6"],
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
        by: &["T3"],
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
        by: &["T3"],
        bend: || Bend::Facts(good),
    },
    Mutant {
        name: "canary: pods that are gone are not missed",
        scenarios: &["canary-crash"],
        by: &["T7"],
        bend: || {
            Bend::Sees(
                DEPLOYMENT,
                sees!(Whole, |object| {
                    let is_up = object["status"]["replicas"] == object["spec"]["replicas"];
                    if is_called(object, "web") && is_up {
                        is_well(object);
                    }
                }),
            )
        },
    },
    Mutant {
        name: "canary: a version that comes after a failure counts as the one that failed",
        scenarios: &["canary-bad"],
        by: &["T8"],
        bend: || {
            Bend::Sees(
                DEPLOYMENT,
                sees!(Whole, |object| {
                    let image = object.pointer_mut("/spec/template/spec/containers/0/image");
                    if let Some(image) = image.filter(|image| **image == json!("web:3")) {
                        *image = json!("web:2-bad");
                    }
                }),
            )
        },
    },
    Mutant {
        name: "canary: nothing is given back",
        scenarios: &["canary-leaves"],
        by: &["T9"],
        bend: || {
            Bend::Sees(
                CANARY,
                sees!(CanarySeen, |object| {
                    object["spec"]["revertOnDeletion"] = json!(false);
                }),
            )
        },
    },
    Mutant {
        name: "canary: a workload counts as given back as soon as it is asked for",
        scenarios: &["canary-leaves"],
        by: &["T9", "T10"],
        bend: || {
            Bend::Sees(
                DEPLOYMENT,
                sees!(Whole, |object| {
                    if is_called(object, "cart") {
                        is_well(object);
                    }
                }),
            )
        },
    },
    Mutant {
        name: "canary: clients are led to a copy that is not there yet",
        scenarios: &["canary-routes"],
        by: &["T10"],
        bend: || {
            Bend::Sees(
                DEPLOYMENT,
                sees!(Whole, |object| {
                    if is_called(object, "web-primary") {
                        is_well(object);
                    }
                }),
            )
        },
    },
];
