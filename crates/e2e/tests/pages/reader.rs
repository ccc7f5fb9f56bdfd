//! Somebody who reads a page and types what it says.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::install::node;
use slipway_e2e::process::{Folder, Shell};
use slipway_e2e::server::{Server, program};
use slipway_e2e::suite::say;

use crate::kubelet::Kubelet;
use crate::page::{Block, blocks, root};

/// How long something that should happen at once may take on a loaded machine.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// How long the commands of one block may take.
const BLOCK: Duration = Duration::from_mins(5);

/// kubectl, and then a moment for the kubelet: a real one would have started what was applied before the next line is
/// typed.
const KUBECTL: &str = r#"#!/bin/sh
"$SLIPWAY_READ_KUBECTL" "$@"
code=$?
touch "$SLIPWAY_READ_STATE/typed"
while [ -e "$SLIPWAY_READ_STATE/typed" ]; do sleep 0.05; done
exit $code
"#;

/// A namespace that no page is about.
const ELSEWHERE: &str = "elsewhere";

/// A reader before a cluster.
pub(crate) struct Reader {
    cluster: Cluster,
    server: &'static str,
    folder: Folder,
}

impl Reader {
    /// Puts `kubectl` and `slipway` on a PATH.
    pub(crate) fn set(kubectl: &Path, server: &dyn Server) -> Result<Self> {
        let cluster = Cluster::new(kubectl, server.kubeconfig())?;
        if server.name() == "real" {
            for index in 0..3 {
                cluster.apply(&node(index).to_string())?;
            }
        }
        let folder = Folder::new("reader")?;
        let programs = folder.path().join("bin");
        std::fs::create_dir_all(&programs)?;
        symlink(program()?, programs.join("slipway"))?;
        let wrapper = programs.join("kubectl");
        std::fs::write(&wrapper, KUBECTL)?;
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755))?;
        Ok(Self {
            cluster,
            server: server.name(),
            folder,
        })
    }

    /// Types a block; what it printed.
    fn types(&self, page: &str, block: &Block, kubelet: &mut Kubelet<'_>) -> Result<()> {
        let place = format!("docs/{page}:{} ({})", block.line, block.heading);
        let state = self.folder.path().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let environment = [
            ("PATH", format!("{state}/bin:{path}")),
            ("HOME", state.clone()),
            ("KUBECONFIG", self.cluster.kubeconfig.display().to_string()),
            (
                "SLIPWAY_READ_KUBECTL",
                self.cluster.kubectl.display().to_string(),
            ),
            ("SLIPWAY_READ_STATE", state),
        ];
        let script = self.folder.path().join("block.sh");
        std::fs::write(&script, &block.text)?;
        let script = format!("exec bash -eu {}", script.display());
        let mut shell = Shell::start(&script, &root(), &environment)?;
        let typed = self.folder.path().join("typed");
        let start = Instant::now();
        while !shell.is_done()? {
            if typed.exists() {
                kubelet.sync().with_context(|| place.clone())?;
                std::fs::remove_file(&typed)?;
            }
            if start.elapsed() > BLOCK {
                bail!("{place} did not end within {BLOCK:?}: {}", kubelet.log());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = shell.finish(SOON)?;
        if output.exit != Some(0) {
            bail!(
                "{place}: exit {:?}\n{}{}\nthe operator: {}",
                output.exit,
                output.out,
                output.err,
                kubelet.log()
            );
        }
        say(&format!("{} {place}: done", self.server));
        Ok(())
    }
}

/// Whether a heading is that of what takes everything away again.
fn takes_away(block: &Block) -> bool {
    let heading = block.heading.to_lowercase();
    ["uninstall", "remove", "away"]
        .iter()
        .any(|word| heading.contains(word))
}

/// Types a page from its beginning to its end; before everything is taken away again, looks at what stands.
fn read(
    reader: &Reader,
    page: &str,
    standing: impl Fn(&Reader, &mut Kubelet<'_>) -> Result<()>,
) -> Result<()> {
    let blocks = blocks(page)?;
    let mut kubelet = Kubelet::new(&reader.cluster)?;
    let mut has_looked = false;
    for block in &blocks {
        if takes_away(block) && !has_looked {
            standing(reader, &mut kubelet)?;
            has_looked = true;
        }
        reader.types(page, block, &mut kubelet)?;
    }
    ensure!(
        has_looked,
        "docs/{page} does not say how to take everything away again"
    );
    kubelet.stop()
}

/// `docs/zones.md`; then, with the operator stopped, others are not held up.
pub(crate) fn zones(reader: &Reader) -> Result<()> {
    read(reader, "zones.md", |reader, kubelet| {
        rolled(reader).with_context(|| kubelet.log())?;
        kubelet.stop()?;
        unhindered(reader)
    })
}

/// `docs/restarts.md`.
pub(crate) fn restarts(reader: &Reader) -> Result<()> {
    read(reader, "restarts.md", |_, kubelet| kubelet.stop())
}

/// A workload of two pods that is nobody's zone.
fn workload(namespace: &str, kind: &str) -> String {
    let name = format!("plain-{}", kind.to_lowercase());
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, "plain": namespace}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    });
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = json!(name);
    }
    object.to_string()
}

/// The namespaces of zones that the page made.
fn zone_namespaces(cluster: &Cluster) -> Result<Vec<String>> {
    let path = "jsonpath={range .items[*]}{.metadata.namespace}{\"\\n\"}{end}";
    let text = cluster.kubectl(&[
        "get",
        "statefulsets",
        "-A",
        "-l",
        "rollout-group",
        "-o",
        path,
    ])?;
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    all.sort();
    all.dedup();
    ensure!(!all.is_empty(), "the page made no zones");
    Ok(all)
}

/// All zones of the page have their last version.
fn rolled(reader: &Reader) -> Result<()> {
    let zones = ["get", "statefulsets", "-A", "-l", "rollout-group"];
    reader
        .cluster
        .eventually("the zones are rolled", BLOCK, |cluster| {
            let list = cluster.json(&zones)?;
            let all = list["items"].as_array().cloned().unwrap_or_default();
            let is_rolled = |zone: &Value| {
                let status = &zone["status"];
                status["updatedReplicas"] == zone["spec"]["replicas"]
                    && status["readyReplicas"] == zone["spec"]["replicas"]
                    && status["observedGeneration"] == zone["metadata"]["generation"]
            };
            Ok((!all.is_empty() && all.iter().all(is_rolled)).then_some(()))
        })
}

/// With the operator stopped: `scale` and `drain` work in other namespaces, and `set image` of what is nobody's zone also
/// in the same one.
fn unhindered(reader: &Reader) -> Result<()> {
    let cluster = &reader.cluster;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}});
    cluster.apply(&namespace.to_string())?;
    let mut namespaces = zone_namespaces(cluster)?;
    namespaces.push(ELSEWHERE.to_owned());
    for namespace in &namespaces {
        for kind in ["StatefulSet", "Deployment"] {
            cluster.apply(&workload(namespace, kind))?;
            let name = format!("{}/plain-{}", kind.to_lowercase(), kind.to_lowercase());
            let words = ["-n", namespace, "set", "image", &name, "app=app:2"];
            cluster
                .kubectl(&words)
                .context("with the operator stopped")?;
        }
    }
    let scale = [
        "-n",
        ELSEWHERE,
        "scale",
        "--replicas=1",
        "statefulset/plain-statefulset",
    ];
    cluster
        .kubectl(&scale)
        .context("with the operator stopped")?;
    let selector = format!("plain={ELSEWHERE}");
    let nodes = cluster.eventually("pods elsewhere are on nodes", SOON, |cluster| {
        let path = "jsonpath={.items[*].spec.nodeName}";
        let text =
            cluster.kubectl(&["-n", ELSEWHERE, "get", "pods", "-l", &selector, "-o", path])?;
        let nodes: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Ok((!nodes.is_empty()).then_some(nodes))
    })?;
    let node = nodes.first().context("there is no node")?;
    let selector = format!("--pod-selector={selector}");
    let drain = [
        "drain",
        node,
        "--force",
        "--ignore-daemonsets",
        "--timeout=60s",
        &selector,
    ];
    let drained = cluster.kubectl(&drain);
    cluster.kubectl(&["uncordon", node])?;
    drained.context("with the operator stopped").map(drop)
}
