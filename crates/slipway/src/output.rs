//! The one place that writes to the terminal.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this module is the output"
)]

use std::io::Write;

/// A line of the program's result.
pub(crate) fn line(text: &str) {
    // A reader that has gone away (`| head`) is no failure of ours.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The program's result, as it is.
pub(crate) fn text(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// A line for people, beside the result.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

/// What went wrong, with its causes.
pub(crate) fn error(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}
