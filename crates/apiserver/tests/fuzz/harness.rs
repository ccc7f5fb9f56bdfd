//! The command line of a program of fuzz targets: runs them, and the cases that once failed, or one case again.
//!
//! Every program of this kind in the workspace has this main function; `cargo xtask fuzz` runs all of them. A target that
//! is asked for and is another program's is passed over.

use std::path::Path;
use std::process::ExitCode;

use super::driver::{self, Effort};
use super::target::{self, BLIND};
use super::targets::{TARGETS, Target};
use super::{panics, tape};

/// What the command line asks for.
struct Arguments {
    /// Cases of each target; by default so many that all take a few seconds.
    cases: Option<u64>,
    target: Option<String>,
    seed: u64,
    threads: u64,
    replay: Option<String>,
    /// Only says which targets there are.
    is_listing: bool,
}

/// Does what the command line asks for.
pub(crate) fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(problem) => {
            println!("{problem}");
            return ExitCode::from(2);
        }
    };
    if arguments.is_listing {
        for target in TARGETS {
            println!("{}: target", target.name);
        }
        return ExitCode::SUCCESS;
    }
    panics::note();
    if let Some(case) = &arguments.replay {
        return replay(case);
    }
    run(&arguments)
}

impl Arguments {
    fn read() -> Result<Self, String> {
        let mut arguments = Self {
            cases: std::env::var("SLIPWAY_FUZZ_CASES")
                .ok()
                .and_then(|text| text.parse().ok()),
            target: None,
            seed: 1,
            threads: std::thread::available_parallelism().map_or(2, |n| n.get() as u64),
            replay: None,
            is_listing: false,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let number = |text: String| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
            match word.as_str() {
                "--cases" => arguments.cases = Some(number(value()?)?),
                "--seed" => arguments.seed = number(value()?)?,
                "--threads" => arguments.threads = number(value()?)?.max(1),
                "--target" => arguments.target = Some(value()?),
                "--replay" => arguments.replay = Some(value()?),
                "--list" => arguments.is_listing = true,
                // What cargo passes on to tests of other kinds.
                "--quiet" | "-q" | "--nocapture" => {}
                other => {
                    return Err(format!(
                        "unknown argument {other}: --target NAME, --cases N, --seed N, --threads N, --replay NAME:HEX"
                    ));
                }
            }
        }
        Ok(arguments)
    }
}

fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

fn run(arguments: &Arguments) -> ExitCode {
    for (name, tape) in driver::left_behind() {
        println!("a run before this one ended at {name}:{}", tape::hex(&tape));
    }
    let chosen: Vec<&'static Target> = TARGETS
        .iter()
        .filter(|target| {
            arguments
                .target
                .as_ref()
                .is_none_or(|name| target.name == name)
        })
        .collect();
    if chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    let (kept, mut crashes) = regressions(&chosen);
    let (mut cases, mut judged, mut blind) = (0, 0, 0);
    let one = Effort {
        cases: BLIND.few,
        seed: arguments.seed,
        threads: 1,
    };
    assert!(
        is_blind(&driver::run(&BLIND, &one)),
        "a target that looks at nothing is taken for one that does"
    );
    for target in &chosen {
        let wanted = arguments.cases.unwrap_or(target.few);
        let effort = Effort {
            cases: wanted,
            seed: arguments.seed,
            threads: arguments.threads,
        };
        let outcome = driver::run(target, &effort);
        cases += outcome.cases;
        judged += outcome.judged;
        let seconds = outcome.time.as_secs_f64();
        let verdict = if outcome.crash.is_some() {
            "CRASH"
        } else if is_blind(&outcome) {
            blind += 1;
            "BLIND"
        } else {
            "ok"
        };
        println!(
            "{:16} {verdict:6} {:>9} cases {:>9} to a law {seconds:>8.1} s",
            target.name, outcome.cases, outcome.judged
        );
        if let Some(crash) = outcome.crash {
            println!("{crash}");
            crashes += 1;
        }
    }
    println!(
        "fuzz: {} targets, {cases} cases from seed {}, {judged} of them to a law, {kept} kept ones, {crashes} crashes, {blind} blind",
        chosen.len(),
        arguments.seed
    );
    if crashes == 0 && blind == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Of so many cases one at least has to come to a law.
const ONE_IN: u64 = 20;

/// Whether so few cases came to a law that nothing is known.
fn is_blind(outcome: &driver::Outcome) -> bool {
    outcome.crash.is_none() && outcome.judged * ONE_IN < outcome.cases
}

/// Runs the cases that once failed; gives how many there are, and how many fail.
fn regressions(chosen: &[&'static Target]) -> (usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/regressions");
    let (mut kept, mut crashes) = (0, 0);
    for target in chosen {
        let file = folder.join(format!("{}.hex", target.name));
        for line in std::fs::read_to_string(&file)
            .unwrap_or_default()
            .lines()
            .filter(|line| !line.starts_with('#'))
        {
            let tape = driver::unhex(line)
                .unwrap_or_else(|| panic!("{}: no hexadecimal digits: {line}", file.display()));
            kept += 1;
            if let Err(why) = driver::try_once(target, &tape) {
                println!("{}:{line}: {why}", target.name);
                crashes += 1;
            }
        }
    }
    (kept, crashes)
}

fn replay(case: &str) -> ExitCode {
    let Some((name, tape)) = case.split_once(':') else {
        println!("{case} is no NAME:HEX of a target");
        return ExitCode::from(2);
    };
    let Some(target) = find(name) else {
        return ExitCode::SUCCESS;
    };
    let Some(tape) = driver::unhex(tape) else {
        println!("{case} is no NAME:HEX of a target");
        return ExitCode::from(2);
    };
    target::tell();
    match driver::try_once(target, &tape) {
        Ok(()) => {
            println!("{}: holds", target.name);
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{}: {why}", target.name);
            ExitCode::FAILURE
        }
    }
}
