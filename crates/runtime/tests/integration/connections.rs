//! Connections that are held without being used, on both ports.

use std::time::Duration;

use http::StatusCode;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use slipway_runtime::webhook::Limits;
use slipway_runtime::{Environment, probes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::stage::{Stage, epoch};
use crate::webhook::{guard, open};
use crate::webhook_tls::{Served, post, review, start, whole};

/// How long something that should happen at once may take on a loaded machine.
const SOON: Duration = Duration::from_secs(20);

type Sender = SendRequest<http_body_util::Full<bytes::Bytes>>;

/// A client that keeps its connection, and answers pings on it.
async fn client(served: &Served) -> (Sender, JoinHandle<()>) {
    let stream = TokioIo::new(served.connect(b"h2").await);
    let (sender, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
    let task = tokio::spawn(async {
        let _ = connection.await;
    });
    (sender, task)
}

async fn ask(sender: &mut Sender) -> StatusCode {
    whole(sender.send_request(post(review("a"))).await.unwrap())
        .await
        .0
}

#[tokio::test]
async fn idle_http2_connections_do_not_keep_others_out() {
    let stage = Stage::new().await;
    open(&stage).await;
    let limits = Limits {
        connections: 4,
        ..Limits::default()
    };
    let served = start(&stage, limits).await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        let (mut sender, task) = client(&served).await;
        assert_eq!(ask(&mut sender).await, StatusCode::OK);
        idle.push((sender, task));
    }
    // They go on holding theirs, and three more come.
    for n in 0..3 {
        let came = async {
            let (mut sender, task) = client(&served).await;
            assert_eq!(ask(&mut sender).await, StatusCode::OK);
            (sender, task)
        };
        let came = timeout(SOON, came).await;
        idle.push(came.unwrap_or_else(|_| panic!("number {n} was kept out")));
    }
    // Those that had been idle for longest have given way, and no others.
    for (n, (sender, task)) in idle.iter_mut().enumerate() {
        if n < 3 {
            let gone = timeout(SOON, task).await;
            assert!(gone.is_ok(), "number {n} is still there");
        } else {
            assert_eq!(ask(sender).await, StatusCode::OK, "number {n}");
        }
    }
    served.end().await;
}

#[tokio::test]
async fn a_connection_without_requests_ends_and_one_with_a_request_does_not() {
    let stage = Stage::new().await;
    open(&stage).await;
    let limits = Limits {
        idle: Duration::from_millis(500),
        ..Limits::default()
    };
    let served = start(&stage, limits).await;
    let body = review("slow");
    let (begin, rest) = body.split_at(body.len() / 2);
    let head = format!(
        "POST /admission/guard HTTP/1.1\r\nhost: slipway\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut used = served.connect(b"http/1.1").await;
    used.write_all(head.as_bytes()).await.unwrap();
    used.write_all(begin).await.unwrap();
    used.flush().await.unwrap();
    let (_sender, unused) = client(&served).await;
    let gone = timeout(SOON, unused).await;
    assert!(gone.is_ok(), "it is held for ever");
    used.write_all(rest).await.unwrap();
    used.flush().await.unwrap();
    let mut answer = Vec::new();
    let _ = used.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    served.end().await;
}

async fn probing(stage: &Stage) -> (std::net::SocketAddr, JoinHandle<()>) {
    let view = guard(stage, Environment::virtual_from(epoch(), 7)).view();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async { probes::serve(listener, view).await.unwrap() });
    (address, task)
}

#[tokio::test]
async fn silent_connections_do_not_fill_the_port_of_probes() {
    let stage = Stage::new().await;
    let (address, task) = probing(&stage).await;
    let mut silent = Vec::new();
    for _ in 0..130 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let mut asked = TcpStream::connect(address).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: slipway\r\nconnection: close\r\n\r\n";
    asked.write_all(request).await.unwrap();
    let mut answer = String::new();
    let read = timeout(SOON, asked.read_to_string(&mut answer)).await;
    read.expect("kubelet is answered").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // There is room for 128: the first three have given way.
    for held in silent.iter_mut().take(3) {
        let ended = timeout(SOON, held.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "it is held for ever");
    }
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn the_head_of_a_probe_has_ten_seconds() {
    let stage = Stage::new().await;
    let (address, task) = probing(&stage).await;
    let began = Instant::now();
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nho")
        .await
        .unwrap();
    let ended = timeout(Duration::from_mins(1), slow.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "it is held for ever");
    assert!(
        began.elapsed() <= Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    task.abort();
}
