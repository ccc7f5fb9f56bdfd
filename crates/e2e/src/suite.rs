//! A suite of named tests, run on the embedded server and on a real control plane side by side, with one line at the end
//! that counts.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::client;
use crate::score::Score;
use crate::server::{Embedded, Real, Running, Server};

/// A named test.
pub type Test<S> = (&'static str, fn(&S) -> Result<()>);

/// Tests that wait for somebody to play them.
type Queue<'a, S> = Mutex<std::vec::IntoIter<&'a Test<S>>>;

/// Tests and where they play.
pub struct Suite<S: 'static> {
    /// How the closing line begins.
    pub title: &'static str,
    /// Tests that nothing may disturb: one after another, before the others.
    pub alone: &'static [Test<S>],
    /// The other tests.
    pub tests: &'static [Test<S>],
    /// How many of them may run at once on a server; they mostly wait. Who takes longest is best named first.
    pub lanes: usize,
    /// How many embedded servers there are at once where there is no real control plane, whose tests would take as long: on each
    /// one test after another, so that nothing disturbs those either that nothing may disturb. With one, it is as where there is
    /// a real one.
    pub servers: usize,
    /// Prepares a server.
    pub set: fn(&Path, &dyn Server) -> Result<S>,
    /// Takes away what the test before left.
    pub clear: fn(&S) -> Result<()>,
}

impl<S: Sync> Suite<S> {
    /// Runs what the command line names; words after `--` choose runs by name: `embedded`, `real`, a test's name.
    pub fn main(&self) -> ExitCode {
        self.ended(None)
    }

    /// As [`Suite::main`], on an embedded server that runs already: this variable names its kubeconfig.
    pub fn main_beside(&self, variable: &str) -> ExitCode {
        self.ended(Some(variable))
    }

    fn ended(&self, variable: Option<&str>) -> ExitCode {
        match self.run(variable) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                say(&format!("{}: {error:#}", self.title));
                ExitCode::FAILURE
            }
        }
    }

    fn run(&self, variable: Option<&str>) -> Result<bool> {
        let (options, words): (Vec<String>, Vec<String>) = std::env::args()
            .skip(1)
            .partition(|word| word.starts_with("--"));
        if options.iter().any(|option| option == "--list") {
            return Ok(true);
        }
        let kubectl = client::all()?
            .into_iter()
            .next()
            .context("there is no kubectl")?
            .program;
        let real = std::env::var_os("SLIPWAY_REAL_FULL").map(PathBuf::from);
        // Side by side: tests mostly wait.
        let (on_embedded, on_real) = std::thread::scope(|scope| -> Result<(Score, Score)> {
            let embedded = scope.spawn(|| -> Result<Score> {
                if self.chosen("embedded", &words).next().is_none() {
                    return Ok(Score::default());
                }
                if real.is_none() && variable.is_none() && self.servers > 1 {
                    return self.on_several(&kubectl, &words);
                }
                self.on_embedded(&kubectl, variable, &words)
            });
            let real = scope.spawn(|| match &real {
                Some(kubeconfig) if self.chosen("real", &words).next().is_some() => {
                    self.play(&kubectl, &Real(kubeconfig.clone()), &words)
                }
                _ => Ok(Score::default()),
            });
            Ok((joined(embedded)?, joined(real)?))
        })?;
        if real.is_none() {
            say("SLIPWAY_REAL_FULL is not set: nothing was run on a real control plane");
        }
        say(&format!(
            "{}: {on_embedded} embedded, {on_real} real",
            self.title
        ));
        Ok(on_embedded.held == on_embedded.ran && on_real.held == on_real.ran)
    }

    fn on_embedded(
        &self,
        kubectl: &Path,
        variable: Option<&str>,
        words: &[String],
    ) -> Result<Score> {
        let Some(variable) = variable else {
            let server = Embedded::start(&["--actors"])?;
            let score = self.play(kubectl, &server, words);
            server.stop()?;
            return score;
        };
        let Some(kubeconfig) = std::env::var_os(variable) else {
            say(&format!(
                "{variable} is not set: nothing was run on an embedded server"
            ));
            return Ok(Score::default());
        };
        self.play(kubectl, &Running(kubeconfig.into()), words)
    }

    /// Each lane has a server to itself: tests share neither cluster, nor ports, nor files with one in another lane.
    fn on_several(&self, kubectl: &Path, words: &[String]) -> Result<Score> {
        let chosen: Vec<&Test<S>> = self.chosen("embedded", words).collect();
        let servers = self.servers.min(chosen.len());
        let queue = Mutex::new(chosen.into_iter());
        let total = Mutex::new(Score::default());
        std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..servers)
                .map(|_| scope.spawn(|| self.on_own(kubectl, &queue, &total)))
                .collect();
            lanes.into_iter().try_for_each(joined)
        })?;
        Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn on_own(&self, kubectl: &Path, queue: &Queue<'_, S>, total: &Mutex<Score>) -> Result<()> {
        let server = Embedded::start(&["--actors"])?;
        let stage = (self.set)(kubectl, &server)?;
        self.lane(&stage, server.name(), queue, total);
        // Before the server that it stands on.
        drop(stage);
        server.stop()
    }

    fn play(&self, kubectl: &Path, server: &dyn Server, words: &[String]) -> Result<Score> {
        let stage = (self.set)(kubectl, server)?;
        let name = server.name();
        let (alone, together): (Vec<&Test<S>>, Vec<&Test<S>>) = self
            .chosen(name, words)
            .partition(|test| self.alone.iter().any(|(other, _)| *other == test.0));
        let total = Mutex::new(Score::default());
        self.lane(&stage, name, &Mutex::new(alone.into_iter()), &total);
        let together = Mutex::new(together.into_iter());
        std::thread::scope(|scope| {
            for _ in 0..self.lanes {
                scope.spawn(|| self.lane(&stage, name, &together, &total));
            }
        });
        Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// One test after another, until there is none.
    fn lane(&self, stage: &S, server: &str, queue: &Queue<'_, S>, total: &Mutex<Score>) {
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(test) = next() {
            let holds = self.one(stage, server, test);
            total
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .count(holds);
        }
    }

    fn one(&self, stage: &S, server: &str, (name, test): &Test<S>) -> bool {
        let start = Instant::now();
        let result = (self.clear)(stage).and_then(|()| test(stage));
        let verdict = match &result {
            Ok(()) => "ok".to_owned(),
            Err(error) => format!("FAILED: {error:#}"),
        };
        let time = start.elapsed().as_secs_f32();
        say(&format!("{server} {name}: {verdict} in {time:.1} s"));
        result.is_ok()
    }

    /// The tests whose full name has all words in it.
    fn chosen<'a>(
        &'a self,
        server: &'a str,
        words: &'a [String],
    ) -> impl Iterator<Item = &'a Test<S>> {
        self.alone
            .iter()
            .chain(self.tests)
            .filter(move |(name, _)| {
                let full = format!("{server} {name}");
                words.iter().all(|word| full.contains(word.as_str()))
            })
    }
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A line for whoever reads; who does not want to may go.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
