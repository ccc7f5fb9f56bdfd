//! What is not written: what nobody needs, and what nobody may see.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::scenario::Scenario;

use super::{SECRETS, clusters};

/// Where nothing is wrong, whatever is written changes something.
pub(in super::super) fn no_writes(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    if history.is_disturbed() {
        return findings;
    }
    let ours = |controller: &str| matches!(controller, "fleet" | "agent");
    for request in history.requests.iter().filter(|r| r.is_write()) {
        let is_lease = request.path().contains("/leases");
        if is_lease || !ours(&request.context.controller) || !request.ending.is_done() {
            continue;
        }
        findings.check(request.at, request.is_committed(), || {
            format!("{} {} changed nothing", request.method, request.uri)
        });
    }
    findings
}

/// The shortest text that counts as a secret: shorter ones are anywhere.
const SHORTEST: usize = 8;

/// The secret texts of a scenario.
fn secrets(scenario: &Scenario) -> Vec<String> {
    let objects = scenario.objects.iter();
    let secrets =
        objects.filter(|object| object.get("kind").and_then(Value::as_str) == Some("Secret"));
    let texts = secrets.flat_map(|secret| {
        let plain = secret.get("stringData").and_then(Value::as_object);
        plain
            .into_iter()
            .flatten()
            .filter_map(|(_, value)| value.as_str())
    });
    // Of a kubeconfig, which is `NAME TOKEN` here, only the token is a secret.
    let words = texts.flat_map(|text| text.split_whitespace());
    words
        .filter(|word| word.len() >= SHORTEST)
        .map(str::to_owned)
        .collect()
}

/// No value of a Secret is written anywhere but into Secrets, neither as it is nor encoded.
pub(in super::super) fn no_secrets(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let secrets = secrets(case.scenario);
    let all: Vec<String> = secrets
        .iter()
        .flat_map(|text| [text.clone(), STANDARD.encode(text)])
        .collect();
    if all.is_empty() {
        return findings;
    }
    let tells = |value: &Value| {
        let text = value.to_string();
        all.iter().any(|secret| text.contains(secret.as_str()))
    };
    for request in history.requests.iter().filter(|r| r.is_write()) {
        let is_secret = request.path().contains("/secrets");
        findings.check(request.at, is_secret || !tells(&request.body), || {
            format!("{} {} has a secret in it", request.method, request.uri)
        });
    }
    for cluster in clusters(history) {
        let deeds = history
            .deeds_in(&cluster)
            .filter(|(change, _)| &*change.object.0 != SECRETS);
        for (change, _) in deeds {
            let Some(after) = change.after.as_deref() else {
                continue;
            };
            findings.check(change.at, !tells(after.value()), || {
                format!(
                    "{} {} in {cluster} has a secret in it",
                    change.object.0, change.object.2
                )
            });
        }
    }
    findings
}
