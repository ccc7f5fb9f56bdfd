//! The session as it is written: `session.yaml`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

/// The whole script.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Session {
    /// Shell that takes away what an earlier session left on this server.
    pub(crate) clean: String,
    /// What is masked in every output.
    pub(crate) masks: Vec<Mask>,
    pub(crate) steps: Vec<Step>,
}

/// Something that differs between two runs without meaning anything.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mask {
    pub(crate) pattern: String,
    pub(crate) with: String,
    pub(crate) because: String,
}

/// One command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// What of the server the command asks for.
    pub(crate) why: String,
    /// Shell whose output is not compared, run before: it waits for what takes a server some time.
    pub(crate) prepare: Option<String>,
    /// The command, a line of shell.
    pub(crate) run: String,
    /// For a command that watches.
    pub(crate) watch: Option<Watch>,
    /// What is masked in this output, beside what is masked everywhere.
    #[serde(default)]
    pub(crate) mask: Vec<Mask>,
    #[serde(default)]
    pub(crate) compare: Compare,
}

/// A command that would not end by itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watch {
    /// Lines to wait for before `meanwhile`.
    pub(crate) first: usize,
    /// Shell that changes what is watched.
    pub(crate) meanwhile: String,
    /// Lines to wait for then.
    pub(crate) then: usize,
}

/// What of an output is compared.
#[derive(Deserialize, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compare {
    /// Standard output, standard error and the exit code.
    #[default]
    All,
    /// The same, with the lines in order of the alphabet: the server does not promise theirs.
    Sorted,
    /// The same, with the members of the JSON on standard output in order of the alphabet: theirs means nothing.
    Json,
}

impl Session {
    pub(crate) fn load() -> Result<Self> {
        let path = folder().join("session.yaml");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        serde_saphyr::from_str(&text).with_context(|| format!("reading {}", path.display()))
    }

    /// How many commands are compared.
    pub(crate) fn commands(&self) -> usize {
        self.steps.len()
    }
}

/// Where the session, its manifests and its recordings are.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl")
}
