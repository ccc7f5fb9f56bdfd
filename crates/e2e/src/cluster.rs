//! A cluster, as kubectl sees it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::client::connected;
use crate::process::Folder;

/// How long is waited between two questions.
const PAUSE: Duration = Duration::from_millis(150);
/// And between two about what takes long, each of which is a process.
const LONG_PAUSE: Duration = Duration::from_millis(500);
/// From when on something takes long.
const LONG: Duration = Duration::from_secs(5);

/// kubectl with one kubeconfig.
pub struct Cluster {
    /// The kubectl program.
    pub kubectl: PathBuf,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    folder: Folder,
}

impl Cluster {
    /// A cluster whose administrator's kubeconfig is this.
    pub fn new(kubectl: &Path, kubeconfig: &Path) -> Result<Self> {
        Ok(Self {
            kubectl: kubectl.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            folder: Folder::new("cluster")?,
        })
    }

    /// A client of the administrator's, which does not try again by itself.
    pub async fn client(&self) -> Result<kube::Client> {
        connected(&self.kubeconfig).await
    }

    /// A kubectl command, not yet started.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        // It lives for a moment: below 32 MB nothing it leaves lying is worth the processor's time.
        command
            .env("GOGC", "800")
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!(
                "--cache-dir={}",
                self.folder.path().join("cache").display()
            ));
        command
    }

    /// Runs kubectl and gives what it printed.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.run(arguments, None)
    }

    /// `kubectl apply` of these manifests.
    pub fn apply(&self, manifests: &str) -> Result<String> {
        self.run(
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            Some(manifests),
        )
    }

    /// `kubectl create` of these manifests.
    pub fn create(&self, manifests: &str) -> Result<String> {
        self.run(&["create", "-f", "-"], Some(manifests))
    }

    /// `kubectl create` of these manifests, of which nothing stays.
    pub fn dry_create(&self, manifests: &str) -> Result<String> {
        let words = ["create", "--dry-run=server", "-o", "name", "-f", "-"];
        self.run(&words, Some(manifests))
    }

    /// What kubectl prints with `-o json`.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        serde_json::from_str(&self.kubectl(&all)?).context("reading kubectl's JSON")
    }

    /// What the API answers to a GET of a path.
    pub fn raw(&self, path: &str) -> Result<Value> {
        serde_json::from_str(&self.kubectl(&["get", "--raw", path])?)
            .context("reading the API's JSON")
    }

    /// What the API answers to a POST of this body to a path.
    pub fn post(&self, path: &str, body: &str) -> Result<String> {
        self.run(&["create", "--raw", path, "-f", "-"], Some(body))
    }

    fn run(&self, arguments: &[&str], input: Option<&str>) -> Result<String> {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting kubectl")?;
        if let (Some(mut stdin), Some(text)) = (child.stdin.take(), input) {
            // kubectl may refuse before it has read everything; its exit code tells.
            let _ = stdin.write_all(text.as_bytes());
        }
        let output = child.wait_with_output().context("waiting for kubectl")?;
        if !output.status.success() {
            bail!(
                "kubectl {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Writes a kubeconfig for a service account of the cluster, with a token that the API server gave.
    pub fn service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let token = self.kubectl(&["create", "token", name, "-n", namespace, "--duration=2h"])?;
        let mut config = crate::wire::read(&self.kubeconfig)?;
        if let Some(users) = config.pointer_mut("/users").and_then(Value::as_array_mut) {
            for user in users {
                user["user"] = serde_json::json!({ "token": token.trim() });
            }
        }
        let path = self
            .folder
            .path()
            .join(format!("{namespace}-{name}.kubeconfig"));
        std::fs::write(&path, serde_json::to_string(&config)?)?;
        Ok(path)
    }

    /// The same kubectl on another cluster.
    pub fn other(&self, kubeconfig: &Path) -> Result<Self> {
        Self::new(&self.kubectl, kubeconfig)
    }

    /// A kubeconfig with everything in it: the server, its CA, and this token or the administrator's. A real server made its
    /// certificate itself, and keeps it beside its kubeconfig.
    pub fn inline_kubeconfig(&self, token: Option<&str>) -> Result<Value> {
        let config = crate::wire::read(&self.kubeconfig)?;
        let text = |path: &str| config.pointer(path).and_then(Value::as_str);
        let given = text("/clusters/0/cluster/certificate-authority-data");
        let authority = if let Some(authority) = given {
            authority.to_owned()
        } else {
            let folder = self.kubeconfig.parent().unwrap_or(&self.kubeconfig);
            let file = folder.join("certs").join("apiserver.crt");
            let pem = std::fs::read(&file);
            let pem = pem.with_context(|| format!("reading {}", file.display()))?;
            BASE64_STANDARD.encode(pem)
        };
        let token = token.or(text("/users/0/user/token"));
        Ok(serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "member", "cluster": {
                "server": text("/clusters/0/cluster/server"),
                "certificate-authority-data": authority,
            }}],
            "users": [{"name": "member", "user": {"token": token}}],
            "contexts": [{"name": "member", "context": {"cluster": "member", "user": "member"}}],
            "current-context": "member",
        }))
    }

    /// Waits until something holds, asking several times a second; `what` is said when it does not.
    pub fn eventually<T>(
        &self,
        what: &str,
        within: Duration,
        probe: impl FnMut(&Self) -> Result<Option<T>>,
    ) -> Result<T> {
        self.asked(what, within, PAUSE, probe)
    }

    /// As [`Cluster::eventually`], for what stays when it has come: when it takes long, it is asked for twice a second. Not for
    /// probes that also look at what happens meanwhile.
    pub fn at_length<T>(
        &self,
        what: &str,
        within: Duration,
        probe: impl FnMut(&Self) -> Result<Option<T>>,
    ) -> Result<T> {
        self.asked(what, within, LONG_PAUSE, probe)
    }

    fn asked<T>(
        &self,
        what: &str,
        within: Duration,
        at_length: Duration,
        mut probe: impl FnMut(&Self) -> Result<Option<T>>,
    ) -> Result<T> {
        let start = Instant::now();
        loop {
            if let Some(found) = probe(self)? {
                return Ok(found);
            }
            let waited = start.elapsed();
            if waited > within {
                bail!("not within {within:?}: {what}");
            }
            std::thread::sleep(if waited < LONG { PAUSE } else { at_length });
        }
    }

    /// Makes sure that something holds during all of a time.
    pub fn throughout(
        &self,
        what: &str,
        during: Duration,
        mut probe: impl FnMut(&Self) -> Result<bool>,
    ) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < during {
            if !probe(self)? {
                bail!("no longer true after {:?}: {what}", start.elapsed());
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        Ok(())
    }
}
