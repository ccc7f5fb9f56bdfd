//! The whole server, in the process: any request gets an answer of the API's kind.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request};
use serde_json::Value;
use slipway_apiserver::authenticate::User;
use slipway_apiserver::cluster::{Cluster, Config, Snapshot};
use slipway_apiserver::shell::Body;

use super::{law, told};
use crate::fuzz::corpus::corpus;
use crate::fuzz::generate::{TEXTS, WORDS, damage, disturb, text};
use crate::fuzz::tape::Tape;
use crate::fuzz::verdict::{is_real, judge};

/// A cluster on a clock that stands still.
pub(super) struct Stage {
    pub(super) cluster: Arc<Cluster>,
}

thread_local! {
    static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    static FULL: RefCell<Option<Snapshot>> = const { RefCell::new(None) };
    static FRESH: RefCell<Option<Snapshot>> = const { RefCell::new(None) };
}

fn config() -> Config {
    Config::seeded("fuzz", 1, Arc::default())
        .with_admin("admin")
        .with_token("alice", User::new("alice", &["dev"]))
}

/// A cluster of its own for each case, that begins with what a fresh one has, or with many objects besides.
pub(super) fn stage(fresh: bool) -> Stage {
    let place = if fresh { &FRESH } else { &FULL };
    let snapshot = place.with(|kept| {
        let mut kept = kept.borrow_mut();
        kept.get_or_insert_with(|| {
            let cluster = RUNTIME.with(|runtime| runtime.block_on(async { config().build() }));
            let stage = Stage { cluster };
            if !fresh {
                fill(&stage);
            }
            stage.cluster.snapshot()
        })
        .clone()
    });
    let cluster = RUNTIME
        .with(|runtime| runtime.block_on(async { config().beginning_with(&snapshot).build() }));
    Stage { cluster }
}

/// Creates all that the corpus creates.
fn fill(stage: &Stage) {
    for ask in corpus()
        .asks
        .iter()
        .filter(|ask| ask.method == "POST" && !ask.path.contains("dryRun"))
    {
        // Webhooks that nobody answers would keep everything else out.
        if !ask.path.contains('{') && !ask.path.contains("admissionregistration") {
            stage.ask("POST", &ask.path, &ask.media, ask.body.clone());
        }
    }
}

impl Stage {
    /// Asks as the administrator; the answer's code and text.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: Vec<u8>,
    ) -> (u16, String) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", "Bearer admin");
        if !media.is_empty() {
            request = request.header("content-type", media);
        }
        match request.body(Bytes::from(body)) {
            Ok(request) => self.send(request),
            Err(_) => (400, String::new()),
        }
    }

    fn send(&self, request: Request<Bytes>) -> (u16, String) {
        let what = format!("{} {}", request.method(), request.uri());
        let answer = RUNTIME.with(|runtime| {
            let answer = async {
                let answer = self.cluster.handle(request).await;
                // What the server does beside an answer, it does now.
                tokio::task::yield_now().await;
                answer
            };
            runtime.block_on(answer).unwrap()
        });
        let code = answer.status().as_u16();
        let kind = answer
            .headers()
            .get("content-type")
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let Body::Full(body) = answer.into_body() else {
            assert!(code == 200, "{what}: a stream with code {code}");
            return (code, String::new());
        };
        let text = std::str::from_utf8(&body)
            .unwrap_or_else(|e| panic!("{what}: {e}"))
            .to_owned();
        law();
        judge(&what, code, &kind, &text);
        assert!(code < 500 || is_real(&text), "{what}: {code} {text}");
        (code, text)
    }
}

/// A few requests, each one of the corpus with damage; what a write answers is what is there, and writing it again
/// changes nothing.
pub(super) fn server(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let stage = stage(false);
    for _ in 0..=tape.below(3) {
        let ask = tape.pick_ref(&corpus().asks);
        let mut method = ask.method.as_str();
        let mut path = ask.path.clone();
        let mut media = ask.media.clone();
        let mut body = ask.body.clone();
        if let (true, Ok(mut value)) = (!tape.once_in(5), serde_json::from_slice::<Value>(&body)) {
            disturb(tape, &mut value, 3);
            body = value.to_string().into_bytes();
        } else {
            damage(
                tape,
                &mut body,
                &["{", "}", "null", "\"", ":", "[", "k8s\0"],
                4,
            );
        }
        if tape.once_in(3) {
            path = other_path(tape, &path);
        }
        if tape.once_in(3) {
            path = with_query(tape, path);
        }
        if tape.once_in(6) {
            method = tape.pick(&[
                "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE", "X",
            ]);
        }
        if tape.once_in(8) {
            media = tape.pick(MEDIA).to_owned();
        }
        let Some(request) = request(tape, method, &path, &media, body) else {
            continue;
        };
        told(|| {
            format!(
                "{} {} {:?}\n    {}",
                request.method(),
                request.uri(),
                request.headers(),
                String::from_utf8_lossy(request.body())
            )
        });
        let is_plain = request.headers().get("accept").is_none() && request.uri().query().is_none();
        let is_write = matches!(method, "PUT" | "PATCH") && is_object(&path);
        let (code, text) = stage.send(request);
        told(|| format!("  {code} {text}"));
        if code < 300 && is_plain && is_write {
            written(&stage, &path, &text);
        }
    }
}

/// Whether a path is that of an object, and not of a part of it.
fn is_object(path: &str) -> bool {
    let steps: Vec<&str> = path.split('/').skip(1).collect();
    let (["api", _, rest @ ..] | ["apis", _, _, rest @ ..]) = steps.as_slice() else {
        return false;
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    matches!(rest, [resource, name] if !resource.is_empty() && !name.is_empty() && *name != "finalize" && *name != "status")
}

/// Reads and repeats a write.
fn written(stage: &Stage, path: &str, text: &str) {
    let (code, found) = stage.ask("GET", path, "", Vec::new());
    if code == 404 {
        // The last finalizer is gone, and with it the object.
        return;
    }
    law();
    let (wanted, found) = (parse(text), parse(&found));
    assert_eq!(
        found, wanted,
        "{path}: what was written is not what is there"
    );
    let (code, text) = stage.ask(
        "PUT",
        path,
        "application/json",
        wanted.to_string().into_bytes(),
    );
    assert_eq!(
        code, 200,
        "{path}: what is there cannot be written: {text}\n{wanted}"
    );
    assert_eq!(
        parse(&text),
        wanted,
        "{path}: an update that changes nothing"
    );
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

const MEDIA: &[&str] = &[
    "",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
    "text/plain",
    "*/*",
    "application/json; charset=utf-16",
];

/// Another path: steps exchanged, left out or added.
fn other_path(tape: &mut Tape<'_>, path: &str) -> String {
    const STEPS: &[&str] = &[
        "api",
        "apis",
        "v1",
        "v2",
        "apps",
        "batch",
        "namespaces",
        "default",
        "kube-system",
        "configmaps",
        "pods",
        "deployments",
        "a",
        "status",
        "scale",
        "eviction",
        "binding",
        "token",
        "watch",
        "proxy",
        "log",
        "finalize",
        "approval",
        "openapi",
        "v3",
        "version",
        "healthz",
        "%2e%2e",
        "%2f",
        "%00",
        "%ff",
        "..",
        "",
        "clusters",
        "metrics",
        "customresourcedefinitions",
    ];
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut steps: Vec<String> = path.split('/').skip(1).map(str::to_owned).collect();
    for _ in 0..=tape.below(3) {
        let at = tape.below(steps.len() + 1);
        let step = match tape.below(4) {
            0 => percent_encoding::percent_encode(
                text(tape).as_bytes(),
                percent_encoding::NON_ALPHANUMERIC,
            )
            .to_string(),
            1 => tape.pick(WORDS).to_owned(),
            _ => tape.pick(STEPS).to_owned(),
        };
        match tape.below(3) {
            0 if at < steps.len() => steps[at] = step,
            1 if at < steps.len() => drop(steps.remove(at)),
            _ => steps.insert(at, step),
        }
    }
    let question = if query.is_empty() { "" } else { "?" };
    format!("/{}{question}{query}", steps.join("/"))
}

fn with_query(tape: &mut Tape<'_>, mut path: String) -> String {
    const NAMES: &[&str] = &[
        "watch",
        "limit",
        "continue",
        "labelSelector",
        "fieldSelector",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "allowWatchBookmarks",
        "timeoutSeconds",
        "dryRun",
        "fieldManager",
        "force",
        "fieldValidation",
        "pretty",
        "propagationPolicy",
        "gracePeriodSeconds",
        "orphanDependents",
        "timeout",
        "x",
    ];
    const VALUES: &[&str] = &[
        "",
        "1",
        "0",
        "-1",
        "true",
        "false",
        "All",
        "a",
        "a=b",
        "a in (b)",
        "!a",
        "metadata.name=a",
        "Strict",
        "Warn",
        "Ignore",
        "Exact",
        "NotOlderThan",
        "Background",
        "Foreground",
        "Orphan",
        "99999999999999999999",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0",
        "9223372036854775807",
        "1e3",
        "a,b",
        "=",
        ",",
    ];
    for _ in 0..=tape.below(3) {
        let name = tape.pick(NAMES);
        let value = if tape.once_in(4) {
            text(tape)
        } else {
            tape.pick(VALUES).to_owned()
        };
        let value =
            percent_encoding::percent_encode(value.as_bytes(), percent_encoding::NON_ALPHANUMERIC);
        let sign = if path.contains('?') { '&' } else { '?' };
        path = format!("{path}{sign}{name}={value}");
    }
    path
}

fn request(
    tape: &mut Tape<'_>,
    method: &str,
    path: &str,
    media: &str,
    body: Vec<u8>,
) -> Option<Request<Bytes>> {
    const HEADERS: &[&str] = &[
        "accept",
        "user-agent",
        "authorization",
        "impersonate-user",
        "impersonate-group",
        "impersonate-uid",
        "impersonate-extra-a",
        "x-trace-context",
        "content-type",
    ];
    const VALUES: &[&str] = &[
        "application/json",
        "application/yaml",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/vnd.kubernetes.protobuf",
        "*/*",
        "text/html",
        "Bearer admin",
        "Bearer alice",
        "Bearer x",
        "Basic eDp5",
        "kubectl/v1",
        "alice",
        "system:serviceaccount:default:a",
        "system:masters",
        "application/json;as=Table;g=meta.k8s.io;v=v1,application/json;q=0.1",
        "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2",
    ];
    let mut request = Request::builder().method(method).uri(path);
    if !media.is_empty() {
        request = request.header("content-type", media);
    }
    let mut has_credentials = false;
    if tape.once_in(4) {
        for _ in 0..=tape.below(2) {
            let name = tape.pick(HEADERS);
            let value = if tape.once_in(4) {
                tape.pick(TEXTS)
            } else {
                tape.pick(VALUES)
            };
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                request = request.header(name, value);
                has_credentials |= name == "authorization";
            }
        }
    }
    if !has_credentials {
        request = request.header("authorization", "Bearer admin");
    }
    request.body(Bytes::from(body)).ok()
}
