//! The real server over HTTPS: many clusters on one port, tokens, both protocols, and watches that end.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::api::{ListParams, PostParams, ResourceExt, WatchParams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::outside::{Wire, connect, kube_client, piece, server, until};
use super::stage::{ADMIN, map, maps, refused};

const WATCH: &str = "/clusters/one/api/v1/configmaps?watch=1";

#[tokio::test]
async fn clusters_share_a_port_and_nothing_else() {
    let (_server, https) = server(&["one", "two"]);
    let one = kube_client(&https, "one", ADMIN).await;
    let two = kube_client(&https, "two", ADMIN).await;
    maps(&one)
        .create(&PostParams::default(), &map("a", "1"))
        .await
        .unwrap();
    assert!(maps(&two).get_opt("a").await.unwrap().is_none());
    maps(&two)
        .create(&PostParams::default(), &map("a", "2"))
        .await
        .unwrap();
    let found = maps(&one).list(&ListParams::default()).await.unwrap();
    assert_eq!(found.items[0].data.as_ref().unwrap()["k"], "1");
    assert_ne!(
        found.items[0].uid(),
        maps(&two).get("a").await.unwrap().uid()
    );
    // Without a prefix the first one answers.
    let mut wire = Wire::open(&https, "h2").await;
    let answer = wire
        .get(&https, "/api/v1/namespaces/default/configmaps/a")
        .await;
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&text).contains("{\"k\":\"1\"}"));
}

#[tokio::test]
async fn strangers_get_401_and_unknown_clusters_404() {
    let (_server, https) = server(&["one"]);
    let stranger = kube_client(&https, "one", "guess").await;
    let refusal = refused(maps(&stranger).list(&ListParams::default()).await);
    assert_eq!((refusal.code, &*refusal.reason), (401, "Unauthorized"));
    let lost = kube_client(&https, "three", ADMIN).await;
    assert_eq!(
        refused(maps(&lost).list(&ListParams::default()).await).code,
        404
    );
}

#[tokio::test]
async fn both_protocols_get_the_same_answers() {
    let (_server, https) = server(&["one"]);
    let mut bodies = Vec::new();
    for protocol in ["http/1.1", "h2"] {
        let mut wire = Wire::open(&https, protocol).await;
        for path in [
            "/version",
            "/clusters/one/apis",
            "/clusters/one/api/v1/namespaces/default/configmaps/none",
        ] {
            let answer = wire.get(&https, path).await;
            let head = (answer.status(), answer.headers()["content-type"].clone());
            bodies.push((head, answer.into_body().collect().await.unwrap().to_bytes()));
        }
    }
    assert_eq!(bodies[..3], bodies[3..]);
    assert_eq!(bodies[2].0.0, 404);
}

#[tokio::test]
async fn a_watch_ends_when_its_client_goes() {
    let (server, https) = server(&["one"]);
    let cluster = server.cluster("one").unwrap();
    for protocol in ["http/1.1", "h2"] {
        let mut wire = Wire::open(&https, protocol).await;
        let watch = wire.get(&https, WATCH).await;
        assert_eq!(watch.status(), 200);
        assert_eq!(cluster.watches(), 1);
        drop((watch, wire));
        until("no watch is left", || cluster.watches() == 0).await;
    }
    let client = kube_client(&https, "one", ADMIN).await;
    let watch = maps(&client)
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap();
    assert_eq!(cluster.watches(), 1);
    drop(watch);
    until("no watch of kube's client is left", || {
        cluster.watches() == 0
    })
    .await;
}

#[tokio::test]
async fn half_closed_connections_end_their_watches() {
    let (server, https) = server(&["one"]);
    let cluster = server.cluster("one").unwrap();
    let mut stream = connect(&https, "http/1.1").await;
    let head = format!("GET {WATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    until("the watch is open", || cluster.watches() == 1).await;
    stream.shutdown().await.unwrap();
    until("the watch has ended", || cluster.watches() == 0).await;
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest))
        .await
        .unwrap();
}

#[tokio::test]
async fn connections_that_say_nothing_hinder_nobody() {
    let (_server, https) = server(&["one"]);
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(
            tokio::net::TcpStream::connect(https.address())
                .await
                .unwrap(),
        );
        let mut half = connect(&https, "http/1.1").await;
        half.write_all(b"GET /version HTTP/1.1\r\nHost")
            .await
            .unwrap();
        tokio::spawn(async move {
            let _open = half;
            tokio::time::sleep(Duration::from_mins(1)).await;
        });
    }
    let mut wire = Wire::open(&https, "h2").await;
    assert_eq!(wire.get(&https, "/version").await.status(), 200);
}

#[tokio::test]
async fn a_client_that_does_not_read_hinders_nobody() {
    let (server, https) = server(&["one"]);
    let cluster = server.cluster("one").unwrap();
    let mut wire = Wire::open(&https, "http/1.1").await;
    let mut lazy = wire.get(&https, WATCH).await;
    let client = kube_client(&https, "one", ADMIN).await;
    let big = "x".repeat(100_000);
    for n in 0..200 {
        let create = maps(&client)
            .create(&PostParams::default(), &map(&format!("m{n}"), &big))
            .await;
        create.unwrap();
    }
    assert_eq!(cluster.watches(), 1);
    // Nothing is lost when it reads at last.
    let (mut lines, mut text) = (0, Vec::new());
    while lines < 200 {
        let piece = piece(&mut lazy).await.unwrap();
        lines += piece.split(|byte| *byte == b'\n').count() - 1;
        text.extend(piece);
    }
    let last = text.rsplit(|byte| *byte == b'\n').nth(1).unwrap();
    assert!(String::from_utf8_lossy(last).contains("\"name\":\"m199\""));
}

#[tokio::test]
async fn two_thousand_watches_all_get_the_event() {
    let (server, https) = server(&["one"]);
    let cluster = server.cluster("one").unwrap();
    let mut wires = Vec::new();
    let mut watches = Vec::new();
    for _ in 0..8 {
        let mut wire = Wire::open(&https, "h2").await;
        for _ in 0..250 {
            watches.push(wire.get(&https, WATCH).await);
        }
        wires.push(wire);
    }
    assert_eq!(cluster.watches(), 2000);
    let before = resident();
    let client = kube_client(&https, "one", ADMIN).await;
    maps(&client)
        .create(&PostParams::default(), &map("a", "1"))
        .await
        .unwrap();
    for watch in &mut watches {
        let event = piece(watch).await.unwrap();
        assert!(event.starts_with(b"{\"type\":\"ADDED\""));
    }
    // Other tests run in this process too: this is far above what they need.
    assert!(resident() < before + 400_000, "kilobytes of memory");
    drop((wires, watches));
    until("all watches have ended", || cluster.watches() == 0).await;
}

fn resident() -> usize {
    super::cost::resident()
}

#[tokio::test]
async fn a_stop_ends_watches_and_answers_what_is_under_way() {
    let (server, https) = server(&["one"]);
    let cluster = server.cluster("one").unwrap();
    let mut wire = Wire::open(&https, "h2").await;
    let mut first = wire.get(&https, WATCH).await;
    cluster.shut_down();
    assert!(
        piece(&mut first).await.is_none(),
        "the stream ends without an error"
    );
    until("no watch is left", || cluster.watches() == 0).await;
    let refusal = wire.get(&https, WATCH).await;
    assert_eq!(refusal.status(), 503);
    assert_eq!(wire.get(&https, "/version").await.status(), 200);
    let address = https.address();
    tokio::time::timeout(Duration::from_secs(10), https.stop())
        .await
        .unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_removed_cluster_ends_its_watches_alone() {
    let (server, https) = server(&["one", "two"]);
    let mut wire = Wire::open(&https, "h2").await;
    let mut one = wire.get(&https, WATCH).await;
    let mut two = wire
        .get(&https, "/clusters/two/api/v1/configmaps?watch=1")
        .await;
    server.remove("two");
    assert!(piece(&mut two).await.is_none());
    assert_eq!(
        wire.get(&https, "/clusters/two/version").await.status(),
        404
    );
    let client = kube_client(&https, "one", ADMIN).await;
    maps(&client)
        .create(&PostParams::default(), &map("a", "1"))
        .await
        .unwrap();
    assert!(piece(&mut one).await.is_some());
}
