//! The `slipway` program: wires the library's parts to a command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    slipway::run()
}
