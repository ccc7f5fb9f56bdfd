//! The actors against reality: the same stories on the embedded server with actors, in virtual time, and on a real
//! control plane (kube-controller-manager, kube-scheduler, KWOK), in real time. What is there at the end has to be equal.
//!
//! ```text
//! cargo test -p slipway-sim --test reality                                       embedded::NAME
//! SLIPWAY_REAL_FULL=kubeconfig cargo test -p slipway-sim --test reality          and real::NAME
//! SLIPWAY_REAL_FULL=kubeconfig cargo test … --test reality -- --record [FILTER]  writes reality/golden
//! ```
//!
//! `cargo xtask controlplane up` starts such a control plane. A story is a file `reality/NAME.yaml` ([`story`]); the truth
//! is `reality/golden/NAME.json`, recorded from the real one. What cannot be equal is masked ([`masks`]), and the list of
//! masks is printed with their reasons.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    reason = "tests, which also wait in real time"
)]

#[path = "reality/bounds.rs"]
mod bounds;
#[path = "reality/drive.rs"]
mod drive;
#[path = "reality/masks.rs"]
mod masks;
#[path = "../../apiserver/tests/conformance/origins.rs"]
mod origins;
#[allow(dead_code, reason = "made for the other tests too")]
#[path = "actors/stage.rs"]
mod stage;
#[path = "reality/story.rs"]
mod story;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Failed, Trial};
use origins::Origins;
use serde_json::Value;
use story::Story;

/// So many there are: none goes missing unseen. Who adds one says so here.
const COUNT: usize = 57;
/// Stories mostly wait for the real controllers.
const THREADS: usize = 4;
const VARIABLE: &str = "SLIPWAY_REAL_FULL";

/// How many stories were told on a server, and how many ended well.
#[derive(Default)]
struct Score {
    ran: AtomicUsize,
    held: AtomicUsize,
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        write!(f, "{}/{}", count(&self.held), count(&self.ran))
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reality")
}

fn golden(name: &str) -> PathBuf {
    folder().join("golden").join(format!("{name}.json"))
}

/// Where goldens come from.
fn origins() -> Origins {
    let read = Origins::read(folder().join("origins.txt"));
    read.unwrap_or_else(|error| panic!("{error}"))
}

fn main() -> ExitCode {
    let record = std::env::args().any(|argument| argument == "--record");
    let mut arguments = Arguments::from_iter(std::env::args().filter(|a| a != "--record"));
    arguments.test_threads.get_or_insert(THREADS);
    let real = std::env::var_os(VARIABLE).map(PathBuf::from);
    let stories = story::load(&folder());
    let (embedded_score, real_score) = (Arc::new(Score::default()), Arc::new(Score::default()));
    let mut trials = Vec::new();
    if record {
        let kubeconfig = real
            .clone()
            .unwrap_or_else(|| panic!("--record needs {VARIABLE}"));
        let version = drive::version(&kubeconfig).unwrap_or_else(|error| panic!("{error}"));
        let origin = slipway_apiserver::origin::of_real(&version);
        origin.unwrap_or_else(|error| panic!("{error}"));
        let (version, origins) = (Arc::new(version), Arc::new(origins()));
        for story in stories {
            let kubeconfig = kubeconfig.clone();
            let (version, origins) = (Arc::clone(&version), Arc::clone(&origins));
            trials.push(Trial::test(format!("record::{}", story.name), move || {
                let end = drive::on_real(&story, &kubeconfig, None)?;
                let text = serde_json::to_string_pretty(&end).unwrap() + "\n";
                std::fs::write(golden(&story.name), text).map_err(|e| e.to_string())?;
                Ok(origins.note(&story.name, &version)?)
            }));
        }
    } else {
        let names: Vec<String> = stories.iter().map(|story| story.name.clone()).collect();
        trials.push(Trial::test("suite::complete", move || {
            let count = names.len();
            assert_eq!(count, COUNT, "another number of stories");
            let unknown = origins().unknown(names.iter().map(String::as_str));
            assert!(
                unknown.is_empty(),
                "of which real server are these? {unknown:?}"
            );
            Ok(())
        }));
        trials.push(Trial::test("suite::races", || {
            masks::check_differences_of_real();
            bounds::check_races();
            Ok(())
        }));
        for story in stories {
            let story = Arc::new(story);
            trials.push(trial(
                "embedded",
                &story,
                &embedded_score,
                masks::differences,
                |story: &Story, _: &Value| drive::on_embedded(story),
            ));
            if let Some(kubeconfig) = real.clone() {
                let on_real = move |story: &Story, truth: &Value| {
                    drive::on_real(story, &kubeconfig, Some(truth))
                };
                let look = masks::differences_of_real;
                trials.push(trial("real", &story, &real_score, look, on_real));
            }
        }
    }
    let listing = arguments.list;
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !listing && !record {
        let real = real.map_or("real not run".to_owned(), |_| format!("{real_score} real"));
        let mut out = std::io::stdout();
        for (what, why) in masks::MASKS {
            writeln!(out, "masked: {what} ({why})").unwrap();
        }
        writeln!(out, "actors: {embedded_score} embedded, {real}").unwrap();
    }
    conclusion.exit_code()
}

fn trial(
    server: &str,
    story: &Arc<Story>,
    score: &Arc<Score>,
    look: fn(&Value, &Value) -> Vec<String>,
    tell: impl Fn(&Story, &Value) -> Result<Value, String> + Send + 'static,
) -> Trial {
    let (story, score) = (Arc::clone(story), Arc::clone(score));
    Trial::test(format!("{server}::{}", story.name), move || {
        score.ran.fetch_add(1, Ordering::Relaxed);
        let path = golden(&story.name);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}; record it first", path.display()))?;
        let truth: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let end = tell(&story, &truth)?;
        let differences = look(&truth, &end);
        if differences.is_empty() {
            score.held.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        Err(Failed::from(format!(
            "{}\n{}",
            story.about,
            differences.join("\n")
        )))
    })
}
