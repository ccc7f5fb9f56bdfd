//! Workloads, their revisions and pods.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::names::{LAST_RESTART, RESTARTED_AT};
use slipway_kernel::capability::show::{Objects, condition, count, list, number, text, time};

use super::{Pod, Revision, State, Workload};

/// Kinds of workloads and where they are kept.
pub(super) const KINDS: [(&str, &str); 3] = [
    ("Deployment", "apps/deployments"),
    ("StatefulSet", "apps/statefulsets"),
    ("DaemonSet", "apps/daemonsets"),
];

/// A workload with its pods.
pub(super) fn workload(kind: &str, object: &Value, objects: &dyn Objects) -> Workload {
    let revisions = revisions(kind, object, objects);
    let (state, word, progress) = judge(kind, object, &revisions);
    Workload {
        kind: kind.to_owned(),
        name: text(object, "/metadata/name"),
        state,
        word,
        progress,
        info: String::new(),
        restarted: restarted(object),
        revisions,
    }
}

pub(super) fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|c| text(c, "/status") == "True")
}

/// When it was last restarted, whoever did it.
fn restarted(object: &Value) -> Option<Timestamp> {
    let annotation = |path: &str, name: &str| -> Option<Timestamp> {
        object.pointer(path)?.get(name)?.as_str()?.parse().ok()
    };
    let own = annotation("/metadata/annotations", LAST_RESTART);
    let template = annotation("/spec/template/metadata/annotations", RESTARTED_AT);
    own.max(template)
}

fn judge(kind: &str, object: &Value, revisions: &[Revision]) -> (State, String, (i64, i64)) {
    let daemon = kind == "DaemonSet";
    let (desired, updated, available) = if daemon {
        (
            number(object, "/status/desiredNumberScheduled"),
            number(object, "/status/updatedNumberScheduled"),
            number(object, "/status/numberAvailable"),
        )
    } else {
        (
            object
                .pointer("/spec/replicas")
                .and_then(Value::as_i64)
                .unwrap_or(1),
            number(object, "/status/updatedReplicas"),
            number(object, "/status/availableReplicas"),
        )
    };
    let existing = if daemon {
        desired
    } else {
        number(object, "/status/replicas")
    };
    // The newest revision's own pods say how far a rollout is; the status only counts all together.
    let done = revisions.first().map_or(0, |newest| {
        let ready = newest
            .pods
            .iter()
            .filter(|pod| pod.state == State::Good)
            .count();
        i64::try_from(ready).unwrap_or(i64::MAX)
    });
    let progress = (done.min(updated.max(0)), desired);
    let observed =
        number(object, "/status/observedGeneration") >= number(object, "/metadata/generation");
    let failed = condition(object, "Progressing").is_some_and(|c| text(c, "/status") == "False");
    let worst = revisions
        .iter()
        .flat_map(|r| &r.pods)
        .max_by_key(|pod| pod.state);
    let cause = worst
        .filter(|pod| pod.state >= State::Warning)
        .map(|pod| pod.word.clone());
    let (state, word) = if object.pointer("/spec/paused") == Some(&Value::Bool(true)) {
        (State::Paused, "Paused".to_owned())
    } else if desired == 0 && existing == 0 {
        (State::Idle, "Scaled to 0".to_owned())
    } else if failed {
        (State::Bad, cause.unwrap_or_else(|| "Stuck".to_owned()))
    } else if !observed || updated < desired || existing > updated {
        match cause {
            Some(cause) => (State::Warning, cause),
            None => (State::Busy, "Rolling".to_owned()),
        }
    } else if available < desired {
        match cause {
            Some(cause) => (State::Warning, cause),
            None => (State::Busy, "Starting".to_owned()),
        }
    } else {
        (
            State::Good,
            count(usize::try_from(desired).unwrap_or_default(), "pod"),
        )
    };
    (state, word, progress)
}

/// The pods that belong to a workload, by revision, newest first.
fn revisions(kind: &str, object: &Value, objects: &dyn Objects) -> Vec<Revision> {
    let uid = text(object, "/metadata/uid");
    let mut all: Vec<Revision> = if kind == "Deployment" {
        objects
            .all("apps/replicasets")
            .filter(|set| is_owned(set, &uid))
            .map(|set| Revision {
                name: text(set, "/metadata/name"),
                number: text(
                    set,
                    "/metadata/annotations/deployment.kubernetes.io~1revision",
                )
                .parse()
                .unwrap_or_default(),
                pods: pods(objects, &text(set, "/metadata/uid"))
                    .map(pod_of)
                    .collect(),
            })
            .collect()
    } else {
        let mut by_hash: BTreeMap<String, Vec<Pod>> = BTreeMap::new();
        for pod in pods(objects, &uid) {
            let hash = text(pod, "/metadata/labels/controller-revision-hash");
            by_hash.entry(hash).or_default().push(pod_of(pod));
        }
        let order = |name: &str| {
            let found = objects
                .all("apps/controllerrevisions")
                .find(|r| text(r, "/metadata/name").ends_with(name));
            found.map_or(0, |r| number(r, "/revision"))
        };
        by_hash
            .into_iter()
            .map(|(name, pods)| Revision {
                number: order(&name),
                name,
                pods,
            })
            .collect()
    };
    all.sort_by_key(|revision| std::cmp::Reverse(revision.number));
    // Old revisions without pods are history; the newest is news even before it has any.
    let newest = all.first().map(|r| r.number);
    all.retain(|revision| !revision.pods.is_empty() || Some(revision.number) == newest);
    all
}

fn is_owned(object: &Value, uid: &str) -> bool {
    !uid.is_empty()
        && list(object, "/metadata/ownerReferences")
            .iter()
            .any(|owner| text(owner, "/uid") == uid)
}

fn pods<'a>(objects: &'a dyn Objects, owner: &str) -> impl Iterator<Item = &'a Value> {
    objects.all("/pods").filter(move |pod| is_owned(pod, owner))
}

fn pod_of(pod: &Value) -> Pod {
    let (state, word) = pod_state(pod);
    Pod {
        name: text(pod, "/metadata/name"),
        state,
        word,
        restarts: list(pod, "/status/containerStatuses")
            .iter()
            .map(|c| number(c, "/restartCount"))
            .sum(),
        created: time(pod, "/metadata/creationTimestamp"),
    }
}

fn pod_state(pod: &Value) -> (State, String) {
    let reasons = list(pod, "/status/containerStatuses")
        .iter()
        .map(|status| text(status, "/state/waiting/reason"));
    let reason = reasons.into_iter().find(|reason| {
        !matches!(
            reason.as_str(),
            "" | "ContainerCreating" | "PodInitializing"
        )
    });
    let phase = text(pod, "/status/phase");
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        return (State::Idle, "Terminating".to_owned());
    }
    if let Some(reason) = reason {
        return (State::Warning, reason);
    }
    match phase.as_str() {
        "Running" if is_ready(pod) => (State::Good, "Running".to_owned()),
        "Running" => (State::Busy, "Starting".to_owned()),
        "Failed" => (State::Bad, "Failed".to_owned()),
        "Succeeded" => (State::Idle, "Succeeded".to_owned()),
        _ => {
            let refused = condition(pod, "PodScheduled").filter(|c| text(c, "/status") == "False");
            match refused {
                Some(_) => (State::Warning, "Unschedulable".to_owned()),
                None => (State::Busy, "Pending".to_owned()),
            }
        }
    }
}
