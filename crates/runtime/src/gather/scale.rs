//! The scale of any resource.
//!
//! Version and plural are found by discovery and remembered. All versions that know the kind are tried, the preferred
//! one first; the first answer counts, or else the first error. A kind that is not found is looked for again with the
//! next question.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use slipway_kernel::Purpose;
use slipway_kernel::fact::{Answer, ScaleOf};

use super::api::Api;

/// A kind, as the API spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    version: String,
    plural: String,
}

/// Group and kind.
type ApiRequest = (String, String);

/// Knows the kinds that were asked for.
pub(super) struct Scales {
    api: Api,
    known: Mutex<BTreeMap<ApiRequest, Vec<Mapping>>>,
}

impl Scales {
    pub(super) fn new(api: Api) -> Self {
        Self {
            api,
            known: Mutex::default(),
        }
    }

    /// Gives the scale with the names that the API has for its resource.
    pub(super) async fn ask(&self, of: &ScaleOf, purpose: Purpose) -> Answer {
        let ScaleOf {
            group,
            kind,
            namespace,
            name,
        } = of;
        let wanted = (group.clone(), kind.clone());
        let mappings = match self.mappings(&wanted, purpose).await {
            Ok(mappings) => mappings,
            Err(answer) => return answer,
        };
        let mut first = None;
        for Mapping { version, plural } in &mappings {
            let base = base(group, version);
            let path = format!("{base}/namespaces/{namespace}/{plural}/{name}/scale");
            match self.api.get(&path, purpose).await {
                Answer::Said { code: 200, body } => {
                    return match serde_json::from_str::<Value>(&body) {
                        Ok(scale) => found(group, kind, version, plural, &scale),
                        Err(error) => Answer::malformed(format!("{path}: {error}")),
                    };
                }
                other => {
                    first.get_or_insert(other);
                }
            }
        }
        // A definition may have gone, or have changed its names.
        self.lock().remove(&wanted);
        first.map_or_else(|| unknown(group, kind), message)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ApiRequest, Vec<Mapping>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn mappings(
        &self,
        wanted: &ApiRequest,
        purpose: Purpose,
    ) -> Result<Vec<Mapping>, Answer> {
        if let Some(known) = self.lock().get(wanted) {
            return Ok(known.clone());
        }
        let (group, kind) = wanted;
        let mut mappings = Vec::new();
        for version in self.versions(group, kind, purpose).await? {
            let list = self.read(&base(group, &version), purpose).await?;
            let resources = list.get("resources").and_then(Value::as_array);
            let plural = resources.into_iter().flatten().find_map(|resource| {
                let text = |field: &str| resource.get(field).and_then(Value::as_str);
                let name = text("name")?;
                (text("kind")? == kind && !name.contains('/')).then(|| name.to_owned())
            });
            mappings.extend(plural.map(|plural| Mapping { version, plural }));
        }
        if mappings.is_empty() {
            return Err(unknown(group, kind));
        }
        self.lock().insert(wanted.clone(), mappings.clone());
        Ok(mappings)
    }

    /// The versions of a group, the preferred one first.
    async fn versions(
        &self,
        group: &str,
        kind: &str,
        purpose: Purpose,
    ) -> Result<Vec<String>, Answer> {
        if group.is_empty() {
            return Ok(vec!["v1".to_owned()]);
        }
        let found = match self.read(&format!("/apis/{group}"), purpose).await {
            Err(Answer::Said { code: 404, .. }) => return Err(unknown(group, kind)),
            found => found?,
        };
        let preferred = found.pointer("/preferredVersion/version");
        let all = found.get("versions").and_then(Value::as_array);
        let all = all
            .into_iter()
            .flatten()
            .filter_map(|one| one.get("version"));
        let mut versions: Vec<String> = Vec::new();
        for version in preferred.into_iter().chain(all).filter_map(Value::as_str) {
            if !versions.iter().any(|known| known == version) {
                versions.push(version.to_owned());
            }
        }
        Ok(versions)
    }

    async fn read(&self, path: &str, purpose: Purpose) -> Result<Value, Answer> {
        match self.api.get(path, purpose).await {
            Answer::Said { code: 200, body } => serde_json::from_str(&body)
                .map_err(|error| Answer::malformed(format!("{path}: {error}"))),
            other => Err(message(other)),
        }
    }
}

fn base(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}

fn found(group: &str, kind: &str, version: &str, plural: &str, scale: &Value) -> Answer {
    let body = json!({
        "group": group, "version": version, "kind": kind, "plural": plural, "scale": scale,
    });
    Answer::Said {
        code: 200,
        body: body.to_string(),
    }
}

fn unknown(group: &str, kind: &str) -> Answer {
    Answer::Said {
        code: 404,
        body: format!("no matches for kind \"{kind}\" in group \"{group}\""),
    }
}

/// The same with the API's sentence instead of its whole body.
fn message(answer: Answer) -> Answer {
    match answer {
        Answer::Said { code, body } => {
            let status: Option<Value> = serde_json::from_str(&body).ok();
            let text = status.as_ref().and_then(|s| s.get("message")?.as_str());
            let body = text.map_or(body.clone(), str::to_owned);
            Answer::Said { code, body }
        }
        other => other,
    }
}
