//! Hostile targets: each is refused or bounded, with a clear reason. In real time, because sockets are real.

use std::time::Duration;

use slipway_kernel::address::{AllowedHosts, Patterns, Rules, Url};
use slipway_kernel::question::{Answer, Call, Failure, Number, Text, Value, Waiting, Wanted};
use slipway_runtime::outside::{Outside, Terms};

use crate::hostile_answers;
use crate::peers::{Book, Play, answer, ask, ok, rules, server, server_at, terms, url};
use crate::spellings::{NO_ADDRESS, SPECIAL};

/// Nobody should come to need it, on a machine that has other things to do as well.
const TIME: Duration = Duration::from_secs(20);

/// What may come of a call to a hostile target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// Not dialled, with this in the reason.
    NotAllowed(&'static str),
    Unreachable(&'static str),
    Malformed(&'static str),
    TooLarge(&'static str),
    Timeout,
    Value(u16, Value),
}

pub(crate) fn check(name: &str, got: &Answer, end: &End) {
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

pub(crate) fn get(url: Url, wanted: Wanted) -> Call {
    Call {
        wanted,
        timeout: TIME,
        ..Call::get(url)
    }
}

#[test]
fn a_spelling_that_could_be_another_address_is_none() {
    for text in NO_ADDRESS {
        assert!(Url::parse(text).is_err(), "{text}");
    }
}

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
    for (location, redirects, end) in redirects() {
        let (from, heard) = server(to(location)).await;
        let call = get(url(&format!("http://{from}/a")), Wanted::Status);
        let got = ask(&outside, Call { redirects, ..call }).await;
        check(location, &got, &end);
        assert!(heard.all().len() <= 4, "{location}");
    }
    let (end, _) = server(Play::Say(ok("7"))).await;
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

/// Where answers may point, how often that is followed, and what comes of it.
fn redirects() -> Vec<(&'static str, u8, End)> {
    vec![
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
    ]
}

#[test]
fn there_are_more_than_sixty_hostile_targets() {
    let all = NO_ADDRESS.len()
        + SPECIAL.len()
        + hostile_answers::answers().len()
        + redirects().len()
        + hostile_answers::measurements().len();
    assert!(all >= 60, "{all}");
}
