//! Stories: objects, and what a person does to them.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use slipway_sim::actors::Repository;

/// One story. After the last step everything comes to rest, and what is there is compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Story {
    #[serde(skip)]
    pub(crate) name: String,
    /// What it shows.
    pub(crate) about: String,
    /// What is in git, where Flux finds it at `http://git/app`: a repository without its url.
    #[serde(default)]
    pub(crate) git: Option<Value>,
    /// What is created first.
    pub(crate) objects: Vec<Value>,
    /// What is done then, each step after everything has come to rest.
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
    /// What has to hold from the first step on, at every moment.
    #[serde(default)]
    pub(crate) bounds: Option<Bounds>,
}

/// One thing a person does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) enum Step {
    /// The image of the container `main`.
    SetImage(About<String>),
    Scale(About<i32>),
    /// As `kubectl rollout restart`.
    Restart(Target),
    /// As `kubectl rollout undo`, of a Deployment.
    Undo(Target),
    /// A merge patch.
    Patch(About<Value>),
    Delete(Target),
    /// Deletes an object and leaves what it owns.
    Orphan(Target),
    /// Deletes the first pod of a workload, by name.
    DeletePodOf(Target),
    Create(Value),
    /// Waits so many seconds, without anything coming to rest.
    Wait(u64),
    /// Does several things at once.
    Together(Vec<Step>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    pub(crate) kind: String,
    pub(crate) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About<T> {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) to: T,
}

/// What is allowed at every moment.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bounds {
    /// So many pods are asked for at most: by all `ReplicaSets` together where there are some, else that exist.
    pub(crate) most: i64,
    /// So many ready pods that are not going at least.
    pub(crate) fewest: i64,
    /// So many more of the first, by a race of the real controller; the embedded one has none.
    #[serde(default)]
    pub(crate) raced: i64,
}

impl Bounds {
    /// What is allowed on a real server.
    pub(crate) fn of_real(self) -> Self {
        let most = self.most + self.raced;
        Self { most, ..self }
    }
}

/// Where stories say that their repository is.
pub(crate) const GIT: &str = "http://git/app";

impl Story {
    /// The repository at this address.
    pub(crate) fn repository(&self, url: &str) -> Option<Repository> {
        let mut git = self.git.clone()?;
        git["url"] = url.into();
        Some(serde_json::from_value(git).unwrap())
    }
}

/// All stories, by name.
pub(crate) fn load(folder: &Path) -> Vec<Story> {
    let files = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let is_story = |path: &&std::path::PathBuf| path.extension().is_some_and(|e| e == "yaml");
    paths
        .iter()
        .filter(is_story)
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let mut story: Story = serde_saphyr::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            story.name = path.file_stem().unwrap().to_string_lossy().into_owned();
            story
        })
        .collect()
}
