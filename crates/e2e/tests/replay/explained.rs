//! Differences that are known, and why they are there. Nothing else may differ.

use slipway_e2e::record::Pair;

use crate::compare::Difference;

/// Why some answers differ.
struct Reason {
    why: &'static str,
    holds: fn(&Pair, &Difference) -> bool,
}

const REASONS: &[Reason] = &[Reason {
    why: "discovery: groups, versions and resources that the embedded server does not serve (decision 8)",
    holds: |pair, difference| is_discovery(pair) && difference.found.is_null(),
}];

fn is_discovery(pair: &Pair) -> bool {
    let path = pair.path.split('?').next().unwrap_or_default();
    path == "/api" || (path.starts_with("/apis") && path.matches('/').count() <= 3)
}

/// Why this difference is there, if somebody knows.
pub(crate) fn why(pair: &Pair, difference: &Difference) -> Option<&'static str> {
    REASONS
        .iter()
        .find(|reason| (reason.holds)(pair, difference))
        .map(|reason| reason.why)
}
