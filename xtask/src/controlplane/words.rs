//! With which flags the processes of a control plane are started.

use std::path::Path;

use anyhow::{Context, Result};

use super::Profile;
use crate::ports::Port;

/// What a process is started with.
pub(super) struct Words {
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// Its own, as long as it is there.
    ports: Vec<Port>,
}

impl Words {
    /// With this variable in its environment.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With these ports, which are the process's also while it is ended and will be started again.
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

pub(super) fn embedded(kubeconfig: &Path, port: &Port) -> Words {
    text(&[
        "apiserver",
        &format!("--port={port}"),
        "--no-controllers",
        &format!("--kubeconfig-out={}", kubeconfig.display()),
    ])
}

pub(super) fn etcd(home: &Path, client: &Port, peer: &Port) -> Words {
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

/// `etcd` is the port of where it keeps its objects, `prefix` the folder there.
pub(super) fn apiserver(home: &Path, etcd: u16, prefix: &str, secure: &Port) -> Words {
    let key = home.join("sa.key").display().to_string();
    text(&[
        &format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        &format!("--etcd-prefix={prefix}"),
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

/// One line for each request of the user `measured`, when it has been answered.
const AUDIT: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived", "ResponseStarted"],
  "rules": [{"level": "Metadata", "users": ["measured"]}, {"level": "None"}]
}"#;

/// What an API server is told that writes down requests.
pub(super) fn audit(home: &Path) -> Result<Vec<String>> {
    let policy = home.join("audit.json");
    std::fs::write(&policy, AUDIT).context("writing down whose requests are counted")?;
    let log = home.join("audit.log");
    std::fs::write(&log, "").context("making room for requests")?;
    Ok(vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
        "--audit-log-maxsize=2000".to_owned(),
    ])
}

pub(super) fn controller_manager(home: &Path, kubeconfig: &Path, profile: Profile) -> Words {
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

pub(super) fn scheduler(kubeconfig: &Path) -> Words {
    text(&[
        &format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false",
        // As many as its neighbour: of itself it gives nodes to 50 pods a second.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--secure-port=0",
    ])
}

pub(super) fn kwok(kubeconfig: &Path, stages: &Path, removal: &Path, port: &Port) -> Words {
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
