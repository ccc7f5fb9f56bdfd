//! Differences that are known, and why they are there. Nothing else may differ.

use serde_json::Value;
use slipway_e2e::record::Pair;

use crate::compare::Difference;

/// Why some answers differ.
struct Reason {
    why: &'static str,
    holds: fn(&Pair, &Difference) -> bool,
}

const REASONS: &[Reason] = &[
    Reason {
        why: "discovery: groups, versions and resources that the embedded server does not serve (decision 8)",
        holds: |pair, difference| is_discovery(pair) && difference.found.is_null(),
    },
    Reason {
        why: "kinds that the embedded server does not serve: admission policies, API services, flow control, runtime classes (decision 8)",
        holds: |pair, difference| {
            const UNSERVED: [&str; 4] = [
                "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic",
                "/apis/apiregistration.k8s.io/",
                "/apis/flowcontrol.apiserver.k8s.io/",
                "/apis/node.k8s.io/",
            ];
            let is_unserved = UNSERVED.iter().any(|path| pair.path.starts_with(path));
            is_unserved && is_code(difference, 200, "404")
        },
    },
    Reason {
        why: "a recorded client had the document already (ETag); the replay asks without one",
        holds: |_, difference| is_code(difference, 304, "200"),
    },
    Reason {
        why: "a real server's storage of a new definition is not ready at once (429); the embedded one's is",
        holds: |_, difference| is_code(difference, 429, "200"),
    },
    Reason {
        why: "a real server accepts and establishes a definition in two writes, the embedded one in one",
        holds: |pair, difference| {
            let is_state = difference
                .path
                .starts_with(".status.conditions[Established]");
            pair.path.contains("/customresourcedefinitions")
                && (difference.path.starts_with("events[") || is_state)
        },
    },
    Reason {
        why: "addresses of services are handed out without an IPAddress object (decision 8)",
        holds: |pair, difference| {
            pair.path.contains("/ipaddresses") && difference.path.starts_with("events[")
        },
    },
    Reason {
        why: "a real server renews a lease of its own",
        holds: |pair, difference| {
            pair.path.contains("/leases")
                && difference.path.starts_with("events[kube-system/apiserver-")
        },
    },
    Reason {
        why: "an eviction writes the server's time into the budget; a client that sends the recorded time back comes to own it",
        holds: |pair, difference| {
            let is_time = difference.path.contains(".f:status.f:disruptedPods")
                || difference
                    .path
                    .ends_with(r#"{"type":"DisruptionAllowed"}.f:lastTransitionTime"#);
            pair.path.contains("/poddisruptionbudgets/")
                && difference.path.starts_with(".metadata.managedFields[")
                && is_time
        },
    },
    Reason {
        why: "how a Go program was built",
        holds: |pair, difference| {
            pair.path.starts_with("/version")
                && [
                    ".compiler",
                    ".gitCommit",
                    ".goVersion",
                    ".platform",
                    ".buildDate",
                    ".gitTreeState",
                ]
                .contains(&difference.path.as_str())
        },
    },
];

fn is_discovery(pair: &Pair) -> bool {
    let path = pair.path.split('?').next().unwrap_or_default();
    path == "/api" || (path.starts_with("/apis") && path.matches('/').count() <= 3)
}

/// Another status code than the recorded one.
fn is_code(difference: &Difference, recorded: u16, found: &str) -> bool {
    let text = match &difference.found {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    difference.path == "code" && difference.recorded == recorded && text.starts_with(found)
}

/// Why this difference is there, if somebody knows.
pub(crate) fn why(pair: &Pair, difference: &Difference) -> Option<&'static str> {
    REASONS
        .iter()
        .find(|reason| (reason.holds)(pair, difference))
        .map(|reason| reason.why)
}
