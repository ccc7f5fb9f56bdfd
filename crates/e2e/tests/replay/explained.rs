//! Differences that are known, and why they are there. Nothing else may differ, and no rule may come to excuse more: how many
//! differences each explains is pinned. Who records anew looks at each number before it is written down here.

use serde_json::Value;
use slipway_e2e::record::Pair;

use crate::compare::{ABSENT, Difference};

/// Why some answers differ.
pub(crate) struct Reason {
    pub(crate) why: &'static str,
    /// How many differences of the recording it explains.
    pub(crate) pinned: usize,
    holds: fn(&Pair, &Difference) -> bool,
}

/// All that is known.
pub(crate) const REASONS: &[Reason] = &[
    Reason {
        why: "discovery: groups, versions and resources that the embedded server does not serve (decision 8)",
        pinned: 280,
        holds: |pair, difference| {
            is_discovery(pair) && difference.found == ABSENT && is_left_out(&difference.path)
        },
    },
    Reason {
        why: "kinds that the embedded server does not serve: admission policies, API services, flow control, runtime classes (decision 8)",
        pinned: 6,
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
        pinned: 13,
        holds: |_, difference| is_code(difference, 304, "200"),
    },
    Reason {
        why: "a real server's storage of a new definition is not ready at once (429); the embedded one's is",
        pinned: 6,
        holds: |_, difference| is_code(difference, 429, "200"),
    },
    Reason {
        why: "a real server accepts and establishes a definition in two writes, the embedded one in one",
        pinned: 4,
        holds: |pair, difference| {
            // It is there too early, and true: nothing else about a definition is excused.
            let is_early = difference.path == ".status.conditions[Established]"
                && difference.recorded == ABSENT
                && difference.found["status"] == "True";
            pair.path.contains("/customresourcedefinitions")
                && (is_early || is_one_less(difference))
        },
    },
    Reason {
        why: "addresses of services are handed out without an IPAddress object (decision 8)",
        pinned: 3,
        holds: |pair, difference| {
            pair.path.contains("/ipaddresses") && difference.path.starts_with("events[")
        },
    },
    Reason {
        why: "discovery: a real server shows a new definition a moment later",
        pinned: 3,
        holds: |pair, difference| {
            let group = difference.path.strip_prefix(".items[/");
            let group = group.and_then(|rest| rest.split(']').next());
            let is_defined = group.is_some_and(|name| name.ends_with(".toolkit.fluxcd.io"));
            let is_whole = difference.path.ends_with(']');
            is_discovery(pair) && difference.recorded == ABSENT && is_defined && is_whole
        },
    },
    Reason {
        why: "a real server renews a lease of its own",
        pinned: 1,
        holds: |pair, difference| {
            pair.path.contains("/leases")
                && difference.path.starts_with("events[kube-system/apiserver-")
        },
    },
    Reason {
        why: "an eviction writes the server's time into the budget; a client that sends the recorded time back comes to own it",
        pinned: 7,
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
        pinned: 3,
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

/// Whether the events of an object are those that were recorded but for one change less.
fn is_one_less(difference: &Difference) -> bool {
    let (Some(recorded), Some(found)) =
        (difference.recorded.as_array(), difference.found.as_array())
    else {
        return false;
    };
    let mut fewer = recorded.clone();
    let change = fewer.iter().position(|kind| kind == "MODIFIED");
    if let Some(change) = change {
        fewer.remove(change);
    }
    difference.path.starts_with("events[") && change.is_some() && found.starts_with(&fewer)
}

/// What the embedded server does not serve, by the names that discovery has for it.
const LEFT_OUT: &[&str] = &[
    "apiregistration.k8s.io",
    "apiregistration.k8s.io/v1",
    "attach",
    "bindings",
    "componentstatuses",
    "exec",
    "flowcontrol.apiserver.k8s.io",
    "flowcontrol.apiserver.k8s.io/v1",
    "log",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "node.k8s.io",
    "node.k8s.io/v1",
    "portforward",
    "proxy",
];

/// Whether this is a whole entry of a list, of something that is not served. A field of something that is served is none.
fn is_left_out(path: &str) -> bool {
    let entry = path
        .strip_suffix(']')
        .and_then(|path| path.rsplit_once('['));
    entry.is_some_and(|(_, name)| LEFT_OUT.contains(&name.trim_start_matches('/')))
}

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
