//! Behaviours are data: one YAML file each under `behaviours/AREA/name.yaml`.
//!
//! A file that does not parse, or has a key nobody knows, is an error: a typo must not weaken a claim.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One named promise of the API, and the steps that show it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Behaviour {
    /// `AREA::name`, from the file's place.
    #[serde(skip)]
    pub(crate) name: String,
    /// The text of the file, so that literal values of the author are told from generated ones.
    #[serde(skip)]
    pub(crate) text: String,
    /// What is promised, in one sentence.
    #[serde(rename = "behaviour")]
    pub(crate) promise: String,
    /// The documentation page or API convention that promises it.
    pub(crate) cites: String,
    /// `controllers`: garbage collection and the end of namespaces must be running.
    #[serde(default)]
    pub(crate) needs: Vec<Need>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Need {
    Controllers,
}

/// One request, or the opening or reading of a watch. Exactly one of the upper-case keys is present.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    #[serde(rename = "GET")]
    get: Option<String>,
    #[serde(rename = "PUT")]
    put: Option<String>,
    #[serde(rename = "POST")]
    post: Option<String>,
    #[serde(rename = "PATCH")]
    patch: Option<String>,
    #[serde(rename = "DELETE")]
    delete: Option<String>,
    #[serde(rename = "OPTIONS")]
    options: Option<String>,
    #[serde(rename = "WATCH")]
    watch: Option<String>,
    #[serde(rename = "COLLECT")]
    collect: Option<String>,

    /// `admin` (default), `alice`, `nobody` (no token), `stranger` (a token nobody knows).
    pub(crate) user: Option<String>,
    /// A bearer token instead of a user's.
    pub(crate) token: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Content-Type; `none` sends no such header.
    #[serde(rename = "type")]
    pub(crate) content_type: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) body: Option<Value>,
    pub(crate) raw: Option<Raw>,
    pub(crate) expect: Option<u16>,
    #[serde(rename = "match", default, deserialize_with = "present")]
    pub(crate) matches: Option<Value>,
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    pub(crate) repeat: Option<Repeat>,
    /// What has to be so before the step is taken.
    pub(crate) first: Option<First>,
    /// Only the part of the body at this JSON pointer is compared.
    pub(crate) at: Option<String>,
    /// Of the list at `at`, only the entries that match partially.
    #[serde(default, deserialize_with = "present")]
    pub(crate) select: Option<Value>,

    /// The name of a watch.
    pub(crate) id: Option<String>,
    /// COLLECT waits for so many events.
    pub(crate) events: Option<usize>,
    /// COLLECT waits until the server ends the watch.
    #[serde(default)]
    pub(crate) closed: bool,
    /// COLLECT opens the watch once more where a busy server has ended it too early.
    #[serde(default)]
    pub(crate) again: bool,
}

/// `null` is a value here, not an absence.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Text sent as it stands; long ones in parts.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Raw {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Part {
    Text(String),
    Times { text: String, times: usize },
}

impl Raw {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => text.clone(),
                    Part::Times { text, times } => text.repeat(*times),
                })
                .collect(),
        }
    }
}

/// Ask again until the answer matches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repeat {
    /// Partial match on the body.
    #[serde(default, deserialize_with = "present")]
    pub(crate) until: Option<Value>,
    /// Or: until this status code.
    pub(crate) code: Option<u16>,
    pub(crate) seconds: u64,
}

/// What is asked before a step, until it is so: of some changes a server tells in one place before it does in another. It is not
/// in the transcript.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct First {
    #[serde(rename = "GET")]
    pub(crate) get: String,
    /// Partial match on the body.
    pub(crate) until: Value,
    pub(crate) seconds: u64,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verb {
    Request(&'static str, String),
    Watch(String),
    Collect(String),
}

impl Step {
    /// The one upper-case key of the step.
    pub(crate) fn verb(&self) -> Result<Verb, String> {
        let requests = [
            ("GET", &self.get),
            ("PUT", &self.put),
            ("POST", &self.post),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
            ("OPTIONS", &self.options),
        ];
        let mut found: Vec<Verb> = requests
            .into_iter()
            .filter_map(|(method, path)| Some(Verb::Request(method, path.clone()?)))
            .collect();
        found.extend(self.watch.clone().map(Verb::Watch));
        found.extend(self.collect.clone().map(Verb::Collect));
        match found.len() {
            1 => found.pop().ok_or_else(String::new),
            n => Err(format!(
                "a step has exactly one of GET PUT POST PATCH DELETE OPTIONS WATCH COLLECT, not {n}"
            )),
        }
    }

    fn check(&self) -> Result<(), String> {
        match self.verb()? {
            Verb::Request(..) if self.expect.is_none() => {
                Err("a request needs `expect`".to_owned())
            }
            Verb::Request(..) if self.body.is_some() && self.raw.is_some() => {
                Err("`body` or `raw`, not both".to_owned())
            }
            Verb::Watch(_) if self.id.is_none() => Err("WATCH needs `id`".to_owned()),
            Verb::Collect(_) if self.events.is_none() != self.closed => {
                Err("COLLECT needs `events` or `closed`".to_owned())
            }
            _ if self.again && self.events.is_none() => Err("`again` needs `events`".to_owned()),
            _ if self.select.is_some() && self.at.is_none() => {
                Err("`select` needs `at`".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Behaviour {
    /// Reads a behaviour of this name.
    pub(crate) fn parse(name: String, text: String) -> Result<Self, String> {
        let mut behaviour: Self = yaml(&text).map_err(|e| format!("{name}: {e}"))?;
        behaviour.name = name;
        behaviour.text = text;
        let documented = [
            "https://kubernetes.io/docs/",
            "https://github.com/kubernetes/",
        ];
        if !documented
            .iter()
            .any(|prefix| behaviour.cites.starts_with(prefix))
        {
            return Err(format!(
                "{}: `cites` is not a page of the Kubernetes documentation",
                behaviour.name
            ));
        }
        for (index, step) in behaviour.steps.iter().enumerate() {
            step.check()
                .map_err(|e| format!("{}: step {}: {e}", behaviour.name, index + 1))?;
        }
        Ok(behaviour)
    }

    /// Where the truth about this behaviour is kept.
    pub(crate) fn golden(&self) -> PathBuf {
        folder("golden")
            .join(self.name.replace("::", "/"))
            .with_extension("json")
    }
}

/// YAML 1.2, in which `n` and `yes` are strings.
fn yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|e| e.to_string())
}

/// A folder of the suite.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/conformance")
        .join(name)
}

/// All files `AREA/name.EXTENSION` under a folder, as `AREA::name`, sorted.
pub(crate) fn names(root: &Path, extension: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let entries = |path: &Path| -> Result<Vec<PathBuf>, String> {
        let read = std::fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut all: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
        all.sort();
        Ok(all)
    };
    let mut found = Vec::new();
    for area in entries(root)?.into_iter().filter(|path| path.is_dir()) {
        for file in entries(&area)? {
            if file.extension().and_then(|e| e.to_str()) == Some(extension) {
                let stem = |path: &Path| {
                    path.file_stem()
                        .map(|s| s.to_string_lossy().into_owned())
                        .unwrap_or_default()
                };
                found.push((format!("{}::{}", stem(&area), stem(&file)), file));
            }
        }
    }
    Ok(found)
}

/// The whole suite.
pub(crate) fn load() -> Result<Vec<Behaviour>, String> {
    let mut all = Vec::new();
    for (name, path) in names(&folder("behaviours"), "yaml")? {
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        all.push(Behaviour::parse(name, text)?);
    }
    Ok(all)
}
