//! Prometheus itself, what it scrapes, and a front that wants a token.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use slipway_kernel::address::Url;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A private CA, and a certificate of it for loopback. PEM texts.
pub(crate) struct Issued {
    pub(crate) ca: String,
    certificate: String,
    key: String,
}

impl Issued {
    pub(crate) fn new() -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let server = CertificateParams::new(names).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = server.signed_by(&key, &authority).unwrap();
        Self {
            ca: authority.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    fn server(&self) -> rustls::ServerConfig {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap()
    }
}

/// Reads a head.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    head
}

/// Something to be scraped.
pub(crate) async fn target() -> SocketAddr {
    const PAGE: &str = "probe_value 0.25\nprobe_many{n=\"a\"} 1\nprobe_many{n=\"b\"} 2\n";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                head(&mut stream).await;
                let length = PAGE.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{PAGE}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    address
}

/// A front over TLS that lets those through to Prometheus who show a token.
pub(crate) async fn front(issued: &Issued, to: SocketAddr, token: &'static str) -> Url {
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(issued.server()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            tokio::spawn(async move {
                let head = head(&mut stream).await;
                let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
                let shown = format!("\r\nauthorization: bearer {token}\r\n");
                if !text.contains(&shown.to_ascii_lowercase()) {
                    let no = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";
                    let _ = stream.write_all(no.as_bytes()).await;
                    let _ = stream.shutdown().await;
                    return;
                }
                let mut prometheus = TcpStream::connect(to).await.unwrap();
                prometheus.write_all(&head).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut prometheus).await;
            });
        }
    });
    Url::parse(&format!("https://{address}/")).unwrap()
}

/// A running Prometheus. It ends with this, and its folder is gone.
pub(crate) struct Prometheus {
    process: Child,
    folder: PathBuf,
    pub(crate) address: SocketAddr,
    is_sealed: bool,
}

impl Prometheus {
    /// Starts one that scrapes a target every second.
    pub(crate) async fn start(program: &Path, target: SocketAddr, sealed: Option<&Issued>) -> Self {
        let address = free();
        let folder = std::env::temp_dir().join(format!("slipway-prometheus-{}", address.port()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write(
            "prometheus.yml",
            &format!(
                "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: test\n    static_configs: [{{targets: [\"{target}\"]}}]\n"
            ),
        );
        let mut command = Command::new(program);
        command
            .current_dir(&folder)
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("log")).unwrap());
        if let Some(issued) = sealed {
            write("tls.crt", &issued.certificate);
            write("tls.key", &issued.key);
            write(
                "web.yml",
                "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n",
            );
            command.arg("--web.config.file=web.yml");
        }
        let process = command.spawn().unwrap();
        let mut started = Self {
            process,
            folder,
            address,
            is_sealed: sealed.is_some(),
        };
        started.until_listening().await;
        started
    }

    async fn until_listening(&mut self) {
        let began = Instant::now();
        while TcpStream::connect(self.address).await.is_err() {
            let log = || std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            if let Ok(Some(status)) = self.process.try_wait() {
                panic!("Prometheus ended with {status}:\n{}", log());
            }
            assert!(began.elapsed() < super::SOON, "no Prometheus:\n{}", log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn url(&self) -> Url {
        let scheme = if self.is_sealed { "https" } else { "http" };
        Url::parse(&format!("{scheme}://{}/", self.address)).unwrap()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A port that nobody has just now.
fn free() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
