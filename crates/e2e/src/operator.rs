//! `slipway run`, as a process.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::ports::Port;
use crate::process::{self, Folder};
use crate::server::program;
use crate::wire;

/// A running operator; killed with this value.
pub struct Operator {
    child: Child,
    /// Where it answers; a peer's is not asked.
    port: Option<Port>,
    folder: Folder,
}

impl Operator {
    /// Starts `slipway run` with these arguments, and does not wait for anything.
    pub fn start(kubeconfig: &Path, arguments: &[&str]) -> Result<Self> {
        Self::command("run", kubeconfig, arguments)
    }

    /// Starts a subcommand of `slipway` that takes the arguments of `run`.
    pub fn command(name: &str, kubeconfig: &Path, arguments: &[&str]) -> Result<Self> {
        let port = Port::draw()?;
        let mut command = Command::new(program()?);
        command
            .args([name, "--kubeconfig"])
            .arg(kubeconfig)
            .args(["--port", &port.to_string()])
            .args(arguments)
            .env_remove("KUBECONFIG");
        Self::spawn("operator", Some(port), command)
    }

    /// Starts rollout-operator, ours or the original, with what it needs outside of a cluster and these arguments. It may
    /// use all processors, or one.
    pub fn rollout_operator(
        original: Option<&Path>,
        kubeconfig: &Path,
        arguments: &[String],
        processor: Option<usize>,
    ) -> Result<Self> {
        let port = Port::draw()?;
        let config = wire::read(kubeconfig)?;
        let server = wire::server(&config)?;
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        if let Some(processor) = processor {
            words.extend(["taskset".into(), "-c".into(), processor.to_string().into()]);
        }
        match original {
            Some(path) => words.push(path.into()),
            None => words.extend([program()?.into(), "rollout-operator".into()]),
        }
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().context("there is no program")?);
        command
            .args(words)
            .arg(format!("-kubernetes.api-url={server}"))
            .arg(format!("-kubernetes.config-file={}", kubeconfig.display()))
            .arg(format!("-server.port={port}"))
            .args(arguments);
        Self::spawn("rollout-operator", Some(port), command)
    }

    /// Starts Flagger, ours or the original, with these of its flags.
    pub fn flagger(original: Option<&Path>, kubeconfig: &Path, arguments: &[&str]) -> Result<Self> {
        let port = Port::draw()?;
        let mut command = Command::new(original.map_or_else(program, |path| Ok(path.to_owned()))?);
        if original.is_none() {
            command.arg("flagger");
        }
        command
            .arg(format!("-kubeconfig={}", kubeconfig.display()))
            .arg(format!("-port={port}"))
            .args(arguments);
        Self::spawn("flagger", Some(port), command)
    }

    /// Starts another program with the same right to be measured.
    pub fn peer(program: &Path, kubeconfig: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).env("KUBECONFIG", kubeconfig);
        Self::spawn("peer", None, command)
    }

    fn spawn(purpose: &str, port: Option<Port>, mut command: Command) -> Result<Self> {
        let folder = Folder::new(purpose)?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        let child = command
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        Ok(Self {
            child,
            port,
            folder,
        })
    }

    /// Waits until `/ready` says so.
    pub fn wait_until_ready(&mut self, within: Duration) -> Result<()> {
        self.wait_for("/ready", within)
    }

    /// Waits until it answers at `/healthz`, as Flagger does when it has begun.
    pub fn wait_until_healthy(&mut self, within: Duration) -> Result<()> {
        self.wait_for("/healthz", within)
    }

    fn wait_for(&mut self, path: &str, within: Duration) -> Result<()> {
        let start = Instant::now();
        while self.get(path).is_none() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the operator ended with {status}: {}", self.log());
            }
            if start.elapsed() > within {
                let log = self.log();
                bail!("the operator did not say {path} within {within:?}: {log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// What its port answers to a GET, if with 200.
    pub fn get(&self, path: &str) -> Option<String> {
        use std::io::{Read, Write};
        let port = self.port.as_ref()?.number();
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }

    /// Whether it is ready, by its own word.
    pub fn is_ready(&self) -> bool {
        self.get("/ready").is_some()
    }

    /// How many requests to a webhook it has answered with 200, by its own count.
    pub fn answered(&self, webhook: &str) -> u64 {
        let route = format!("route=\"admission_{}\"", webhook.replace('-', "_"));
        let metrics = self.get("/metrics").unwrap_or_default();
        metrics
            .lines()
            .filter(|line| line.starts_with("rollout_operator_request_duration_seconds_count{"))
            .filter(|line| line.contains(&route) && line.contains("status_code=\"200\""))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends it without warning.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().context("killing the operator")?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends it with SIGTERM; it must leave with 0.
    pub fn terminate(mut self) -> Result<()> {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        let start = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!(
                    "the operator ended with {status} after SIGTERM: {}",
                    self.log()
                ),
                None if start.elapsed() > Duration::from_secs(30) => {
                    bail!("SIGTERM did not end the operator: {}", self.log())
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> Result<u64> {
        process::resident(self.child.id())
    }

    /// Processor time so far.
    pub fn processor_time(&self) -> Result<Duration> {
        process::processor_time(self.child.id())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
