//! A Rollout, read.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_api::fleet::binding::Literal;
use slipway_api::fleet::names::{CONFIRM_UNASSIGN, FINALIZER};
use slipway_api::fleet::rollout::status::RolloutStatus;
use slipway_api::fleet::rollout::{DEFAULT_HISTORY, RolloutSpec};
use slipway_bindings::revision;
use slipway_kernel::Kind;
use slipway_kernel::fields::{integer, list, strings, text};

use crate::budget::{self, Amount};

/// A Rollout, as far as its plan depends on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rollout {
    /// `namespace/name`: the salt of its order.
    pub name: String,
    /// The generation of its spec.
    #[serde(default)]
    pub generation: i64,
    /// Whether it is being deleted.
    #[serde(default)]
    pub is_deleting: bool,
    /// What it asks for, or what is wrong with that.
    pub wanted: Asked,
    /// How many clusters a person has allowed to lose it at once.
    #[serde(default)]
    pub confirmed: Option<usize>,
    /// Its status, as stored.
    #[serde(default)]
    pub status: RolloutStatus,
}

impl Rollout {
    /// Reads one.
    pub fn of(object: &Value) -> Self {
        let spec = serde_json::from_value::<RolloutSpec>(spec_of(object));
        let wanted = match spec.map(|spec| Wanted::read(&spec)) {
            Ok(Ok(wanted)) => Asked::For(wanted),
            Ok(Err(problem)) => Asked::Invalid(problem),
            Err(error) => Asked::Invalid(format!("spec: {error}")),
        };
        let status = object.get("status");
        let status = status.and_then(|status| RolloutStatus::deserialize(status).ok());
        Self {
            status: status.unwrap_or_default(),
            ..Self::asking(object, wanted)
        }
    }

    fn asking(object: &Value, wanted: Asked) -> Self {
        let part = |path: &str| text(object, path).unwrap_or_default();
        let annotations = strings(object, "/metadata/annotations");
        let confirmed = annotations.get(CONFIRM_UNASSIGN);
        Self {
            name: format!("{}/{}", part("/metadata/namespace"), part("/metadata/name")),
            generation: integer(object, "/metadata/generation").unwrap_or_default(),
            is_deleting: text(object, "/metadata/deletionTimestamp").is_some(),
            wanted,
            confirmed: confirmed.and_then(|number| number.trim().parse().ok()),
            status: RolloutStatus::default(),
        }
    }
}

/// A module with a selector as the Rollout that it stands for, which replaces; none for one without. `kind` is that of the
/// module. One that has lost its selector selects nothing, for as long as something of it may be left somewhere: as long as it
/// has the finalizer.
pub fn of_module(kind: &Kind, module: &Value) -> Option<Value> {
    let selector = module.pointer("/spec/selector").cloned();
    let mut finalizers = list(module, "/metadata/finalizers");
    if selector.is_none() && !finalizers.any(|one| one.as_str() == Some(FINALIZER)) {
        return None;
    }
    let mut template = spec_of(module);
    if let Some(fields) = template.as_object_mut() {
        fields.remove("selector");
        fields.remove("immutable");
    }
    let told = |field: &str| module.pointer(field).cloned().unwrap_or_else(|| json!([]));
    Some(json!({
        "kind": kind.kind,
        "metadata": module.get("metadata"),
        "spec": {
            "selector": selector, "strategy": "Replace", "targetKind": kind.kind,
            "template": {"spec": template},
        },
        "status": {"conditions": told("/status/conditions"), "unassigned": told("/status/unassigned")},
    }))
}

fn spec_of(object: &Value) -> Value {
    object.get("spec").cloned().unwrap_or_default()
}

/// What a Rollout asks for, or what is wrong with that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asked {
    /// This.
    For(Wanted),
    /// It cannot be followed: nothing is changed for it.
    Invalid(String),
}

impl Default for Asked {
    fn default() -> Self {
        Self::For(Wanted::default())
    }
}

/// How a change reaches the clusters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// All at once.
    Replace,
    /// One, then so many at a time.
    #[default]
    Incremental,
    /// By somebody else.
    External,
}

/// What a Rollout asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    /// How.
    pub strategy: Strategy,
    /// The revision of its template.
    pub target: String,
    /// How many clusters may be unready because of a change.
    pub max_unready: Amount,
    /// How many clusters may be left for later.
    pub max_unreachable: Amount,
    /// How long a cluster must have been ready to count as such, in seconds.
    pub min_ready_seconds: u32,
    /// Whether nothing is to be changed.
    pub is_paused: bool,
    /// How many revisions are kept that nobody has.
    pub history_limit: usize,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            target: String::new(),
            max_unready: budget::DEFAULT,
            max_unreachable: budget::DEFAULT,
            min_ready_seconds: 0,
            is_paused: false,
            history_limit: DEFAULT_HISTORY as usize,
        }
    }
}

impl Wanted {
    /// Reads a spec. The error says what is wrong, and where.
    pub fn read(spec: &RolloutSpec) -> Result<Self, String> {
        let strategy = match spec.strategy.as_deref() {
            Some("Replace") => Strategy::Replace,
            Some("Incremental") | None => Strategy::Incremental,
            Some("External") => Strategy::External,
            Some(other) => {
                return Err(format!(
                    "strategy: {other:?} is none of Replace, Incremental and External"
                ));
            }
        };
        if let Some(selector) = &spec.selector {
            selector.check().map_err(|error| error.to_string())?;
        }
        let sync = &spec.template.spec.sync;
        if sync.source.git.version.name().is_none() {
            return Err("template: source.git.version has neither tag nor revision".to_owned());
        }
        let kustomize = sync
            .package
            .as_ref()
            .and_then(|package| package.kustomize.as_ref());
        if let Some(kustomize) = kustomize {
            let checked = kustomize.substitutions();
            checked.map_err(|error| format!("template: {error}"))?;
        }
        let pace = spec.rollout.clone().unwrap_or_default();
        let (unready, unreachable) = (&pace.max_unready_clusters, &pace.max_unreachable);
        let text = |error: budget::NoAmount| format!("rollout.{error}");
        let amount = |value: &Option<Literal>| Amount::read("maxUnreachable", value.as_ref());
        Ok(Self {
            strategy,
            target: revision::of_template(&spec.template.spec),
            max_unready: Amount::read_some("maxUnreadyClusters", unready.as_ref()).map_err(text)?,
            max_unreachable: amount(unreachable).map_err(text)?,
            min_ready_seconds: positive(pace.min_ready_seconds),
            is_paused: spec.paused == Some(true),
            history_limit: spec
                .revision_history_limit
                .map_or(DEFAULT_HISTORY, |limit| positive(Some(limit)))
                as usize,
        })
    }

    /// When a cluster that has been ready since then counts as such.
    pub fn settles(&self, since: Timestamp) -> Timestamp {
        let wait = Duration::from_secs(u64::from(self.min_ready_seconds));
        since.checked_add(wait).unwrap_or(Timestamp::MAX)
    }
}

/// A number that was stored before the schema said that it is not negative counts as none.
fn positive(number: Option<i32>) -> u32 {
    number
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or_default()
}
