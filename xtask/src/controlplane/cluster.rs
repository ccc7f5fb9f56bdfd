//! One control plane: which processes with which flags.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::tools::Programs;
use super::{Profile, READY_WITHIN, Shape, delivery, logged};
use crate::ports::Port;
use crate::workspace;

/// A process that was started, and the ports that are its own.
pub(super) struct Started {
    pub(super) name: String,
    pub(super) child: Child,
    _ports: Vec<Port>,
}

/// Users of every control plane: token, name, uid, group. `admin` may do everything, `alice` nothing.
const USERS: &str = "admin-token,admin,admin,\"system:masters\"\n\
                     alice-token,alice,alice-uid,\"dev\"\n\
                     controllers-token,system:kube-controller-manager,controllers,\"system:masters\"\n";

/// How KWOK removes pods.
const POD_DELETE: &str = include_str!("pod-delete.yaml");

/// Where the kubeconfig of a control plane is; it appears when the control plane answers.
pub(super) fn kubeconfig(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("cluster-{index}")).join("kubeconfig")
}

/// Starts one control plane; what was started is in `started` even if this fails.
pub(super) fn start(
    programs: &Programs,
    shape: &Shape,
    folder: &Path,
    index: usize,
    started: &mut Vec<Started>,
) -> Result<()> {
    let home = folder.join(format!("cluster-{index}"));
    std::fs::create_dir_all(home.join("certs"))
        .with_context(|| format!("creating {}", home.display()))?;
    std::fs::write(home.join("tokens.csv"), USERS)?;
    service_account_key(&home)?;
    let mut launch = |name: &str, program: &Path, words: Words| -> Result<()> {
        let (out, err) = logged(&home.join(format!("{name}.log")))?;
        let child = Command::new(program)
            .args(words.arguments)
            .envs(words.environment)
            .current_dir(&home)
            .stdin(std::process::Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        started.push(Started {
            name: format!("cluster-{index}/{name}"),
            child,
            _ports: words.ports,
        });
        Ok(())
    };
    let internal = home.join("kubeconfig.internal");
    match &shape.join {
        Some(kubeconfig) => {
            std::fs::copy(kubeconfig, &internal)
                .with_context(|| format!("reading {}", kubeconfig.display()))?;
        }
        None if shape.embedded => {
            let program = workspace::target().join("release").join("slipway");
            launch("slipway", &program, embedded(&internal))?;
        }
        None => {
            let (client, peer, secure) = (Port::draw()?, Port::draw()?, Port::draw()?);
            let words = apiserver(&home, &client, &secure);
            std::fs::write(&internal, config(&secure))?;
            let store = etcd(&home, &client, &peer).holding([client, peer]);
            launch("etcd", programs.path("etcd")?, store)?;
            let program = programs.path("kube-apiserver")?;
            launch("kube-apiserver", program, words.holding([secure]))?;
        }
    }
    let kubectl = programs.path("kubectl")?;
    wait_for(kubectl, &internal)?;
    for (name, words) in joined(programs, shape, &home, &internal)? {
        launch(name, programs.path(name)?, words)?;
    }
    for (name, words) in delivery::joined(programs, shape, kubectl, &home, &internal)? {
        launch(name, programs.path(name)?, words)?;
    }
    // Under its name only now: who sees the file can use it.
    let ready = home.join("kubeconfig.ready");
    std::fs::copy(&internal, &ready)?;
    std::fs::rename(&ready, kubeconfig(folder, index))?;
    Ok(())
}

/// The processes of a profile that use the API server of this kubeconfig.
fn joined(
    programs: &Programs,
    shape: &Shape,
    home: &Path,
    kubeconfig: &Path,
) -> Result<Vec<(&'static str, Words)>> {
    let mut all = Vec::new();
    // What is not the real API server, or stands before it, reads and writes JSON.
    let json = (shape.embedded || shape.join.is_some())
        .then(|| "--kube-api-content-type=application/json".to_owned());
    if shape.profile != Profile::Bare {
        let mut words = controller_manager(home, kubeconfig, shape.profile);
        words.arguments.extend(json.clone());
        all.push(("kube-controller-manager", words));
    }
    if shape.profile == Profile::Full {
        let mut words = scheduler(kubeconfig);
        words.arguments.extend(json);
        all.push(("kube-scheduler", words));
        if let Some(stages) = programs.files("kwok") {
            let removal = home.join("pod-delete.yaml");
            std::fs::write(&removal, POD_DELETE)?;
            let port = Port::draw()?;
            let words = kwok(kubeconfig, stages, &removal, &port);
            all.push(("kwok", words.holding([port])));
        }
    }
    Ok(all)
}

/// What a process is started with.
pub(super) struct Words {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    ports: Vec<Port>,
}

impl Words {
    /// With this variable in its environment.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With these ports, which are the process's as long as it runs.
    pub(super) fn holding(mut self, ports: impl IntoIterator<Item = Port>) -> Self {
        self.ports.extend(ports);
        self
    }
}

/// These arguments.
pub(super) fn text(parts: &[&str]) -> Words {
    Words {
        arguments: parts.iter().map(|part| (*part).to_owned()).collect(),
        environment: Vec::new(),
        ports: Vec::new(),
    }
}

fn embedded(kubeconfig: &Path) -> Words {
    text(&[
        "apiserver",
        "--port=0",
        "--no-controllers",
        &format!("--kubeconfig-out={}", kubeconfig.display()),
    ])
}

fn etcd(home: &Path, client: &Port, peer: &Port) -> Words {
    let (client, peer) = (
        format!("http://127.0.0.1:{client}"),
        format!("http://127.0.0.1:{peer}"),
    );
    let folder = home.join("etcd").display().to_string();
    text(&[
        "--unsafe-no-fsync",
        "--data-dir",
        &folder,
        "--listen-client-urls",
        &client,
        "--advertise-client-urls",
        &client,
        "--listen-peer-urls",
        &peer,
        "--initial-advertise-peer-urls",
        &peer,
        "--initial-cluster",
        &format!("default={peer}"),
    ])
}

fn apiserver(home: &Path, etcd: &Port, secure: &Port) -> Words {
    let key = home.join("sa.key").display().to_string();
    text(&[
        &format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        &format!("--secure-port={secure}"),
        "--bind-address=127.0.0.1",
        &format!("--cert-dir={}", home.join("certs").display()),
        &format!(
            "--service-account-key-file={}",
            home.join("sa.pub").display()
        ),
        &format!("--service-account-signing-key-file={key}"),
        "--service-account-issuer=https://kubernetes.default.svc",
        &format!("--token-auth-file={}", home.join("tokens.csv").display()),
        "--authorization-mode=RBAC",
        // A /24 is full after 254 services.
        "--service-cluster-ip-range=10.0.0.0/16",
        "--disable-admission-plugins=ServiceAccount",
        "--enable-priority-and-fairness=false",
    ])
}

fn controller_manager(home: &Path, kubeconfig: &Path, profile: Profile) -> Words {
    let controllers = match profile {
        Profile::Full => "*",
        Profile::Collectors | Profile::Bare => "garbage-collector-controller,namespace-controller",
    };
    text(&[
        &format!("--kubeconfig={}", kubeconfig.display()),
        &format!("--controllers={controllers}"),
        "--leader-elect=false",
        &format!(
            "--service-account-private-key-file={}",
            home.join("sa.key").display()
        ),
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--concurrent-statefulset-syncs=20",
        "--secure-port=0",
    ])
}

fn scheduler(kubeconfig: &Path) -> Words {
    text(&[
        &format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false",
        "--secure-port=0",
    ])
}

fn kwok(kubeconfig: &Path, stages: &Path, removal: &Path, port: &Port) -> Words {
    let stage = |path: &str| format!("--config={}", stages.join(path).display());
    text(&[
        &format!("--kubeconfig={}", kubeconfig.display()),
        "--manage-all-nodes",
        // Without leases the node lifecycle controller takes every pod's readiness away after 40 s.
        "--node-lease-duration-seconds=40",
        "--cidr=10.1.0.0/16",
        "--node-ip=127.0.0.1",
        &format!("--server-address=127.0.0.1:{port}"),
        &stage("node/fast/node-initialize.yaml"),
        &stage("pod/fast/pod-ready.yaml"),
        &stage("pod/fast/pod-complete.yaml"),
        &format!("--config={}", removal.display()),
    ])
}

/// The kubeconfig: its certificate is the server's own, so it is not checked; all of it is on loopback.
fn config(port: &Port) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: slipway
  cluster:
    server: https://127.0.0.1:{port}
    insecure-skip-tls-verify: true
users:
- name: admin
  user:
    token: admin-token
- name: alice
  user:
    token: alice-token
contexts:
- name: admin
  context:
    cluster: slipway
    user: admin
- name: alice
  context:
    cluster: slipway
    user: alice
current-context: admin
"
    )
}

/// The keys that sign and verify service-account tokens.
fn service_account_key(home: &Path) -> Result<()> {
    let key = rcgen::KeyPair::generate().context("making a service-account key")?;
    for (name, pem) in [
        ("sa.key", key.serialize_pem()),
        ("sa.pub", key.public_key_pem()),
    ] {
        let path = home.join(name);
        std::fs::write(&path, pem).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Waits until the API server is ready, by its own word.
fn wait_for(kubectl: &Path, kubeconfig: &Path) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < READY_WITHIN {
        let answer = Command::new(kubectl)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["get", "--raw", "/readyz", "--request-timeout=10s"])
            .output()
            .context("asking the API server whether it is ready")?;
        if answer.stdout == b"ok" {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    bail!("kube-apiserver was not ready within {READY_WITHIN:?}")
}
