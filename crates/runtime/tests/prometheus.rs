//! `cargo xtask test --only prometheus`: a real Prometheus, asked by the product's client.
//!
//! It scrapes a target of this test, and answers scalars, vectors, no data and errors. It is asked in the open, over TLS with a
//! certificate of a private CA, and behind a front that wants a bearer token. CA and token are in a Secret of an embedded API
//! server. Without `SLIPWAY_PROMETHEUS` there is nobody to ask, and nothing is run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test with an output of its own, in real time"
)]

#[path = "prometheus/servers.rs"]
mod servers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use servers::{Issued, Prometheus};
use slipway_apiserver::cluster::Config;
use slipway_kernel::address::{Patterns, Rules, Url};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::question::prometheus::{Measured, Query, Reading};
use slipway_kernel::question::{
    Answer, Credential, Failure, Number, OtherNamespaces, SecretRef, Trust, Value,
};
use slipway_runtime::outside::{
    ApiSecrets, Ask as _, Asked, Limits, Outside, Still, SystemResolver, Terms,
};

const TOKEN: &str = "t0ken-of-a-tenant";
const ADMIN: &str = "admin-token";
/// How long a first scrape may take on a loaded machine.
const SOON: Duration = Duration::from_mins(1);

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    let Some(program) = std::env::var_os("SLIPWAY_PROMETHEUS").map(PathBuf::from) else {
        println!("prometheus: not run: cargo xtask test --only prometheus");
        return ExitCode::SUCCESS;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (passed, failed) = runtime.block_on(all(program));
    println!("prometheus: {passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The client, as the program makes it, but that loopback may be called.
async fn client(ca: &str) -> Outside {
    let cluster = Config::seeded("home", 1, Arc::default())
        .with_admin(ADMIN)
        .build();
    let client = kube::Client::new(cluster.service(ADMIN), "monitoring");
    for (path, body) in [
        (
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}}),
        ),
        (
            "/api/v1/namespaces/monitoring/secrets",
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "prometheus"},
                "stringData": {"ca.crt": ca, "token": TOKEN, "other": "not-the-token"},
            }),
        ),
    ] {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).unwrap();
        let made: serde_json::Value = client.request(request).await.unwrap();
        assert!(made["metadata"]["uid"].is_string(), "{made}");
    }
    let special = Patterns::parse(["127.0.0.0/8"]).unwrap();
    Outside::new(Terms {
        rules: Rules {
            special,
            ..Rules::default()
        },
        other_namespaces: OtherNamespaces::Refused,
        credentials_over_http: false,
        limits: Limits::default(),
        resolver: Arc::new(SystemResolver),
        secrets: Arc::new(ApiSecrets::new(client)),
        agent: "slipway/test",
    })
}

fn secret(key: &str) -> SecretRef {
    SecretRef {
        namespace: "monitoring".to_owned(),
        name: "prometheus".to_owned(),
        key: key.to_owned(),
    }
}

async fn ask(outside: &Outside, query: &Query) -> Answer {
    let key = Key {
        cluster: ClusterId::local(),
        controller: "test",
        namespace: "monitoring".to_owned(),
        name: "one".to_owned(),
    };
    let (id, call) = ("test/one".to_owned(), query.call());
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

fn reading(answer: &Answer) -> Option<&Reading> {
    match &answer.as_ref().ok()?.value {
        Value::Measured(Measured::Whole(reading)) => Some(reading),
        _ => None,
    }
}

/// Asks until the first scrape shows.
async fn until_scraped(outside: &Outside, at: &Url) {
    let began = Instant::now();
    loop {
        let answer = ask(outside, &Query::new(at.clone(), "probe_value")).await;
        if matches!(reading(&answer), Some(Reading::Vector(_))) {
            return;
        }
        assert!(began.elapsed() < SOON, "nothing was scraped: {answer:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// One thing that must be so.
struct Checks {
    passed: u32,
    failed: u32,
}

impl Checks {
    fn check(&mut self, what: &str, holds: bool, answer: &Answer) {
        if holds {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("FAILED {what}: {answer:?}");
        }
    }
}

async fn all(program: PathBuf) -> (u32, u32) {
    let issued = Issued::new();
    let outside = client(&issued.ca).await;
    let target = servers::target().await;
    let open = Prometheus::start(&program, target, None).await;
    let mut checks = Checks {
        passed: 0,
        failed: 0,
    };
    until_scraped(&outside, &open.url()).await;
    kinds(&outside, &open.url(), &mut checks).await;
    let sealed = Prometheus::start(&program, target, Some(&issued)).await;
    over_tls(&outside, &sealed, &mut checks).await;
    behind_a_token(&outside, &open, &issued, &mut checks).await;
    (checks.passed, checks.failed)
}

/// Every kind of answer.
async fn kinds(outside: &Outside, at: &Url, checks: &mut Checks) {
    let finite = Number::Finite;
    let long = format!("probe_value{}", " + 0".repeat(2_000));
    let table: [(&str, Reading); 9] = [
        ("1 + 1", Reading::Scalar(finite(2.0))),
        ("scalar(probe_value)", Reading::Scalar(finite(0.25))),
        ("probe_value", Reading::Vector(finite(0.25))),
        (&long, Reading::Vector(finite(0.25))),
        ("probe_many", Reading::Several(2)),
        ("probe_absent", Reading::NoData),
        ("0 * probe_value / 0", Reading::Vector(Number::NotANumber)),
        ("probe_value / 0", Reading::Vector(Number::Infinite)),
        (
            "-probe_value / 0",
            Reading::Vector(Number::NegativeInfinite),
        ),
    ];
    for (query, expected) in table {
        let answer = ask(outside, &Query::new(at.clone(), query)).await;
        let is_same =
            reading(&answer).is_some_and(|is| format!("{is:?}") == format!("{expected:?}"));
        let shown: String = query.chars().take(40).collect();
        checks.check(&shown, is_same, &answer);
    }
    let answer = ask(outside, &Query::new(at.clone(), "sum(")).await;
    let is_refused = matches!(&answer, Err(Failure::Refused { code: 400, message }) if message.contains("parse error"));
    checks.check("an error of the query", is_refused, &answer);
    let answer = ask(outside, &Query::new(at.clone(), "probe_value[1m]")).await;
    let is_malformed = matches!(answer, Err(Failure::Malformed(_)));
    checks.check("a matrix", is_malformed, &answer);
}

/// A certificate of a private CA.
async fn over_tls(outside: &Outside, sealed: &Prometheus, checks: &mut Checks) {
    let mut query = Query::new(sealed.url(), "1 + 1");
    let answer = ask(outside, &query).await;
    let is_unknown = matches!(answer, Err(Failure::Unreachable(_)));
    checks.check("a CA that nobody knows", is_unknown, &answer);
    // Who cannot be reached is left alone for a moment.
    tokio::time::sleep(Duration::from_secs(2)).await;
    query.trust = Trust::Secret(secret("ca.crt"));
    let began = Instant::now();
    let mut answer = ask(outside, &query).await;
    while reading(&answer).is_none() && began.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(500)).await;
        answer = ask(outside, &query).await;
    }
    let is_two = matches!(reading(&answer), Some(Reading::Scalar(Number::Finite(2.0))));
    checks.check("a CA in a Secret", is_two, &answer);
}

/// A bearer token out of a Secret, over TLS.
async fn behind_a_token(
    outside: &Outside,
    open: &Prometheus,
    issued: &Issued,
    checks: &mut Checks,
) {
    let front = servers::front(issued, open.address, TOKEN).await;
    let mut query = Query::new(front, "probe_value");
    query.trust = Trust::Secret(secret("ca.crt"));
    let answer = ask(outside, &query).await;
    let is_refused = matches!(answer, Err(Failure::Refused { code: 401, .. }));
    checks.check("no token", is_refused, &answer);
    query.credentials = vec![Credential::Bearer(secret("other"))];
    let answer = ask(outside, &query).await;
    let is_refused = matches!(answer, Err(Failure::Refused { code: 401, .. }));
    checks.check("another token", is_refused, &answer);
    query.credentials = vec![Credential::Bearer(secret("token"))];
    let answer = ask(outside, &query).await;
    let is_told = matches!(reading(&answer), Some(Reading::Vector(Number::Finite(_))));
    checks.check("the token of a Secret", is_told, &answer);
    let is_clean = !format!("{answer:?}").contains(TOKEN);
    checks.check("the token is nowhere", is_clean, &answer);
}
