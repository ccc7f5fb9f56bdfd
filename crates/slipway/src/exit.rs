//! How the program ends: the exit codes that scripts rely on.

use std::fmt;
use std::process::ExitCode;

/// How a command ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// What was asked for is so.
    Done,
    /// A violation was found.
    Violation,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Violation => Self::from(6),
        }
    }
}

/// The command line asks for something that does not exist.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The code of a failure: 2 if the command line was wrong, else 1.
pub(crate) fn code(error: &anyhow::Error) -> ExitCode {
    if error.is::<Usage>() {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}
