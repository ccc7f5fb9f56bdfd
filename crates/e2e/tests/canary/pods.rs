//! A real HTTP server for each Ready pod, on loopback. It comes with the pod's readiness and goes a moment after it, as a container
//! does that has time to end; what it answers, its image decides.
//!
//! `bad` in an image's tag: every second answer is a failure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use http::HeaderValue;
use k8s_openapi::api::core::v1::Pod;
use slipway_e2e::listener::{Answer, Listener, text};

/// How long a pod answers after it has gone: what its container has to end, while the data plane hears of it.
const LINGERS: Duration = Duration::from_secs(3);
/// The header that says which pod has answered.
pub(crate) const POD: &str = "x-pod";
/// The header that says of which image it is.
pub(crate) const IMAGE: &str = "x-image";

/// One that answers.
struct Served {
    listener: Listener,
    /// When its pod was no longer to be seen Ready.
    gone: Option<Instant>,
}

/// All pods of a namespace that answer, by name.
#[derive(Default)]
pub(crate) struct Pods(BTreeMap<String, Served>);

impl Pods {
    /// Begins to serve those that have become Ready, and ends those that have gone; whether anything is different.
    pub(crate) async fn follow(&mut self, seen: &[Pod]) -> Result<bool> {
        let ready: BTreeMap<&str, &Pod> = seen
            .iter()
            .filter(|pod| is_ready(pod))
            .filter_map(|pod| Some((pod.metadata.name.as_deref()?, pod)))
            .collect();
        let before = self.0.len();
        for (name, served) in &mut self.0 {
            if ready.contains_key(name.as_str()) {
                served.gone = None;
            } else if served.gone.is_none() {
                served.gone = Some(Instant::now());
            }
        }
        self.0
            .retain(|_, served| served.gone.is_none_or(|at| at.elapsed() < LINGERS));
        let mut is_changed = self.0.len() != before;
        for (name, pod) in ready {
            if !self.0.contains_key(name) {
                let listener = serve(name, image(pod)).await?;
                let served = Served {
                    listener,
                    gone: None,
                };
                self.0.insert(name.to_owned(), served);
                is_changed = true;
            }
        }
        Ok(is_changed)
    }

    /// Where a pod answers.
    pub(crate) fn port(&self, name: &str) -> Option<u16> {
        self.0.get(name).map(|served| served.listener.port())
    }

    /// All of them, with where they answer.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, u16)> {
        let all = self.0.iter();
        all.map(|(name, served)| (name.as_str(), served.listener.port()))
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|one| one.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    pod.metadata.deletion_timestamp.is_none()
        && conditions.any(|one| one.type_ == "Ready" && one.status == "True")
}

fn image(pod: &Pod) -> String {
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let image = containers.find_map(|one| one.image.clone());
    image.unwrap_or_default()
}

/// What a pod has answered so far.
#[derive(Default)]
struct Tally {
    good: AtomicUsize,
    bad: AtomicUsize,
}

impl Tally {
    /// As applications say it that Flagger's builtin metrics are made for.
    fn page(&self) -> String {
        let name = "http_request_duration_seconds";
        let (good, bad) = (
            self.good.load(Ordering::Relaxed),
            self.bad.load(Ordering::Relaxed),
        );
        let mut page = format!("# TYPE {name} histogram\n");
        for (status, count) in [("200", good), ("500", bad)] {
            for limit in ["0.005", "+Inf"] {
                let _ = writeln!(
                    page,
                    "{name}_bucket{{status=\"{status}\",le=\"{limit}\"}} {count}"
                );
            }
            let _ = writeln!(page, "{name}_count{{status=\"{status}\"}} {count}");
            let _ = writeln!(page, "{name}_sum{{status=\"{status}\"}} 0");
        }
        page
    }
}

async fn serve(name: &str, image: String) -> Result<Listener> {
    let tally = Arc::new(Tally::default());
    let (name, is_bad) = (name.to_owned(), image.contains("bad"));
    Listener::start(move |request| {
        let answer = if request.uri().path() == "/metrics" {
            text(200, tally.page())
        } else {
            answered(&name, &image, is_bad, &tally)
        };
        std::future::ready(answer)
    })
    .await
}

fn answered(name: &str, image: &str, is_bad: bool, tally: &Tally) -> Answer {
    let total = tally.good.load(Ordering::Relaxed) + tally.bad.load(Ordering::Relaxed);
    let fails = is_bad && total.is_multiple_of(2);
    let (status, count) = if fails {
        (500, &tally.bad)
    } else {
        (200, &tally.good)
    };
    count.fetch_add(1, Ordering::Relaxed);
    let mut answer = text(status, "answered");
    for (header, value) in [(POD, name), (IMAGE, image)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            answer.headers_mut().insert(header, value);
        }
    }
    answer
}
