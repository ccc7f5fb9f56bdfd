//! Where goldens come from: a line for each beside them, written by whoever records.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use slipway_apiserver::environment::{Clock, SystemClock};
use slipway_apiserver::origin;

/// The lines of a file: `golden | server | day`.
pub(crate) struct Origins {
    path: PathBuf,
    all: Mutex<BTreeMap<String, String>>,
}

impl Origins {
    pub(crate) fn read(path: PathBuf) -> Result<Self, String> {
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let lines = text.lines().filter_map(|line| line.split_once(" | "));
        let all = lines
            .map(|(golden, origin)| (golden.to_owned(), origin.to_owned()))
            .collect();
        Ok(Self {
            path,
            all: Mutex::new(all),
        })
    }

    /// Notes that a golden was recorded today of the server that says this of its version; refuses one that is not real.
    pub(crate) fn note(&self, golden: &str, version: &Value) -> Result<(), String> {
        let server = origin::of_real(version).map_err(|error| error.to_string())?;
        let today = SystemClock.now().strftime("%Y-%m-%d");
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(golden.to_owned(), format!("{server} | {today}"));
        let lines = all
            .iter()
            .map(|(name, origin)| format!("{name} | {origin}\n"));
        std::fs::write(&self.path, lines.collect::<String>())
            .map_err(|e| format!("{}: {e}", self.path.display()))
    }

    /// Goldens of which nobody says where they come from, or not from a real server; and lines without a golden.
    pub(crate) fn unknown<'a>(&self, goldens: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut rest = self
            .all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut unknown: Vec<String> = goldens
            .filter(|golden| {
                let origin = rest.remove(*golden).unwrap_or_default();
                let is_dated = origin.split(" | ").count() == 2;
                !(origin.starts_with("kube-apiserver v") && is_dated)
            })
            .map(str::to_owned)
            .collect();
        unknown.extend(rest.into_keys());
        unknown
    }
}
