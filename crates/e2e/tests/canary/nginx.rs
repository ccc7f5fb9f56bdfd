//! nginx: its configuration out of routes, and its process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use slipway_e2e::ports::Port;
use slipway_e2e::process::Folder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How long a configuration may take until every request goes by it.
const WITHIN: Duration = Duration::from_mins(1);
/// So many answers in a row are of a configuration before it is said to be there: a worker of the former one may still accept.
const IN_A_ROW: usize = 5;

/// Which part of the requests goes to which Service, and where the pods of these are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Routes {
    /// Weights of Services.
    pub(crate) weights: Vec<(String, u32)>,
    /// Ports of the pods of each Service.
    pub(crate) upstreams: BTreeMap<String, Vec<u16>>,
}

impl Routes {
    /// Services that get requests and have nobody to answer them.
    pub(crate) fn starved(&self) -> Vec<&str> {
        let wanted = self.weights.iter().filter(|(_, weight)| *weight > 0);
        let is_empty = |name: &str| self.upstreams.get(name).is_none_or(Vec::is_empty);
        wanted
            .map(|(name, _)| name.as_str())
            .filter(|name| is_empty(name))
            .collect()
    }

    /// The share of this Service in percent.
    pub(crate) fn share(&self, service: &str) -> u32 {
        let total: u32 = self.weights.iter().map(|(_, weight)| weight).sum();
        let own = self.weights.iter().filter(|(name, _)| name == service);
        let own: u32 = own.map(|(_, weight)| weight).sum();
        (own * 100).checked_div(total).unwrap_or_default()
    }

    /// As nginx reads them: `split_clients` draws a Service for each request.
    fn config(&self, port: u16, generation: usize) -> String {
        let mut http = String::new();
        for (name, _) in &self.weights {
            let ports = self.upstreams.get(name).into_iter().flatten();
            let mut servers: String = ports.fold(String::new(), |mut all, port| {
                let _ = write!(all, " server 127.0.0.1:{port};");
                all
            });
            if servers.is_empty() {
                // An upstream cannot be empty; this one answers nobody.
                servers.push_str(" server 127.0.0.1:9 down;");
            }
            let _ = writeln!(http, "  upstream {name} {{{servers} }}");
        }
        let total: u32 = self.weights.iter().map(|(_, weight)| weight).sum();
        let drawn: Vec<&(String, u32)> = self.weights.iter().filter(|one| one.1 > 0).collect();
        let forward = match drawn.split_last() {
            None => "return 503;",
            Some((last, others)) => {
                let _ = write!(http, "  split_clients $request_id $drawn {{");
                for (name, weight) in others {
                    let percent = f64::from(*weight) * 100.0 / f64::from(total);
                    let _ = write!(http, " {percent:.2}% {name};");
                }
                let _ = writeln!(http, " * {}; }}", last.0);
                "proxy_pass http://$drawn;"
            }
        };
        format!(
            "user root;\ndaemon off;\nworker_processes 1;\npid nginx.pid;\nerror_log stderr error;\nevents {{ worker_connections 4096; }}\n\
             http {{\n  access_log off;\n  client_body_temp_path temp-body;\n  proxy_temp_path temp-proxy;\n  fastcgi_temp_path temp-fastcgi;\n  \
             uwsgi_temp_path temp-uwsgi;\n  scgi_temp_path temp-scgi;\n  keepalive_requests 100000;\n{http}  \
             server {{ listen 127.0.0.1:{port}; location = /generation {{ return 200 \"{generation}\"; }} location / {{ {forward} }} }}\n}}\n"
        )
    }
}

/// A running nginx; ended with this value.
pub(crate) struct Nginx {
    child: Child,
    port: Port,
    folder: Folder,
    generation: usize,
}

impl Nginx {
    /// Starts this program with no routes yet.
    pub(crate) async fn start(program: &Path) -> Result<Self> {
        let (port, folder) = (Port::draw()?, Folder::new("nginx")?);
        let config = Routes::default().config(port.number(), 0);
        std::fs::write(folder.path().join("nginx.conf"), config)?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        let child = Command::new(program)
            .arg("-p")
            .arg(folder.path())
            .args(["-c", "nginx.conf", "-e", "stderr"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut nginx = Self {
            child,
            port,
            folder,
            generation: 0,
        };
        nginx.arrived().await?;
        Ok(nginx)
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    /// Gives it these routes, and waits until requests go by them.
    pub(crate) async fn load(&mut self, routes: &Routes) -> Result<()> {
        self.generation += 1;
        let config = routes.config(self.port.number(), self.generation);
        let place = self.folder.path();
        std::fs::write(place.join("next"), config)?;
        std::fs::rename(place.join("next"), place.join("nginx.conf"))?;
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-HUP", &id]).status()?;
        ensure!(told.success(), "nginx is gone: {}", self.log());
        self.arrived().await
    }

    async fn arrived(&mut self) -> Result<()> {
        let (start, mut in_a_row) = (Instant::now(), 0);
        while in_a_row < IN_A_ROW {
            let found = generation(self.port.number()).await.ok();
            in_a_row = if found == Some(self.generation) {
                in_a_row + 1
            } else {
                0
            };
            if let Some(status) = self.child.try_wait()? {
                bail!("nginx ended with {status}: {}", self.log());
            }
            if start.elapsed() > WITHIN {
                bail!("nginx has not taken its configuration: {}", self.log());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it when it is told to, and not when it is killed.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.child.wait();
    }
}

/// Which configuration answers.
async fn generation(port: u16) -> Result<usize> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = "GET /generation HTTP/1.0\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    let (_, body) = said.split_once("\r\n\r\n").context("no answer")?;
    Ok(body.trim().parse()?)
}
