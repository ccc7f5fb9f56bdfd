//! The command line of a program of fuzz targets: `cargo xtask fuzz` says the same to each.

use std::path::Path;
use std::process::ExitCode;

use super::driver::{self, Effort};
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
}

/// Reads the command line, and does what it says.
pub(crate) fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(problem) => {
            println!("{problem}");
            return ExitCode::from(2);
        }
    };
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
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        println!("there is no such target; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    let (kept, mut crashes) = regressions(&chosen);
    let mut cases = 0;
    for target in &chosen {
        let wanted = arguments.cases.unwrap_or(target.few);
        let effort = Effort {
            cases: wanted,
            seed: arguments.seed,
            threads: arguments.threads,
        };
        let outcome = driver::run(target, &effort);
        cases += outcome.cases;
        let seconds = outcome.time.as_secs_f64();
        let verdict = if outcome.crash.is_some() {
            "CRASH"
        } else {
            "ok"
        };
        println!(
            "{:16} {verdict:6} {:>9} cases {seconds:>8.1} s",
            target.name, outcome.cases
        );
        if let Some(crash) = outcome.crash {
            println!("{crash}");
            crashes += 1;
        }
    }
    println!(
        "fuzz: {} targets, {cases} cases from seed {}, {kept} kept ones, {crashes} crashes",
        chosen.len(),
        arguments.seed
    );
    if crashes == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
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
    let found = case
        .split_once(':')
        .and_then(|(name, tape)| Some((find(name)?, driver::unhex(tape)?)));
    let Some((target, tape)) = found else {
        println!("{case} is no NAME:HEX of a target");
        return ExitCode::from(2);
    };
    super::targets::tell();
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
