//! What the simulation is asked to do.

use std::time::Duration;

use slipway_sim::explore::Effort;
use slipway_sim::trial::Trial;

/// The command line: `--seeds N --from N --scenario X --threads N --budget SECONDS --at-most SECONDS --all --draw TEXT --twins N --no-faults --brief --only-mutants --keep-killers --time --fingerprints SEEDS --replay 'scenario=X …'`.
#[allow(clippy::struct_excessive_bools, reason = "flags")]
pub(crate) struct Arguments {
    pub(crate) effort: Effort,
    pub(crate) scenario: Option<String>,
    pub(crate) keep_going: bool,
    pub(crate) mutants: bool,
    /// Whether nothing but mutants is asked for.
    pub(crate) only_mutants: bool,
    /// Whether the runs in which mutants are found are written down.
    pub(crate) keep_killers: bool,
    pub(crate) time: bool,
    /// With how many seeds of each scenario runs are told apart.
    pub(crate) fingerprints: Option<u64>,
    pub(crate) replay: Option<(String, Trial)>,
}

impl Arguments {
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            effort: Effort::default(),
            scenario: None,
            keep_going: false,
            mutants: true,
            only_mutants: false,
            keep_killers: false,
            time: false,
            fingerprints: None,
            replay: None,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            let size = |text: String| {
                text.parse::<usize>()
                    .map_err(|error| format!("{text}: {error}"))
            };
            let number = |text: String| {
                text.parse::<u64>()
                    .map_err(|error| format!("{text}: {error}"))
            };
            let effort = &mut arguments.effort;
            match word.as_str() {
                "--seeds" => effort.seeds = number(value()?)?,
                "--from" => effort.first_seed = number(value()?)?,
                "--threads" => effort.threads = size(value()?)?,
                "--budget" => effort.budget = Some(Duration::from_secs(number(value()?)?)),
                "--at-most" => {
                    effort.budget = Some(Duration::from_secs(number(value()?)?));
                    effort.is_bounded = true;
                }
                "--all" => effort.budget = None,
                "--draw" => effort.draw = drawn_from(&value()?),
                "--twins" => effort.twins = size(value()?)?,
                "--failures" => effort.most_failures = size(value()?)?,
                "--time" => arguments.time = true,
                "--fingerprints" => arguments.fingerprints = Some(number(value()?)?),
                "--brief" => {
                    arguments.effort = Effort::brief();
                    arguments.mutants = false;
                }
                "--no-mutants" => arguments.mutants = false,
                "--only-mutants" => arguments.only_mutants = true,
                "--keep-killers" => arguments.keep_killers = true,
                "--keep-going" => arguments.keep_going = true,
                "--no-faults" => effort.exhaustive = false,
                "--scenario" => arguments.scenario = Some(value()?),
                "--replay" => arguments.replay = Some(told(&value()?)?),
                // What cargo passes on to every test.
                "--quiet" | "-q" | "--nocapture" => {}
                other => return Err(format!("{other:?} is not understood")),
            }
        }
        Ok(arguments)
    }
}

/// `scenario=X seed=7`.
pub(crate) fn told(text: &str) -> Result<(String, Trial), String> {
    let (scenario, trial) = text
        .split_once(' ')
        .ok_or("write 'scenario=X seed=7' or 'scenario=X fault=request:17:lost'")?;
    let name = scenario
        .strip_prefix("scenario=")
        .ok_or("begin with scenario=")?;
    let trial: Trial = trial.trim().parse().map_err(|error| format!("{error}"))?;
    Ok((name.to_owned(), trial))
}

/// A number for a text, such as the name of a commit.
fn drawn_from(text: &str) -> u64 {
    let bytes = text.bytes();
    bytes.fold(0, |all, byte| {
        all.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
    })
}
