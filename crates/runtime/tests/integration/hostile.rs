//! Hostile targets: each is refused or bounded, with a clear reason. In real time, because sockets are real; nobody waits
//! longer than the time of one call.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use slipway_kernel::address::{AllowedHosts, Patterns, Rules, Url};
use slipway_kernel::question::prometheus::{Measured, Query, Reading};
use slipway_kernel::question::{Answer, Call, Failure, Number, Text, Value, Waiting, Wanted};
use slipway_runtime::outside::{Outside, Terms};

use crate::peers::{Book, Play, answer, ask, ok, rules, server, server_at, terms, url};

const TIME: Duration = Duration::from_millis(400);

/// What may come of a call to a hostile target.
#[derive(Debug, Clone, PartialEq)]
enum End {
    /// Not dialled, with this in the reason.
    NotAllowed(&'static str),
    Unreachable(&'static str),
    Malformed(&'static str),
    TooLarge(&'static str),
    Timeout,
    Value(u16, Value),
}

fn check(name: &str, got: &Answer, end: &End) {
    let is_right = match (got, end) {
        (Err(Failure::NotAllowed(why)), End::NotAllowed(part))
        | (Err(Failure::Unreachable(why)), End::Unreachable(part))
        | (Err(Failure::Malformed(why)), End::Malformed(part)) => why.contains(part),
        (Err(Failure::TooLarge { what, .. }), End::TooLarge(part)) => what == part,
        (Err(Failure::Timeout(Waiting::Answer)), End::Timeout) => true,
        (Ok(reply), End::Value(code, value)) => reply.code == *code && reply.value == *value,
        _ => false,
    };
    assert!(is_right, "{name}: {got:?} is not {end:?}");
}

fn get(url: Url, wanted: Wanted) -> Call {
    Call {
        wanted,
        timeout: TIME,
        ..Call::get(url)
    }
}

/// Spellings that are no address, because somebody would read them as another one.
const NO_ADDRESS: [&str; 16] = [
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://127.0.0.1./",
    "http://[::1%25lo]/",
    "http://%31%32%37.0.0.1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://good.test@127.0.0.1/",
    "http://good.test#@127.0.0.1/",
    "http://good.test\\@127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
];

#[test]
fn a_spelling_that_could_be_another_address_is_none() {
    for text in NO_ADDRESS {
        assert!(Url::parse(text).is_err(), "{text}");
    }
}

/// Addresses that are special in every spelling, and what is said of them.
const SPECIAL: [(&str, &str); 24] = [
    ("127.0.0.1", "loopback"),
    ("127.255.1.2", "loopback"),
    ("[::1]", "loopback"),
    ("[0:0:0:0:0:0:0:1]", "loopback"),
    ("[::ffff:127.0.0.1]", "IPv4 in IPv6"),
    ("[::ffff:7f00:1]", "IPv4 in IPv6"),
    ("[::127.0.0.1]", "IPv4 in IPv6"),
    ("[::ffff:0:127.0.0.1]", "IPv4 in IPv6"),
    ("[64:ff9b::127.0.0.1]", "IPv4 in IPv6"),
    ("[2002:7f00:1::]", "IPv4 in IPv6"),
    ("[2002:a9fe:a9fe::]", "IPv4 in IPv6"),
    ("[fe80::5efe:127.0.0.1]", "IPv4 in IPv6"),
    ("0.0.0.0", "unspecified"),
    ("[::]", "unspecified"),
    ("169.254.169.254", "cloud metadata"),
    ("[fd00:ec2::254]", "cloud metadata"),
    ("100.100.100.200", "cloud metadata"),
    ("168.63.129.16", "cloud metadata"),
    ("169.254.7.7", "link-local"),
    ("[fe80::1]", "link-local"),
    ("224.0.0.1", "multicast"),
    ("[ff02::1]", "multicast"),
    ("255.255.255.255", "reserved"),
    ("[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "reserved"),
];

#[tokio::test]
async fn special_addresses_are_not_dialled_by_address_nor_by_name() {
    let mut book = Book::default();
    for (n, (address, _)) in SPECIAL.iter().enumerate() {
        let bare = address.trim_matches(['[', ']']);
        // A name that has a good address as well means no good.
        book = book.with(&format!("name-{n}.test"), &[&["203.0.113.1", bare]]);
    }
    let outside = Outside::new(Terms {
        rules: Rules::default(),
        ..terms(&book)
    });
    for (n, (address, why)) in SPECIAL.iter().enumerate() {
        for url in [
            format!("http://{address}/"),
            format!("https://{address}:8443/"),
            format!("http://name-{n}.test:9090/"),
        ] {
            let got = ask(&outside, get(self::url(&url), Wanted::Status)).await;
            check(&url, &got, &End::NotAllowed(why));
        }
    }
}

#[tokio::test]
async fn the_administrators_lists_are_kept() {
    let book = Book::default()
        .with("good.test", &[&["127.0.0.1"]])
        .with("other.test", &[&["127.0.0.1"]])
        .with("moved.test", &[&["127.6.6.6"]]);
    let (address, _) = server(Play::Say(ok("1"))).await;
    let list = |texts: &[&str]| Patterns::parse(texts.iter().copied()).unwrap();
    let only = Outside::new(Terms {
        rules: Rules {
            only: AllowedHosts::only(list(&["good.test", "moved.test"])),
            denied: list(&["127.6.0.0/16"]),
            ..rules(&["127.0.0.0/8"])
        },
        ..terms(&book)
    });
    for (host, end) in [
        ("good.test", End::Value(200, Value::Nothing)),
        ("other.test", End::NotAllowed("not on the list")),
        ("moved.test", End::NotAllowed("never called")),
        ("127.0.0.1", End::NotAllowed("not on the list")),
    ] {
        let url = url(&format!("http://{host}:{}/", address.port()));
        let got = ask(&only, get(url, Wanted::Status)).await;
        check(host, &got, &end);
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_what_was_checked_is_dialled() {
    // Who looks again finds another address; only the first one is allowed.
    let book = Book::default().with("rebinds.test", &[&["127.0.0.2"], &["127.0.0.1"]]);
    let (address, _) = server_at("127.0.0.2:0", Play::Say(ok("checked"))).await;
    let other = format!("127.0.0.1:{}", address.port());
    let (_, unheard) = server_at(&other, Play::Say(ok("rebound"))).await;
    let outside = Outside::new(Terms {
        rules: rules(&["127.0.0.2"]),
        ..terms(&book)
    });
    let url = url(&format!("http://rebinds.test:{}/", address.port()));
    let got = ask(&outside, get(url.clone(), Wanted::Text)).await;
    let text = Text {
        text: "checked".to_owned(),
        is_cut: false,
    };
    check("the first time", &got, &End::Value(200, Value::Text(text)));
    assert_eq!(book.asked.lock().unwrap().len(), 1);
    let got = ask(&outside, get(url, Wanted::Text)).await;
    check("the second time", &got, &End::NotAllowed("loopback"));
    assert!(unheard.all().is_empty());
}

#[tokio::test]
async fn where_an_answer_points_is_followed_only_where_that_is_asked_for_and_checked_too() {
    let book = Book::default().with("metadata.test", &[&["169.254.169.254"]]);
    let outside = Outside::new(terms(&book));
    let to = |location: &str| {
        Play::Say(answer(
            "302 Found",
            &format!("location: {location}\r\n"),
            "",
        ))
    };
    let (end, _) = server(Play::Say(ok("7"))).await;
    let table = [
        (
            "http://169.254.169.254/latest/",
            3,
            End::NotAllowed("cloud metadata"),
        ),
        (
            "http://metadata.test/",
            3,
            End::NotAllowed("cloud metadata"),
        ),
        ("//[::1]/", 3, End::NotAllowed("loopback")),
        ("http://2130706433/", 3, End::NotAllowed("no address")),
        ("file:///etc/passwd", 3, End::NotAllowed("no address")),
        (
            "http://user:word@127.0.0.1/",
            3,
            End::NotAllowed("no address"),
        ),
        ("/again", 3, End::NotAllowed("more than 3 times")),
        (
            "http://169.254.169.254/",
            0,
            End::Value(302, Value::Nothing),
        ),
        ("", 3, End::NotAllowed("more than 3 times")),
    ];
    for (location, redirects, end) in table {
        let (from, heard) = server(to(location)).await;
        let call = get(url(&format!("http://{from}/a")), Wanted::Status);
        let got = ask(&outside, Call { redirects, ..call }).await;
        check(location, &got, &end);
        assert!(heard.all().len() <= 4, "{location}");
    }
    let (from, _) = server(to(&format!("http://{end}/b"))).await;
    let call = get(url(&format!("http://{from}/a")), Wanted::Number(None));
    let got = ask(
        &outside,
        Call {
            redirects: 1,
            ..call
        },
    )
    .await;
    check(
        "followed",
        &got,
        &End::Value(200, Value::Number(Number::Finite(7.0))),
    );
}

fn many(count: usize) -> Vec<u8> {
    let headers: String = (0..count).map(|n| format!("x-{n}: y\r\n")).collect();
    answer("200 OK", &headers, "1")
}

fn with_head(head: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").into_bytes()
}

/// Answers that are too much, too slow or none, and what comes of them.
fn answers() -> Vec<(&'static str, Play, Wanted, End)> {
    let number = || Wanted::Number(None);
    let chunked = || with_head("transfer-encoding: chunked");
    let chunk = || format!("1000\r\n{}\r\n", "x".repeat(4_096)).into_bytes();
    let cut = || {
        Value::Text(Text {
            text: "x".repeat(4_096),
            is_cut: true,
        })
    };
    let x = || vec![b'x'; 8_192];
    let gzip = || answer("200 OK", "content-encoding: gzip\r\n", "\u{1f}bomb");
    let large = with_head("content-length: 999999999999");
    vec![
        (
            "endless body",
            Play::Endless(with_head("connection: close"), x()),
            number(),
            End::TooLarge("a body"),
        ),
        (
            "endless chunks",
            Play::Endless(chunked(), chunk()),
            number(),
            End::TooLarge("a body"),
        ),
        (
            "endless text",
            Play::Endless(chunked(), chunk()),
            Wanted::Text,
            End::Value(200, cut()),
        ),
        (
            "endless body, of which nothing is wanted",
            Play::Endless(chunked(), chunk()),
            Wanted::Status,
            End::Value(200, Value::Nothing),
        ),
        (
            "a body that says how large it is",
            Play::Stall(large),
            number(),
            End::TooLarge("a body"),
        ),
        (
            "a compressed body",
            Play::Say(gzip()),
            number(),
            End::Malformed("compressed"),
        ),
        (
            "a compressed text",
            Play::Say(gzip()),
            Wanted::Text,
            End::Malformed("compressed"),
        ),
        (
            "a chunk of more than all bytes",
            Play::Say([chunked(), b"fffffffffffffffff\r\n".to_vec()].concat()),
            number(),
            End::Malformed(""),
        ),
        (
            "many headers",
            Play::Say(many(101)),
            number(),
            End::TooLarge("a head"),
        ),
        (
            "a long header",
            Play::Say(answer(
                "200 OK",
                &format!("x: {}\r\n", "y".repeat(100_000)),
                "1",
            )),
            number(),
            End::TooLarge("a head"),
        ),
        (
            "headers without end",
            Play::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"x: y\r\n".to_vec()),
            number(),
            End::TooLarge("a head"),
        ),
        (
            "a header without end",
            Play::Endless(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), x()),
            number(),
            End::TooLarge("a head"),
        ),
        (
            "news without end",
            Play::Endless(Vec::new(), b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec()),
            number(),
            End::Timeout,
        ),
        ("nothing", Play::Stall(Vec::new()), number(), End::Timeout),
        (
            "half a head",
            Play::Stall(b"HTTP/1.1 200 OK\r\ncontent-".to_vec()),
            number(),
            End::Timeout,
        ),
        (
            "half a body",
            Play::Stall(with_head("content-length: 10")),
            number(),
            End::Timeout,
        ),
        ("a slow head", Play::Drip(ok("1")), number(), End::Timeout),
        (
            "a body that ends early",
            Play::Say(with_head("content-length: 10")),
            number(),
            End::Malformed("before it is whole"),
        ),
        (
            "somebody who hangs up",
            Play::Say(Vec::new()),
            number(),
            End::Unreachable("hung up"),
        ),
        (
            "no HTTP",
            Play::Say(b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec()),
            number(),
            End::Malformed("HTTP/1.1"),
        ),
        (
            "two lengths",
            Play::Say(
                b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n12".to_vec(),
            ),
            number(),
            End::Malformed("HTTP/1.1"),
        ),
        (
            "no number",
            Play::Say(ok("much")),
            number(),
            End::Malformed("no number"),
        ),
        (
            "1e400",
            Play::Say(ok("1e400")),
            number(),
            End::Malformed("no number"),
        ),
        (
            "-0",
            Play::Say(ok("-0")),
            number(),
            End::Value(200, Value::Number(Number::Finite(0.0))),
        ),
        (
            "NaN",
            Play::Say(ok("NaN")),
            number(),
            End::Value(200, Value::Number(Number::NotANumber)),
        ),
    ]
}

#[tokio::test]
async fn answers_that_are_too_much_too_slow_or_none_are_bounded() {
    let outside = Outside::new(terms(&Book::default()));
    let began = tokio::time::Instant::now();
    let all = answers().into_iter().map(|(name, play, wanted, end)| {
        let outside = outside.clone();
        async move {
            let (address, _) = server(play).await;
            let got = ask(&outside, get(url(&format!("http://{address}/")), wanted)).await;
            check(name, &got, &end);
        }
    });
    assert!(join_all(all).await.len() >= 25);
    assert!(began.elapsed() < TIME * 5, "{:?}", began.elapsed());
}

async fn measured(outside: &Outside, address: SocketAddr) -> Answer {
    let mut query = Query::new(url(&format!("http://{address}/prometheus")), "up");
    query.timeout = TIME;
    ask(outside, query.call()).await
}

#[tokio::test]
async fn what_prometheus_measures_is_told_apart() {
    let outside = Outside::new(terms(&Book::default()));
    let of = |kind: &str, result: &str| {
        format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#)
    };
    let one = |value: &str| {
        of(
            "vector",
            &format!(r#"[{{"metric":{{}},"value":[1,"{value}"]}}]"#),
        )
    };
    let reading = |reading| End::Value(200, Value::Measured(Measured::Whole(reading)));
    let table = [
        (
            of("scalar", r#"[1,"3"]"#),
            reading(Reading::Scalar(Number::Finite(3.0))),
        ),
        (one("3"), reading(Reading::Vector(Number::Finite(3.0)))),
        (one("NaN"), reading(Reading::Vector(Number::NotANumber))),
        (one("+Inf"), reading(Reading::Vector(Number::Infinite))),
        (
            one("-Inf"),
            reading(Reading::Vector(Number::NegativeInfinite)),
        ),
        (one("-0"), reading(Reading::Vector(Number::Finite(0.0)))),
        (one("1e400"), End::Malformed("no number")),
        (of("vector", "[]"), reading(Reading::NoData)),
        (
            of("vector", r#"[{"value":[1,"1"]},{"value":[1,"2"]}]"#),
            reading(Reading::Several(2)),
        ),
        (of("matrix", "[]"), End::Malformed("range")),
        (
            "<html>".to_owned(),
            End::Malformed("no answer of Prometheus"),
        ),
    ];
    for (body, end) in table {
        let (address, heard) = server(Play::Say(ok(&body))).await;
        check(&body, &measured(&outside, address).await, &end);
        let asked = heard.all().concat();
        assert!(
            asked.starts_with("GET /prometheus/api/v1/query?query=up HTTP/1.1\r\n"),
            "{asked}"
        );
    }
    let (address, _) = server(Play::Say(answer(
        "422 Unprocessable",
        "",
        r#"{"status":"error","errorType":"execution","error":"too many samples"}"#,
    )))
    .await;
    let got = measured(&outside, address).await;
    let refused = Failure::Refused {
        code: 422,
        message: "execution: too many samples".to_owned(),
    };
    assert_eq!(got, Err(refused));
}

#[test]
fn there_are_more_than_sixty_hostile_targets() {
    let redirects = 9;
    let prometheus = 11;
    let all = NO_ADDRESS.len() + SPECIAL.len() + answers().len() + redirects + prometheus;
    assert!(all >= 60, "{all}");
}
