//! This program in another process, with a part of the bench to play. Both speak by lines of JSON.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// As many open files as the system lets us have, and the end with whoever started it.
const WRAPPED: &str = "ulimit -n $(ulimit -Hn); exec setpriv --pdeathsig KILL \"$@\"";
/// How long a process may take to end in good order.
const LEAVE: Duration = Duration::from_secs(5);

/// A process; ended with this value, in good order if it does that soon.
pub(crate) struct Role {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

impl Role {
    /// Starts this program with these words.
    pub(crate) fn start(words: &[String]) -> Result<Self> {
        Self::begin(Command::new("sh").args(["-c", WRAPPED, "sh"]), words)
    }

    /// The same in a folder, where it leaves what it says beside, and cores if the system lets it.
    pub(crate) fn start_in(folder: &Path, words: &[String]) -> Result<Self> {
        let script = format!("ulimit -c $(ulimit -Hc); {WRAPPED}");
        let log = File::create(folder.join("log"))?;
        let mut command = Command::new("sh");
        let command = command.args(["-c", &script, "sh"]).current_dir(folder);
        Self::begin(command.stderr(log), words)
    }

    fn begin(command: &mut Command, words: &[String]) -> Result<Self> {
        let mut child = command
            .arg(std::env::current_exe()?)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting the part {words:?} of the bench"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("it has no output")?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            child,
            input,
            output: receiver,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Says something to it.
    pub(crate) fn tell(&mut self, what: &Value) -> Result<()> {
        let input = self.input.as_mut().context("it is not told any more")?;
        writeln!(input, "{what}").context("telling a part of the bench")
    }

    /// Ends it as a fault of its own would.
    pub(crate) fn abort(mut self) -> Result<ExitStatus> {
        let id = self.id().to_string();
        let sent = Command::new("kill").args(["-ABRT", &id]).status()?;
        ensure!(sent.success(), "it was not aborted: {sent}");
        self.child.wait().context("waiting for its end")
    }

    /// What it says next.
    pub(crate) fn answer(&self, within: Duration) -> Result<Value> {
        let line = self.output.recv_timeout(within);
        let line = line.context("a part of the bench has ended, or says nothing")?;
        serde_json::from_str(&line).with_context(|| format!("reading {line:?}"))
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // That nobody tells it anything any more is what it ends by: an operator gives its Lease up, and the next one need not
        // wait for it.
        drop(self.input.take());
        let began = Instant::now();
        while began.elapsed() < LEAVE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines that this process is told, one value each, until there are no more.
pub(crate) fn told() -> tokio::sync::mpsc::UnboundedReceiver<Value> {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let value = serde_json::from_str(&line).unwrap_or_default();
            if sender.send(value).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Says something to whoever started this process.
pub(crate) fn say(what: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}").context("saying something")?;
    out.flush().context("saying something")
}
