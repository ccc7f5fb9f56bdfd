//! The table form of pods, and cells that other workloads share.

use jiff::Timestamp;
use serde_json::Value;

use super::condition::{age, is_true, moment};
use crate::table::{Column, age as since};
use crate::value::{flag, has, integer, items, text};

/// Columns from name, type and priority.
pub(crate) fn columns(list: &[(&str, &str, i32)]) -> Vec<Column> {
    list.iter()
        .map(|(name, kind, priority)| Column::new(name, kind, *priority))
        .collect()
}

/// The columns of pods.
pub(super) fn pod_columns() -> Vec<Column> {
    columns(&[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Status", "string", 0),
        ("Restarts", "string", 0),
        ("Age", "string", 0),
        ("IP", "string", 1),
        ("Node", "string", 1),
        ("Nominated Node", "string", 1),
        ("Readiness Gates", "string", 1),
    ])
}

/// Names and images of the containers at `path`, with commas.
pub(crate) fn container_cells(object: &Value, path: &str) -> [Value; 2] {
    ["name", "image"].map(|field| {
        let parts: Vec<&str> = items(object, path).iter().map(|c| text(c, field)).collect();
        Value::String(parts.join(","))
    })
}

/// The number at `path`, 0 if there is none.
pub(crate) fn count(object: &Value, path: &str) -> Value {
    Value::from(integer(object, path).unwrap_or(0))
}

/// The cells of a pod.
pub(super) fn pod_cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let mut seen = Seen::default();
    seen.begin(pod);
    let initializing = seen.look_at_init(pod);
    if !initializing || is_true(pod, "Initialized") {
        seen.look_at_containers(pod);
    }
    let ended = matches!(text(pod, "status.phase"), "Failed" | "Succeeded");
    if has(pod, "metadata.deletionTimestamp") {
        if text(pod, "status.reason") == "NodeLost" {
            "Unknown".clone_into(&mut seen.reason);
        } else if !ended {
            "Terminating".clone_into(&mut seen.reason);
        }
    }
    let restarts = match seen.last_restart {
        Some(last) if seen.restarts != 0 => {
            format!("{} ({} ago)", seen.restarts, since(last, now))
        }
        _ => seen.restarts.to_string(),
    };
    let or_none = |value: &str| if value.is_empty() { "<none>" } else { value }.to_owned();
    let ip = items(pod, "status.podIPs")
        .first()
        .map_or("", |a| text(a, "ip"));
    let cells = [
        text(pod, "metadata.name").to_owned(),
        format!("{}/{}", seen.ready, seen.total),
        seen.reason.clone(),
        restarts,
        age(pod, now),
        or_none(ip),
        or_none(text(pod, "spec.nodeName")),
        or_none(text(pod, "status.nominatedNodeName")),
        readiness_gates(pod),
    ];
    cells.into_iter().map(Value::String).collect()
}

fn readiness_gates(pod: &Value) -> String {
    let gates = items(pod, "spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| {
            let kind = text(gate, "conditionType");
            items(pod, "status.conditions")
                .iter()
                .find(|c| text(c, "type") == kind)
                .is_some_and(|c| text(c, "status") == "True")
        })
        .count();
    format!("{open}/{}", gates.len())
}

/// What has been learnt of a pod while looking through its containers.
#[derive(Debug, Default)]
struct Seen {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
    sidecar_restarts: i64,
    last_sidecar_restart: Option<Timestamp>,
}

fn is_sidecar(container: Option<&Value>) -> bool {
    container.is_some_and(|c| text(c, "restartPolicy") == "Always")
}

impl Seen {
    fn begin(&mut self, pod: &Value) {
        let own = text(pod, "status.reason");
        let gated = items(pod, "status.conditions")
            .iter()
            .any(|c| text(c, "type") == "PodScheduled" && text(c, "reason") == "SchedulingGated");
        let reason = if gated {
            "SchedulingGated"
        } else if own.is_empty() {
            text(pod, "status.phase")
        } else {
            own
        };
        reason.clone_into(&mut self.reason);
        let sidecars = items(pod, "spec.initContainers")
            .iter()
            .filter(|c| is_sidecar(Some(c)));
        self.total = items(pod, "spec.containers").len() + sidecars.count();
    }

    /// Looks at init containers up to the first that is not done; gives whether there is one.
    fn look_at_init(&mut self, pod: &Value) -> bool {
        let all = items(pod, "spec.initContainers");
        for (i, status) in items(pod, "status.initContainerStatuses")
            .iter()
            .enumerate()
        {
            let name = text(status, "name");
            let sidecar = is_sidecar(all.iter().find(|c| text(c, "name") == name));
            let restarts = integer(status, "restartCount").unwrap_or(0);
            let ended = moment(status, "lastState.terminated.finishedAt");
            self.restarts += restarts;
            self.last_restart = self.last_restart.max(ended);
            if sidecar {
                self.sidecar_restarts += restarts;
                self.last_sidecar_restart = self.last_sidecar_restart.max(ended);
            }
            let terminated = has(status, "state.terminated");
            let code = integer(status, "state.terminated.exitCode").unwrap_or(0);
            if terminated && code == 0 {
                continue;
            }
            if sidecar && flag(status, "started") {
                self.ready += usize::from(flag(status, "ready"));
                continue;
            }
            let waiting = text(status, "state.waiting.reason");
            self.reason = if terminated {
                format!("Init:{}", ending(status))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{i}/{}", all.len())
            };
            return true;
        }
        false
    }

    fn look_at_containers(&mut self, pod: &Value) {
        self.restarts = self.sidecar_restarts;
        self.last_restart = self.last_sidecar_restart;
        let mut running = false;
        let mut failure = String::new();
        for status in items(pod, "status.containerStatuses").iter().rev() {
            self.restarts += integer(status, "restartCount").unwrap_or(0);
            let ended = moment(status, "lastState.terminated.finishedAt");
            self.last_restart = self.last_restart.max(ended);
            let waiting = text(status, "state.waiting.reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if has(status, "state.terminated") {
                self.reason = ending(status);
                if integer(status, "state.terminated.exitCode").unwrap_or(0) != 0 {
                    failure.clone_from(&self.reason);
                }
            } else if flag(status, "ready") && has(status, "state.running") {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason != "Completed" {
            return;
        }
        if running && is_true(pod, "Ready") {
            "Running".clone_into(&mut self.reason);
        } else if !failure.is_empty() {
            self.reason = failure;
        } else if running {
            "NotReady".clone_into(&mut self.reason);
        }
    }
}

/// How a container ended: its reason, else the signal, else the exit code.
fn ending(status: &Value) -> String {
    let reason = text(status, "state.terminated.reason");
    let signal = integer(status, "state.terminated.signal").unwrap_or(0);
    let code = integer(status, "state.terminated.exitCode").unwrap_or(0);
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{code}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn cells(pod: &Value) -> Vec<String> {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        pod_cells(pod, now)
            .iter()
            .map(|c| c.as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_crashing_container() {
        let pod = json!({"metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
            "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "containerStatuses": [
                {"name": "a", "ready": true, "restartCount": 0, "state": {"running": {}}},
                {"name": "b", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                 "lastState": {"terminated": {"finishedAt": "2026-01-01T00:55:00Z"}}}]}});
        assert_eq!(
            cells(&pod),
            [
                "p",
                "1/2",
                "CrashLoopBackOff",
                "3 (5m ago)",
                "60m",
                "10.0.0.1",
                "<none>",
                "<none>",
                "<none>"
            ]
        );
    }

    #[test]
    fn init_terminating_and_completed() {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}],
            "initContainers": [{"name": "i"}, {"name": "j"}]},
            "status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}});
        assert_eq!(cells(&pod)[2], "Init:0/2");
        assert_eq!(cells(&pod)[4], "<unknown>");
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(cells(&pod)[2], "Terminating");
        let done = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]},
            "status": {"phase": "Succeeded", "containerStatuses": [
                {"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}});
        assert_eq!(cells(&done)[1..3], ["0/1", "Completed"]);
    }
}
