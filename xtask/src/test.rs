//! `cargo xtask test`: everything, in tiers, one line each.

mod debian;
mod failures;
mod listed;
mod manner;
mod servers;
mod tier;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::debian::Source;
use self::failures::Failures;
use self::listed::Listed;
use self::manner::Manner;
use self::servers::{OnServers, Ran};
use self::tier::Outcome;
use crate::bench::figures;
use crate::controlplane::{Shape, tools};
use crate::report;
use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the tiers whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Leave out what needs a real control plane
    #[arg(long)]
    no_controlplane: bool,
    /// Only the tiers that run on servers, the embedded one and a real one
    #[arg(long)]
    servers: bool,
    /// The original of rollout-operator: the tier drop-in asks it and ours the same (`--only drop-in --peer PATH`)
    #[arg(long)]
    peer: Option<PathBuf>,
    /// The program tier and the suites that drive the program, on the program as it is shipped, and nothing else
    #[arg(long)]
    dist: bool,
    /// Of the tiers that run on servers, only the tests with all of these words in their names
    #[arg(last = true)]
    words: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let started = Instant::now();
    let mut tiers = Tiers {
        only: arguments.only.clone(),
        outcomes: Vec::new(),
        left_out: Vec::new(),
    };
    let on_servers: Vec<&'static OnServers> = servers::ON_SERVERS
        .iter()
        .filter(|tier| tiers.wants(tier.name()) && (!arguments.dist || tier.needs_program()))
        .collect();
    let why = |tier: &OnServers| why_unavailable(arguments, tier);
    if workspace::is_ci() {
        all_or_nothing(on_servers.iter().filter_map(|tier| why(tier)))?;
    }
    if !arguments.no_controlplane {
        prepare(&on_servers);
    }
    // Where nothing is asked for on servers, there is nothing to be quick for.
    let has_real = on_servers.is_empty() || on_servers.iter().any(|tier| why(tier).is_none());
    let asked = Asked {
        arguments,
        on_servers,
        shipped: arguments.dist.then(workspace::build_shipped).transpose()?,
        manner: Manner::of(workspace::is_ci(), has_real),
    };
    let run = asked.run(&mut tiers);
    if let Some(program) = &asked.shipped {
        report::line(&shipped_line(program)?);
    }
    let concluded = conclude(&tiers.outcomes, &tiers.left_out, started.elapsed());
    if let (Err(error), Err(_)) = (&run, &concluded) {
        // Only one of them can be given back.
        report::error(error);
    }
    concluded.and(run)
}

/// What is to be run, and how.
struct Asked<'a> {
    arguments: &'a Arguments,
    on_servers: Vec<&'static OnServers>,
    /// The program as it is shipped, if it is that which is tested.
    shipped: Option<PathBuf>,
    manner: Manner,
}

impl Asked<'_> {
    fn run(&self, tiers: &mut Tiers) -> Result<()> {
        self.listed(listed::FIRST, tiers);
        if self.manner.is_alone() {
            return self.beside_simulation(tiers, |tiers| {
                self.listed(listed::ALONE, tiers);
                self.beside_servers(tiers)
            });
        }
        self.listed(listed::ALONE, tiers);
        self.patient(tiers)?;
        self.beside_simulation(tiers, |tiers| {
            let (all, run) = self.play();
            tiers.take(all);
            run
        })
    }

    /// Runs tiers on servers, and beside them those that do not mind.
    fn beside_servers(&self, tiers: &mut Tiers) -> Result<()> {
        std::thread::scope(|scope| {
            let servers = scope.spawn(|| self.play());
            let patient = self.patient(tiers);
            let Ok((all, run)) = servers.join() else {
                bail!("the tiers on servers panicked");
            };
            tiers.take(all);
            patient.and(run)
        })
    }

    /// Runs these tiers, which need nothing but Rust; of the program as it is shipped only those that run it.
    fn listed(&self, all: &[Listed], tiers: &mut Tiers) {
        if self.arguments.servers {
            return;
        }
        for listed in all {
            let mut command = listed.command();
            match &self.shipped {
                None => tiers.run(listed.name, &mut command),
                Some(program) if listed.name == listed::PROGRAM => {
                    tiers.run(listed.name, command.env(SLIPWAY_BIN, program));
                }
                Some(_) => {}
            }
        }
    }

    /// Runs what may run beside something else.
    fn patient(&self, tiers: &mut Tiers) -> Result<()> {
        self.listed(listed::PATIENT, tiers);
        if self.is_whole() {
            ask_prometheus(tiers);
        }
        drop_in(self.arguments, self.shipped.as_deref(), tiers)
    }

    /// Whether more is asked for than the tiers on servers, or than the program as it is shipped.
    fn is_whole(&self) -> bool {
        !self.arguments.servers && !self.arguments.dist
    }

    /// Runs the tiers on servers.
    fn play(&self) -> (Vec<Ran>, Result<()>) {
        if self.on_servers.iter().any(|tier| tier.needs_program())
            && let Err(error) = workspace::build_program()
        {
            return (Vec::new(), Err(error));
        }
        servers::run_all(
            &self.on_servers,
            &self.arguments.words,
            self.shipped.as_deref(),
            self.manner.lanes(),
            |tier| why_unavailable(self.arguments, tier),
        )
    }

    /// Does something that mostly waits, and runs the simulation beside it: time there is virtual, so that it can be slow
    /// without being wrong, and it gives way to what it runs beside.
    fn beside_simulation(
        &self,
        tiers: &mut Tiers,
        waiting: impl FnOnce(&mut Tiers) -> Result<()>,
    ) -> Result<()> {
        if !self.is_whole() || !tiers.wants(listed::SIMULATION) {
            return waiting(tiers);
        }
        let mut command = workspace::gently(&listed::tests(&["simulation"]));
        command
            .arg("--")
            .args(self.manner.simulation(&workspace::commit()));
        if self.manner.is_brief() {
            let text =
                "most faults, seeds and mutants of the simulation: CI=true, or cargo xtask sim";
            tiers.left_out.push(text.to_owned());
        }
        std::thread::scope(|scope| {
            let simulation =
                scope.spawn(move || tier::run_beside(listed::SIMULATION, &mut command));
            let result = waiting(tiers);
            match simulation.join() {
                Ok((outcome, lines)) => {
                    for line in &lines {
                        report::line(line);
                    }
                    tiers.outcomes.push(outcome);
                }
                Err(_) => bail!("the simulation's output could not be read"),
            }
            result
        })
    }
}

/// The tier that asks a real Prometheus.
const PROMETHEUS: &str = "prometheus";

fn ask_prometheus(tiers: &mut Tiers) {
    if !tiers.wants(PROMETHEUS) {
        return;
    }
    let program = match debian::PROMETHEUS.locate() {
        Ok(Source::Program(program)) => program,
        Ok(Source::NoApt(why)) => {
            tiers.left_out.push(format!("{PROMETHEUS}: {why}"));
            return;
        }
        Err(why) => {
            tiers.outcomes.push(Outcome {
                name: PROMETHEUS,
                summary: format!("{PROMETHEUS}: no Prometheus: {why:#}"),
                time: Duration::ZERO,
                failed: true,
                failures: Failures::default(),
            });
            return;
        }
    };
    let mut command = listed::tests(&[PROMETHEUS]);
    tiers.run(
        PROMETHEUS,
        command.env(debian::PROMETHEUS.variable, program),
    );
}

/// The tier that asks an original and ours the same. Only who has an original can run it: it is never left out, but not there.
const DROP_IN: &str = "drop-in";

fn drop_in(arguments: &Arguments, shipped: Option<&Path>, tiers: &mut Tiers) -> Result<()> {
    let Some(peer) = &arguments.peer else {
        let is_asked_for = arguments.only.as_deref() == Some(DROP_IN);
        if is_asked_for {
            bail!("drop-in needs the original's program: --peer PATH");
        }
        return Ok(());
    };
    workspace::build_program()?;
    let peer = std::path::absolute(peer).context("finding the original's program")?;
    let mut command = listed::tests(&["peer"]);
    command.env("SLIPWAY_PEER", peer);
    if let Some(program) = shipped {
        command.env(SLIPWAY_BIN, program);
    }
    tiers.run(DROP_IN, &mut command);
    Ok(())
}

/// The variable by which tests find the program that they drive.
const SLIPWAY_BIN: &str = "SLIPWAY_BIN";

/// What was tested, for whoever writes it down.
fn shipped_line(program: &Path) -> Result<String> {
    let size = std::fs::metadata(program)
        .context("looking at the program")?
        .len();
    let heading = figures::heading()?;
    Ok(format!("as shipped: {size} bytes, profile dist. {heading}"))
}

/// Where nothing may be left out, what cannot be run is said before anything is.
fn all_or_nothing(mut missing: impl Iterator<Item = String>) -> Result<()> {
    match missing.next() {
        Some(why) => bail!(
            "with CI set nothing may be left out, and no real control plane can run here: {why}"
        ),
        None => Ok(()),
    }
}

/// Begins to build what the tiers on servers will need, while Rust's part goes on: on a machine that has nothing yet both take
/// minutes, and neither keeps all cores busy for all of its time.
fn prepare(on_servers: &[&'static OnServers]) {
    let shapes: Vec<Shape> = on_servers.iter().map(|tier| tier.built()).collect();
    // Nobody waits for it: whoever needs a program asks for it again, waits for it, and is told what went wrong.
    std::thread::spawn(move || {
        for shape in &shapes {
            if tools::available(shape).is_ok() {
                let _ = tools::locate(shape);
            }
        }
    });
}

fn why_unavailable(arguments: &Arguments, tier: &OnServers) -> Option<String> {
    if arguments.no_controlplane {
        return Some("--no-controlplane".to_owned());
    }
    let missing = tools::available(&tier.built()).err();
    missing.map(|error| error.to_string())
}

/// What has been run, and what has not.
struct Tiers {
    only: Option<String>,
    outcomes: Vec<Outcome>,
    left_out: Vec<String>,
}

impl Tiers {
    fn wants(&self, name: &str) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| name.contains(only.as_str()))
    }

    fn run(&mut self, name: &'static str, command: &mut Command) {
        if self.wants(name) {
            self.outcomes.push(tier::run(name, command));
        }
    }

    /// What became of tiers on servers.
    fn take(&mut self, all: Vec<Ran>) {
        for ran in all {
            self.outcomes.extend(ran.outcome);
            self.left_out.extend(ran.left_out);
        }
    }
}

/// `cargo xtask tidy`.
pub(crate) fn tidy() -> Result<()> {
    let outcome = tier::run("tidy", &mut listed::tests(&["tidy"]));
    let time = outcome.time;
    conclude(&[outcome], &[], time)
}

fn conclude(outcomes: &[Outcome], left_out: &[String], time: Duration) -> Result<()> {
    report::line("");
    for outcome in outcomes {
        let verdict = if outcome.failed { "FAILED" } else { "ok" };
        report::line(&format!(
            "{:17} {verdict:7} {:>14}  {}",
            outcome.name,
            report::duration(outcome.time),
            outcome.summary
        ));
    }
    report::line(&format!("{:25} {:>14}", "all", report::duration(time)));
    for text in left_out {
        report::line(&format!("LEFT OUT: {text}"));
    }
    let failed: Vec<&Outcome> = outcomes.iter().filter(|o| o.failed).collect();
    for outcome in &failed {
        for line in outcome.failures.lines() {
            report::line(&format!("{} │ {line}", outcome.name));
        }
    }
    let failed: Vec<&str> = failed.iter().map(|outcome| outcome.name).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    if !left_out.is_empty() && workspace::is_ci() {
        bail!("with CI set nothing may be left out");
    }
    Ok(())
}
