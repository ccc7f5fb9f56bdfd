//! Puts the CA bundle into webhook configurations, and touches nothing else of them.
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
use slipway_kernel::identity::{Kind, ObjectRef, kinds};
use slipway_kernel::store::Meta;

use super::Injection;
use super::rotation::TIMEOUT;
use crate::request::{Outcome, Refused, Wanted};
use crate::state::Shared;

/// A missing right is looked for again after this time.
const FORBIDDEN_FOR: Duration = Duration::from_mins(1);

/// A webhook configuration as it was listed.
struct Configuration {
    object: ObjectRef,
    version: String,
    /// Each webhook's bundle, as it is written.
    bundles: Vec<String>,
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
    shared: Option<Arc<Shared>>,
    /// What is forbidden, by feature, and until when it is not tried again.
    forbidden: BTreeMap<String, Timestamp>,
    /// The last failure that was told.
    told: String,
}

impl Configuration {
    fn read(kind: &Kind, value: &Value) -> Self {
        let meta = Meta::of(value);
        let bundles = value.get("webhooks").and_then(Value::as_array);
        let bundle = |hook: &Value| {
            let text = hook
                .pointer("/clientConfig/caBundle")
                .and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Self {
            object: ObjectRef::local(kind.clone(), "", meta.name),
            version: meta.version,
            bundles: bundles.into_iter().flatten().map(bundle).collect(),
        }
    }

    /// What makes all of its webhooks trust the bundle; none if they do.
    fn changes(&self, bundle: &str) -> Option<Vec<Value>> {
        let differ = self.bundles.iter().enumerate();
        let differ = differ.filter(|(_, now)| now.as_str() != bundle);
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

impl Injector {
    pub(super) fn new(injection: Injection, shared: Option<Arc<Shared>>) -> Self {
        Self {
            injection,
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
            let feature = format!("list {}", kind.plural);
            if self.is_forbidden(&feature, now) {
                continue;
            }
            let wanted = Wanted::list(&kind, &self.injection.selector);
            match wanted.send(client, TIMEOUT).await {
                Outcome::Done(list) => {
                    self.allowed(&feature);
                    listed.kinds += 1;
                    let items = list.get("items").and_then(Value::as_array);
                    let items = items.into_iter().flatten();
                    listed
                        .all
                        .extend(items.map(|item| Configuration::read(&kind, item)));
                }
                Outcome::Refused(refused) if refused.is_forbidden() => {
                    self.forbid(feature, &refused, now);
                }
                other => {
                    listed.failed = true;
                    self.failed(&feature, &other);
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
            let feature = format!("patch {}", object.kind.plural);
            if self.is_forbidden(&feature, now) {
                forbidden = true;
                continue;
            }
            let wanted = Wanted::json_patch(object, changes);
            match wanted.send(client, TIMEOUT).await {
                Outcome::Done(_) => {
                    self.allowed(&feature);
                    tracing::info!(%object, "CA bundle injected");
                }
                Outcome::Refused(refused) if refused.is_forbidden() => {
                    forbidden = true;
                    self.forbid(feature, &refused, now);
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

    fn is_forbidden(&self, feature: &str, now: Timestamp) -> bool {
        self.forbidden
            .get(feature)
            .is_some_and(|until| now < *until)
    }

    /// Told once, and shown until it is allowed.
    fn forbid(&mut self, feature: String, refused: &Refused, now: Timestamp) {
        let until = now.checked_add(FORBIDDEN_FOR).unwrap_or(Timestamp::MAX);
        if let Some(shared) = &self.shared {
            shared.lock().facts.missing.insert(feature.clone());
        }
        if !self.forbidden.contains_key(&feature) {
            let why = &refused.message;
            tracing::warn!(
                feature,
                why,
                "CA bundle cannot be injected; it must be put there by hand, or the right be granted"
            );
        }
        self.forbidden.insert(feature, until);
    }

    fn allowed(&mut self, feature: &str) {
        if self.forbidden.remove(feature).is_some()
            && let Some(shared) = &self.shared
        {
            shared.lock().facts.missing.remove(feature);
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
            tracing::warn!(what, why, "CA bundle not injected; it is tried again");
            self.told = told;
        }
    }
}
