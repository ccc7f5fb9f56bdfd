//! The fleet with bugs on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use slipway_api::fleet::names::APPLIED;
use slipway_api::purpose::fleet::UNASSIGN;
use slipway_fleet::assemblage::{KustomizationSeen, SourceSeen};
use slipway_fleet::kinds;
use slipway_fleet::observe::seen::{Assembled, RemoteSeen, Whole};
use slipway_kernel::Action;
use slipway_kernel::action::FieldManager;
use slipway_kernel::store::Projection;

use super::{ANNOTATIONS, Bend, Mutant, hide};

/// The entries in the body of a request, of either kind of assemblage.
fn syncs<'a>(path: &str, body: &'a mut Value) -> Option<&'a mut Vec<Value>> {
    let pointer = if path.contains("/remoteassemblages/") {
        "/spec/assemblage/syncs"
    } else if path.contains("/assemblages/") {
        "/spec/syncs"
    } else {
        return None;
    };
    body.pointer_mut(pointer)?.as_array_mut()
}

/// What a cluster tells, as if all were well there, at whatever revision it has.
fn all_is_well(object: &mut Value) {
    let syncs = object
        .pointer("/spec/assemblage/syncs")
        .and_then(Value::as_array)
        .cloned();
    let statuses: Vec<Value> = syncs
        .into_iter()
        .flatten()
        .map(|sync| {
            json!({
                "name": sync["name"], "observedRevision": sync["revision"], "state": "succeeded",
                "since": "2026-01-05T00:00:00Z",
            })
        })
        .collect();
    object["status"]["syncs"] = json!(statuses);
}

/// A Rollout that remembers all clusters that are not ready as unready before the change began, so that none counts.
fn all_were_unready(object: &mut Value) {
    let clusters = object
        .pointer("/status/clusters")
        .and_then(Value::as_array)
        .cloned();
    let is_at_work = |cluster: &Value| cluster["state"] != "Ready" && cluster["state"] != "Pending";
    let names: Vec<Value> = clusters
        .into_iter()
        .flatten()
        .filter(is_at_work)
        .map(|cluster| cluster["name"].clone())
        .collect();
    if let Some(run) = object.pointer_mut("/status/run") {
        run["skipped"] = json!(names);
    }
    object["spec"]["rollout"]["maxUnreachable"] = json!("100%");
}

/// All of them.
pub(crate) const ALL: &[Mutant] = &[
    Mutant {
        name: "fleet: an assignment is taken away when another comes",
        scenarios: &["fleet-canary"],
        by: &["F1"],
        bend: || {
            Bend::Requests(|method, path, body| {
                let is_new = body.to_string().contains("\"v2\"");
                if let (true, "PATCH", Some(syncs)) = (is_new, method, syncs(path, body)) {
                    for sync in syncs {
                        sync["name"] = json!("web-next");
                    }
                }
            })
        },
    },
    Mutant {
        name: "fleet: a Kustomization is named after its revision",
        scenarios: &["fleet-canary"],
        by: &["F2"],
        bend: || {
            Bend::Sees(
                kinds::ASSEMBLAGE,
                sees!(Assembled, |object| {
                    let syncs = object
                        .pointer_mut("/spec/syncs")
                        .and_then(Value::as_array_mut);
                    for sync in syncs.into_iter().flatten() {
                        let named =
                            |field: &str| sync[field].as_str().unwrap_or_default().to_owned();
                        sync["name"] = json!(format!("{}-{}", named("name"), named("revision")));
                    }
                }),
            )
        },
    },
    Mutant {
        name: "fleet: what was applied is not compared with what is wanted",
        scenarios: &["fleet-canary"],
        by: &["F9", "G2"],
        bend: || {
            Bend::Sees(
                kinds::KUSTOMIZATION,
                sees!(KustomizationSeen, |object| {
                    hide(object, ANNOTATIONS, APPLIED);
                }),
            )
        },
    },
    Mutant {
        name: "fleet: assignments are written in everybody's name",
        scenarios: &["fleet-canary", "fleet-third-party"],
        by: &["F4"],
        bend: || {
            Bend::Plans(|plan| {
                for step in &mut plan.steps {
                    if let Action::Apply { object, by, .. } = &mut step.action
                        && object.kind == kinds::REMOTE_ASSEMBLAGE
                    {
                        *by = FieldManager::default();
                    }
                }
            })
        },
    },
    Mutant {
        name: "fleet: every cluster is ready with whatever it has",
        scenarios: &["fleet-canary"],
        by: &["F5", "F6"],
        bend: || Bend::Sees(kinds::REMOTE_ASSEMBLAGE, sees!(RemoteSeen, all_is_well)),
    },
    Mutant {
        name: "fleet: a failed first cluster counts as passed",
        scenarios: &["fleet-canary"],
        by: &["F5"],
        bend: || {
            Bend::Sees(
                kinds::REMOTE_ASSEMBLAGE,
                sees!(RemoteSeen, |object| {
                    let statuses = object
                        .pointer_mut("/status/syncs")
                        .and_then(Value::as_array_mut);
                    for status in statuses.into_iter().flatten() {
                        if status["state"] == "failed" {
                            status["state"] = json!("succeeded");
                        }
                    }
                }),
            )
        },
    },
    Mutant {
        name: "fleet: the budget is off by one",
        scenarios: &["fleet-canary"],
        by: &["F6"],
        bend: || {
            Bend::Sees(
                kinds::ROLLOUT,
                sees!(Whole, |object| {
                    object["spec"]["rollout"]["maxUnreadyClusters"] = json!(3);
                }),
            )
        },
    },
    Mutant {
        name: "fleet: whoever is not ready with a change was unready before it",
        scenarios: &["fleet-canary"],
        by: &["F6"],
        bend: || Bend::Sees(kinds::ROLLOUT, sees!(Whole, all_were_unready)),
    },
    Mutant {
        name: "fleet: a source is changed in place",
        scenarios: &["fleet-canary"],
        by: &["F7"],
        bend: || {
            Bend::Plans(|plan| {
                for step in &mut plan.steps {
                    if let Action::Apply { object, body, .. } = &mut step.action
                        && object.kind == kinds::GIT_REPOSITORY
                    {
                        "shared".clone_into(&mut object.name);
                        body["metadata"]["name"] = json!("shared");
                    }
                }
            })
        },
    },
    Mutant {
        name: "fleet: a source that is not fetched is switched to",
        scenarios: &["fleet-canary"],
        by: &["F8"],
        bend: || {
            Bend::Sees(
                kinds::GIT_REPOSITORY,
                sees!(SourceSeen, |object| {
                    let generation = object["metadata"]["generation"].clone();
                    object["status"] = json!({
                        "observedGeneration": generation, "artifact": {"revision": "any"},
                        "conditions": [{
                            "type": "Ready", "status": "True", "reason": "Succeeded", "message": "",
                            "lastTransitionTime": "2026-01-05T00:00:00Z", "observedGeneration": generation,
                        }],
                    });
                }),
            )
        },
    },
    Mutant {
        name: "fleet: a secret value is assigned as a literal",
        scenarios: &["fleet-bindings"],
        by: &["F10"],
        bend: || {
            Bend::Requests(|method, path, body| {
                if method != "PATCH" || path.contains("/status") {
                    return;
                }
                for sync in syncs(path, body).into_iter().flatten() {
                    let bindings = sync.get_mut("bindings").and_then(Value::as_array_mut);
                    for binding in bindings.into_iter().flatten() {
                        if binding.pointer("/objectFieldRef/kind") == Some(&json!("Secret")) {
                            hide(binding, "", "objectFieldRef");
                            binding["value"] = json!("open-sesame");
                        }
                    }
                }
            })
        },
    },
    Mutant {
        name: "fleet: a Kustomization changes although nothing is assigned",
        scenarios: &["fleet-canary"],
        by: &["F3"],
        bend: || {
            Bend::Requests(|method, path, body| {
                static TURNS: AtomicUsize = AtomicUsize::new(0);
                if method == "PATCH"
                    && path.contains("/kustomizations/")
                    && body.get("spec").is_some()
                {
                    let turn = TURNS.fetch_add(1, Ordering::Relaxed) % 2;
                    body["spec"]["interval"] = json!(format!("{}m", 5 + turn));
                }
            })
        },
    },
    Mutant {
        name: "fleet: an assemblage that is as told is told again",
        scenarios: &["fleet-replace"],
        by: &["F9", "G2"],
        bend: || {
            Bend::Sees(
                kinds::ASSEMBLAGE,
                sees!(Assembled, |object| {
                    hide(object, ANNOTATIONS, "fleet.squaremo.dev/written");
                }),
            )
        },
    },
    Mutant {
        name: "fleet: a control plane that was put back does not notice",
        scenarios: &["fleet-restored"],
        by: &["F1"],
        bend: || {
            Bend::Sees(
                kinds::ASSEMBLAGE,
                sees!(Assembled, |object| {
                    hide(object, ANNOTATIONS, "fleet.squaremo.dev/written-generation");
                    // What it does not remember it takes for a sync that somebody has added there.
                    hide(object, ANNOTATIONS, "fleet.squaremo.dev/written");
                }),
            )
        },
    },
    Mutant {
        name: "fleet: a cluster of another control plane is written to",
        scenarios: &["fleet-two-hubs"],
        by: &["expect"],
        bend: || {
            Bend::Sees(
                kinds::ASSEMBLAGE,
                sees!(Assembled, |object| {
                    hide(object, ANNOTATIONS, "fleet.squaremo.dev/written-from");
                }),
            )
        },
    },
    Mutant {
        name: "fleet: a cluster that may not be looked at any more stays reachable",
        scenarios: &["fleet-blind"],
        by: &["F11"],
        bend: || {
            Bend::Requests(|method, path, body| {
                let is_told = path.contains("/remoteassemblages/") && path.contains("/status");
                if method == "GET" || !is_told {
                    return;
                }
                let conditions = body.pointer_mut("/status/conditions");
                for told in conditions
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    if told["type"] == "Reachable" {
                        told["status"] = json!("True");
                    }
                }
            })
        },
    },
    Mutant {
        name: "fleet: whoever is deselected keeps what it has",
        scenarios: &["fleet-replace"],
        by: &["expect"],
        bend: || {
            Bend::Plans(|plan| {
                plan.steps.retain(|step| step.action.purpose() != UNASSIGN);
            })
        },
    },
];
