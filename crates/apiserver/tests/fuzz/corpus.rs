//! Real requests to start from: those of the conformance suite, those that foreign programs sent to a real
//! kube-apiserver (`crates/e2e/recordings`), and bodies in protobuf that Go wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;
use slipway_apiserver::builtin;
use slipway_apiserver::resource::Resource;

/// One request.
pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) media: String,
    pub(crate) body: Vec<u8>,
}

/// An object of a built-in kind.
pub(crate) struct Object {
    pub(crate) resource: usize,
    pub(crate) version: String,
    pub(crate) value: Value,
}

/// Everything there is to start from.
pub(crate) struct Corpus {
    pub(crate) asks: Vec<Ask>,
    pub(crate) objects: Vec<Object>,
    /// Bodies in protobuf, each a whole object.
    pub(crate) protobuf: Vec<Vec<u8>>,
    /// Definitions of custom resources.
    pub(crate) definitions: Vec<Value>,
    pub(crate) resources: Vec<Resource>,
}

/// Bodies longer than this are left out: a case is better small.
const LONGEST: usize = 12_000;

pub(crate) fn corpus() -> &'static Corpus {
    static CORPUS: LazyLock<Corpus> = LazyLock::new(Corpus::read);
    &CORPUS
}

/// The folder of the crate under test.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    if here.join("src/decode").is_dir() {
        here.to_owned()
    } else {
        here.join("../crates/apiserver")
    }
}

impl Corpus {
    fn read() -> Self {
        let mut asks = behaviours();
        asks.extend(recording());
        let resources = builtin::resources();
        let (mut objects, mut definitions) = (Vec::new(), Vec::new());
        let mut seen = BTreeMap::new();
        let bodies = asks.iter().map(|ask| ask.body.clone());
        for body in bodies.chain(testdata("json")) {
            let Ok(value) = serde_json::from_slice::<Value>(&body) else {
                continue;
            };
            let Some(object) = known(&resources, &value) else {
                continue;
            };
            let count: &mut usize = seen.entry(object.resource).or_default();
            *count += 1;
            if *count <= 24 {
                if value["kind"] == "CustomResourceDefinition" {
                    definitions.push(value);
                }
                objects.push(object);
            }
        }
        let corpus = Self {
            asks,
            objects,
            protobuf: testdata("pb"),
            definitions,
            resources,
        };
        let counts = [
            corpus.asks.len(),
            corpus.objects.len(),
            corpus.protobuf.len(),
            corpus.definitions.len(),
        ];
        assert!(counts.iter().all(|count| *count >= 10), "{counts:?}");
        corpus
    }
}

fn known(resources: &[Resource], value: &Value) -> Option<Object> {
    let api_version = value["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_it = |resource: &Resource| {
        resource.names.group == group
            && resource.names.kind == value["kind"]
            && resource.version(version).is_some()
    };
    Some(Object {
        resource: resources.iter().position(is_it)?,
        version: version.to_owned(),
        value: value.clone(),
    })
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
    found.sort();
}

fn testdata(extension: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    files(&root().join("src/decode/testdata"), &mut found);
    found.retain(|path| path.extension().is_some_and(|e| e == extension));
    found
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

fn behaviours() -> Vec<Ask> {
    let mut found = Vec::new();
    files(&root().join("tests/conformance/behaviours"), &mut found);
    let mut asks = Vec::new();
    for path in found {
        let text = std::fs::read_to_string(&path)
            .unwrap()
            .replace("{ns}", "default");
        let Ok(behaviour) = serde_saphyr::from_str::<Value>(&text) else {
            continue;
        };
        for step in behaviour["steps"].as_array().into_iter().flatten() {
            asks.extend(ask_of(step));
        }
    }
    asks
}

fn ask_of(step: &Value) -> Option<Ask> {
    let methods = ["POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS"];
    let (method, path) = methods
        .iter()
        .find_map(|method| Some((*method, step.get(method)?.as_str()?)))?;
    let body = match (step.get("body"), step.get("raw")) {
        (Some(body), _) => body.to_string().into_bytes(),
        (None, Some(Value::String(raw))) => raw.clone().into_bytes(),
        _ => Vec::new(),
    };
    let media = step["type"]
        .as_str()
        .unwrap_or("application/json")
        .to_owned();
    (body.len() <= LONGEST).then(|| Ask {
        method: method.to_owned(),
        path: path.to_owned(),
        media,
        body,
    })
}

/// Some of the recorded requests: a few of each kind.
fn recording() -> Vec<Ask> {
    let file = root().join("../e2e/recordings/foreign.jsonl.gz");
    let mut text = String::new();
    let file = std::fs::File::open(file).unwrap();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut bodies = BTreeSet::new();
    let mut asks = Vec::new();
    for line in text.lines() {
        let pair: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| pair[name].as_str().unwrap_or_default().to_owned();
        let (method, path, media) = (text("method"), text("path"), text("media"));
        let body = match pair["body"]["json"].clone() {
            Value::Null => Vec::new(),
            mut body => {
                if path.contains("/namespaces/") && body["metadata"]["namespace"].is_string() {
                    body["metadata"]["namespace"] = "default".into();
                }
                body.to_string().into_bytes()
            }
        };
        let kind = format!("{method} {media} {}", shape(&path));
        let count = seen.entry(kind).or_default();
        if *count >= 6 || body.len() > LONGEST || !bodies.insert((path.clone(), body.clone())) {
            continue;
        }
        *count += 1;
        asks.push(Ask {
            method,
            path: in_default(&path),
            media,
            body,
        });
    }
    asks
}

/// A path without the names in it.
fn shape(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let at = parts
        .iter()
        .position(|part| *part == "namespaces")
        .map_or(4, |at| at + 2);
    let kept = parts
        .iter()
        .enumerate()
        .filter(|(i, _)| *i + 1 < at || (*i >= at && (*i - at) % 2 == 0));
    kept.map(|(_, part)| *part).collect::<Vec<_>>().join("/")
}

/// The same path in the namespace `default`.
fn in_default(path: &str) -> String {
    let Some((before, rest)) = path.split_once("/namespaces/") else {
        return path.to_owned();
    };
    match rest.split_once('/') {
        Some((_, rest)) => format!("{before}/namespaces/default/{rest}"),
        None => path.to_owned(),
    }
}
