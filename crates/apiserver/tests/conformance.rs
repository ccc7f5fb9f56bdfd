//! The conformance suite: one set of behaviours, run on the embedded server and on a real kube-apiserver.
//!
//! ```text
//! cargo test -p slipway-apiserver --test conformance                      embedded::AREA::name
//! SLIPWAY_CONFORMANCE_REAL=kubeconfig cargo test … --test conformance     and real::AREA::name
//! SLIPWAY_CONFORMANCE_REAL=kubeconfig cargo test … --test conformance -- --record [FILTER]
//! ```
//!
//! The truth is `conformance/golden/AREA/name.json`, recorded from the real server. A behaviour holds on a server
//! when the author's claims hold and the normalised transcript equals the golden one. `conformance/README.md`
//! says how behaviours are written and which real server they are recorded on.
#![allow(
    clippy::disallowed_methods,
    reason = "tests measure and wait in real time"
)]

#[path = "conformance/ask.rs"]
mod ask;
#[path = "conformance/behaviour.rs"]
mod behaviour;
#[path = "conformance/compare.rs"]
mod compare;
#[path = "conformance/in_process.rs"]
mod in_process;
#[path = "conformance/kubeconfig.rs"]
mod kubeconfig;
#[path = "conformance/leftovers.rs"]
mod leftovers;
#[path = "conformance/masks.rs"]
mod masks;
#[path = "conformance/normalise.rs"]
mod normalise;
#[path = "conformance/origins.rs"]
mod origins;
#[path = "conformance/own.rs"]
mod own;
#[path = "conformance/run.rs"]
mod run;
#[path = "conformance/target.rs"]
mod target;
#[path = "conformance/variables.rs"]
mod variables;

use behaviour::{Behaviour, Need, folder, load, names};
use bytes::Bytes;
use http::Method;
use libtest_mimic::{Arguments, Failed, Trial};
use origins::Origins;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use target::{Call, Target};
use tokio::runtime::Runtime;

/// So many there are: none goes missing unseen. Who adds one says so here.
const COUNT: usize = 331;
/// Behaviours mostly wait for the server.
const THREADS: usize = 6;

/// How many behaviours ran on a server, and how many held.
#[derive(Default)]
struct Score {
    ran: AtomicUsize,
    held: AtomicUsize,
    /// Which did not: of a run of long ago only the closing line is left.
    failed: Mutex<Vec<String>>,
}

impl Score {
    /// Counts a behaviour that ran.
    fn count(&self, name: &str, held: bool) {
        self.ran.fetch_add(1, Ordering::Relaxed);
        if held {
            self.held.fetch_add(1, Ordering::Relaxed);
        } else {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.push(name.to_owned());
        }
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}/{}",
            self.held.load(Ordering::Relaxed),
            self.ran.load(Ordering::Relaxed)
        )?;
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_empty() {
            return Ok(());
        }
        write!(f, " (failed: {})", failed.join(" "))
    }
}

fn main() -> ExitCode {
    match suite() {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

fn suite() -> Result<ExitCode, String> {
    let record = std::env::args().any(|argument| argument == "--record");
    let mut arguments =
        Arguments::from_iter(std::env::args().filter(|argument| argument != "--record"));
    arguments.test_threads.get_or_insert(THREADS);
    let runtime = Arc::new(Runtime::new().map_err(|e| e.to_string())?);
    let real = match std::env::var_os("SLIPWAY_CONFORMANCE_REAL") {
        Some(path) => Some(Arc::new(kubeconfig::Remote::from_kubeconfig(Path::new(
            &path,
        ))?)),
        None => None,
    };
    let behaviours = load()?;
    let (embedded_score, real_score) = (Arc::new(Score::default()), Arc::new(Score::default()));
    let mut trials = Vec::new();
    if record {
        let real = real
            .clone()
            .ok_or("--record needs SLIPWAY_CONFORMANCE_REAL")?;
        let version = runtime.block_on(version(real.as_ref()))?;
        slipway_apiserver::origin::of_real(&version).map_err(|error| error.to_string())?;
        let (version, origins) = (Arc::new(version), Arc::new(origins()?));
        for behaviour in behaviours {
            let (runtime, real) = (Arc::clone(&runtime), Arc::clone(&real));
            let (version, origins) = (Arc::clone(&version), Arc::clone(&origins));
            trials.push(Trial::test(
                format!("record::{}", behaviour.name),
                move || {
                    let recorded = runtime.block_on(record_one(&behaviour, real.as_ref()));
                    let noted = recorded.and_then(|()| origins.note(&behaviour.name, &version));
                    noted.map_err(Failed::from)
                },
            ));
        }
    } else {
        let count = behaviours.len();
        trials.push(Trial::test("suite::complete", move || {
            complete(count)?;
            match complete(count.saturating_sub(1)) {
                Ok(()) => Err(Failed::from("one behaviour fewer would not be seen")),
                Err(_) => Ok(()),
            }
        }));
        trials.extend(own::trials(&runtime));
        let own = Arc::clone(&runtime);
        trials.push(Trial::test("suite::embedded_is_not_recorded", move || {
            let version = own.block_on(async { version(in_process::embedded().as_ref()).await })?;
            match slipway_apiserver::origin::of_real(&version) {
                Ok(name) => Err(Failed::from(format!("taken for real: {name}"))),
                Err(_) => Ok(()),
            }
        }));
        for behaviour in behaviours {
            let behaviour = Arc::new(behaviour);
            let fresh = || Ok(in_process::embedded());
            trials.push(trial(
                "embedded",
                &behaviour,
                &runtime,
                &embedded_score,
                fresh,
            ));
            if let Some(real) = &real {
                let real = Arc::clone(real);
                let same = move || Ok(Arc::clone(&real) as Arc<dyn Target>);
                trials.push(trial("real", &behaviour, &runtime, &real_score, same));
            }
        }
    }
    let listing = arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !listing && !record {
        let on_real = if real.is_some() {
            real_score.to_string()
        } else {
            "not run".to_owned()
        };
        report(&embedded_score.to_string(), &on_real).map_err(|e| e.to_string())?;
    }
    Ok(conclusion.exit_code())
}

fn trial<F>(
    server: &str,
    behaviour: &Arc<Behaviour>,
    runtime: &Arc<Runtime>,
    score: &Arc<Score>,
    target: F,
) -> Trial
where
    F: FnOnce() -> Result<Arc<dyn Target>, String> + Send + 'static,
{
    let (behaviour, runtime, score) = (
        Arc::clone(behaviour),
        Arc::clone(runtime),
        Arc::clone(score),
    );
    let kind = if behaviour.needs.contains(&Need::Controllers) {
        "controllers"
    } else {
        ""
    };
    let name = format!("{server}::{}", behaviour.name);
    let trial = Trial::test(name, move || {
        let judged = runtime.block_on(async { judge(&behaviour, target()?.as_ref()).await });
        score.count(&behaviour.name, judged.is_ok());
        judged.map_err(Failed::from)
    });
    trial.with_kind(kind)
}

/// Whether a behaviour holds on a server.
async fn judge(behaviour: &Behaviour, target: &dyn Target) -> Result<(), String> {
    let path = behaviour.golden();
    let golden = std::fs::read(&path).map_err(|e| format!("{}: {e}: record it", path.display()))?;
    let golden: Value =
        serde_json::from_slice(&golden).map_err(|e| format!("{}: {e}", path.display()))?;
    let outcome = run::run(behaviour, target)
        .await
        .map_err(|e| format!("{}\n  {e}", behaviour.promise))?;
    let steps = golden.get("steps").cloned().unwrap_or_default();
    let mut lines = outcome.broken;
    lines.extend(
        compare::difference(&steps, &outcome.transcript)
            .into_iter()
            .map(|line| format!("step {}", one_based(&line))),
    );
    if lines.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\n  {}\n  {}",
        behaviour.promise,
        behaviour.cites,
        lines.join("\n  ")
    ))
}

/// `/0/body/kind …` is read as `1 /body/kind …`, with steps counted as people do.
fn one_based(line: &str) -> String {
    let rest = line.trim_start_matches('/');
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    match rest
        .get(..end)
        .and_then(|digits| digits.parse::<usize>().ok())
    {
        Some(index) => format!("{}: {}", index + 1, rest.get(end..).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// What a server says of its version.
async fn version(target: &dyn Target) -> Result<Value, String> {
    let call = Call {
        method: Method::GET,
        path: "/version".to_owned(),
        headers: Vec::new(),
        body: Bytes::new(),
        user: "admin".to_owned(),
        token: None,
    };
    let answer = target.send(call).await?;
    serde_json::from_slice(&answer.body).map_err(|error| format!("/version: {error}"))
}

/// Where goldens come from.
fn origins() -> Result<Origins, String> {
    Origins::read(folder("origins.txt"))
}

/// Writes down what the real server does, if it does so twice and as claimed.
async fn record_one(behaviour: &Behaviour, target: &dyn Target) -> Result<(), String> {
    let first = run::run(behaviour, target).await?;
    if !first.broken.is_empty() {
        return Err(first.broken.join("\n  "));
    }
    let second = run::run(behaviour, target).await?;
    let mut lines = second.broken;
    lines.extend(compare::difference(&first.transcript, &second.transcript));
    if !lines.is_empty() {
        return Err(format!("two runs differ:\n  {}", lines.join("\n  ")));
    }
    let path = behaviour.golden();
    let golden = json!({"behaviour": behaviour.promise, "steps": first.transcript});
    let text = serde_json::to_string_pretty(&golden).map_err(|e| e.to_string())?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|e| e.to_string())?;
    }
    std::fs::write(&path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))
}

/// As many behaviours as promised, and one golden for each.
fn complete(count: usize) -> Result<(), String> {
    let only = |path: &str, extension: &str| -> Result<Vec<String>, String> {
        Ok(names(&folder(path), extension)?
            .into_iter()
            .map(|(name, _)| name)
            .collect())
    };
    let (behaviours, goldens) = (only("behaviours", "yaml")?, only("golden", "json")?);
    if behaviours != goldens {
        let unrecorded: Vec<_> = behaviours
            .iter()
            .filter(|name| !goldens.contains(name))
            .collect();
        let stale: Vec<_> = goldens
            .iter()
            .filter(|name| !behaviours.contains(name))
            .collect();
        return Err(format!(
            "not recorded: {unrecorded:?}; golden without behaviour: {stale:?}"
        ));
    }
    let unknown = origins()?.unknown(goldens.iter().map(String::as_str));
    if !unknown.is_empty() {
        return Err(format!(
            "nobody says of which real server these were recorded (origins.txt): {unknown:?}"
        ));
    }
    if count != COUNT {
        return Err(format!("{count} behaviours, and not {COUNT}"));
    }
    Ok(())
}

fn report(embedded: &str, real: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "conformance: {embedded} embedded, {real} real")?;
    writeln!(
        out,
        "masked when comparing (literal values of a behaviour's author never are):"
    )?;
    for mask in masks::MASKS {
        writeln!(
            out,
            "  {:6} × {} → {}: {}",
            mask.uses(),
            mask.what,
            mask.becomes,
            mask.why
        )?;
    }
    Ok(())
}
