//! Servers on loopback that do as they please, and what calls to them are made with.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use slipway_kernel::Sensitive;
use slipway_kernel::address::{Patterns, Rules, Url};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::question::{Answer, Call, OtherNamespaces, SecretRef};
use slipway_runtime::outside::{
    Ask, Asked, Limits, NoSecrets, Outside, Resolve, Secrets, Still, Terms, Use,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a server does when it has read a request.
#[derive(Clone)]
pub(crate) enum Play {
    /// Says this and hangs up.
    Say(Vec<u8>),
    /// Says this and then nothing.
    Stall(Vec<u8>),
    /// Says this, and then that again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// Says this byte by byte, slowly.
    Drip(Vec<u8>),
    /// Repeats the request as its answer.
    Echo,
    /// Says this to each request of a connection, which stays.
    Keep(Vec<u8>),
}

/// What servers were asked, as it came over the wire.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<(Vec<String>, usize)>>);

impl Heard {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().0.clone()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

/// A server at this address that plays.
pub(crate) async fn server_at(address: &str, play: Play) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard = Heard::default();
    let hears = heard.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            hears.0.lock().unwrap().1 += 1;
            tokio::spawn(serve(stream, play.clone(), hears.clone()));
        }
    });
    (address, heard)
}

/// A server on loopback.
pub(crate) async fn server(play: Play) -> (SocketAddr, Heard) {
    server_at("127.0.0.1:0", play).await
}

async fn serve(mut stream: TcpStream, play: Play, heard: Heard) {
    while let Some(request) = request(&mut stream).await {
        heard.0.lock().unwrap().0.push(request.clone());
        let Play::Keep(bytes) = &play else {
            return once(stream, play, &request).await;
        };
        if stream.write_all(bytes).await.is_err() {
            return;
        }
    }
}

/// The head of a request and what came with it.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 4_096];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(n) if n > 0 => request.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
    Some(String::from_utf8_lossy(&request).into_owned())
}

async fn once(mut stream: TcpStream, play: Play, request: &str) {
    let _ = match play {
        Play::Say(bytes) | Play::Keep(bytes) => stream.write_all(&bytes).await,
        Play::Echo => stream.write_all(&ok(request)).await,
        Play::Stall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            std::future::pending().await
        }
        Play::Endless(first, then) => {
            let mut result = stream.write_all(&first).await;
            while result.is_ok() {
                result = stream.write_all(&then).await;
            }
            result
        }
        Play::Drip(bytes) => {
            let mut result = Ok(());
            for byte in bytes {
                tokio::time::sleep(Duration::from_millis(50)).await;
                result = stream.write_all(&[byte]).await;
                if result.is_err() {
                    break;
                }
            }
            result
        }
    };
}

/// A good answer.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    answer("200 OK", "", body)
}

/// An answer with this status and these further headers.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

/// Names of the test, which may have other addresses each time that they are looked up.
#[derive(Clone, Default)]
pub(crate) struct Book {
    names: Arc<Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Book {
    pub(crate) fn with(self, name: &str, each_time: &[&[&str]]) -> Self {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        let all = each_time.iter().map(parse).collect();
        self.names.lock().unwrap().insert(name.to_owned(), all);
        self
    }
}

impl Resolve for Book {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut names = self.names.lock().unwrap();
        let found = match names.get_mut(name) {
            None => Err(io::Error::other("no such name")),
            Some(all) if all.len() > 1 => Ok(all.remove(0)),
            Some(all) => Ok(all[0].clone()),
        };
        Box::pin(async { found })
    }
}

/// Secrets of the test.
#[derive(Clone, Default)]
pub(crate) struct Safe(BTreeMap<String, String>);

impl Safe {
    pub(crate) fn with(mut self, of: &SecretRef, value: &str) -> Self {
        self.0.insert(of.to_string(), value.to_owned());
        self
    }
}

impl Secrets for Safe {
    fn read(
        &self,
        of: &SecretRef,
        _: Use,
    ) -> BoxFuture<'static, Result<Sensitive<Vec<u8>>, String>> {
        let found = self.0.get(&of.to_string()).cloned();
        let found = found.map(|value| Sensitive::new(value.into_bytes()));
        Box::pin(async { found.ok_or_else(|| "it is not there".to_owned()) })
    }
}

pub(crate) fn secret(key: &str) -> SecretRef {
    SecretRef {
        namespace: "default".to_owned(),
        name: "credentials".to_owned(),
        key: key.to_owned(),
    }
}

/// Rules under which these special addresses may be called.
pub(crate) fn rules(special: &[&str]) -> Rules {
    Rules {
        special: Patterns::parse(special.iter().copied()).unwrap(),
        ..Rules::default()
    }
}

/// With loopback allowed, and names of the test.
pub(crate) fn terms(book: &Book) -> Terms {
    Terms {
        rules: rules(&["127.0.0.0/8"]),
        other_namespaces: OtherNamespaces::Refused,
        credentials_over_http: true,
        limits: Limits::default(),
        resolver: Arc::new(book.clone()),
        secrets: Arc::new(NoSecrets),
        agent: "slipway/test",
    }
}

pub(crate) fn url(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// Asks on behalf of somebody.
pub(crate) async fn ask_as(outside: &Outside, name: &str, call: Call) -> Answer {
    ask_in(outside, "default", name, call).await
}

pub(crate) fn key(namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: "toy",
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// Asks on behalf of somebody in a namespace.
pub(crate) async fn ask_in(outside: &Outside, namespace: &str, name: &str, call: Call) -> Answer {
    let key = key(namespace, name);
    let id = format!("toy/{name}/1");
    let still = Still::default();
    outside
        .ask(Asked {
            key,
            id,
            call,
            still,
        })
        .await
}

pub(crate) async fn ask(outside: &Outside, call: Call) -> Answer {
    ask_as(outside, "one", call).await
}
