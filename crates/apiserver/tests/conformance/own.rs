//! What the suite itself promises, shown on a server that answers what it is told.

use crate::Score;
use crate::behaviour::Behaviour;
use crate::run::{Outcome, run};
use crate::target::{Answer, Call, EventStream, Target};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// A server that answers these to reading, one after the other, and lets everything be written that it does not refuse first.
struct Scripted {
    is_busy: bool,
    answers: Mutex<VecDeque<(u16, &'static str)>>,
    refusals: Mutex<VecDeque<u16>>,
}

impl Scripted {
    fn new(is_busy: bool, answers: &[(u16, &'static str)]) -> Self {
        Self {
            is_busy,
            answers: Mutex::new(answers.iter().copied().collect()),
            refusals: Mutex::default(),
        }
    }

    /// What it says to the first who make something.
    fn refusing(mut self, codes: &[u16]) -> Self {
        self.refusals = Mutex::new(codes.iter().copied().collect());
        self
    }

    fn made(&self) -> u16 {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.pop_front().unwrap_or(201)
    }

    fn next(&self) -> (u16, &'static str) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.pop_front().unwrap_or((418, "{}"))
    }

    /// How many answers nobody has asked for.
    fn left(&self) -> usize {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.len()
    }
}

fn status(code: u16) -> Result<StatusCode, String> {
    StatusCode::from_u16(code).map_err(|error| error.to_string())
}

fn headers() -> HeaderMap {
    let json = HeaderValue::from_static("application/json");
    [(CONTENT_TYPE, json)].into_iter().collect()
}

impl Target for Scripted {
    fn is_busy(&self) -> bool {
        self.is_busy
    }

    fn send(&self, call: Call) -> BoxFuture<'_, Result<Answer, String>> {
        let (code, body) = match call.method {
            Method::GET => self.next(),
            Method::POST => (self.made(), "{}"),
            _ => (200, "{}"),
        };
        Box::pin(async move {
            Ok(Answer {
                code: status(code)?,
                headers: headers(),
                body: Bytes::from_static(body.as_bytes()),
            })
        })
    }

    fn watch(&self, _: Call) -> BoxFuture<'_, Result<EventStream, String>> {
        let (code, line) = self.next();
        Box::pin(async move {
            let (sender, lines) = mpsc::unbounded_channel();
            for line in line.lines() {
                let _ = sender.send(Bytes::from_static(line.as_bytes()));
            }
            Ok(EventStream {
                code: status(code)?,
                headers: headers(),
                lines,
            })
        })
    }
}

/// What comes of these steps.
async fn outcome(server: &Scripted, steps: &str) -> Result<Outcome, String> {
    let text = format!("behaviour: own\ncites: https://kubernetes.io/docs/\nsteps:\n{steps}\n");
    let behaviour = Behaviour::parse("own::steps".to_owned(), text)?;
    run(&behaviour, server).await
}

fn hold(held: bool, what: &str) -> Result<(), String> {
    if held {
        return Ok(());
    }
    Err(format!("not so: {what}"))
}

/// A step that reads something.
const READ: &str = "  - {GET: /x, expect: 200}";

async fn a_busy_server_is_asked_again() -> Result<(), String> {
    let busy = Scripted::new(true, &[(429, "{}"), (200, "{}")]);
    let held = outcome(&busy, READ).await?.broken.is_empty();
    hold(held, "a refusal of a busy server is no answer")
}

async fn another_server_is_taken_at_its_word() -> Result<(), String> {
    let embedded = Scripted::new(false, &[(429, "{}"), (200, "{}")]);
    let broken = outcome(&embedded, READ).await?.broken;
    hold(
        broken.len() == 1 && embedded.left() == 1,
        "one that is never busy has said so",
    )
}

async fn a_refusal_that_is_claimed_is_an_answer() -> Result<(), String> {
    let busy = Scripted::new(true, &[(429, "{}"), (200, "{}")]);
    let steps = "  - {GET: /x, expect: 429}";
    let broken = outcome(&busy, steps).await?.broken;
    hold(broken.is_empty() && busy.left() == 1, "it was asked once")
}

async fn a_watch_that_is_refused_is_asked_for_again() -> Result<(), String> {
    let busy = Scripted::new(true, &[(429, "{}"), (200, "{\"type\":\"ADDED\"}\n")]);
    let steps = "  - {WATCH: /x, id: w}\n  - {COLLECT: w, events: 1}";
    let broken = outcome(&busy, steps).await?.broken;
    hold(broken.is_empty(), "the second watch is read")
}

async fn a_watch_that_ended_too_early_is_opened_again() -> Result<(), String> {
    let answers = [(200, ""), (200, "{\"type\":\"BOOKMARK\"}\n")];
    let steps = "  - {WATCH: /x, id: w}\n  - {COLLECT: w, events: 1, again: true}";
    let busy = Scripted::new(true, &answers);
    let broken = outcome(&busy, steps).await?.broken;
    hold(broken.is_empty(), "the second watch is read")?;
    let embedded = Scripted::new(false, &answers);
    let broken = outcome(&embedded, steps).await?.broken;
    hold(
        broken.len() == 1,
        "one that is never busy ends no watch too early",
    )
}

async fn a_bookmark_that_nobody_asked_for_is_passed_over() -> Result<(), String> {
    let lines = "{\"type\":\"BOOKMARK\"}\n{\"type\":\"DELETED\"}\n";
    let steps = |query: &str, kind: &str| {
        format!(
            "  - {{WATCH: \"/x?watch=1{query}\", id: w}}\n  - {{COLLECT: w, events: 1, match: [{{type: {kind}}}]}}"
        )
    };
    let allowed = "&allowWatchBookmarks=true";
    for (is_busy, query, kind, broken) in [
        (true, allowed, "DELETED", 0),
        (true, allowed, "BOOKMARK", 0),
        (true, "", "DELETED", 1),
        (false, allowed, "DELETED", 1),
    ] {
        let server = Scripted::new(is_busy, &[(200, lines)]);
        let found = outcome(&server, &steps(query, kind)).await?.broken;
        hold(
            found.len() == broken,
            &format!("{is_busy} {query} {kind}: {found:?}"),
        )?;
    }
    let end = r#"{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    let server = Scripted::new(true, &[(200, end)]);
    let found = outcome(&server, &steps(allowed, "DELETED")).await?.broken;
    hold(
        found.len() == 1,
        "the end of the first events is told once, and where it is told counts",
    )
}

async fn a_namespace_is_asked_for_until_it_is_there() -> Result<(), String> {
    let busy = Scripted::new(true, &[(200, "{}")]).refusing(&[429, 504, 409]);
    let held = outcome(&busy, READ).await?.broken.is_empty();
    hold(held, "it was made, and the answer lost")?;
    let embedded = Scripted::new(false, &[(200, "{}")]).refusing(&[429]);
    let refused = outcome(&embedded, READ).await.is_err();
    hold(refused, "one that is never busy has said so")
}

async fn what_must_be_first_is_waited_for_and_not_written_down() -> Result<(), String> {
    let server = Scripted::new(
        false,
        &[(200, "{\"a\":1}"), (200, "{\"a\":2}"), (200, "{}")],
    );
    let steps = "  - {GET: /x, expect: 200, first: {GET: /y, until: {a: 2}, seconds: 5}}";
    let outcome = outcome(&server, steps).await?;
    let written = outcome.transcript.as_array().map_or(0, Vec::len);
    let body = outcome.transcript.pointer("/0/body");
    hold(
        written == 1 && body == Some(&Value::Object(serde_json::Map::new())) && server.left() == 0,
        "the step comes when it is so, and alone is in the transcript",
    )
}

fn the_closing_line_names_what_failed() -> Result<(), String> {
    let score = Score::default();
    score.count("watch::gone", true);
    hold(score.to_string() == "1/1", "all held")?;
    score.count("crd::watch", false);
    hold(
        score.to_string() == "1/2 (failed: crd::watch)",
        "the name is there",
    )
}

/// A test that talks to a server.
fn talking<F>(
    name: &str,
    runtime: &Arc<Runtime>,
    test: impl FnOnce() -> F + Send + 'static,
) -> Trial
where
    F: Future<Output = Result<(), String>> + 'static,
{
    let runtime = Arc::clone(runtime);
    Trial::test(format!("suite::{name}"), move || {
        runtime.block_on(test()).map_err(Failed::from)
    })
}

/// All of them.
pub(crate) fn trials(runtime: &Arc<Runtime>) -> Vec<Trial> {
    vec![
        talking(
            "a_busy_server_is_asked_again",
            runtime,
            a_busy_server_is_asked_again,
        ),
        talking(
            "another_server_is_taken_at_its_word",
            runtime,
            another_server_is_taken_at_its_word,
        ),
        talking(
            "a_refusal_that_is_claimed_is_an_answer",
            runtime,
            a_refusal_that_is_claimed_is_an_answer,
        ),
        talking(
            "a_watch_that_is_refused_is_asked_for_again",
            runtime,
            a_watch_that_is_refused_is_asked_for_again,
        ),
        talking(
            "a_watch_that_ended_too_early_is_opened_again",
            runtime,
            a_watch_that_ended_too_early_is_opened_again,
        ),
        talking(
            "a_bookmark_that_nobody_asked_for_is_passed_over",
            runtime,
            a_bookmark_that_nobody_asked_for_is_passed_over,
        ),
        talking(
            "a_namespace_is_asked_for_until_it_is_there",
            runtime,
            a_namespace_is_asked_for_until_it_is_there,
        ),
        talking(
            "what_must_be_first_is_waited_for_and_not_written_down",
            runtime,
            what_must_be_first_is_waited_for_and_not_written_down,
        ),
        Trial::test("suite::the_closing_line_names_what_failed", || {
            the_closing_line_names_what_failed().map_err(Failed::from)
        }),
    ]
}
