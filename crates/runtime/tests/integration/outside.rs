//! Calls to the world outside: what is sent, to whom, and what must be nowhere.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use slipway_apiserver::https::Identity;
use slipway_kernel::address::Url;
use slipway_kernel::question::{
    Call, Credential, Failure, Header, OtherNamespaces, SecretRef, SharedSecrets, Target, Text,
    Trust, Value, Waiting, Wanted,
};
use slipway_runtime::Backoff;
use slipway_runtime::outside::{ApiSecrets, Limits, Outside, Secrets, Terms, Use};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::peers::{Book, Play, Safe, answer, ask, ask_as, ask_in, ok, secret, server, terms, url};
use crate::records::Records;
use crate::stage::{Stage, virtually};

/// With a character for each way in which programs escape.
const MARKER: &str = "M&k\"/<+ 5ecret-0f-the-test B=";

/// The marker as a program would write it into a text of its own.
fn spellings() -> Vec<String> {
    let escaped = slipway_kernel::address::escaped(MARKER);
    vec![
        MARKER.to_owned(),
        escaped.replace("%20", "+"),
        escaped.replace("%3C", "%3c").replace("%2F", "%2f"),
        MARKER
            .replace('"', "\\\"")
            .replace('&', "\\u0026")
            .replace('<', "\\u003c"),
        MARKER.replace('"', "\\\"").replace('/', "\\/"),
        MARKER
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('"', "&#34;"),
        escaped,
    ]
}

fn text_of(answer: &slipway_kernel::question::Answer) -> &str {
    match answer {
        Ok(reply) => match &reply.value {
            Value::Text(Text { text, .. }) => text,
            other => panic!("{other:?}"),
        },
        Err(failure) => panic!("{failure}"),
    }
}

#[tokio::test]
async fn a_call_is_sent_as_it_is_written_with_its_name_and_credentials() {
    let safe = Safe::default()
        .with(&secret("token"), "t0ken\n")
        .with(&secret("key"), "k eys");
    let outside = Outside::new(Terms {
        secrets: Arc::new(safe),
        ..terms(&Book::default())
    });
    let (address, heard) = server(Play::Say(ok(""))).await;
    let mut call = Call::post(
        url(&format!("http://{address}/hook?a=b")),
        r#"{"a":1}"#.to_owned(),
    );
    call.headers.push(Header::new("X-Scope", "tenant").unwrap());
    call.credentials = vec![
        Credential::Bearer(secret("token")),
        Credential::Parameter {
            name: "key".to_owned(),
            value: secret("key"),
        },
    ];
    assert_eq!(ask(&outside, call).await.unwrap().code, 200);
    let heard = heard.all().concat().to_ascii_lowercase();
    for line in [
        "post /hook?a=b&key=k%20eys http/1.1\r\n",
        "authorization: bearer t0ken\r\n",
        "content-type: application/json\r\n",
        "x-scope: tenant\r\n",
        "idempotency-key: toy/one/1\r\n",
        "user-agent: slipway/test\r\n",
        "accept-encoding: identity\r\n",
        &format!("host: {address}\r\n"),
    ] {
        assert!(heard.contains(line), "no {line:?} in {heard}");
    }
}

#[tokio::test]
async fn credentials_do_not_go_where_an_answer_points() {
    let safe = Safe::default().with(&secret("token"), MARKER);
    let outside = Outside::new(Terms {
        secrets: Arc::new(safe),
        ..terms(&Book::default())
    });
    let (stranger, heard) = server(Play::Say(ok(""))).await;
    let location = format!("location: http://{stranger}/take?from=http://a.test/\r\n");
    for (status, method) in [
        ("302 Found", "GET"),
        ("303 See Other", "GET"),
        ("307 Moved", "GET"),
    ] {
        let (first, _) = server(Play::Say(answer(status, &location, ""))).await;
        let mut call = Call::get(url(&format!("http://{first}/")));
        call.redirects = 1;
        call.headers.push(Header::new("x-api-key", MARKER).unwrap());
        call.credentials = vec![Credential::Bearer(secret("token"))];
        assert_eq!(ask(&outside, call).await.unwrap().code, 200);
        let heard = heard.all().pop().unwrap();
        let line = format!("{method} /take?from=http://a.test/ HTTP/1.1\r\n");
        assert!(heard.starts_with(&line), "{heard}");
        assert!(!heard.contains("5ecret"), "{heard}");
    }
}

/// What is sent is meant for whom it is sent to.
#[tokio::test]
async fn a_body_does_not_go_to_another_origin() {
    let outside = Outside::new(terms(&Book::default()));
    let (stranger, heard) = server(Play::Say(ok(""))).await;
    let elsewhere = format!("location: http://{stranger}/take\r\n");
    for status in ["307 Moved", "308 Moved"] {
        let (first, _) = server(Play::Say(answer(status, &elsewhere, ""))).await;
        let mut call = Call::post(url(&format!("http://{first}/")), r#"{"a":1}"#.to_owned());
        call.redirects = 1;
        let refused = ask(&outside, call).await.unwrap_err();
        assert!(
            matches!(&refused, Failure::NotAllowed(why) if why.contains("the body")),
            "{refused}"
        );
    }
    assert!(heard.all().is_empty());
    // Without a body there is nothing that could.
    let (first, _) = server(Play::Say(answer("303 See Other", &elsewhere, ""))).await;
    let mut call = Call::post(url(&format!("http://{first}/")), r#"{"a":1}"#.to_owned());
    call.redirects = 1;
    assert_eq!(ask(&outside, call).await.unwrap().code, 200);
    let heard = heard.all().concat();
    assert!(
        heard.starts_with("GET /take HTTP/1.1\r\n") && !heard.contains("\"a\""),
        "{heard}"
    );
}

/// A connection that stays is used again, and nothing of the one before is said on it.
#[tokio::test]
async fn who_uses_a_connection_next_has_no_credentials_of_who_used_it_before() {
    let safe = Safe::default().with(&secret("token"), "first-token");
    let outside = Outside::new(Terms {
        secrets: Arc::new(safe),
        ..terms(&Book::default())
    });
    let stays = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec();
    let (address, heard) = server(Play::Keep(stays)).await;
    let mut call = Call::get(url(&format!("http://{address}/")));
    let plain = call.clone();
    call.credentials = vec![Credential::Bearer(secret("token"))];
    call.headers.push(Header::new("x-scope", "mine").unwrap());
    assert_eq!(ask(&outside, call).await.unwrap().code, 200);
    assert_eq!(
        ask_in(&outside, "theirs", "two", plain).await.unwrap().code,
        200
    );
    let all = heard.all();
    assert!(
        all[0].contains("first-token") && all[0].contains("mine"),
        "{all:?}"
    );
    assert!(
        !all[1].contains("first-token") && !all[1].contains("mine"),
        "{all:?}"
    );
    assert_eq!(heard.connections(), 1);
}

#[tokio::test]
async fn a_secret_of_another_namespace_is_not_used() {
    let theirs = SecretRef {
        namespace: "theirs".to_owned(),
        ..secret("token")
    };
    let safe = Safe::default().with(&theirs, MARKER);
    let terms = Terms {
        secrets: Arc::new(safe),
        ..terms(&Book::default())
    };
    let (address, heard) = server(Play::Say(ok(""))).await;
    let mut call = Call::get(url(&format!("http://{address}/")));
    call.credentials = vec![Credential::Bearer(theirs.clone())];
    let refused = ask(&Outside::new(terms.clone()), call.clone())
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, Failure::NotAllowed(why) if why.contains("theirs/credentials is in another namespace")),
        "{refused}"
    );
    assert!(heard.all().is_empty());
    let one = SharedSecrets::parse("theirs/credentials").unwrap();
    let listed = OtherNamespaces::Listed([one].into());
    let allowed = Outside::new(Terms {
        other_namespaces: listed,
        ..terms
    });
    assert_eq!(ask(&allowed, call).await.unwrap().code, 200);
}

/// T: a marker secret used as token, header, query and address is found in no log, error, metric or kept answer.
#[tokio::test]
async fn a_secret_is_in_nothing_that_is_told_or_kept() {
    let records = Records::default();
    let _guard = tracing::subscriber::set_default(records.clone());
    let mut safe = Safe::default().with(&secret("all"), MARKER);
    let mut told = Vec::new();
    let as_credentials = [
        Credential::Bearer(secret("all")),
        Credential::Basic {
            user: secret("all"),
            password: secret("all"),
        },
        Credential::Header {
            name: "x-key".to_owned(),
            value: secret("all"),
        },
        Credential::Parameter {
            name: "key".to_owned(),
            value: secret("all"),
        },
    ];
    let said = spellings().join(", ");
    let echo = |status: &str| Play::Say(answer(status, "", &format!("you said {said}")));
    let (echoing, _) = server(Play::Echo).await;
    let (refusing, _) = server(echo("403 Forbidden")).await;
    let (pointing, _) = server(Play::Say(answer(
        "302 Found",
        &format!(
            "location: http://a.test/{}\r\n",
            slipway_kernel::address::escaped(MARKER)
        ),
        "",
    )))
    .await;
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let path = slipway_kernel::address::escaped(MARKER);
    let hooks = format!("http://{echoing}/services/{path}");
    safe = safe
        .with(&secret("address"), &hooks)
        .with(&secret("broken"), &format!("{MARKER}://"));
    let outside = Outside::new(Terms {
        secrets: Arc::new(safe),
        ..terms(&Book::default())
    });
    let mut registry = Registry::default();
    outside.register(&mut registry);
    for address in [echoing, refusing, pointing, closed] {
        for credential in &as_credentials {
            for wanted in [
                Wanted::Status,
                Wanted::Text,
                Wanted::Number(None),
                Wanted::Measured,
            ] {
                let mut call = Call::get(url(&format!("http://{address}/")));
                call.credentials = vec![credential.clone()];
                (call.wanted, call.redirects) = (wanted, 1);
                told.push(format!("{call:?}"));
                told.push(format!("{:?}", ask(&outside, call).await));
            }
        }
    }
    for key in ["address", "broken"] {
        let call = Call {
            target: Target::Secret(secret(key)),
            wanted: Wanted::Text,
            ..Call::get(url("http://unused.test/"))
        };
        told.push(format!("{:?}", ask(&outside, call).await));
    }
    let mut metrics = String::new();
    encode(&mut metrics, &registry).unwrap();
    assert!(
        metrics.contains(r#"slipway_outside_calls_total{host="<secret>",outcome="answered"} 1"#),
        "{metrics}"
    );
    told.push(metrics);
    told.extend(records.all());
    assert!(
        told.iter()
            .any(|text| text.contains("you said [secret], [secret]")),
        "{told:#?}"
    );
    let is_leak = |text: &&String| text.contains("5ecret");
    let leaks: Vec<&String> = told.iter().filter(is_leak).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

/// What stands in the place of a secret is shorter, and so what was read last moves into what is kept.
#[tokio::test]
async fn a_secret_that_is_cut_in_two_behind_many_whole_ones_is_not_kept_either() {
    let secret_value = "0123456789abcdefghijklmnop";
    let safe = Safe::default().with(&secret("token"), secret_value);
    let outside = Outside::new(Terms {
        secrets: Arc::new(safe),
        ..terms(&Book::default())
    });
    for shift in 0..27 {
        let body = format!(
            "{}{}",
            "x".repeat(shift),
            format!("{secret_value} ").repeat(2_000)
        );
        let (address, _) = server(Play::Say(ok(&body))).await;
        let mut call = Call::get(url(&format!("http://{address}/")));
        (call.wanted, call.credentials) = (Wanted::Text, vec![Credential::Bearer(secret("token"))]);
        let answer = ask(&outside, call).await;
        let text = text_of(&answer);
        assert!(text.contains("[secret] [secret]"), "{text}");
        assert!(!text.contains("012"), "{text}");
        let Ok(reply) = &answer else {
            panic!("{answer:?}")
        };
        assert!(matches!(&reply.value, Value::Text(text) if text.is_cut));
    }
}

#[tokio::test]
async fn a_secret_that_is_cut_in_two_is_not_kept_either() {
    let secret_value = "0123456789abcdefghijklmnop";
    let safe = Safe::default().with(&secret("token"), secret_value);
    let outside = Outside::new(Terms {
        secrets: Arc::new(safe),
        ..terms(&Book::default())
    });
    let body = format!("{}{secret_value}{}", "x".repeat(4_086), "y".repeat(9_000));
    let (address, _) = server(Play::Say(ok(&body))).await;
    let mut call = Call::get(url(&format!("http://{address}/")));
    (call.wanted, call.credentials) = (Wanted::Text, vec![Credential::Bearer(secret("token"))]);
    let answer = ask(&outside, call).await;
    let text = text_of(&answer);
    assert!(
        text.len() <= 4_096 && !text.contains("0123"),
        "{}",
        &text[4_080..]
    );
}

/// A TLS server that answers whoever it is that asks.
async fn over_tls(identity: &Identity) -> std::net::SocketAddr {
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
            let _ = stream.write_all(&ok("over TLS")).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

#[tokio::test]
async fn tls_is_spoken_with_whom_the_given_authority_vouches_for() {
    let (identity, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let address = over_tls(&identity).await;
    let safe = Safe::default().with(&secret("ca"), identity.ca_pem());
    let book = Book::default()
        .with("wrong.test", &[&["127.0.0.1"]])
        .with("localhost", &[&["127.0.0.1"]]);
    let outside = || {
        Outside::new(Terms {
            secrets: Arc::new(safe.clone()),
            ..terms(&book)
        })
    };
    let (port, ca) = (address.port(), identity.ca_pem().to_owned());
    let good = [Trust::Pem(ca.clone()), Trust::Secret(secret("ca"))];
    for (host, trust) in [
        ("127.0.0.1", good[0].clone()),
        ("localhost", good[1].clone()),
    ] {
        let call = Call {
            trust,
            wanted: Wanted::Text,
            ..Call::get(url(&format!("https://{host}:{port}/")))
        };
        assert_eq!(text_of(&ask(&outside(), call).await), "over TLS");
    }
    for (host, trust, part) in [
        ("127.0.0.1", Trust::System, "UnknownIssuer"),
        ("127.0.0.1", Trust::Pem(other.ca_pem().to_owned()), "TLS"),
        ("wrong.test", Trust::Pem(ca), "TLS"),
    ] {
        let call = Call {
            trust,
            ..Call::get(url(&format!("https://{host}:{port}/")))
        };
        let failure = ask(&outside(), call).await.unwrap_err();
        assert!(
            matches!(&failure, Failure::Unreachable(why) if why.contains(part)),
            "{host}: {failure}"
        );
    }
    let bad = Call {
        trust: Trust::Pem("none".to_owned()),
        ..Call::get(url(&format!("https://127.0.0.1:{port}/")))
    };
    assert!(matches!(
        ask(&outside(), bad).await,
        Err(Failure::NotAllowed(_))
    ));
    let long = Call {
        trust: Trust::Pem(format!("{}\n", "# much").repeat(20_000)),
        ..Call::get(url(&format!("https://127.0.0.1:{port}/")))
    };
    let failure = ask(&outside(), long).await.unwrap_err();
    assert!(
        matches!(&failure, Failure::NotAllowed(why) if why.contains("more than 65536 bytes")),
        "{failure}"
    );
    // Somebody who waits for more of what he does not understand is nobody who can be reached.
    let (plain, _) = server(Play::Say(ok(""))).await;
    let call = Call {
        timeout: Duration::from_millis(600),
        ..Call::get(Url::parse(&format!("https://{plain}/")).unwrap())
    };
    let failure = ask(&outside(), call).await.unwrap_err();
    assert!(
        matches!(&failure, Failure::Unreachable(why) if why.contains("TLS: no word in time")),
        "{failure}"
    );
}

#[tokio::test]
async fn a_target_that_cannot_be_reached_is_left_alone_for_a_while_and_others_are_not() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let (open, _) = server(Play::Say(ok(""))).await;
    let book = Book::default().with("away.test", &[&["127.0.0.1"]]);
    let outside = Outside::new(Terms {
        limits: Limits {
            backoff: Backoff {
                first: Duration::from_mins(1),
                most: Duration::from_mins(1),
            },
            ..Limits::default()
        },
        ..terms(&book)
    });
    let away = || Call::get(url(&format!("http://away.test:{}/", closed.port())));
    let first = ask(&outside, away()).await.unwrap_err();
    assert!(
        matches!(&first, Failure::Unreachable(why) if why.contains("refused")),
        "{first}"
    );
    let second = ask_as(&outside, "another", away()).await.unwrap_err();
    assert!(
        matches!(&second, Failure::Unreachable(why) if why.contains("left alone")),
        "{second}"
    );
    assert_eq!(book.asked.lock().unwrap().len(), 1);
    let open = ask(&outside, Call::get(url(&format!("http://{open}/")))).await;
    assert_eq!(open.unwrap().code, 200);
}

#[tokio::test]
async fn a_slow_target_delays_nobody_else_and_who_never_had_a_turn_is_told_so() {
    let (slow, heard) = server(Play::Stall(Vec::new())).await;
    let (quick, _) = server(Play::Say(ok(""))).await;
    let outside = Outside::new(Terms {
        limits: Limits {
            at_once: 3,
            per_target: 2,
            ..Limits::default()
        },
        ..terms(&Book::default())
    });
    let of = |address, timeout| Call {
        timeout,
        ..Call::get(url(&format!("http://{address}/")))
    };
    let stuck: Vec<_> = (0..20)
        .map(|n| {
            let outside = outside.clone();
            let call = of(slow, Duration::from_mins(10));
            tokio::spawn(async move { ask_as(&outside, &n.to_string(), call).await })
        })
        .collect();
    while heard.all().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..5 {
        let answer = ask(&outside, of(quick, Duration::from_secs(20))).await;
        assert_eq!(answer.unwrap().code, 200);
    }
    let late = ask(&outside, of(slow, Duration::from_millis(100))).await;
    assert_eq!(late, Err(Failure::Timeout(Waiting::Turn)));
    assert_eq!(heard.all().len(), 2);
    // Who gives up makes room for the next.
    for one in stuck.iter().take(2) {
        one.abort();
    }
    while heard.all().len() < 4 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stuck.iter().for_each(tokio::task::JoinHandle::abort);
}

#[test]
fn secrets_are_read_from_the_api() {
    virtually(async {
        let stage = Stage::new().await;
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"},
            "stringData": {"token": MARKER, "other": "x"}});
        stage
            .create("/api/v1/namespaces/default/secrets", &object)
            .await;
        let secrets = ApiSecrets::new(stage.client("test"));
        let value = secrets.read(&secret("token"), Use::Credential).await.ok();
        assert!(value.is_some_and(|value| value.expose() == MARKER.as_bytes()));
        let of = |name: &str, key: &str| SecretRef {
            name: name.to_owned(),
            ..secret(key)
        };
        for (reference, part) in [
            (of("credentials", "missing"), "no such key"),
            (of("nobody", "token"), "NotFound"),
            (of("../../../api", "token"), "none that Kubernetes knows"),
            (of("a/b", "token"), "none that Kubernetes knows"),
        ] {
            let why = secrets.read(&reference, Use::Credential).await.err();
            let why = why.unwrap();
            assert!(why.contains(part), "{why}");
        }
        // Who somebody is in the cluster is shown to nobody outside of it.
        for (name, kind, key, uses) in [
            ("account", "kubernetes.io/service-account-token", "token", 0),
            ("served", "kubernetes.io/tls", "tls.crt", 1),
            ("basic", "kubernetes.io/basic-auth", "password", 3),
        ] {
            let object = json!({"apiVersion": "v1", "kind": "Secret", "type": kind,
                "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": "default"}},
                "stringData": {"token": "t", "tls.crt": "c", "tls.key": "k", "username": "u", "password": "p"}});
            stage
                .create("/api/v1/namespaces/default/secrets", &object)
                .await;
            let reference = of(name, key);
            let mut usable = 0;
            for used in [Use::Credential, Use::Address, Use::Authority] {
                usable += usize::from(secrets.read(&reference, used).await.is_ok());
            }
            assert_eq!(usable, uses, "{kind}");
        }
        let served = secrets.read(&of("served", "tls.crt"), Use::Authority).await;
        assert!(served.is_ok(), "an authority is no secret");
    });
}
