//! A process of a control plane.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

use super::logged;
use super::supervisor::Roster;
use super::words::Words;

/// How it is started, and that it runs.
pub(super) struct Part {
    /// `cluster-0/etcd`.
    name: String,
    program: PathBuf,
    words: Words,
    home: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl Part {
    /// The program that is called `name` in the control plane with this folder. Its ports are its own while this is there.
    pub(super) fn new(home: &Path, name: &str, program: &Path, words: Words) -> Self {
        let cluster = home.file_name().unwrap_or_default().to_string_lossy();
        Self {
            name: format!("{cluster}/{name}"),
            program: program.to_owned(),
            words,
            home: home.to_owned(),
            log: home.join(format!("{name}.log")),
            child: None,
        }
    }

    /// Starts it, if it does not run.
    pub(super) fn start(&mut self, roster: &Roster) -> Result<()> {
        if self.child.is_some() {
            return Ok(());
        }
        let (out, err) = logged(&self.log)?;
        let child = Command::new(&self.program)
            .args(&self.words.arguments)
            .envs(
                self.words
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .with_context(|| format!("starting {}", self.name))?;
        let noted = roster.add(&self.name, child.id());
        self.child = Some(child);
        noted
    }

    /// Sends its process a signal: STOP makes it one that answers nobody, CONT one that goes on where it was.
    pub(super) fn signal(&self, name: &str) -> Result<()> {
        let child = self.child.as_ref();
        let id = child.with_context(|| format!("{} does not run", self.name))?;
        let status = Command::new("kill")
            .args([format!("-{name}"), id.id().to_string()])
            .status()
            .context("starting kill")?;
        if !status.success() {
            bail!(
                "{} got no signal {name}: kill ended with {status}",
                self.name
            );
        }
        Ok(())
    }

    /// Ends it at once: kube-apiserver takes up to half a minute to end politely, and nothing here is worth keeping.
    pub(super) fn end(&mut self, roster: &Roster) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            let _ = roster.remove(&self.name);
        }
    }

    /// Its name and how it ended, if it did so by itself.
    pub(super) fn ended(&mut self) -> Result<Option<(&str, ExitStatus)>> {
        let Some(child) = &mut self.child else {
            return Ok(None);
        };
        let status = child
            .try_wait()
            .with_context(|| format!("waiting for {}", self.name))?;
        Ok(status.map(|status| (self.name.as_str(), status)))
    }
}
