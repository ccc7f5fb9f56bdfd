//! What is in git, how long Flux takes, and what fails:
//!
//! ```yaml
//! flux:
//!   fetch: 1s            # how long a source takes
//!   apply: 1s            # how long a Kustomization takes, besides its health
//!   repositories:
//!   - url: https://git.example/app
//!     versions: [v1, v2]   # tags; a tag's commit is made up from it
//!     folders:             # of all versions; @version@ stands for the tag
//!       deploy:
//!       - {apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {version: "@version@", colour: "${colour}"}}
//!     changed:             # folders that a version has instead
//!       v2: {deploy: […]}
//!   rules:               # all that match hold
//!   - match: {namePrefix: berlin-, url: https://git.example/app, version: v2}
//!     from: 1m
//!     until: 10m
//!     fails: fetch         # or build, apply, health
//! ```

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::hash;

/// How Flux behaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Flux {
    /// How long a source takes.
    pub fetch: SignedDuration,
    /// How long a Kustomization takes until all is applied.
    pub apply: SignedDuration,
    /// What is in git.
    pub repositories: Vec<Repository>,
    /// What fails.
    pub rules: Vec<FluxRule>,
}

impl Default for Flux {
    fn default() -> Self {
        Self {
            fetch: SignedDuration::from_secs(1),
            apply: SignedDuration::from_secs(1),
            repositories: Vec::new(),
            rules: Vec::new(),
        }
    }
}

/// A folder's manifests.
pub(super) type Folder = Vec<Value>;

/// One repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Repository {
    /// Where it is.
    pub url: String,
    /// Its tags.
    pub versions: Vec<String>,
    /// Folders of all versions, in whose texts `@version@` stands for the tag.
    #[serde(default)]
    pub folders: BTreeMap<String, Folder>,
    /// Folders that a version has instead, or besides.
    #[serde(default)]
    pub changed: BTreeMap<String, BTreeMap<String, Folder>>,
}

/// Something that fails.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FluxRule {
    /// For whom.
    #[serde(rename = "match")]
    pub about: FluxMatch,
    /// It holds from so long after the start of the actors.
    pub from: Option<SignedDuration>,
    /// It holds until so long after the start of the actors.
    pub until: Option<SignedDuration>,
    /// What fails.
    pub fails: Option<Stage>,
}

/// Whom a rule is about. What is not given matches all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FluxMatch {
    /// How the name of the source or the Kustomization starts.
    pub name_prefix: Option<String>,
    /// The repository.
    pub url: Option<String>,
    /// The tag.
    pub version: Option<String>,
}

/// Where something can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// The source cannot be fetched.
    Fetch,
    /// The manifests cannot be built.
    Build,
    /// The API refuses them.
    Apply,
    /// What is applied does not become healthy.
    Health,
}

/// A version of a repository that was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) version: &'a str,
}

impl Repository {
    /// All folders of a version with their manifests.
    pub fn manifests(&self, version: &str) -> BTreeMap<String, Vec<Value>> {
        let found = Found {
            repository: self,
            version,
        };
        let changed = self.changed.get(version);
        let changed = changed.into_iter().flat_map(BTreeMap::keys);
        let names = self.folders.keys().chain(changed);
        names
            .filter_map(|name| Some((name.clone(), found.folder(name)?)))
            .collect()
    }

    /// The commit of a tag.
    pub(crate) fn commit(&self, version: &str) -> String {
        let part = |salt: &str| {
            let text = format!("{salt} {} {version}", self.url);
            format!("{:016x}", hash::number(text.as_bytes()))
        };
        let whole = format!("{}{}{}", part("a"), part("b"), part("c"));
        whole.chars().take(40).collect()
    }
}

impl Flux {
    /// The version with this tag, or with this commit.
    pub(crate) fn find(
        &self,
        url: &str,
        tag: Option<&str>,
        commit: Option<&str>,
    ) -> Option<Found<'_>> {
        let repository = self.repositories.iter().find(|one| one.url == url)?;
        let mut versions = repository.versions.iter();
        let version = versions.find(|version| match (commit, tag) {
            (Some(commit), _) => repository.commit(version) == commit,
            (None, tag) => tag == Some(version.as_str()),
        })?;
        Some(Found {
            repository,
            version,
        })
    }

    /// The version of an artifact: `v1@sha1:…`, or `sha1:…`.
    pub(crate) fn of_revision(&self, url: &str, revision: &str) -> Option<Found<'_>> {
        let commit = revision.rsplit_once("sha1:").map(|(_, commit)| commit)?;
        self.find(url, None, Some(commit))
    }

    /// Whether a stage fails now for what is called so.
    pub(crate) fn fails(
        &self,
        stage: Stage,
        name: &str,
        (url, version): (&str, &str),
        since_start: SignedDuration,
    ) -> bool {
        let holds = |rule: &&FluxRule| {
            rule.from.is_none_or(|from| from <= since_start)
                && rule.until.is_none_or(|until| since_start < until)
        };
        let mut rules = self.rules.iter().filter(holds);
        rules.any(|rule| rule.fails == Some(stage) && rule.about.matches(name, url, version))
    }

    /// The next time at which a rule begins or ends to hold.
    pub(crate) fn next_turn(&self, since_start: SignedDuration) -> Option<SignedDuration> {
        let turns = self.rules.iter().flat_map(|rule| [rule.from, rule.until]);
        turns.flatten().filter(|turn| *turn > since_start).min()
    }
}

impl Found<'_> {
    /// The manifests of a folder; none if there is no such folder.
    pub(crate) fn folder(&self, path: &str) -> Option<Folder> {
        let plain = |path: &str| {
            let path = path.trim_start_matches("./").trim_matches('/');
            if path == "." {
                String::new()
            } else {
                path.to_owned()
            }
        };
        let wanted = plain(path);
        let is_wanted = |(name, _): &(&String, &Folder)| plain(name) == wanted;
        let changed = self.repository.changed.get(self.version);
        let instead = changed.and_then(|folders| folders.iter().find(is_wanted));
        let (_, folder) = instead.or_else(|| self.repository.folders.iter().find(is_wanted))?;
        let mut folder = folder.clone();
        for manifest in &mut folder {
            versioned(manifest, self.version);
        }
        Some(folder)
    }
}

/// Puts the version into all texts.
fn versioned(value: &mut Value, version: &str) {
    match value {
        Value::String(text) if text.contains("@version@") => {
            *text = text.replace("@version@", version);
        }
        Value::Array(all) => all.iter_mut().for_each(|one| versioned(one, version)),
        Value::Object(all) => all.values_mut().for_each(|one| versioned(one, version)),
        _ => {}
    }
}

impl FluxMatch {
    fn matches(&self, name: &str, url: &str, version: &str) -> bool {
        let prefix = self.name_prefix.as_deref().unwrap_or_default();
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        name.starts_with(prefix) && is(&self.url, url) && is(&self.version, version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_by_tag_and_by_commit_and_a_folder_by_any_of_its_spellings() {
        let yaml = "repositories:\n- url: u\n  versions: [v1, v2]\n  folders: {deploy: [{a: 'x:@version@'}], '.': []}\n  changed: {v2: {other: [{b: 1}]}}\n";
        let flux: Flux = serde_saphyr::from_str(yaml).unwrap();
        let first = flux.find("u", Some("v1"), None).unwrap();
        let commit = first.repository.commit("v1");
        assert_eq!(
            (commit.len(), commit == first.repository.commit("v2")),
            (40, false)
        );
        let revision = format!("v1@sha1:{commit}");
        assert_eq!(flux.of_revision("u", &revision).unwrap().version, "v1");
        for path in ["deploy", "./deploy", "deploy/"] {
            assert_eq!(
                first.folder(path).unwrap(),
                vec![serde_json::json!({"a": "x:v1"})]
            );
        }
        assert_eq!(first.folder("./"), Some(vec![]));
        assert_eq!(first.folder("other"), None);
        assert!(
            flux.find("u", Some("v2"), None)
                .unwrap()
                .folder("other")
                .is_some()
        );
        assert!(flux.find("u", Some("v3"), None).is_none());
    }
}
