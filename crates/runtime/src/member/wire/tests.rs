//! On pipes instead of sockets, in virtual time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::AtomicBool;

use h2::server::{self, SendResponse};
use http_body_util::BodyExt;
use tokio::io::duplex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;

use super::*;

mod meant;

/// Which cluster it says it is.
const UID: &str = "north-itself";

/// A large answer: more than may be on its way.
const LARGE: usize = 2 << 20;

/// Frames with next to nothing in them, before an answer.
const CRUMBS: usize = 1_000;

/// Somebody who answers, at the other ends of all connections.
#[derive(Clone, Default)]
struct Server {
    /// Connections that were made.
    made: Arc<AtomicUsize>,
    /// Those that have not ended.
    open: Arc<AtomicUsize>,
    /// Nothing is read or said any more.
    is_mute: Arc<AtomicBool>,
    /// The connection is ended.
    ends: Arc<Notify>,
    /// No more is taken on it, and what is under way goes on.
    retires: Arc<Notify>,
    /// So many streams are taken at once, if that is said.
    most: Option<u32>,
    /// Whether somebody has given up a stream.
    reset: Arc<watch::Sender<bool>>,
}

impl Server {
    fn wire(&self, tell: mpsc::UnboundedSender<Request<RecvStream>>) -> Arc<Wire> {
        let server = self.clone();
        let dial: Dial = Box::new(move || {
            let (near, far) = duplex(64 * 1024);
            tokio::spawn(server.clone().serve(far, tell.clone()));
            Box::pin(async move { Ok(Box::new(near) as Box<dyn Stream>) })
        });
        let address = Uri::from_static("https://north.example:6443/clusters/north/");
        let headers = vec![(
            HeaderName::from_static("x-whose"),
            HeaderValue::from_static("ours"),
        )];
        let wire = Wire::new((dial, Duration::from_secs(10)), &address, headers);
        Arc::new(wire.unwrap())
    }

    async fn serve(
        self,
        stream: tokio::io::DuplexStream,
        tell: mpsc::UnboundedSender<Request<RecvStream>>,
    ) {
        self.made.fetch_add(1, Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
        let mut builder = server::Builder::new();
        if let Some(most) = self.most {
            builder.max_concurrent_streams(most);
        }
        let mut connection = builder.handshake(stream).await.unwrap();
        loop {
            let asked = tokio::select! {
                biased;
                () = self.ends.notified() => break,
                () = self.retires.notified() => {
                    connection.graceful_shutdown();
                    continue;
                }
                asked = poll_fn(|cx| {
                    if self.is_mute.load(Ordering::SeqCst) {
                        return Poll::Pending;
                    }
                    connection.poll_accept(cx)
                }) => asked,
            };
            let Some(Ok((request, answer))) = asked else {
                break;
            };
            if let Some(body) = answered(&request, answer) {
                tokio::spawn(kept(body, self.reset.clone()));
            }
            let _ = tell.send(request);
        }
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Answers whoever still listens; a stream is kept.
fn answered(
    request: &Request<RecvStream>,
    mut answer: SendResponse<Bytes>,
) -> Option<h2::SendStream<Bytes>> {
    let mut body = answer.send_response(Response::new(()), false).ok()?;
    let path = request.uri().path();
    if path.ends_with("crumbs") {
        for _ in 0..CRUMBS {
            body.send_data(Bytes::from_static(b" "), false).ok()?;
        }
    }
    let is_stream = path.ends_with("stream");
    let said = if path.ends_with("large") {
        Bytes::from(vec![b'x'; LARGE])
    } else if path.ends_with("kube-system") {
        format!(r#"{{"metadata": {{"uid": "{UID}"}}}}"#).into()
    } else {
        Bytes::from_static(b"said")
    };
    body.send_data(said, !is_stream).ok()?;
    is_stream.then_some(body)
}

/// Keeps a stream until nobody wants it any more.
async fn kept(mut body: h2::SendStream<Bytes>, reset: Arc<watch::Sender<bool>>) {
    let _ = poll_fn(|cx| body.poll_reset(cx)).await;
    reset.send_replace(true);
}

fn get(path: &'static str) -> Request<kube::client::Body> {
    Request::get(path)
        .body(kube::client::Body::empty())
        .unwrap()
}

/// Asks, and reads all that is said.
async fn ask(wire: &Arc<Wire>) -> Bytes {
    let answer = wire.send(get("/api?limit=1"), None).await.unwrap();
    answer.into_body().collect().await.unwrap().to_bytes()
}

async fn secs(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

fn count(of: &AtomicUsize) -> usize {
    of.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn requests_share_a_connection_and_say_where_they_go_and_whose_they_are() {
    let (server, (tell, mut told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    let (one, other) = tokio::join!(ask(&wire), ask(&wire));
    assert_eq!((&one[..], &other[..]), (&b"said"[..], &b"said"[..]));
    let request = Request::post("/api")
        .body(kube::client::Body::from(b"{}".to_vec()))
        .unwrap();
    wire.send(request, None).await.unwrap();
    assert_eq!(count(&server.made), 1);
    let first = told.recv().await.unwrap();
    let uri = "https://north.example:6443/clusters/north/api?limit=1";
    assert_eq!(first.uri().to_string(), uri);
    assert_eq!(first.headers()["x-whose"], "ours");
    assert!(!first.headers().contains_key(CONTENT_LENGTH));
    let _ = told.recv().await.unwrap();
    let last = told.recv().await.unwrap();
    assert_eq!(last.headers()[CONTENT_LENGTH], "2");
    let said = last.into_body().data().await.unwrap().unwrap();
    assert_eq!(&said[..], b"{}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_ended_is_made_anew() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    let stream = wire.send(get("/stream"), None).await.unwrap();
    server.ends.notify_one();
    secs(1).await;
    let mut stream = stream.into_body();
    let mut ended = stream.frame().await;
    if let Some(Ok(_)) = ended {
        ended = stream.frame().await;
    }
    assert!(matches!(ended, Some(Err(_))), "it was cut off");
    ask(&wire).await;
    assert_eq!(count(&server.made), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_goes_on_where_no_more_is_taken_and_the_rest_goes_elsewhere() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    let mut stream = wire.send(get("/stream"), None).await.unwrap().into_body();
    assert!(matches!(stream.frame().await, Some(Ok(_))));
    server.retires.notify_one();
    secs(1).await;
    ask(&wire).await;
    assert_eq!((count(&server.made), count(&server.open)), (2, 2));
    let more = timeout(Duration::from_mins(10), stream.frame()).await;
    assert!(more.is_err(), "it is open, and asked whether it is there");
    assert_eq!(count(&server.open), 1, "nobody used the other one");
    drop(stream);
    secs(1).await;
    assert_eq!(count(&server.open), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_before_there_is_room_takes_none() {
    let server = Server {
        most: Some(1),
        ..Server::default()
    };
    let (tell, _told) = mpsc::unbounded_channel();
    let wire = server.wire(tell);
    ask(&wire).await;
    let stream = wire.send(get("/stream"), None).await.unwrap();
    for _ in 0..5 {
        let answer = timeout(Duration::from_secs(1), wire.send(get("/api"), None)).await;
        assert!(answer.is_err(), "there is no room");
    }
    drop(stream);
    secs(1).await;
    let answer = timeout(Duration::from_secs(1), ask(&wire)).await;
    assert_eq!(&answer.unwrap()[..], b"said");
    assert_eq!(count(&server.made), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_next_goes_over_the_connection_that_is_named() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    assert_eq!(wire.number(), Some(1));
    ask(&wire).await;
    assert_eq!(wire.number(), Some(1));
    server.ends.notify_one();
    secs(1).await;
    assert_eq!(wire.number(), Some(2), "the next has to be made");
    ask(&wire).await;
    assert_eq!(wire.number(), Some(2));
    secs(100).await;
    assert_eq!(wire.number(), Some(3), "nobody used it");
}

/// Whoever was asked over a connection who it is need not be who answers over the next one.
#[tokio::test(start_paused = true)]
async fn what_is_meant_for_a_connection_goes_over_no_other() {
    let (server, (tell, told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    ask(&wire).await;
    assert!(wire.send(get("/api"), Some(1)).await.is_ok());
    let other = wire.send(get("/api"), Some(2)).await.err().unwrap();
    assert!(is_elsewhere(&other));
    server.ends.notify_one();
    secs(1).await;
    for _ in 0..2 {
        let late = wire.send(get("/api"), Some(1)).await.err().unwrap();
        assert!(is_elsewhere(&late));
        assert_eq!(wire.number(), Some(2), "none was made for it");
    }
    assert_eq!((count(&server.made), told.len()), (1, 2));
    ask(&wire).await;
    assert!(wire.send(get("/api"), Some(2)).await.is_ok());
    let late = wire.send(get("/api"), Some(1)).await.err().unwrap();
    assert!(is_elsewhere(&late));
    assert_eq!((count(&server.made), told.len()), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_nobody_uses_is_closed_and_one_with_a_stream_is_not() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    ask(&wire).await;
    secs(80).await;
    ask(&wire).await;
    secs(80).await;
    assert_eq!(count(&server.open), 1);
    secs(15).await;
    assert_eq!(count(&server.open), 0);
    let stream = wire.send(get("/stream"), None).await.unwrap();
    assert_eq!((count(&server.made), count(&server.open)), (2, 1));
    secs(3_600).await;
    assert_eq!((count(&server.made), count(&server.open)), (2, 1));
    drop(stream);
    secs(180).await;
    assert_eq!(count(&server.open), 0);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_says_nothing_is_asked_and_given_up() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    let mut stream = wire.send(get("/stream"), None).await.unwrap().into_body();
    assert!(matches!(stream.frame().await, Some(Ok(_))));
    secs(590).await;
    server.is_mute.store(true, Ordering::SeqCst);
    let began = Instant::now();
    assert!(matches!(stream.frame().await, Some(Err(_))));
    let took = began.elapsed();
    assert!(took <= PING_EVERY + PING_ANSWER, "{took:?}");
    server.is_mute.store(false, Ordering::SeqCst);
    ask(&wire).await;
    assert_eq!(count(&server.made), 2);
}

/// Whoever gives up waiting has heard nothing.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_asked_in_vain_again_and_again_is_given_up() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    let mut stream = wire.send(get("/stream"), None).await.unwrap().into_body();
    assert!(matches!(stream.frame().await, Some(Ok(_))));
    server.is_mute.store(true, Ordering::SeqCst);
    let began = Instant::now();
    let asking = async {
        for _ in 0..60 {
            let answer = timeout(Duration::from_secs(10), wire.send(get("/api"), None)).await;
            assert!(!matches!(answer, Ok(Ok(_))));
            secs(1).await;
        }
    };
    let is_given_up = tokio::select! {
        biased;
        ended = stream.frame() => matches!(ended, Some(Err(_))),
        () = asking => false,
    };
    assert!(is_given_up);
    let took = began.elapsed();
    let most = PING_EVERY + PING_ANSWER + Duration::from_secs(1);
    assert!(took < most, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_asked_in_vain_now_and_then_is_given_up() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    ask(&wire).await;
    server.is_mute.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let answer = timeout(Duration::from_secs(1), wire.send(get("/api"), None)).await;
        assert!(answer.is_err(), "nobody says anything");
        secs(29).await;
    }
    assert_eq!(
        count(&server.made),
        2,
        "another one, although nobody waited when it was due"
    );
}

/// A request that nobody waits for any more leaves nothing behind at the member.
#[tokio::test(start_paused = true)]
async fn what_is_given_up_is_ended_at_the_other_end() {
    let (server, (tell, mut told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    let request = Request::post("/stream")
        .body(kube::client::Body::from(b"{}".to_vec()))
        .unwrap();
    let stream = wire.send(request, None).await.unwrap();
    let mut asked = told.recv().await.unwrap().into_body();
    assert_eq!(&asked.data().await.unwrap().unwrap()[..], b"{}");
    drop(stream);
    let mut ended = server.reset.subscribe();
    let ended = timeout(Duration::from_secs(5), ended.wait_for(|reset| *reset)).await;
    assert!(matches!(ended, Ok(Ok(_))));
    ask(&wire).await;
    assert_eq!(count(&server.made), 1, "the connection is the same");
}

/// Far more than is let in unread, over one connection.
#[tokio::test(start_paused = true)]
async fn answers_of_any_size_are_read_one_after_the_other() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    let asking = async {
        for _ in 0..8 {
            let answer = wire.send(get("/large"), None).await.unwrap();
            let said = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(said.len(), LARGE);
        }
        // What was not read gives its room back as well.
        for _ in 0..8 {
            let answer = wire.send(get("/large"), None).await.unwrap();
            assert!(matches!(answer.into_body().frame().await, Some(Ok(_))));
        }
        ask(&wire).await;
    };
    let asked = timeout(Duration::from_secs(5), asking).await;
    assert!(asked.is_ok(), "there is room again");
    assert_eq!(count(&server.made), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_crumbs_takes_nobody_elses_turn() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    let answer = wire.send(get("/crumbs"), None).await.unwrap();
    let mut body = answer.into_body();
    secs(1).await;
    let taken = poll_fn(|cx| {
        let mut taken = 0;
        while let Poll::Ready(Some(Ok(_))) = Pin::new(&mut body).poll_frame(cx) {
            taken += 1;
        }
        Poll::Ready(taken)
    });
    let taken: usize = taken.await;
    assert!((1..CRUMBS).contains(&taken), "{taken} in one turn");
    let rest = body.collect().await.unwrap().to_bytes();
    assert_eq!(rest.len(), CRUMBS - taken + "said".len());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_way_that_nobody_has_any_more() {
    let (server, (tell, _told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = server.wire(tell);
    let stream = wire.send(get("/stream"), None).await.unwrap();
    ask(&wire).await;
    drop(wire);
    secs(1).await;
    assert_eq!(count(&server.open), 1, "somebody listens");
    drop(stream);
    secs(1).await;
    assert_eq!(count(&server.open), 0);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_reached_in_time_is_not_waited_for() {
    let dial: Dial = Box::new(|| Box::pin(std::future::pending()));
    let address = Uri::from_static("https://north.example");
    let wire = Wire::new((dial, Duration::from_secs(10)), &address, Vec::new());
    let error = Arc::new(wire.unwrap())
        .send(get("/api"), None)
        .await
        .err()
        .unwrap();
    let said = format!("{error:?}");
    assert!(said.contains("no connection within 10s"), "{said}");
}
