//! Calls of several namespaces: what one brings about, none of the others feels. And what is not wanted any more, or cannot be
//! reached, costs nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use slipway_apiserver::https::Identity;
use slipway_kernel::Sensitive;
use slipway_kernel::identity::ClusterId;
use slipway_kernel::question::{
    Answer, Call, Credential, Failure, SecretRef, Target, Trust, Waiting, Wanted,
};
use slipway_runtime::Backoff;
use slipway_runtime::outside::{
    Ask as _, Asked, Body, Limits, Manner, Outside, Resolve, Secrets, Still, Terms, Transport, Use,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

use crate::peers::{Book, Play, Safe, answer, ask_in, key, ok, secret, server, terms, url};

/// Nobody is left alone for less than any test takes.
fn long() -> Limits {
    Limits {
        backoff: Backoff {
            first: Duration::from_mins(1),
            most: Duration::from_mins(1),
        },
        ..Limits::default()
    }
}

fn is_left_alone(answer: &Answer) -> bool {
    matches!(answer, Err(Failure::Unreachable(why)) if why.contains("left alone"))
}

/// A TLS server that answers whoever it is that asks.
async fn over_tls(identity: &Identity) -> SocketAddr {
    let mut config = identity.server_config().unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let _ = stream.read(&mut [0; 4_096]).await;
            let _ = stream.write_all(&ok("")).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

#[tokio::test]
async fn who_trusts_the_wrong_authority_silences_nobody_else() {
    let (identity, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let address = over_tls(&identity).await;
    let outside = Outside::new(Terms {
        limits: long(),
        ..terms(&Book::default())
    });
    let of = |identity: &Identity| Call {
        trust: Trust::Pem(identity.ca_pem().to_owned()),
        ..Call::get(url(&format!("https://{address}/")))
    };
    let wrong = ask_in(&outside, "evil", "a", of(&other)).await;
    assert!(
        matches!(&wrong, Err(Failure::Unreachable(why)) if why.contains("TLS")),
        "{wrong:?}"
    );
    let right = ask_in(&outside, "good", "b", of(&identity)).await;
    assert_eq!(right.map(|reply| reply.code), Ok(200));
    // Whoever has it wrong is left to himself, as far as he has it wrong.
    assert!(is_left_alone(
        &ask_in(&outside, "evil", "c", of(&other)).await
    ));
    let right = ask_in(&outside, "evil", "a", of(&identity)).await;
    assert_eq!(right.map(|reply| reply.code), Ok(200));
}

#[tokio::test]
async fn who_is_refused_silences_nobody_else_and_one_slow_query_not_even_himself() {
    let outside = Outside::new(Terms {
        limits: long(),
        ..terms(&Book::default())
    });
    let slow = r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#;
    for (body, is_left) in [("too much to do", true), (slow, false)] {
        let (address, _) = server(Play::Say(answer("503 Unavailable", "", body))).await;
        let call = Call {
            wanted: Wanted::Measured,
            ..Call::get(url(&format!("http://{address}/")))
        };
        for (namespace, is_left) in [("evil", false), ("good", false), ("evil", is_left)] {
            let got = ask_in(&outside, namespace, "a", call.clone()).await;
            assert_eq!(is_left_alone(&got), is_left, "{namespace}: {got:?}");
        }
    }
}

#[tokio::test]
async fn whom_somebody_points_at_is_not_held_against_him() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = closed.local_addr().unwrap();
    let location = format!("location: http://{closed}/\r\n");
    let (first, heard) = server(Play::Say(answer("302 Found", &location, ""))).await;
    let outside = Outside::new(Terms {
        limits: long(),
        ..terms(&Book::default())
    });
    for redirects in [1, 0, 1] {
        let call = Call {
            redirects,
            ..Call::get(url(&format!("http://{first}/")))
        };
        let _ = ask_in(&outside, "a", "a", call).await;
    }
    assert_eq!(heard.all().len(), 3);
}

/// Somebody who takes no connection and refuses none.
struct Hole {
    address: SocketAddr,
    _listener: TcpListener,
    _full: Vec<TcpStream>,
}

async fn hole(ip: &str) -> Hole {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{ip}:0").parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut full = Vec::new();
    // Until nobody else gets in.
    while let Ok(Ok(stream)) =
        timeout(Duration::from_millis(200), TcpStream::connect(address)).await
    {
        full.push(stream);
        assert!(full.len() < 100, "it takes everybody");
    }
    Hole {
        address,
        _listener: listener,
        _full: full,
    }
}

#[tokio::test]
async fn who_swallows_everything_is_left_alone_and_who_is_in_a_hurry_does_not_decide_that() {
    let hole = hole("127.0.0.1").await;
    let outside = Outside::new(Terms {
        limits: long(),
        ..terms(&Book::default())
    });
    let call = |timeout| Call {
        timeout,
        ..Call::get(url(&format!("http://{}/", hole.address)))
    };
    let hurried = ask_in(&outside, "evil", "a", call(Duration::from_millis(100))).await;
    assert!(
        matches!(&hurried, Err(Failure::Unreachable(why)) if why.contains("no connection within")),
        "{hurried:?}"
    );
    let began = Instant::now();
    let patient = ask_in(&outside, "good", "a", call(Duration::from_secs(3))).await;
    assert!(
        matches!(&patient, Err(Failure::Unreachable(why)) if why.contains("no connection within")),
        "{patient:?}"
    );
    assert!(
        began.elapsed() < Duration::from_millis(2_500),
        "half of the time"
    );
    for namespace in ["good", "another"] {
        let next = ask_in(&outside, namespace, "a", call(Duration::from_secs(3))).await;
        assert!(is_left_alone(&next), "{next:?}");
    }
}

#[tokio::test]
async fn an_address_that_swallows_everything_leaves_time_for_the_next() {
    let hole = hole("127.0.0.3").await;
    let port = hole.address.port();
    let (good, _) = crate::peers::server_at(&format!("127.0.0.2:{port}"), Play::Say(ok(""))).await;
    let book = Book::default().with("two.test", &[&["127.0.0.3", "127.0.0.2"]]);
    let outside = Outside::new(terms(&book));
    let call = Call {
        timeout: Duration::from_secs(4),
        ..Call::get(url(&format!("http://two.test:{port}/")))
    };
    let got = ask_in(&outside, "a", "a", call).await;
    assert_eq!(got.map(|reply| reply.code), Ok(200), "{good}");
}

#[tokio::test]
async fn one_namespace_does_not_take_all_places() {
    let outside = Outside::new(Terms {
        limits: Limits {
            at_once: 8,
            per_target: 4,
            per_namespace: 2,
            per_share: 2,
            ..Limits::default()
        },
        ..terms(&Book::default())
    });
    let (quick, _) = server(Play::Say(ok(""))).await;
    let mut stuck = Vec::new();
    let mut all = Vec::new();
    for n in 0..8 {
        let (slow, heard) = server(Play::Stall(Vec::new())).await;
        all.push(heard);
        let outside = outside.clone();
        let call = Call {
            timeout: Duration::from_mins(10),
            ..Call::get(url(&format!("http://{slow}/")))
        };
        stuck.push(tokio::spawn(async move {
            ask_in(&outside, "greedy", &n.to_string(), call).await
        }));
    }
    let count = || all.iter().map(|heard| heard.all().len()).sum::<usize>();
    while count() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let call = |timeout| Call {
        timeout,
        ..Call::get(url(&format!("http://{quick}/")))
    };
    for _ in 0..5 {
        let other = ask_in(&outside, "modest", "a", call(Duration::from_secs(20))).await;
        assert_eq!(other.map(|reply| reply.code), Ok(200));
    }
    let own = ask_in(&outside, "greedy", "z", call(Duration::from_millis(100))).await;
    assert_eq!(own, Err(Failure::Timeout(Waiting::Turn)));
    assert_eq!(count(), 2, "so many of one namespace");
    stuck.iter().for_each(tokio::task::JoinHandle::abort);
}

/// What is sent, and what comes of it: by the path of the address.
#[derive(Clone, Default)]
struct Script {
    sent: Arc<Mutex<Vec<(String, Manner)>>>,
    told: Arc<Mutex<Vec<&'static str>>>,
}

impl Transport for Script {
    fn send(
        &self,
        request: Request<Bytes>,
        manner: &Manner,
    ) -> BoxFuture<'static, Result<Response<Body>, Failure>> {
        let uri = request.uri().to_string();
        self.sent.lock().unwrap().push((uri, manner.clone()));
        let mut told = self.told.lock().unwrap();
        let next = if told.is_empty() {
            "ok"
        } else {
            told.remove(0)
        };
        Box::pin(async move {
            match next {
                "away" => Err(Failure::Unreachable("away".to_owned())),
                "slow" => std::future::pending().await,
                _ => {
                    let body = Full::new(Bytes::new()).map_err(|never| match never {});
                    Ok(Response::new(body.boxed_unsync()))
                }
            }
        })
    }
}

/// Counts how often a Secret is read.
#[derive(Clone, Default)]
struct Counted(Arc<AtomicUsize>);

impl Secrets for Counted {
    fn read(
        &self,
        of: &SecretRef,
        used: Use,
    ) -> BoxFuture<'static, Result<Sensitive<Vec<u8>>, String>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let value = match used {
            Use::Address => "https://hooks.test/abc".to_owned(),
            _ => format!("value-of-{}", of.key),
        };
        Box::pin(async { Ok(Sensitive::new(value.into_bytes())) })
    }
}

fn with(call: Call) -> Call {
    Call {
        credentials: vec![Credential::Bearer(secret("token"))],
        ..call
    }
}

fn asked(call: Call, still: Still) -> Asked {
    Asked {
        key: key("default", "a"),
        id: "toy/a/1".to_owned(),
        call,
        still,
    }
}

fn scripted(told: &[&'static str], limits: Limits) -> (Outside, Script, Counted) {
    let (script, counted) = (Script::default(), Counted::default());
    script.told.lock().unwrap().extend(told);
    let terms = Terms {
        limits,
        secrets: Arc::new(counted.clone()),
        ..terms(&Book::default())
    };
    let outside = Outside::over(terms, Arc::new(script.clone()));
    (outside, script, counted)
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_read_for_who_is_left_alone() {
    let (outside, script, counted) = scripted(&["away"], long());
    let hidden = Call {
        target: Target::Secret(secret("address")),
        ..Call::get(url("http://unused.test/"))
    };
    let told = script.told.clone();
    for call in [with(Call::get(url("https://a.test/"))), hidden] {
        *told.lock().unwrap() = vec!["away"];
        counted.0.store(0, Ordering::Relaxed);
        for n in 0..3 {
            let got = outside.ask(asked(call.clone(), Still::default())).await;
            assert_eq!(is_left_alone(&got), n > 0, "{got:?}");
        }
        assert_eq!(counted.0.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_read_and_nobody_dialled_before_it_is_ones_turn_nor_for_what_nobody_wants() {
    let limits = Limits {
        per_share: 1,
        ..Limits::default()
    };
    let (outside, script, counted) = scripted(&["slow"], limits);
    let call = with(Call {
        timeout: Duration::from_secs(20),
        ..Call::get(url("https://a.test/"))
    });
    let first = tokio::spawn(outside.ask(asked(call.clone(), Still::default())));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let is_wanted = Arc::new(Mutex::new(true));
    let looks = is_wanted.clone();
    let still = Still::when(move || *looks.lock().unwrap());
    let second = tokio::spawn(outside.ask(asked(call, still)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        counted.0.load(Ordering::Relaxed),
        1,
        "the second one waits for its turn"
    );
    *is_wanted.lock().unwrap() = false;
    assert_eq!(first.await.unwrap(), Err(Failure::Timeout(Waiting::Answer)));
    let second = second.await.unwrap();
    assert!(matches!(&second, Err(Failure::NotAllowed(why)) if why.contains("any more")));
    assert_eq!(counted.0.load(Ordering::Relaxed), 1);
    assert_eq!(script.sent.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_slow_is_neither_there_nor_away() {
    let limits = Limits {
        backoff: Backoff {
            first: Duration::from_secs(1),
            most: Duration::from_mins(1),
        },
        ..Limits::default()
    };
    let (outside, _, _) = scripted(&["away", "slow", "away"], limits);
    let ask = || outside.ask(asked(Call::get(url("https://a.test/")), Still::default()));
    for part in ["away", "within the time", "away", "after 2 failures"] {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let got = ask().await.unwrap_err().to_string();
        assert!(got.contains(part), "{got} is not {part}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_takes_longer_than_the_longest() {
    let (outside, script, _) = scripted(&["slow"], Limits::default());
    let began = Instant::now();
    let call = Call {
        timeout: Duration::from_mins(10),
        ..Call::get(url("https://a.test/"))
    };
    let got = outside.ask(asked(call, Still::default())).await;
    assert_eq!(got, Err(Failure::Timeout(Waiting::Answer)));
    assert_eq!(began.elapsed().as_secs(), 60);
    let connecting = script.sent.lock().unwrap()[0].1.connecting;
    assert_eq!(connecting, Limits::default().connecting);
}

#[tokio::test(start_paused = true)]
async fn credentials_go_over_http_only_where_that_is_allowed_and_only_as_they_are_meant() {
    let (script, counted) = (Script::default(), Counted::default());
    let of = |credentials_over_http: bool| {
        let terms = Terms {
            credentials_over_http,
            secrets: Arc::new(counted.clone()),
            ..terms(&Book::default())
        };
        Outside::over(terms, Arc::new(script.clone()))
    };
    let plain = with(Call::get(url("http://prometheus.test:9090/")));
    let refused = of(false).ask(asked(plain.clone(), Still::default())).await;
    assert!(
        matches!(&refused, Err(Failure::NotAllowed(why)) if why.contains("http://")),
        "{refused:?}"
    );
    assert_eq!(counted.0.load(Ordering::Relaxed), 0);
    assert!(script.sent.lock().unwrap().is_empty());
    assert!(of(true).ask(asked(plain, Still::default())).await.is_ok());
    let sealed = with(Call::get(url("https://prometheus.test:9090/")));
    assert!(of(false).ask(asked(sealed, Still::default())).await.is_ok());
    let open = Call::get(url("http://prometheus.test:9090/"));
    assert!(of(false).ask(asked(open, Still::default())).await.is_ok());
}

#[tokio::test]
async fn values_that_cannot_be_kept_out_of_answers_are_not_sent() {
    let (address, heard) = server(Play::Say(ok(""))).await;
    let safe = Safe::default()
        .with(&secret("short"), "abc\n")
        .with(&secret("long"), &"x".repeat(9_000))
        .with(&secret("me"), "me")
        .with(&secret("word"), "password");
    let outside = Outside::new(Terms {
        secrets: Arc::new(safe),
        ..terms(&Book::default())
    });
    for (key, part) in [("short", "less than 4"), ("long", "more than 8192")] {
        let mut call = Call::get(url(&format!("http://{address}/")));
        call.credentials = vec![Credential::Bearer(secret(key))];
        let refused = ask_in(&outside, "default", "a", call).await;
        assert!(
            matches!(&refused, Err(Failure::NotAllowed(why)) if why.contains(part)),
            "{refused:?}"
        );
    }
    assert!(heard.all().is_empty());
    let mut call = Call::get(url(&format!("http://{address}/")));
    call.credentials = vec![Credential::Basic {
        user: secret("me"),
        password: secret("word"),
    }];
    assert!(ask_in(&outside, "default", "a", call).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_is_private_here_is_not_asked_on_behalf_of_another_cluster() {
    let (outside, script, _) = scripted(&[], Limits::default());
    for (address, is_asked) in [
        ("https://10.0.0.1/", false),
        ("https://prometheus.monitoring.svc:9090/", false),
        ("https://prometheus/", false),
        ("https://hooks.test/", true),
    ] {
        let mut there = asked(Call::get(url(address)), Still::default());
        let here = outside.ask(there.clone()).await;
        assert!(here.is_ok(), "{address}: {here:?}");
        there.key.cluster = ClusterId::remote("member");
        let got = outside.ask(there).await;
        assert_eq!(got.is_ok(), is_asked, "{address}: {got:?}");
    }
    let sent = script.sent.lock().unwrap();
    assert!(sent.last().unwrap().1.for_others);
}

/// A resolver that has much to say.
struct Chatty;

impl Resolve for Chatty {
    fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let why = format!("\u{1b}[31m\r\n{}", "no ".repeat(10_000));
        Box::pin(async { Err(io::Error::other(why)) })
    }
}

#[tokio::test]
async fn what_others_say_of_a_failure_is_kept_short() {
    let outside = Outside::new(Terms {
        resolver: Arc::new(Chatty),
        ..terms(&Book::default())
    });
    let call = Call::get(url("https://a.test/"));
    let got = ask_in(&outside, "a", "a", call).await.unwrap_err();
    let why = got.why();
    assert!(
        why.chars().count() <= 257 && !why.contains(char::is_control),
        "{why}"
    );
}
