//! Hostile answers: too much, too slow, or none; and what Prometheus may say. Each is bounded or told apart.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use slipway_kernel::question::prometheus::{Measured, Query, Reading};
use slipway_kernel::question::{Answer, Failure, Number, Text, Value, Wanted};
use slipway_runtime::outside::Outside;

use crate::hostile::{End, check, get};
use crate::peers::{Book, Play, answer, ask, ok, server, terms, url};

fn many(count: usize) -> Vec<u8> {
    let headers: Vec<String> = (0..count).map(|n| format!("x-{n}: y\r\n")).collect();
    answer("200 OK", &headers.concat(), "1")
}

fn with_head(head: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").into_bytes()
}

type Case = (&'static str, Play, Wanted, End);

/// Answers that are too much, too slow or none, and what comes of them.
pub(crate) fn answers() -> Vec<Case> {
    [bodies(), heads(), numbers()].concat()
}

fn number() -> Wanted {
    Wanted::Number(None)
}

fn bodies() -> Vec<Case> {
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
    ]
}

fn heads() -> Vec<Case> {
    vec![
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
                &format!("x: {}\r\n", "y".repeat(1_000_000)),
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
            Play::Endless(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'x'; 8_192]),
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
    ]
}

fn numbers() -> Vec<Case> {
    vec![
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
    let all = answers().into_iter().map(|(name, play, wanted, end)| {
        let outside = outside.clone();
        async move {
            let (address, _) = server(play).await;
            let mut call = get(url(&format!("http://{address}/")), wanted);
            if end == End::Timeout {
                call.timeout = Duration::from_millis(300);
            }
            let got = ask(&outside, call).await;
            check(name, &got, &end);
        }
    });
    assert!(join_all(all).await.len() >= 25);
}

async fn measured(outside: &Outside, address: SocketAddr) -> Answer {
    let query = Query::new(url(&format!("http://{address}/prometheus")), "up");
    ask(outside, query.call()).await
}

/// What Prometheus may say, and what comes of it.
pub(crate) fn measurements() -> Vec<(String, End)> {
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
    vec![
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
    ]
}

#[tokio::test]
async fn what_prometheus_measures_is_told_apart() {
    let outside = Outside::new(terms(&Book::default()));
    for (body, end) in measurements() {
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
