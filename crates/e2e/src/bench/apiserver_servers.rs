//! The servers that are measured, each kept to one processor, and how they are started.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use slipway_e2e::flood::Target;
use slipway_e2e::operator::Operator;
use slipway_e2e::ports::Port;
use slipway_e2e::process::{self, Folder};

use crate::SERVER;
use crate::load::wire;

/// How long a server may take to answer.
const WITHIN: Duration = Duration::from_mins(1);

/// Who is measured.
pub(crate) enum Contender {
    Ours,
    Real(Origin),
}

/// A server that answers; ended with this value.
pub(crate) struct Running {
    process: Operator,
    pub(crate) target: Target,
    pub(crate) token: String,
    /// From the start of the process to the first answer.
    pub(crate) first: Duration,
    _folder: Folder,
    _port: Port,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn resident(&self) -> Result<u64> {
        self.process.resident()
    }
}

impl Contender {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Ours => "slipway",
            Self::Real(_) => "kube-apiserver",
        }
    }

    /// Memory of what else a cluster of this kind needs.
    pub(crate) fn beside(&self) -> Result<u64> {
        match self {
            Self::Ours => Ok(0),
            Self::Real(origin) => process::resident(origin.etcd),
        }
    }

    /// Starts it, and waits for its first answer.
    pub(crate) async fn start(&self) -> Result<Running> {
        let folder = Folder::new("bench")?;
        let port = Port::draw()?;
        let kubeconfig = folder.path().join("kubeconfig");
        // It ends with this process, however that ends.
        let mut words: Vec<String> = ["-c", SERVER, "setpriv", "--pdeathsig", "KILL"]
            .map(str::to_owned)
            .to_vec();
        match self {
            Self::Ours => {
                words.push(slipway_e2e::server::program()?.display().to_string());
                words.extend(["apiserver", "--no-controllers"].map(str::to_owned));
                words.push(format!("--port={port}"));
                words.push(format!("--kubeconfig-out={}", kubeconfig.display()));
            }
            Self::Real(origin) => words.extend(origin.words(port.number(), folder.path())),
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let start = Instant::now();
        let process = Operator::peer(Path::new("taskset"), &kubeconfig, &words)?;
        loop {
            if let Some((target, token)) = self.door(folder.path(), port.number())?
                && answers(&target, &token).await
            {
                return Ok(Running {
                    process,
                    target,
                    token,
                    first: start.elapsed(),
                    _folder: folder,
                    _port: port,
                });
            }
            if start.elapsed() > WITHIN {
                let log = process.log();
                let last: Vec<&str> = log.lines().rev().take(5).collect();
                bail!(
                    "{} did not answer within {WITHIN:?}; it said last: {}",
                    self.name(),
                    last.join("\n")
                );
            }
            // Asking costs the server time too: seldom, where it takes long.
            let pause = start.elapsed() / 100;
            tokio::time::sleep(pause.max(Duration::from_micros(500))).await;
        }
    }

    /// Where to ask and with which token, once the server has said so.
    fn door(&self, folder: &Path, port: u16) -> Result<Option<(Target, String)>> {
        let (authority, token) = match self {
            Self::Ours => {
                let Ok(text) = std::fs::read_to_string(folder.join("kubeconfig")) else {
                    return Ok(None);
                };
                let config: Value =
                    serde_saphyr::from_str(&text).context("reading the kubeconfig")?;
                let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str);
                let authority = text("/clusters/0/cluster/certificate-authority-data")
                    .context("the kubeconfig names no CA")?;
                let token = text("/users/0/user/token").context("the kubeconfig has no token")?;
                (BASE64_STANDARD.decode(authority)?, token.to_owned())
            }
            Self::Real(origin) => {
                let Ok(bundle) = std::fs::read(folder.join("apiserver.crt")) else {
                    return Ok(None);
                };
                (bundle, origin.token.clone())
            }
        };
        // Half of a file is no certificate yet.
        Ok(Target::trusting(&authority, "127.0.0.1", port)
            .ok()
            .map(|target| (target, token)))
    }
}

async fn answers(target: &Target, token: &str) -> bool {
    let request = wire("GET", "/api/v1/namespaces/default", token, "");
    let Ok(mut connection) = target.connect().await else {
        return false;
    };
    let answer = connection.ask(&request).await;
    answer.is_ok_and(|text| text.starts_with(b"HTTP/1.1 200"))
}

/// A control plane that runs already. Its kube-apiserver is halted while this value is there: what is written to its etcd
/// would keep it busy.
pub(crate) struct Origin {
    words: Vec<String>,
    token: String,
    halted: u32,
    etcd: u32,
}

impl Origin {
    /// The one of this kubeconfig.
    pub(crate) fn find(kubeconfig: &Path) -> Result<Self> {
        let home: PathBuf = kubeconfig.parent().map(Path::to_owned).unwrap_or_default();
        let name = home.file_name().unwrap_or_default().to_string_lossy();
        let notes = home.join("..").join("pids");
        let notes = std::fs::read_to_string(&notes).with_context(|| {
            format!(
                "finding the processes of the control plane: {}",
                notes.display()
            )
        })?;
        let id = |program: &str| -> Result<u32> {
            let wanted = format!("{name}/{program}");
            notes
                .lines()
                .filter_map(|line| line.split_once(' '))
                .find(|(_, name)| *name == wanted)
                .and_then(|(id, _)| id.parse().ok())
                .with_context(|| format!("the control plane has no {program}"))
        };
        let (halted, etcd) = (id("kube-apiserver")?, id("etcd")?);
        let line = std::fs::read(format!("/proc/{halted}/cmdline"))?;
        let words = String::from_utf8_lossy(&line);
        let words = words.trim_end_matches('\0').split('\0');
        let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(kubeconfig)?)
            .context("reading the kubeconfig")?;
        let token = config
            .pointer("/users/0/user/token")
            .and_then(Value::as_str);
        let origin = Self {
            words: words.map(str::to_owned).collect(),
            token: token.context("the kubeconfig has no token")?.to_owned(),
            halted,
            etcd,
        };
        origin.signal("-STOP")?;
        Ok(origin)
    }

    /// The same program with the same flags, on another port and with certificates of its own.
    fn words(&self, port: u16, certificates: &Path) -> Vec<String> {
        let mut words = self.words.clone();
        for word in &mut words {
            if word.starts_with("--secure-port=") {
                *word = format!("--secure-port={port}");
            } else if word.starts_with("--cert-dir=") {
                *word = format!("--cert-dir={}", certificates.display());
            }
        }
        words
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let status = Command::new("kill")
            .args([signal, &self.halted.to_string()])
            .status()?;
        ensure!(status.success(), "kill {signal} {}: {status}", self.halted);
        Ok(())
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.signal("-CONT");
    }
}
