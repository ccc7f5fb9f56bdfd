//! A real Prometheus that scrapes all pods that answer, once a second.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use slipway_e2e::ports::Port;
use slipway_e2e::process::Folder;

use crate::pods::Pods;

/// How long it may take to begin.
const WITHIN: Duration = Duration::from_mins(1);

/// A running Prometheus; ended with this value.
pub(crate) struct Prometheus {
    child: Child,
    port: Port,
    folder: Folder,
}

impl Prometheus {
    /// Starts this program.
    pub(crate) fn start(program: &Path) -> Result<Self> {
        let (port, folder) = (Port::draw()?, Folder::new("prometheus")?);
        let place = folder.path();
        let config = json!({
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "pods", "file_sd_configs": [{"files": ["pods.json"], "refresh_interval": "5s"}]}],
        });
        std::fs::write(place.join("prometheus.yml"), config.to_string())?;
        std::fs::write(place.join("pods.json"), "[]")?;
        let log = std::fs::File::create(place.join("log"))?;
        let child = Command::new(program)
            .arg(format!(
                "--config.file={}",
                place.join("prometheus.yml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                place.join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut prometheus = Self {
            child,
            port,
            folder,
        };
        prometheus.wait_until_ready()?;
        Ok(prometheus)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let start = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port.number())).is_err() {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            if let Some(status) = self.child.try_wait()? {
                bail!("Prometheus ended with {status}: {log}");
            }
            if start.elapsed() > WITHIN {
                bail!("Prometheus does not listen: {log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Where it is asked.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Tells it which pods of a namespace there are.
    pub(crate) fn scrape(&self, namespace: &str, pods: &Pods) -> Result<()> {
        let targets: Vec<_> = pods
            .all()
            .map(|(name, port)| {
                let labels =
                    json!({"kubernetes_namespace": namespace, "kubernetes_pod_name": name});
                json!({"targets": [format!("127.0.0.1:{port}")], "labels": labels})
            })
            .collect();
        let place = self.folder.path();
        std::fs::write(place.join("next"), json!(targets).to_string())?;
        std::fs::rename(place.join("next"), place.join("pods.json"))?;
        Ok(())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
