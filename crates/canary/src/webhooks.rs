//! What webhooks are sent, and what their answers mean. Sending is not done here.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::canary::{Phase, Webhook};
use slipway_kernel::duration;
use slipway_kernel::event::EventType;
use slipway_kernel::question::SecretRef;

use crate::engine::{Answer, Revision};
use crate::standalone::hash::digest;

/// How long a webhook has where nothing is written.
const USUAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may have.
const MAX_TIMEOUT: Duration = Duration::from_mins(10);
/// How often it may be asked again.
const MAX_RETRIES: u32 = 10;
/// Which value of its Secret what a webhook is sent is signed with.
const SIGNING_KEY: &str = "key";
/// How much of an answer is kept.
pub const MAX_BODY: usize = 4 * 1024;

/// The Canary that something is about.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Where it is.
    pub phase: Phase,
    /// The version that it is about.
    pub revision: Option<&'a Revision>,
}

/// What a webhook is sent.
pub fn body(about: &About<'_>, hook: &Webhook) -> Value {
    whole(about, &hook.metadata)
}

/// What a webhook of type `event` is sent: what is told is in the metadata, which a person's own cannot hide.
pub fn event_body(
    about: &About<'_>,
    hook: &Webhook,
    (severity, text): (EventType, &str),
    now: Timestamp,
) -> Value {
    let mut metadata = hook.metadata.clone();
    metadata.insert("eventMessage".to_owned(), text.to_owned());
    metadata.insert("eventType".to_owned(), severity.as_str().to_owned());
    metadata.insert("timestamp".to_owned(), now.as_millisecond().to_string());
    whole(about, &metadata)
}

fn whole(about: &About<'_>, metadata: &BTreeMap<String, String>) -> Value {
    let mut body = json!({
        "name": about.name,
        "namespace": about.namespace,
        "phase": about.phase.as_str(),
        "checksum": checksum(about.revision),
    });
    if !metadata.is_empty()
        && let Some(fields) = body.as_object_mut()
    {
        fields.insert("metadata".to_owned(), json!(metadata));
    }
    body
}

/// The same for the same version with the same configs, and another one for any other. Configs that are not tracked are not
/// the same as none.
pub fn checksum(revision: Option<&Revision>) -> String {
    let template = revision.map(|one| &one.template);
    let configs = revision.and_then(|one| one.configs.as_ref());
    let said = json!({"lastAppliedSpec": template, "trackedConfigs": configs});
    digest(said.to_string().as_bytes())
}

/// The Secret of another namespace than this, the Canary's, that a webhook is to be signed with: namespace and name. Whoever writes a
/// Canary says where its calls go, and would have others' key sign whatever they want to be told; so it is used by nobody.
pub fn foreign_key<'a>(hook: &'a Webhook, own: &str) -> Option<(&'a str, &'a str)> {
    let reference = hook.signing.as_ref()?;
    let namespace = reference.namespace.as_deref()?;
    (!namespace.is_empty() && *namespace != *own).then_some((namespace, reference.name.as_str()))
}

/// By which value of which Secret what it is sent is signed: one of the Canary's own namespace, whatever is written.
pub fn signed_with(hook: &Webhook, own: &str) -> Option<SecretRef> {
    let reference = hook.signing.as_ref()?;
    Some(SecretRef {
        namespace: own.to_owned(),
        name: reference.name.clone(),
        key: SIGNING_KEY.to_owned(),
    })
}

/// How long a webhook has for each attempt.
pub fn timeout(hook: &Webhook) -> Duration {
    let written = hook
        .timeout
        .as_deref()
        .and_then(|text| duration::parse(text).ok());
    let written = written.filter(|timeout| !timeout.is_zero());
    written.unwrap_or(USUAL_TIMEOUT).min(MAX_TIMEOUT)
}

/// How often a webhook is asked again.
pub fn retries(hook: &Webhook) -> u32 {
    let retries = u32::try_from(hook.retries.unwrap_or_default()).unwrap_or_default();
    retries.min(MAX_RETRIES)
}

/// How long to pause before a webhook is asked for the n-th time again, from 1 on.
pub fn pause(retry: u32) -> Duration {
    let doublings = retry.saturating_sub(1).min(5);
    Duration::from_secs(1 << doublings).min(Duration::from_secs(30))
}

/// How long all attempts may take together.
pub fn whole_time(hook: &Webhook) -> Duration {
    let again = (1..=retries(hook)).map(|retry| pause(retry).saturating_add(timeout(hook)));
    // Whoever asks keeps the time a little less strictly.
    let slack = Duration::from_secs(2).saturating_mul(retries(hook) + 1);
    again.fold(
        timeout(hook).saturating_add(slack),
        Duration::saturating_add,
    )
}

/// Whether it is worth asking again after an answer of this code.
pub fn is_worth_a_retry(code: u16) -> bool {
    code == 429 || (code >= 500 && code != 501)
}

/// What an answer means.
pub fn answer(hook: &Webhook, code: u16, body: &str) -> Answer {
    let is_yes = if hook.expected_status.is_empty() {
        (200..300).contains(&code)
    } else {
        hook.expected_status.contains(&code)
    };
    if is_yes {
        return Answer::Yes;
    }
    let end = (0..=MAX_BODY.min(body.len()))
        .rev()
        .find(|end| body.is_char_boundary(*end));
    let said = body.get(..end.unwrap_or_default()).unwrap_or_default();
    let said = said.trim();
    Answer::No(if said.is_empty() {
        format!("HTTP {code}")
    } else {
        format!("HTTP {code}: {said}")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests")]

    use std::time::Duration;

    use jiff::Timestamp;
    use serde_json::{Value, json};
    use slipway_api::canary::{Phase, Webhook};
    use slipway_kernel::event::EventType;

    use super::{About, MAX_BODY, answer, body, checksum, event_body, retries, timeout};
    use crate::engine::{Answer, Revision};

    fn hook(value: Value) -> Webhook {
        let mut whole = json!({"name": "gate", "url": "http://gate"});
        slipway_kernel::fields::merge(&mut whole, &value);
        serde_json::from_value(whole).unwrap()
    }

    fn about(revision: &Revision) -> About<'_> {
        About {
            name: "web",
            namespace: "shop",
            phase: Phase::Progressing,
            revision: Some(revision),
        }
    }

    #[test]
    fn scenario_55_a_body_has_five_fields_and_no_empty_metadata() {
        let revision = Revision::default();
        let plain = body(&about(&revision), &hook(json!({})));
        let sum = checksum(Some(&revision));
        assert_eq!(
            plain,
            json!({"name": "web", "namespace": "shop", "phase": "Progressing", "checksum": sum})
        );
        let with = body(&about(&revision), &hook(json!({"metadata": {"a": "b"}})));
        assert_eq!(with.get("metadata"), Some(&json!({"a": "b"})));
    }

    #[test]
    fn scenario_56_an_event_cannot_be_hidden_by_metadata() {
        let revision = Revision::default();
        let hook = hook(json!({"metadata": {"eventMessage": "mine", "a": "b"}}));
        let now = Timestamp::from_millisecond(1_234_567).unwrap();
        let told = event_body(&about(&revision), &hook, (EventType::Warning, "halt"), now);
        let expected = json!({"a": "b", "eventMessage": "halt", "eventType": "Warning", "timestamp": "1234567"});
        assert_eq!(told.get("metadata"), Some(&expected));
    }

    #[test]
    fn scenario_57_a_checksum_is_of_version_and_configs() {
        let version = |template: &str, configs: Option<&[(&str, &str)]>| {
            let owned = |all: &[(&str, &str)]| {
                let each = all.iter();
                each.map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                    .collect()
            };
            checksum(Some(&Revision {
                template: template.to_owned(),
                configs: configs.map(owned),
            }))
        };
        let all = [
            version("a", None),
            version("b", None),
            version("a", Some(&[])),
            version("a", Some(&[("configmap/x", "1")])),
            version("a", Some(&[("configmap/x", "2")])),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(version("a", None), version("a", None));
    }

    #[test]
    fn scenarios_60_61_and_63_d11_what_an_answer_means() {
        let usual = hook(json!({}));
        for code in [200, 202, 203, 204, 299] {
            assert_eq!(answer(&usual, code, ""), Answer::Yes, "{code}");
        }
        for code in [199, 302, 403, 404, 500, 503] {
            let said = answer(&usual, code, " because \n");
            assert_eq!(said, Answer::No(format!("HTTP {code}: because")));
        }
        let strange = hook(json!({"expectedStatus": [404]}));
        assert_eq!(answer(&strange, 404, ""), Answer::Yes);
        assert_eq!(answer(&strange, 200, ""), Answer::No("HTTP 200".to_owned()));
        let long = "ä".repeat(MAX_BODY);
        let Answer::No(said) = answer(&usual, 500, &long) else {
            unreachable!("500 is no");
        };
        assert!(said.len() <= MAX_BODY + 10);
    }

    #[test]
    fn times_and_retries_are_bounded() {
        let of = |text: &str| timeout(&hook(json!({"timeout": text})));
        assert_eq!(of("30s"), Duration::from_secs(30));
        assert_eq!(of("s"), Duration::from_secs(10));
        assert_eq!(of("0s"), Duration::from_secs(10));
        assert_eq!(of("1000h"), Duration::from_mins(10));
        assert_eq!(retries(&hook(json!({"retries": -1}))), 0);
        assert_eq!(retries(&hook(json!({"retries": 1_000_000}))), 10);
    }
}
