//! Eviction: whether a pod may be deleted without breaking its disruption budget.
//!
//! All functions are pure. A server that handles `POST …/pods/NAME/eviction` does, in this order: [`validate`];
//! [`judge`]; writes the budget that the verdict gives (with its resourceVersion, and judges again on conflict);
//! [`check_preconditions`] (a wrong one has spent the budget by then, as in the real server); [`mark`] on the pod; and
//! deletes it. Where [`Verdict::require_version`] asks for it, a pod that changed since it was judged is
//! [`still_processing`]. A dry run writes nothing and does not mark.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::builtin::pod::{condition, labels};
use crate::meta::timestamp;
use crate::status::{Cause, Outcome, Status};
use crate::value::{at, has, integer, items, map, put, slot, text};

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// As many evictions may wait for the controller to notice them.
const MAX_DISRUPTED_PODS: usize = 2000;

/// What to do with an eviction that is not refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The budget to store, status only: one disruption less, and the pod written down. None if no budget counts it.
    pub budget: Option<Value>,
    /// The name of the budget that was asked, for [`still_processing`]; empty if there is none.
    pub budget_name: String,
    /// The delete must have the pod's present resourceVersion as precondition, unless the client named one: the
    /// verdict holds for the pod as it was seen only.
    pub require_version: bool,
}

/// The pod can go whatever its budgets say: it has ended, has not begun, or is being deleted.
pub fn ignores_budgets(pod: &Value) -> bool {
    matches!(
        text(pod, "status.phase"),
        "Succeeded" | "Failed" | "Pending"
    ) || has(pod, "metadata.deletionTimestamp")
}

/// Judges an eviction. `budgets` are all budgets of the pod's namespace.
pub fn judge(pod: &Value, budgets: &[Value], now: Timestamp) -> Outcome<Verdict> {
    if ignores_budgets(pod) {
        let going = has(pod, "metadata.deletionTimestamp");
        let pending = text(pod, "status.phase") == "Pending";
        return Ok(allowed("", pending && !going));
    }
    let own = map(pod, "metadata.labels");
    let mut matching = budgets
        .iter()
        .filter(|b| labels::matches(at(b, "spec.selector"), own));
    let Some(budget) = matching.next() else {
        return Ok(allowed("", false));
    };
    if matching.next().is_some() {
        return Err(Box::new(several_budgets()));
    }
    let name = text(budget, "metadata.name");
    if !condition::is_true(pod, "Ready") {
        let number = |path: &str| integer(budget, path).unwrap_or(0);
        let (healthy, desired) = (
            number("status.currentHealthy"),
            number("status.desiredHealthy"),
        );
        let always = text(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow";
        if always || healthy >= desired && desired > 0 {
            return Ok(allowed(name, true));
        }
    }
    Ok(Verdict {
        budget: Some(take_one(pod, budget, now)?),
        budget_name: name.to_owned(),
        require_version: false,
    })
}

fn allowed(name: &str, require_version: bool) -> Verdict {
    Verdict {
        budget: None,
        budget_name: name.to_owned(),
        require_version,
    }
}

fn several_budgets() -> Status {
    Status::failure(
        500,
        "",
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )
}

/// The budget with one disruption less, or why there is none to take.
fn take_one(pod: &Value, budget: &Value, now: Timestamp) -> Outcome<Value> {
    let name = text(budget, "metadata.name");
    let number = |path: &str| integer(budget, path).unwrap_or(0);
    if number("status.observedGeneration") < number("metadata.generation") {
        return Err(Box::new(still_processing(name)));
    }
    let left = number("status.disruptionsAllowed");
    let forbidden = |why: &str| {
        let resource = "poddisruptionbudget";
        Box::new(Status::forbidden("policy", resource, name, why))
    };
    if left < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    if map(budget, "status.disruptedPods").is_some_and(|p| p.len() > MAX_DISRUPTED_PODS) {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if left == 0 {
        return Err(Box::new(refuse(0, explain(budget))));
    }
    let mut next = budget.clone();
    put(&mut next, "status.disruptionsAllowed", left - 1);
    if left == 1 {
        set_insufficient(&mut next, now);
    }
    if let Some(disrupted) = slot(&mut next, "status.disruptedPods") {
        if disrupted.is_null() {
            *disrupted = json!({});
        }
        if let Some(disrupted) = disrupted.as_object_mut() {
            let pod = text(pod, "metadata.name").to_owned();
            disrupted.insert(pod, timestamp(now).into());
        }
    }
    Ok(next)
}

/// The 429 while the budget's controller has not caught up; clients try again.
pub fn still_processing(budget: &str) -> Status {
    let message = format!("The disruption budget {budget} is still being processed by the server.");
    refuse(10, message)
}

fn refuse(retry_after: u32, message: String) -> Status {
    let cause = Cause {
        reason: "DisruptionBudget".to_owned(),
        message,
        field: String::new(),
    };
    let mut status = Status::too_many_requests(REFUSED, retry_after).with_causes(vec![cause]);
    if retry_after == 0
        && let Some(details) = status.details.as_mut()
    {
        details.retry_after_seconds = None;
    }
    status
}

fn explain(budget: &Value) -> String {
    let name = text(budget, "metadata.name");
    let number = |path: &str| integer(budget, path).unwrap_or(0);
    let (healthy, desired) = (
        number("status.currentHealthy"),
        number("status.desiredHealthy"),
    );
    let closed = items(budget, "status.conditions").iter().find(|c| {
        text(c, "type") == "DisruptionAllowed"
            && text(c, "status") == "False"
            && !text(c, "message").is_empty()
    });
    let (reason, message) = closed.map_or(("", ""), |c| (text(c, "reason"), text(c, "message")));
    if reason == "SyncFailed" {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        )
    } else if healthy <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    } else if closed.is_some() {
        format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        )
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

/// Notes in the budget's conditions that nothing is left.
fn set_insufficient(budget: &mut Value, now: Timestamp) {
    let observed = integer(budget, "status.observedGeneration").unwrap_or(0);
    let mut condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
        "message": "", "lastTransitionTime": timestamp(now)});
    if observed != 0 {
        put(&mut condition, "observedGeneration", observed);
    }
    let Some(list) = slot(budget, "status.conditions") else {
        return;
    };
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else {
        return;
    };
    match list
        .iter_mut()
        .find(|c| text(c, "type") == "DisruptionAllowed")
    {
        Some(old) => {
            if text(old, "status") == "False" {
                let before = text(old, "lastTransitionTime").to_owned();
                put(&mut condition, "lastTransitionTime", before);
            }
            *old = condition;
        }
        None => list.push(condition),
    }
}

/// Notes on the pod why it goes.
pub fn mark(pod: &mut Value, now: Timestamp) {
    condition::set(
        pod,
        "DisruptionTarget",
        "True",
        "EvictionByEvictionAPI",
        "Eviction API: evicting",
        now,
    );
}

/// Judges the body of the request against the name in its path.
pub fn validate(eviction: &Value, name: &str) -> Outcome<()> {
    if text(eviction, "metadata.name") != name {
        let why = "name in URL does not match name in Eviction object";
        return Err(Box::new(Status::bad_request(why)));
    }
    Ok(())
}

/// Holds the preconditions of the body's `deleteOptions` against the pod.
pub fn check_preconditions(eviction: &Value, pod: &Value) -> Outcome<()> {
    let name = text(pod, "metadata.name");
    for (field, shown, consequence) in [
        (
            "uid",
            "UID",
            "The object might have been deleted and then recreated",
        ),
        (
            "resourceVersion",
            "ResourceVersion",
            "The object might have been modified",
        ),
    ] {
        let wanted = text(eviction, &format!("deleteOptions.preconditions.{field}"));
        let found = text(pod, &format!("metadata.{field}"));
        if !wanted.is_empty() && wanted != found {
            let why = format!(
                "the {shown} in the precondition ({wanted}) does not match the {shown} in record ({found}). {consequence}"
            );
            return Err(Box::new(Status::conflict("", "Pod", name, &why)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn pod(ready: bool) -> Value {
        let status = if ready { "True" } else { "False" };
        json!({"metadata": {"name": "p", "labels": {"a": "b"}}, "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": status}]}})
    }

    fn budget(allowed: i64) -> Value {
        json!({"metadata": {"name": "b", "generation": 1}, "spec": {"selector": {"matchLabels": {"a": "b"}}},
            "status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}})
    }

    #[test]
    fn a_budget_is_spent() {
        let verdict = judge(&pod(true), &[budget(1)], now()).unwrap();
        let next = verdict.budget.unwrap();
        assert_eq!(next["status"]["disruptionsAllowed"], 0);
        assert_eq!(
            next["status"]["disruptedPods"],
            json!({"p": "2026-01-01T00:00:00Z"})
        );
        assert_eq!(
            next["status"]["conditions"][0]["reason"],
            "InsufficientPods"
        );
        let refused = judge(&pod(true), &[next], now()).unwrap_err();
        assert_eq!(refused.code, 429);
        assert_eq!(refused.message, REFUSED);
        let details = refused.details.unwrap();
        assert_eq!(details.retry_after_seconds, None);
        assert_eq!(details.causes[0].reason, "DisruptionBudget");
        assert_eq!(
            details.causes[0].message,
            "The disruption budget b needs 1 healthy pods and has 1 currently"
        );
    }

    #[test]
    fn a_lagging_budget_is_to_be_asked_again() {
        let mut lagging = budget(1);
        lagging["metadata"]["generation"] = json!(2);
        let refused = judge(&pod(true), &[lagging], now()).unwrap_err();
        let details = refused.details.unwrap();
        assert_eq!(details.retry_after_seconds, Some(10));
        assert_eq!(
            details.causes[0].message,
            "The disruption budget b is still being processed by the server."
        );
    }

    #[test]
    fn two_budgets_are_too_many() {
        let refused = judge(&pod(true), &[budget(1), budget(1)], now()).unwrap_err();
        assert_eq!(refused.code, 500);
        assert_eq!(refused.reason, "");
    }

    #[test]
    fn unhealthy_pods_and_pods_that_do_not_count() {
        let verdict = judge(&pod(false), &[budget(0)], now()).unwrap();
        assert!(verdict.budget.is_none() && verdict.require_version);
        let mut short = budget(0);
        short["status"]["currentHealthy"] = json!(0);
        assert_eq!(
            judge(&pod(false), &[short.clone()], now())
                .unwrap_err()
                .code,
            429
        );
        short["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
        assert!(
            judge(&pod(false), &[short.clone()], now())
                .unwrap()
                .require_version
        );
        let mut ended = pod(true);
        ended["status"]["phase"] = json!("Succeeded");
        assert_eq!(
            judge(&ended, &[short.clone(), short], now()).unwrap(),
            allowed("", false)
        );
        assert_eq!(judge(&pod(true), &[], now()).unwrap(), allowed("", false));
    }
}
