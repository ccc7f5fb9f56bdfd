//! Zones with bugs on purpose.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::purpose::zones as purpose;
use slipway_kernel::admission::{Admission, Admit, Expiry, Reading, Remarks, Review, Verdict};
use slipway_kernel::fact::{Answer, Missing, QuestionId, Right, Unseen};
use slipway_kernel::identity::kinds;
use slipway_kernel::parts::Parts;
use slipway_kernel::store::Projection;
use slipway_kernel::{Action, Facts, Plan, Purpose, Stores};
use slipway_zones::observe::{CoordinationMap, Pod, Set, ZONE_BUDGET};
use slipway_zones::zpdb::BudgetSeen;

use super::{ANNOTATIONS, Bend, Mutant, hide, no_right};

/// How a webhook differs.
#[derive(Clone, Copy)]
pub(crate) enum Twist {
    /// The one at this path lets everything through.
    AllowsAll(&'static str),
    /// Pods are not told that they stay.
    NoUndo,
    /// A dry run is taken for a real one.
    NeverDry,
    /// No zone wants time between downscales.
    Hasty,
    /// What this replica is about to delete, or has let go, does not count.
    Forgetful,
    /// Nothing is read for a review: what was seen last will do.
    Unread,
}

/// A webhook with a bug.
pub(crate) struct Twisted {
    pub(crate) inner: Arc<dyn Admit>,
    pub(crate) twist: Twist,
}

fn undo(action: &Action) -> Option<QuestionId> {
    match action {
        Action::Ask(question) if question.method() == "DELETE" => Some(question.id.clone()),
        _ => None,
    }
}

impl Admit for Twisted {
    fn path(&self) -> &'static str {
        self.inner.path()
    }

    fn is_self_contained(&self) -> bool {
        self.inner.is_self_contained()
    }

    fn reads(&self) -> Parts {
        self.inner.reads()
    }

    fn judge(
        &self,
        review: &Review,
        stores: &Stores,
        facts: &Facts,
        now: Timestamp,
    ) -> (Admission, Remarks) {
        match self.twist {
            Twist::AllowsAll(path) => {
                let (admission, remarks) = self.inner.judge(review, stores, facts, now);
                match admission {
                    Admission::Decide(_, actions) if path == self.path() => {
                        (Admission::Decide(Verdict::allowed(), actions), remarks)
                    }
                    other => (other, remarks),
                }
            }
            Twist::NoUndo => {
                // It believes that they have been told.
                let mut facts = facts.clone();
                loop {
                    let (admission, remarks) = self.inner.judge(review, stores, &facts, now);
                    let undo: Vec<QuestionId> = match &admission {
                        Admission::Need(actions) => actions.iter().filter_map(undo).collect(),
                        Admission::Decide(..) | Admission::Read(_) => Vec::new(),
                    };
                    if undo.is_empty() {
                        return (admission, remarks);
                    }
                    for id in undo {
                        let told = Answer::Said {
                            code: 200,
                            body: String::new(),
                        };
                        facts.answers.insert(id, (now, told));
                    }
                }
            }
            Twist::Hasty => {
                let mut facts = facts.clone();
                for (_, answer) in facts.answers.values_mut() {
                    if let Answer::Said { body, .. } = answer {
                        *body = body.replace("min-time-between-zones-downscale", "no-time");
                    }
                }
                self.inner.judge(review, stores, &facts, now)
            }
            Twist::Forgetful => {
                let mut facts = facts.clone();
                facts.evictions_allowed_here.clear();
                facts.deletions.clear();
                self.inner.judge(review, stores, &facts, now)
            }
            Twist::Unread => {
                let mut facts = facts.clone();
                loop {
                    match self.inner.judge(review, stores, &facts, now) {
                        (Admission::Read(all), _) => {
                            let all = all.into_iter().map(|one| (one, Reading::Current));
                            facts.readings.extend(all);
                        }
                        decided => return decided,
                    }
                }
            }
            Twist::NeverDry => {
                let real = Review {
                    is_dry_run: false,
                    ..review.clone()
                };
                self.inner.judge(&real, stores, facts, now)
            }
        }
    }

    fn expire(&self, review: &Review, stores: &Stores, facts: &Facts, now: Timestamp) -> Expiry {
        self.inner.expire(review, stores, facts, now)
    }
}

macro_rules! sets {
    ($change:expr) => {
        || Bend::Sees(kinds::STATEFUL_SET, sees!(Set, $change))
    };
}

macro_rules! pods {
    ($change:expr) => {
        || Bend::Sees(kinds::POD, sees!(Pod, $change))
    };
}

/// Takes the steps of a purpose out of a plan.
fn leave_out(plan: &mut Plan, left_out: Purpose) {
    plan.steps.retain(|step| match &step.action {
        Action::Patch { purpose, .. }
        | Action::Apply { purpose, .. }
        | Action::Delete { purpose, .. } => *purpose != left_out,
        Action::Copy(copy) => copy.purpose != left_out,
        Action::Ask(_) => true,
    });
}

/// All of them.
pub(crate) const ALL: &[Mutant] = &[
    Mutant {
        name: "zones: terminating pods count as ready",
        scenarios: &["zone-order", "zone-budget"],
        by: &["Z1", "Z2", "Z6"],
        bend: pods!(|object| hide(object, "/metadata", "deletionTimestamp")),
    },
    Mutant {
        name: "zones: each zone is a group of its own",
        scenarios: &["zone-order"],
        by: &["Z1"],
        bend: sets!(|object| {
            object["metadata"]["labels"]["rollout-group"] = object["metadata"]["name"].clone();
        }),
    },
    Mutant {
        name: "zones: the budget is off by one",
        scenarios: &["zone-order"],
        by: &["Z2"],
        bend: sets!(|object| {
            object["metadata"]["annotations"]["rollout-max-unavailable"] = json!("2");
        }),
    },
    Mutant {
        name: "zones: a percentage is rounded up",
        scenarios: &["zone-budget"],
        by: &["Z3"],
        bend: sets!(|object| {
            let annotation = &mut object["metadata"]["annotations"]["rollout-max-unavailable"];
            if *annotation == "70%" {
                *annotation = json!("3");
            }
        }),
    },
    Mutant {
        name: "zones: deletes have no precondition",
        scenarios: &["zone-order"],
        by: &["G3"],
        bend: || {
            Bend::Requests(|method, _, body| {
                if method == "DELETE" {
                    hide(body, "/preconditions", "resourceVersion");
                }
            })
        },
    },
    Mutant {
        name: "zones: a rollout does not know of evictions",
        scenarios: &["zone-evict"],
        by: &["Z1", "Z14"],
        bend: || Bend::Reservations(sees!(CoordinationMap, |object| hide(object, "", "data"))),
    },
    Mutant {
        name: "zones: evictions are not recorded",
        scenarios: &["zone-evict"],
        by: &["W7"],
        bend: || {
            Bend::Requests(|method, path, body| {
                let name = body.pointer("/metadata/name").and_then(Value::as_str);
                let ours = name.is_some_and(|name| name.starts_with("slipway-zpdb-"));
                if method != "GET" && path.contains("/configmaps") && ours {
                    hide(body, "", "data");
                }
            })
        },
    },
    Mutant {
        name: "zones: pods are not told that they stay",
        scenarios: &["zone-downscale"],
        by: &["Z11"],
        bend: || Bend::Hooks(Twist::NoUndo),
    },
    Mutant {
        name: "zones: nothing is touched on a takeover",
        scenarios: &["zone-failover"],
        by: &["G6"],
        bend: || Bend::NoTouch,
    },
    Mutant {
        name: "zones: paused zones are rolled",
        scenarios: &["zone-budget"],
        by: &["Z12"],
        bend: sets!(|object| hide(object, ANNOTATIONS, "grafana.com/rollout-paused")),
    },
    Mutant {
        name: "zones: a status older than its spec is believed",
        scenarios: &["zone-order"],
        by: &["Z4"],
        bend: sets!(|object| {
            object["status"]["observedGeneration"] = object["metadata"]["generation"].clone();
        }),
    },
    Mutant {
        name: "zones: pods that are not ready count as ready",
        scenarios: &["zone-order", "zone-budget"],
        by: &["Z1", "Z2"],
        bend: pods!(|object| {
            object["status"]["phase"] = json!("Running");
            object["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            let now = json!({"running": {}});
            object["status"]["containerStatuses"] =
                json!([{"name": "main", "ready": true, "state": now}]);
        }),
    },
    Mutant {
        name: "zones: pods of the newest revision are replaced too",
        scenarios: &["zone-order"],
        by: &["Z5"],
        bend: pods!(|object| hide(object, "/metadata/labels", "controller-revision-hash")),
    },
    Mutant {
        name: "zones: no-downscale lets everything through",
        scenarios: &["zone-downscale"],
        by: &["W1"],
        bend: || Bend::Hooks(Twist::AllowsAll("/admission/no-downscale")),
    },
    Mutant {
        name: "zones: a downscale goes on although a pod said no",
        scenarios: &["zone-downscale"],
        by: &["W4"],
        bend: || Bend::Hooks(Twist::AllowsAll("/admission/prepare-downscale")),
    },
    Mutant {
        name: "zones: every eviction is let through",
        scenarios: &["zone-evict"],
        by: &["W7"],
        bend: || Bend::Hooks(Twist::AllowsAll("/admission/pod-eviction")),
    },
    Mutant {
        name: "zones: a partition may lose one pod more",
        scenarios: &["zone-partition"],
        by: &["Z10"],
        bend: || {
            Bend::Sees(
                ZONE_BUDGET,
                sees!(BudgetSeen, |object| object["spec"]["maxUnavailable"] =
                    json!(2)),
            )
        },
    },
    Mutant {
        name: "zones: a rollout takes one pod more than its budget",
        scenarios: &["zone-rollout"],
        by: &["Z14"],
        bend: || {
            Bend::Sees(
                ZONE_BUDGET,
                sees!(BudgetSeen, |object| object["spec"]["maxUnavailable"] =
                    json!(2)),
            )
        },
    },
    Mutant {
        name: "zones: a budget is asked about the zones of one group only",
        scenarios: &["zone-shared"],
        by: &["Z14"],
        bend: sets!(|object| {
            if object.pointer("/metadata/labels/rollout-group") == Some(&json!("cache")) {
                hide(object, "/metadata/labels", "team");
            }
        }),
    },
    Mutant {
        name: "zones: a rollout goes on although budgets may not be seen",
        scenarios: &["zone-shared"],
        by: &["Z14"],
        bend: || {
            Bend::Facts(|facts| {
                let missing = std::mem::take(&mut facts.missing).into_iter();
                facts.missing = missing
                    .map(|one| match one.right {
                        Right::See(_) if one.kind == ZONE_BUDGET => {
                            Missing::unseen(Unseen::Absent, &one.cluster, &one.kind)
                        }
                        _ => one,
                    })
                    .collect();
            })
        },
    },
    Mutant {
        name: "zones: a dry run is recorded",
        scenarios: &["zone-evict"],
        by: &["W5"],
        bend: || Bend::Hooks(Twist::NeverDry),
    },
    Mutant {
        name: "zones: the time between downscales is ignored",
        scenarios: &["zone-follow"],
        by: &["Z8"],
        bend: sets!(|object| hide(object, ANNOTATIONS, "grafana.com/last-downscale")),
    },
    Mutant {
        name: "zones: the webhook ignores the time between downscales",
        scenarios: &["zone-downscale"],
        by: &["Z9"],
        bend: || Bend::Hooks(Twist::Hasty),
    },
    Mutant {
        name: "zones: an eviction does not know what is about to be deleted",
        scenarios: &["zone-race"],
        by: &["W7", "Z1"],
        bend: || Bend::Hooks(Twist::Forgetful),
    },
    Mutant {
        name: "zones: an eviction is let through on what was seen last",
        scenarios: &["zone-evict"],
        by: &["W11"],
        bend: || Bend::Hooks(Twist::Unread),
    },
    Mutant {
        name: "zones: a quota is taken for a missing right",
        // Where there is one replica; several wait without that right, whatever it is taken for.
        scenarios: &["zone-quiet"],
        by: &["W12"],
        bend: || Bend::Requests(no_right),
    },
    Mutant {
        name: "zones: claims are never given up",
        scenarios: &["zone-order"],
        by: &["expect", "L1"],
        bend: || Bend::Plans(|plan| leave_out(plan, purpose::RELEASE)),
    },
    Mutant {
        name: "zones: claims are not seen",
        scenarios: &["zone-order"],
        by: &["Z7"],
        bend: sets!(|object| hide(object, ANNOTATIONS, "slipway.dev/disruption-claim")),
    },
    Mutant {
        name: "zones: nothing says how a group is",
        scenarios: &["zone-shared"],
        by: &["L1"],
        bend: || Bend::Plans(|plan| leave_out(plan, purpose::STATUS_MAP)),
    },
];
