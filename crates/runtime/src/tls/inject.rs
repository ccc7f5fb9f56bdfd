//! Puts the CA bundle into webhooks that are ours, and touches nothing else of their configurations.
//!
//! A webhook is ours if the certificate is made for the name that the API server calls it by: `NAME.NAMESPACE.svc` for
//! that of a Service, the host of an address. Nobody else's could be called with our certificate, so no label makes it
//! ours; others may share a configuration with us.
//!
//! Each is changed at the version that it was listed at, and the Secret is read in between: a replica that does not yet
//! know a new CA cannot take it out again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::fact::{Missing, Right};
use slipway_kernel::identity::{ClusterId, Kind, ObjectRef, kinds};
use slipway_kernel::store::Meta;

use super::Injection;
use super::rotation::TIMEOUT;
use crate::request::{ApiRequest, Outcome, Refused};
use crate::state::Shared;

/// A missing right is looked for again after this time.
const FORBIDDEN_FOR: Duration = Duration::from_mins(1);

/// A webhook configuration as it was listed.
struct Configuration {
    object: ObjectRef,
    version: String,
    /// The bundle of each webhook that is ours, as it is written, and where the webhook is in the list.
    bundles: Vec<(usize, String)>,
}

/// What was listed.
pub(super) struct Listed {
    all: Vec<Configuration>,
    /// How many kinds could be listed.
    kinds: usize,
    failed: bool,
}

/// How an injection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Injected {
    /// Every configuration that we may see trusts the bundle.
    Everywhere,
    /// We may not, and somebody else has to.
    Forbidden,
    /// Not yet.
    Failed,
}

/// Who puts it there.
pub(super) struct Injector {
    injection: Injection,
    /// What the certificate is made for.
    names: Vec<String>,
    shared: Option<Arc<Shared>>,
    /// What is forbidden, and until when it is not tried again.
    forbidden: BTreeMap<Missing, Timestamp>,
    /// The last failure that was told.
    told: String,
}

impl Configuration {
    fn read(kind: &Kind, value: &Value, names: &[String]) -> Self {
        let meta = Meta::of(value);
        let hooks = value.get("webhooks").and_then(Value::as_array);
        let bundle = |(n, hook): (usize, &Value)| {
            let config = hook.get("clientConfig")?;
            let called = called(config)?;
            let is_ours = names.iter().any(|name| is_for(name, &called));
            let text = config.get("caBundle").and_then(Value::as_str);
            is_ours.then(|| (n, text.unwrap_or_default().to_owned()))
        };
        let hooks = hooks.into_iter().flatten().enumerate();
        Self {
            object: ObjectRef::local(kind.clone(), "", meta.name),
            version: meta.version,
            bundles: hooks.filter_map(bundle).collect(),
        }
    }

    /// What makes those of its webhooks that are ours trust the bundle; none if they do.
    fn changes(&self, bundle: &str) -> Option<Vec<Value>> {
        let differ = self.bundles.iter().filter(|(_, now)| now != bundle);
        let set = differ.map(|(n, _)| {
            let path = format!("/webhooks/{n}/clientConfig/caBundle");
            json!({"op": "add", "path": path, "value": bundle})
        });
        let test =
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": self.version});
        let changes: Vec<Value> = std::iter::once(test).chain(set).collect();
        (changes.len() > 1).then_some(changes)
    }
}

/// The name by which an API server calls a webhook, and which the certificate is checked against.
fn called(config: &Value) -> Option<String> {
    if let Some(service) = config.get("service") {
        let text = |field: &str| service.get(field)?.as_str();
        return Some(format!("{}.{}.svc", text("name")?, text("namespace")?));
    }
    let url: http::Uri = config.get("url")?.as_str()?.parse().ok()?;
    url.host().map(str::to_owned)
}

/// Whether a certificate for `name` is good for whoever is called so; its first label may be a `*`.
fn is_for(name: &str, called: &str) -> bool {
    let any = name.strip_prefix("*.").zip(called.split_once('.'));
    name.eq_ignore_ascii_case(called)
        || any.is_some_and(|(rest, (_, parent))| rest.eq_ignore_ascii_case(parent))
}

impl Injector {
    pub(super) fn new(
        injection: Injection,
        names: Vec<String>,
        shared: Option<Arc<Shared>>,
    ) -> Self {
        Self {
            injection,
            names,
            shared,
            forbidden: BTreeMap::new(),
            told: String::new(),
        }
    }

    /// Lists what is to get the bundle.
    pub(super) async fn list(&mut self, client: &kube::Client, now: Timestamp) -> Listed {
        let mut listed = Listed {
            all: Vec::new(),
            kinds: 0,
            failed: false,
        };
        for kind in [kinds::VALIDATING_WEBHOOKS, kinds::MUTATING_WEBHOOKS] {
            let missing = Missing::new(&ClusterId::local(), &kind, Right::List);
            if self.is_forbidden(&missing, now) {
                continue;
            }
            let wanted = ApiRequest::list(&kind, &self.injection.selector);
            match wanted.send(client, TIMEOUT).await {
                Outcome::Done(list) => {
                    self.allowed(&missing);
                    listed.kinds += 1;
                    let items = list.get("items").and_then(Value::as_array);
                    let items = items.into_iter().flatten();
                    let names = &self.names;
                    listed
                        .all
                        .extend(items.map(|item| Configuration::read(&kind, item, names)));
                }
                Outcome::Refused(refused) if refused.is_forbidden() => {
                    self.forbid(missing, &refused, now);
                }
                other => {
                    listed.failed = true;
                    self.failed(&missing.to_string(), &other);
                }
            }
        }
        listed
    }

    /// Has all that was listed trust the bundle.
    pub(super) async fn inject(
        &mut self,
        client: &kube::Client,
        listed: Listed,
        bundle: &[u8],
        now: Timestamp,
    ) -> Injected {
        let bundle = STANDARD.encode(bundle);
        let (mut failed, mut forbidden) = (listed.failed, listed.kinds == 0);
        for configuration in &listed.all {
            let Some(changes) = configuration.changes(&bundle) else {
                continue;
            };
            let object = &configuration.object;
            let missing = Missing::new(&object.cluster, &object.kind, Right::Patch);
            if self.is_forbidden(&missing, now) {
                forbidden = true;
                continue;
            }
            let wanted = ApiRequest::json_patch(object, changes);
            match wanted.send(client, TIMEOUT).await {
                Outcome::Done(_) => {
                    self.allowed(&missing);
                    tracing::info!(%object, "CA bundle injected");
                }
                Outcome::Refused(refused) if refused.is_forbidden() => {
                    forbidden = true;
                    self.forbid(missing, &refused, now);
                }
                other => {
                    failed = true;
                    self.failed(&object.to_string(), &other);
                }
            }
        }
        match (failed, forbidden) {
            (true, _) => Injected::Failed,
            (false, true) => Injected::Forbidden,
            (false, false) => {
                self.told.clear();
                Injected::Everywhere
            }
        }
    }

    fn is_forbidden(&self, missing: &Missing, now: Timestamp) -> bool {
        self.forbidden
            .get(missing)
            .is_some_and(|until| now < *until)
    }

    /// Told once, and shown until it is allowed.
    fn forbid(&mut self, missing: Missing, refused: &Refused, now: Timestamp) {
        let until = now.checked_add(FORBIDDEN_FOR).unwrap_or(Timestamp::MAX);
        if let Some(shared) = &self.shared {
            shared.lock().home.facts.missing.insert(missing.clone());
        }
        if !self.forbidden.contains_key(&missing) {
            let (feature, why) = (missing.to_string(), &refused.message);
            tracing::warn!(
                feature,
                why,
                "CA bundle cannot be injected; it must be put there by hand, or the right be granted"
            );
        }
        self.forbidden.insert(missing, until);
    }

    fn allowed(&mut self, missing: &Missing) {
        if self.forbidden.remove(missing).is_some()
            && let Some(shared) = &self.shared
        {
            shared.lock().home.facts.missing.remove(missing);
        }
    }

    fn failed(&mut self, what: &str, outcome: &Outcome) {
        let why = match outcome {
            Outcome::Refused(why) | Outcome::Absent(why) | Outcome::Unknown(why, _) => {
                why.message.as_str()
            }
            other => other.as_str(),
        };
        let told = format!("{what}: {why}");
        if self.told != told {
            tracing::warn!(what, why, "CA bundle not injected, retrying");
            self.told = told;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_ours_by_the_name_that_it_is_called_by() {
        let service = |name: &str| json!({"service": {"name": name, "namespace": "mimir"}});
        let of = |config: &Value, name: &str| called(config).is_some_and(|own| is_for(name, &own));
        assert!(of(&service("ours"), "ours.mimir.svc"));
        assert!(!of(&service("ours"), "ours.loki.svc"));
        assert!(!of(&service("theirs"), "ours.mimir.svc"));
        assert!(of(&service("ours"), "*.mimir.svc"));
        assert!(!of(&service("a.b"), "*.mimir.svc"));
        let url = json!({"url": "https://LOCALHOST:8443/admission/no-downscale"});
        assert!(of(&url, "localhost"));
        assert!(!of(&url, "ours.mimir.svc"));
        for nothing in [
            json!({}),
            json!({"url": "no address"}),
            json!({"service": {}}),
        ] {
            assert!(!of(&nothing, "ours.mimir.svc"), "{nothing}");
        }
    }
}
