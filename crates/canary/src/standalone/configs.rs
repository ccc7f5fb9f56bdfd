//! `ConfigMap`s and Secrets that a workload uses: a change of one is a new version, and the copy that serves has copies of
//! them.
//!
//! Values never come into a plan: of an object only its checksum is kept, and a [`Copy`] names what is to be copied.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use slipway_api::flagger::{CONFIG_TRACKING, FORMER, PRIMARY};
use slipway_kernel::fields::{list, text};

use super::hash::digest;
use crate::engine::Revision;

/// What something is configured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigKind {
    /// A `ConfigMap`.
    ConfigMap,
    /// A Secret.
    Secret,
}

impl ConfigKind {
    /// As `status.trackedConfigs` spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }
}

/// One that a template names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Config {
    /// What it is.
    pub kind: ConfigKind,
    /// Its name.
    pub name: String,
}

impl Config {
    /// As `status.trackedConfigs` names it.
    pub fn key(&self) -> String {
        format!("{}/{}", self.kind.as_str(), self.name)
    }

    /// The one that `status.trackedConfigs` names so.
    pub fn of(key: &str) -> Option<Self> {
        let (kind, name) = key.split_once('/')?;
        let mut kinds = [ConfigKind::ConfigMap, ConfigKind::Secret].into_iter();
        Some(Self {
            kind: kinds.find(|known| known.as_str() == kind)?,
            name: name.to_owned(),
        })
    }

    /// What its copy was before the last promotion.
    #[must_use]
    pub fn former(&self) -> Self {
        let copy = self.copy();
        Self {
            name: format!("{}{FORMER}", copy.name),
            ..copy
        }
    }

    /// The copy of it for the copy that serves.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self {
            kind: self.kind,
            name: format!("{}{PRIMARY}", self.name),
        }
    }
}

/// What is known of one that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The checksum of all that is in it.
    pub checksum: String,
    /// Whether a change of it is a new version.
    pub is_tracked: bool,
    /// The uids of the Canaries that own it: of none, if it is nobody's copy.
    pub owners: BTreeSet<String>,
}

/// One that is to be copied for the copy that serves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copy {
    /// What.
    pub config: Config,
    /// The copy's name.
    pub to: String,
}

impl Copy {
    /// Whether it has been made of what there is.
    pub fn is_done(&self, known: &BTreeMap<Config, Known>) -> bool {
        let copy = checksum(known, &self.copy());
        copy.is_some() && copy == checksum(known, &self.config)
    }

    /// The copy.
    pub fn copy(&self) -> Config {
        Config {
            kind: self.config.kind,
            name: self.to.clone(),
        }
    }
}

fn checksum<'a>(known: &'a BTreeMap<Config, Known>, config: &Config) -> Option<&'a String> {
    known.get(config).map(|known| &known.checksum)
}

/// Whether no copy has something else in it than a version has. One that is gone has nothing else.
pub fn is_copied(revision: &Revision, known: &BTreeMap<Config, Known>) -> bool {
    let mut all = revision.configs.iter().flatten();
    all.all(|(key, meant)| {
        let copy = Config::of(key).map(|config| config.copy());
        let found = copy.and_then(|copy| checksum(known, &copy));
        found.is_none_or(|found| found == meant)
    })
}

/// What has to be copied before the copy that serves can be of a new version: first what the version that served has is kept,
/// then it is replaced.
pub fn to_be_copied(
    copies: &BTreeSet<Copy>,
    serving: Option<&Revision>,
    known: &BTreeMap<Config, Known>,
) -> Vec<Copy> {
    let served = serving.and_then(|serving| serving.configs.as_ref());
    let due = copies.iter().filter(|copy| !copy.is_done(known));
    let each = due.map(|copy| {
        let keep = Copy {
            config: copy.config.copy(),
            to: copy.config.former().name,
        };
        let before = served.and_then(|served| served.get(&copy.config.key()));
        let is_served = before.is_some() && checksum(known, &keep.config) == before;
        if is_served && !keep.is_done(known) {
            keep
        } else {
            copy.clone()
        }
    });
    each.collect()
}

/// What has to be copied so that the copy that serves has again what a version was configured with, and what is lost of that.
/// A copy that another Canary than `own` uses as well is that one's too, and is left as it is.
pub fn to_be_given_back(
    revision: &Revision,
    own: &str,
    known: &BTreeMap<Config, Known>,
) -> (Vec<Copy>, Vec<Config>) {
    let (mut copies, mut lost) = (Vec::new(), Vec::new());
    for (key, meant) in revision.configs.iter().flatten() {
        let Some(config) = Config::of(key) else {
            continue;
        };
        let has_it = |one: &Config| checksum(known, one) == Some(meant);
        let to = config.copy();
        if has_it(&to) {
            continue;
        }
        let mut owners = known.get(&to).into_iter().flat_map(|one| &one.owners);
        if owners.any(|owner| owner != own) {
            lost.push(to);
            continue;
        }
        match [config.former(), config].into_iter().find(has_it) {
            Some(config) => copies.push(Copy {
                config,
                to: to.name,
            }),
            None => lost.push(to),
        }
    }
    (copies, lost)
}

/// What a workload is configured with, as it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracked {
    /// Checksums, by key.
    pub checksums: BTreeMap<String, String>,
    /// What is to be copied.
    pub copies: BTreeSet<Copy>,
    /// What is not there any more of it, in the middle of a run.
    pub missing: Option<Missing>,
}

impl Tracked {
    /// What a workload was configured with when that was seen last.
    pub fn remembered(checksums: BTreeMap<String, String>, missing: Missing) -> Self {
        let configs = checksums.keys().filter_map(|key| Config::of(key));
        let copies = configs.map(|config| Copy {
            to: config.copy().name,
            config,
        });
        Self {
            copies: copies.collect(),
            missing: Some(missing),
            checksums,
        }
    }
}

/// One that the workload cannot do without is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {} does not exist, and the workload needs it; create it, or mark the reference optional", .0.kind.as_str(), .0.name)]
pub struct Missing(pub Config);

/// What is kept of an object: its checksum as Flagger makes it, where it has no binary data.
pub fn known(kind: ConfigKind, object: &Value) -> Known {
    let annotations = object.pointer("/metadata/annotations");
    let tracking = annotations.and_then(|all| all.get(CONFIG_TRACKING)?.as_str());
    let is_disabled = tracking.is_some_and(|value| value.starts_with("disable"));
    let is_of_people = kind == ConfigKind::ConfigMap || is_tracked_type(object);
    let data = object.get("data").cloned().unwrap_or(Value::Null);
    let binary = object.get("binaryData").filter(|all| !all.is_null());
    let text = match binary {
        None => go_json(&data),
        Some(binary) => go_json(&json!({"binaryData": binary, "data": data})),
    };
    Known {
        checksum: digest(text.as_bytes()),
        is_tracked: is_of_people && !is_disabled,
        owners: canaries(object),
    }
}

/// The uids of the Canaries among the owners of an object.
fn canaries(object: &Value) -> BTreeSet<String> {
    let all = list(object, "/metadata/ownerReferences");
    let ours = all.filter(|one| text(one, "/kind") == Some(slipway_api::canary::KIND));
    ours.filter_map(|one| text(one, "/uid").map(str::to_owned))
        .collect()
}

/// An object of a copy's name that would be overwritten, and that no Canary made.
pub fn foreign(copies: &BTreeSet<Copy>, known: &BTreeMap<Config, Known>) -> Option<Config> {
    let due = copies.iter().filter(|copy| !copy.is_done(known));
    let mut all = due.flat_map(|copy| [copy.copy(), copy.config.former()]);
    all.find(|one| known.get(one).is_some_and(|known| known.owners.is_empty()))
}

/// Secrets of these types are made by people; others change by themselves.
fn is_tracked_type(secret: &Value) -> bool {
    let kinds = [
        "Opaque",
        "kubernetes.io/basic-auth",
        "kubernetes.io/ssh-auth",
        "kubernetes.io/tls",
    ];
    text(secret, "/type").is_none_or(|kind| kinds.contains(&kind))
}

/// JSON as Go writes it: fields in order, and signs of HTML escaped.
fn go_json(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let each: Vec<String> = sorted
                .into_iter()
                .map(|(name, field)| format!("{}:{}", go_text(name), go_json(field)))
                .collect();
            text.push('{');
            text.push_str(&each.join(","));
            text.push('}');
        }
        Value::String(string) => text.push_str(&go_text(string)),
        other => text.push_str(&other.to_string()),
    }
    text
}

fn go_text(string: &str) -> String {
    let quoted = Value::from(string).to_string();
    let signs = [
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u{2028}", "\\u2028"),
        ("\u{2029}", "\\u2029"),
    ];
    let escape = |text: String, (sign, code): (&str, &str)| text.replace(sign, code);
    signs.into_iter().fold(quoted, escape)
}

/// All that a pod template names; whether each may be missing.
pub fn references(template: &Value) -> BTreeMap<Config, bool> {
    let mut all = BTreeMap::new();
    let mut template = template.clone();
    visit(&mut template, &mut |kind, name, optional| {
        let config = Config {
            kind,
            name: name.clone(),
        };
        let known = all.entry(config).or_insert(optional);
        *known = *known && optional;
    });
    all
}

/// What a workload is configured with, of what is there. Copies are made of all that is tracked.
pub fn track(
    references: &BTreeMap<Config, bool>,
    there: &BTreeMap<Config, Known>,
) -> Result<Tracked, Missing> {
    let mut tracked = Tracked::default();
    for (config, optional) in references {
        let Some(known) = there.get(config) else {
            if *optional {
                continue;
            }
            return Err(Missing(config.clone()));
        };
        if known.is_tracked {
            tracked
                .checksums
                .insert(config.key(), known.checksum.clone());
            tracked.copies.insert(Copy {
                config: config.clone(),
                to: config.copy().name,
            });
        }
    }
    Ok(tracked)
}

/// Has a template use the copies.
pub fn use_copies(template: &mut Value, copies: &BTreeSet<Copy>) {
    let names: BTreeMap<&Config, &String> =
        copies.iter().map(|copy| (&copy.config, &copy.to)).collect();
    visit(template, &mut |kind, name, _| {
        let config = Config {
            kind,
            name: name.clone(),
        };
        if let Some(to) = names.get(&config) {
            (*to).clone_into(name);
        }
    });
}

/// Calls `each` for every name of a `ConfigMap` or Secret in a template, which may change it.
fn visit(template: &mut Value, each: &mut impl FnMut(ConfigKind, &mut String, bool)) {
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    for volume in elements(spec, "volumes") {
        source(volume, "configMap", "name", ConfigKind::ConfigMap, each);
        source(volume, "secret", "secretName", ConfigKind::Secret, each);
        let projected = volume.get_mut("projected").and_then(Value::as_object_mut);
        for part in projected
            .into_iter()
            .flat_map(|all| elements(all, "sources"))
        {
            source(part, "configMap", "name", ConfigKind::ConfigMap, each);
            source(part, "secret", "name", ConfigKind::Secret, each);
        }
    }
    for field in ["containers", "initContainers"] {
        for container in elements(spec, field) {
            let Some(container) = container.as_object_mut() else {
                continue;
            };
            for variable in elements(container, "env") {
                if let Some(from) = variable.get_mut("valueFrom") {
                    source(from, "configMapKeyRef", "name", ConfigKind::ConfigMap, each);
                    source(from, "secretKeyRef", "name", ConfigKind::Secret, each);
                }
            }
            for from in elements(container, "envFrom") {
                source(from, "configMapRef", "name", ConfigKind::ConfigMap, each);
                source(from, "secretRef", "name", ConfigKind::Secret, each);
            }
        }
    }
}

fn elements<'a>(
    object: &'a mut Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = &'a mut Value> {
    let all = object.get_mut(field).and_then(Value::as_array_mut);
    all.into_iter().flatten()
}

fn source(
    holder: &mut Value,
    field: &str,
    name: &str,
    kind: ConfigKind,
    each: &mut impl FnMut(ConfigKind, &mut String, bool),
) {
    let Some(source) = holder.get_mut(field) else {
        return;
    };
    let optional = source.get("optional") == Some(&Value::Bool(true));
    if let Some(Value::String(name)) = source.get_mut(name) {
        each(kind, name, optional);
    }
}

/// The other owners of a copy, which several Canaries may share: they stay, and control nothing.
pub fn owners(copy: &Value, ours: &Value) -> Vec<Value> {
    let uid = text(ours, "/uid");
    let others = list(copy, "/metadata/ownerReferences").filter(|one| text(one, "/uid") != uid);
    let mut all: Vec<Value> = others.cloned().collect();
    for one in &mut all {
        if let Some(fields) = one.as_object_mut() {
            fields.insert("controller".to_owned(), json!(false));
        }
    }
    all.push(ours.clone());
    all
}
