//! Runs a session: every command in order, in a folder of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use slipway_e2e::client::Client;
use slipway_e2e::process::{Folder, Output, Shell};
use slipway_e2e::server::Server;

use crate::normalise::Masks;
use crate::session::{Session, Step, folder};
use crate::transcript::Transcript;

/// How long a command may take. The longest is the end of a namespace, which a real server takes 6 s for.
const WITHIN: Duration = Duration::from_mins(1);
/// How long a watch is waited for.
const EVENTS_WITHIN: Duration = Duration::from_secs(10);

/// Where commands run, and with what.
struct Place<'a> {
    folder: Folder,
    environment: Vec<(&'a str, String)>,
}

/// Runs the session and returns what was said.
pub(crate) fn run(
    session: &Session,
    masks: &Masks,
    client: &Client,
    server: &dyn Server,
) -> Result<Transcript> {
    let place = Place::new(client, server)?;
    place
        .prepare(&session.clean)
        .context("cleaning up before the session")?;
    let mut transcript = Transcript::new();
    for step in &session.steps {
        let output = place.step(step);
        let Output { out, err, exit } = output.unwrap_or_else(|error| Output {
            out: String::new(),
            err: format!("the command failed: {error:#}\n"),
            exit: None,
        });
        let (out, err) = (masks.normalise(step, &out)?, masks.normalise(step, &err)?);
        transcript.push(&step.why, &step.run, &out, &err, exit);
    }
    place
        .prepare(&session.clean)
        .context("cleaning up after the session")?;
    Ok(transcript)
}

impl Place<'_> {
    fn new(client: &Client, server: &dyn Server) -> Result<Self> {
        let place = Folder::new("session")?;
        let home = place.path().join("home");
        let programs = place.path().join("programs");
        std::fs::create_dir(&home)?;
        std::fs::create_dir(&programs)?;
        std::os::unix::fs::symlink(&client.program, programs.join("kubectl"))?;
        // kubectl writes to its kubeconfig, so it gets a copy.
        std::fs::copy(server.kubeconfig(), home.join("kubeconfig"))
            .with_context(|| format!("copying {}", server.kubeconfig().display()))?;
        copy(&folder().join("manifests"), place.path())?;
        let environment = vec![
            ("HOME", home.display().to_string()),
            ("KUBECONFIG", home.join("kubeconfig").display().to_string()),
            (
                "PATH",
                format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()),
            ),
            ("TMPDIR", home.display().to_string()),
            ("LC_ALL", "C".to_owned()),
            ("TZ", "UTC".to_owned()),
            // kubectl edit must not be asked for: a session that does not name its editor changes nothing.
            ("EDITOR", "true".to_owned()),
        ];
        Ok(Self {
            folder: place,
            environment,
        })
    }

    fn start(&self, script: &str) -> Result<Shell> {
        Shell::start(script, self.folder.path(), &self.environment)
    }

    fn step(&self, step: &Step) -> Result<Output> {
        if let Some(script) = &step.prepare {
            self.prepare(script)?;
        }
        let shell = self.start(&step.run)?;
        let Some(watch) = &step.watch else {
            return shell.finish(WITHIN);
        };
        let mut out = shell.take_lines(watch.first, EVENTS_WITHIN);
        self.prepare(&watch.meanwhile)?;
        out.push_str(&shell.take_lines(watch.then, EVENTS_WITHIN));
        Ok(Output {
            out,
            err: String::new(),
            exit: None,
        })
    }

    /// Runs a script that must succeed.
    fn prepare(&self, script: &str) -> Result<()> {
        let output = self
            .start(script)?
            .finish(WITHIN)
            .with_context(|| script.to_owned())?;
        if output.exit != Some(0) {
            bail!("{script}\nfailed: {}{}", output.out, output.err);
        }
        Ok(())
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
