//! The one place that writes to the terminal.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this module is the output"
)]

use std::io::Write;
use std::time::Duration;

/// A line for people.
pub(crate) fn line(text: &str) {
    println!("{text}");
    // Progress must be seen while a build runs, also through a pipe.
    let _ = std::io::stdout().flush();
}

/// What went wrong, with its causes.
pub(crate) fn error(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}

/// `1 min 5 s`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}
