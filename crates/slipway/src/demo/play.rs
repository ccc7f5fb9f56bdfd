//! Plays a scenario before people: on a terminal as a picture, else as lines of a log.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use slipway_apiserver::cluster::Cluster as Server;
use slipway_apiserver::environment::Clock;
use slipway_kernel::capability::Profile;
use slipway_sim::scenario::Scenario;
use slipway_sim::stage::Stage;
use slipway_sim::trial::Trial;

use super::changes::changes;
use super::door::Open;
use super::line::Style;
use super::mirror::Mirror;
use super::model::{Model, Pace, Verdict};
use super::render::{self, render};
use super::screen::{self, Key, Screen};
use super::words;
use crate::command::until_told_to_end;
use crate::exit::Outcome;
use crate::model::{self, Told, gather};
use crate::registry::Registry;
use crate::{output, scenarios};

/// Between two frames.
const FRAME: Duration = Duration::from_millis(40);
/// How far `n` goes at most when nothing happens.
const FURTHEST: Duration = Duration::from_hours(24);
const STEP: Duration = Duration::from_secs(1);

/// How a scenario is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Show {
    /// The random seed.
    pub(crate) seed: u64,
    /// How fast; none is automatic.
    pub(crate) speed: Option<f64>,
    /// How to draw.
    pub(crate) style: Style,
    /// Whether to draw frames.
    pub(crate) frames: bool,
}

/// Plays until somebody has seen enough. The outcome is a violation if the scenario came to its end and an oracle
/// objects.
pub(crate) fn play(scenario: &Scenario, show: Show) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .context("starting the demo's runtime")?;
    runtime.block_on(async {
        let ended = until_told_to_end()?;
        let trial = Trial {
            seed: show.seed,
            ..Trial::calm()
        };
        let wiring = scenarios::wiring();
        let mut stage = Stage::open(scenario, &wiring, &trial).await?;
        let open = Open::start(stage.clusters())?;
        let verdicts = RefCell::new(Vec::new());
        let mut director = Director::new(scenario, show, &stage, open.kubeconfig(), &verdicts);
        let screen = show.frames.then(|| Screen::take(show.style)).transpose();
        let screen = screen.context("taking the terminal over")?;
        let story = async {
            let recorder = stage.recorder().clone();
            stage.play().await;
            let found = wiring.oracles.judge(scenario, &recorder.close(), None);
            *verdicts.borrow_mut() = found.iter().map(Verdict::from).collect();
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            biased;
            () = ended => Ok(()),
            result = director.direct(screen.as_ref()) => result,
            () = story => Ok(()),
        };
        drop(screen);
        director.leave();
        open.close().await;
        result?;
        let violated = verdicts
            .borrow()
            .iter()
            .any(|v: &Verdict| !v.violations.is_empty());
        Ok(if violated {
            Outcome::Violation
        } else {
            Outcome::Done
        })
    })
}

/// Looks at the world and shows it.
struct Director<'a> {
    scenario: &'a Scenario,
    show: Show,
    clock: Arc<dyn Clock>,
    clusters: Vec<(Arc<Server>, u64, Mirror)>,
    profiles: Vec<&'static Profile>,
    model: Model,
    verdicts: &'a RefCell<Vec<Verdict>>,
    oracles: bool,
}

impl<'a> Director<'a> {
    fn new(
        scenario: &'a Scenario,
        show: Show,
        stage: &Stage,
        kubeconfig: String,
        verdicts: &'a RefCell<Vec<Verdict>>,
    ) -> Self {
        let clusters = stage.clusters().iter();
        Self {
            scenario,
            show,
            clock: stage.clock(),
            clusters: clusters
                .map(|cluster| (cluster.clone(), 0, Mirror::default()))
                .collect(),
            profiles: Registry::default().profiles(),
            model: Model {
                began: scenario.start,
                pace: Pace::begin(show.speed),
                scenario: scenario.name.clone(),
                about: scenario.about.clone(),
                seed: show.seed,
                kubeconfig,
                clusters: vec![model::Cluster::default(); stage.clusters().len()],
                ends: Some(scenario.end()),
                ..Model::default()
            },
            verdicts,
            oracles: true,
        }
    }

    /// Frame after frame, until somebody has seen enough.
    async fn direct(&mut self, screen: Option<&Screen>) -> Result<()> {
        if screen.is_none() {
            self.introduce();
        }
        loop {
            let before = self.model.clone();
            self.look();
            match screen {
                Some(screen) => {
                    let lines = render(&self.model, screen::width(), self.show.style);
                    screen.draw(lines).context("drawing")?;
                }
                None => self.tell(&before),
            }
            let (keys, real) = wait(screen.is_some()).await?;
            for key in keys {
                if key == Key::Quit {
                    return Ok(());
                }
                self.obey(key).await;
            }
            tokio::time::sleep(self.model.pace.passes(real)).await;
        }
    }

    /// Brings the model up to date; says whether any object has changed.
    fn look(&mut self) -> bool {
        let now = self.clock.now();
        let mut changed = false;
        for ((cluster, seen, mirror), shown) in
            self.clusters.iter_mut().zip(&mut self.model.clusters)
        {
            if cluster.version() != *seen || *seen == 0 {
                let (everything, version) = cluster.everything();
                mirror.observe(&everything);
                *seen = version;
                *shown = gather(&self.profiles, cluster.name(), mirror, now);
                changed = true;
            }
        }
        self.model.now = now;
        self.model.pace.follow(self.model.is_lively());
        self.recall(now);
        self.model.verdicts = if self.oracles {
            self.verdicts.borrow().clone()
        } else {
            Vec::new()
        };
        changed
    }

    /// What the scenario's people have done, beside the events, and what they will do next.
    fn recall(&mut self, now: Timestamp) {
        let mut actions: Vec<(Timestamp, String)> = self
            .scenario
            .actions
            .iter()
            .filter_map(|action| Some((self.scenario.moment(action.at), action.note.clone()?)))
            .collect();
        actions.sort();
        self.model.next_action = actions.iter().find(|(at, _)| *at > now).cloned();
        let Some(home) = self.model.clusters.first_mut() else {
            return;
        };
        for (at, note) in actions.into_iter().filter(|(at, _)| *at <= now) {
            let told = Told {
                at,
                about: "scenario".to_owned(),
                reason: "Action".to_owned(),
                note,
                warning: false,
                count: 1,
            };
            if !home.events.contains(&told) {
                home.events.push(told);
            }
        }
    }

    async fn obey(&mut self, key: Key) {
        match key {
            Key::Pause => self.model.pace.pause(),
            Key::Faster => self.model.pace.change(2.0),
            Key::Slower => self.model.pace.change(0.5),
            Key::Automatic => self.model.pace.automatically(),
            Key::Oracles => self.oracles = !self.oracles,
            Key::Next => self.skip().await,
            Key::Quit => {}
        }
    }

    /// Goes on until something happens that is worth a line.
    async fn skip(&mut self) {
        let before = self.model.clone();
        let furthest = tokio::time::Instant::now() + FURTHEST;
        while tokio::time::Instant::now() < furthest {
            tokio::time::sleep(STEP).await;
            let over = !self.verdicts.borrow().is_empty() && before.verdicts.is_empty();
            let changed = self.look();
            if over || (changed && !changes(&before, &self.model).is_empty()) {
                return;
            }
        }
    }

    /// What stands before the lines of the log.
    fn introduce(&self) {
        let clusters = words::count(self.clusters.len(), "cluster");
        let Model {
            scenario,
            about,
            seed,
            kubeconfig,
            ..
        } = &self.model;
        self.line(&format!(
            "slipway demo · {scenario} · {clusters} (embedded API server, in memory) · seed {seed}"
        ));
        self.line(about);
        self.line(&format!("export KUBECONFIG={kubeconfig}"));
    }

    /// What has happened since, line by line.
    fn tell(&self, before: &Model) {
        for line in changes(before, &self.model) {
            self.line(&line);
        }
        if before.verdicts.is_empty() && !self.model.verdicts.is_empty() {
            for line in render::verdicts(&self.model.verdicts, self.show.style) {
                self.line(&line.paint(self.show.style));
            }
            self.line("the scenario is over; the clusters go on until you end this");
        }
    }

    /// What stays on the screen when the picture is gone.
    fn leave(&self) {
        if self.show.frames && !self.model.clusters.is_empty() {
            for line in render(&self.model, screen::width(), self.show.style) {
                output::line(&line.paint(self.show.style));
            }
        }
    }

    fn line(&self, text: &str) {
        if self.show.style.ascii {
            output::line(&super::line::ascii(text));
        } else {
            output::line(text);
        }
    }
}

/// Waits for one frame of real time, in which virtual time stands still: tokio's clock does not jump while a blocking
/// task runs. Gives the keys that were pressed and how long it really was.
async fn wait(keys: bool) -> Result<(Vec<Key>, Duration)> {
    let waiting = tokio::task::spawn_blocking(move || {
        let before = std::time::Instant::now();
        let heard = if keys {
            screen::listen(FRAME)
        } else {
            std::thread::sleep(FRAME);
            Vec::new()
        };
        // A process that was stopped for a while does not catch up.
        (heard, before.elapsed().min(FRAME * 5))
    });
    waiting.await.context("waiting for the next frame")
}
