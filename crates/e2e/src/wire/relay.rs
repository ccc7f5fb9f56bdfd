//! The bytes between a program and its API server: cut, frozen, let through again.
//!
//! It looks into nothing, so TLS, HTTP/2 and its pings are those of the two ends.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::{read, server};
use crate::ports::Port;
use crate::process::Folder;

/// What happens to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// They go through.
    Open,
    /// They stay where they are; connections stay open.
    Frozen,
    /// Connections are closed, and new ones refused.
    Cut,
}

/// A relay in front of an API server; it ends with this value.
pub struct Relay {
    flow: watch::Sender<Flow>,
    kubeconfig: PathBuf,
    // Ends before the port is given back.
    _runtime: Runtime,
    _port: Port,
    _folder: Folder,
}

impl Relay {
    /// In front of the server of this kubeconfig, for whom that is.
    pub fn start(kubeconfig: &Path) -> Result<Self> {
        let mut config = read(kubeconfig)?;
        let upstream = server(&config)?
            .strip_prefix("https://")
            .context("the server does not speak HTTPS")?
            .trim_end_matches('/')
            .to_owned();
        let port = Port::draw()?;
        config["clusters"][0]["cluster"]["server"] = json!(format!("https://127.0.0.1:{port}"));
        let folder = Folder::new("relay")?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, config.to_string())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let (flow, flowing) = watch::channel(Flow::Open);
        let number = port.number();
        let listener = runtime.block_on(listen(number))?;
        runtime.spawn(relayed(listener, number, upstream, flowing));
        Ok(Self {
            flow,
            kubeconfig,
            _runtime: runtime,
            _port: port,
            _folder: folder,
        })
    }

    /// The kubeconfig of who is to go through here.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The API server is gone: all connections are closed, and new ones refused.
    pub fn cut(&self) {
        self.flow.send_replace(Flow::Cut);
    }

    /// The API server is silent: connections stay, and can be made; nothing is heard.
    pub fn freeze(&self) {
        self.flow.send_replace(Flow::Frozen);
    }

    /// Everything goes through again, also what was held.
    pub fn open(&self) {
        self.flow.send_replace(Flow::Open);
    }
}

async fn listen(port: u16) -> Result<TcpListener> {
    let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    listening.with_context(|| format!("listening on port {port} for a relay"))
}

/// Takes connections while the way is not cut.
async fn relayed(
    listener: TcpListener,
    port: u16,
    upstream: String,
    mut flow: watch::Receiver<Flow>,
) -> Result<()> {
    let mut listener = Some(listener);
    loop {
        let taking = if let Some(taking) = listener.take() {
            taking
        } else {
            flow.wait_for(|flow| *flow != Flow::Cut).await?;
            listen(port).await?
        };
        loop {
            let mut cut = flow.clone();
            tokio::select! {
                _ = cut.wait_for(|flow| *flow == Flow::Cut) => break,
                accepted = taking.accept() => {
                    let (client, _) = accepted?;
                    tokio::spawn(connection(client, upstream.clone(), flow.clone()));
                }
            }
        }
    }
}

/// One connection, until an end closes it or the way is cut.
async fn connection(
    client: TcpStream,
    upstream: String,
    mut flow: watch::Receiver<Flow>,
) -> Result<()> {
    let mut cut = flow.clone();
    let both = async {
        flow.wait_for(|flow| *flow != Flow::Frozen).await?;
        let server = TcpStream::connect(&upstream).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let (asking, answering) = (flow.clone(), flow);
        tokio::try_join!(
            copied(&mut from_client, &mut to_server, asking),
            copied(&mut from_server, &mut to_client, answering),
        )?;
        anyhow::Ok(())
    };
    tokio::select! {
        _ = cut.wait_for(|flow| *flow == Flow::Cut) => Ok(()),
        ended = both => ended,
    }
}

async fn copied(
    from: &mut tokio::net::tcp::OwnedReadHalf,
    to: &mut tokio::net::tcp::OwnedWriteHalf,
    mut flow: watch::Receiver<Flow>,
) -> Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = from.read(&mut buffer).await?;
        flow.wait_for(|flow| *flow != Flow::Frozen).await?;
        if read == 0 {
            to.shutdown().await?;
            return Ok(());
        }
        to.write_all(buffer.get(..read).unwrap_or_default()).await?;
    }
}
