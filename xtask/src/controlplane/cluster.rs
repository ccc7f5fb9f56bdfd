//! One control plane: its processes, in the order in which they start.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::part::Part;
use super::supervisor::Roster;
use super::tools::Programs;
use super::words::{self, Words};
use super::{Profile, READY_WITHIN, Shape, delivery};
use crate::order::Order;
use crate::ports::Port;
use crate::workspace;

/// Users of every control plane: token, name, uid, group. `admin` may do everything, `alice` nothing; `measured` is whose requests are
/// written down where that is asked for.
const USERS: &str = "admin-token,admin,admin,\"system:masters\"\n\
                     measured-token,measured,measured,\"system:masters\"\n\
                     alice-token,alice,alice-uid,\"dev\"\n\
                     controllers-token,system:kube-controller-manager,controllers,\"system:masters\"\n";

/// How KWOK removes pods.
const POD_DELETE: &str = include_str!("pod-delete.yaml");

/// Where the files of a control plane are.
pub(super) fn home(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("cluster-{index}"))
}

/// Where the kubeconfig of a control plane is; it appears when the control plane answers.
pub(super) fn kubeconfig(folder: &Path, index: usize) -> PathBuf {
    home(folder, index).join("kubeconfig")
}

/// One control plane.
pub(super) struct Cluster {
    home: PathBuf,
    programs: Programs,
    shape: Shape,
    /// The API server, and etcd before it where it is its own or others use it too.
    servers: Vec<Part>,
    /// What has joined it.
    others: Vec<Part>,
    /// Where the API server listens, if that is known before it does.
    port: Option<u16>,
    /// Where it keeps its objects.
    store: Option<Store>,
}

/// Where objects are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Store {
    /// The port of etcd.
    port: u16,
    /// Nobody else keeps anything there.
    is_own: bool,
}

impl Store {
    /// The same etcd, for another control plane.
    pub(super) fn shared(self) -> Self {
        Self {
            is_own: false,
            ..self
        }
    }
}

impl Cluster {
    /// Prepares one; nothing runs yet. It keeps its objects in `store`, or else in an etcd of its own.
    pub(super) fn new(
        programs: &Programs,
        shape: &Shape,
        folder: &Path,
        index: usize,
        store: Option<Store>,
    ) -> Result<Self> {
        let home = home(folder, index);
        std::fs::create_dir_all(home.join("certs"))
            .with_context(|| format!("creating {}", home.display()))?;
        std::fs::write(home.join("tokens.csv"), USERS)?;
        service_account_key(&home)?;
        let mut cluster = Self {
            home,
            programs: programs.clone(),
            shape: shape.clone(),
            servers: Vec::new(),
            others: Vec::new(),
            port: None,
            store: None,
        };
        match &shape.join {
            Some(kubeconfig) => {
                std::fs::copy(kubeconfig, cluster.internal())
                    .with_context(|| format!("reading {}", kubeconfig.display()))?;
            }
            None if shape.embedded => {
                let program = workspace::target().join("release").join("slipway");
                let port = Port::draw()?;
                let words = words::embedded(&cluster.internal(), &port).holding([port]);
                let part = Part::new(&cluster.home, "slipway", &program, words);
                cluster.servers.push(part);
            }
            None => cluster.prepare_servers(store)?,
        }
        Ok(cluster)
    }

    /// A real API server, and etcd where there is none for it.
    fn prepare_servers(&mut self, store: Option<Store>) -> Result<()> {
        let store = if let Some(store) = store {
            store
        } else {
            let (client, peer) = (Port::draw()?, Port::draw()?);
            let port = client.number();
            let words = words::etcd(&self.home, &client, &peer).holding([client, peer]);
            let part = self.part("etcd", words)?;
            self.servers.push(part);
            Store { port, is_own: true }
        };
        // The usual place is for whom etcd was started.
        let prefix = if store.is_own {
            "/registry".to_owned()
        } else {
            let name = self.home.file_name().unwrap_or_default();
            format!("/{}", name.to_string_lossy())
        };
        let secure = Port::draw()?;
        std::fs::write(self.internal(), config(&secure))?;
        self.port = Some(secure.number());
        let mut words = words::apiserver(&self.home, store.port, &prefix, &secure);
        if self.shape.audit {
            words.arguments.extend(words::audit(&self.home)?);
        }
        let words = words.holding([secure]);
        let part = self.part("kube-apiserver", words)?;
        self.servers.push(part);
        self.store = Some(store);
        Ok(())
    }

    fn part(&self, name: &str, words: Words) -> Result<Part> {
        Ok(Part::new(
            &self.home,
            name,
            self.programs.path(name)?,
            words,
        ))
    }

    /// The kubeconfig of those who do not wait until the control plane answers.
    fn internal(&self) -> PathBuf {
        self.home.join("kubeconfig.internal")
    }

    /// Where it keeps its objects, if it is a real one.
    pub(super) fn store(&self) -> Option<Store> {
        self.store
    }

    /// From now on others keep their objects in its etcd too.
    pub(super) fn share(&mut self) {
        self.store = self.store.map(Store::shared);
    }

    /// Starts the API server and what it needs, and waits for none of it.
    pub(super) fn launch(&mut self, roster: &Roster) -> Result<()> {
        self.servers
            .iter_mut()
            .try_for_each(|part| part.start(roster))
    }

    /// Starts all of it that does not run, and shows the kubeconfig when it can be used.
    pub(super) fn start(&mut self, roster: &Roster, stop: &AtomicBool) -> Result<()> {
        self.launch(roster)?;
        let internal = self.internal();
        self.wait_until_ready(stop)?;
        if self.others.is_empty() {
            let kubectl = self.programs.path("kubectl")?;
            let mut all = joined(&self.programs, &self.shape, &self.home, &internal)?;
            all.extend(delivery::joined(
                &self.programs,
                &self.shape,
                kubectl,
                &self.home,
                &internal,
            )?);
            for (name, words) in all {
                let part = self.part(name, words)?;
                self.others.push(part);
            }
        }
        self.others
            .iter_mut()
            .try_for_each(|part| part.start(roster))?;
        // Under its name only now: who sees the file can use it.
        let ready = self.home.join("kubeconfig.ready");
        std::fs::copy(&internal, &ready)?;
        std::fs::rename(&ready, self.home.join("kubeconfig"))?;
        Ok(())
    }

    /// Ends all of it, the last to start first.
    pub(super) fn end(&mut self, roster: &Roster) {
        for part in self.others.iter_mut().rev() {
            part.end(roster);
        }
        for part in self.servers.iter_mut().rev() {
            part.end(roster);
        }
    }

    /// A process of it that ended by itself.
    pub(super) fn ended(&mut self) -> Result<Option<(&str, ExitStatus)>> {
        for part in self.servers.iter_mut().chain(&mut self.others) {
            if let Some(ended) = part.ended()? {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }

    /// Does what somebody has asked for.
    pub(super) fn carry_out(
        &mut self,
        order: Order,
        roster: &Roster,
        stop: &AtomicBool,
    ) -> Result<()> {
        match order {
            // An embedded one has its objects in itself: it stays, and is silent.
            Order::Stop if self.shape.embedded => self.server()?.signal("STOP"),
            Order::Stop => {
                self.server()?.end(roster);
                Ok(())
            }
            Order::Start => {
                if self.shape.embedded {
                    self.server()?.signal("CONT")?;
                }
                self.start(roster, stop)
            }
            Order::Wipe => self.wipe(roster, stop),
        }
    }

    /// The API server, which is not there where others' was joined.
    fn server(&mut self) -> Result<&mut Part> {
        let server = self.servers.last_mut();
        server.context("its API server is not ours")
    }

    /// Ends it and starts it again without any object: another cluster at the same address, with the same credentials.
    fn wipe(&mut self, roster: &Roster, stop: &AtomicBool) -> Result<()> {
        if !self.store.is_some_and(|store| store.is_own) {
            bail!("others keep their objects in its etcd: start it with --own-etcd");
        }
        self.end(roster);
        // What joins it again may install something first.
        self.others.clear();
        let kept = self.home.join("etcd");
        std::fs::remove_dir_all(&kept).with_context(|| format!("removing {}", kept.display()))?;
        self.start(roster, stop)
    }

    /// Waits until the API server is ready, by its own word.
    fn wait_until_ready(&self, stop: &AtomicBool) -> Result<()> {
        let start = Instant::now();
        let kubectl = self.programs.path("kubectl")?;
        while start.elapsed() < READY_WITHIN {
            if stop.load(Ordering::Relaxed) {
                bail!("nobody waits for the control plane any more");
            }
            if self.listens() && is_ready(kubectl, &self.internal())? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("kube-apiserver was not ready within {READY_WITHIN:?}")
    }

    /// Whether it is worth asking: kubectl takes more of the processor than anything else here, which those that start
    /// could use.
    fn listens(&self) -> bool {
        match self.port {
            Some(port) => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(),
            None => self.internal().is_file(),
        }
    }
}

fn is_ready(kubectl: &Path, kubeconfig: &Path) -> Result<bool> {
    let answer = Command::new(kubectl)
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(["get", "--raw", "/readyz", "--request-timeout=10s"])
        .output()
        .context("asking the API server whether it is ready")?;
    Ok(answer.stdout == b"ok")
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
        let mut words = words::controller_manager(home, kubeconfig, shape.profile);
        words.arguments.extend(json.clone());
        all.push(("kube-controller-manager", words));
    }
    if shape.profile == Profile::Full {
        let mut words = words::scheduler(kubeconfig);
        words.arguments.extend(json);
        all.push(("kube-scheduler", words));
        if let Some(stages) = programs.files("kwok") {
            let removal = home.join("pod-delete.yaml");
            std::fs::write(&removal, POD_DELETE)?;
            let port = Port::draw()?;
            let words = words::kwok(kubeconfig, stages, &removal, &port);
            all.push(("kwok", words.holding([port])));
        }
    }
    Ok(all)
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
