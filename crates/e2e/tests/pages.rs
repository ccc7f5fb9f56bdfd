//! The pages that lead through an installation, word for word: each shell block of `docs/zones.md` and `docs/restarts.md`
//! is run as it stands, in order, with `kubectl` and `slipway` on the PATH.
//!
//! ```text
//! cargo test -p slipway-e2e --test pages                               the embedded server
//! SLIPWAY_REAL_FULL=kubeconfig cargo test … --test pages               and the real one
//! ```
//!
//! A block that begins with three backticks and `sh` or `bash` is run, `text` is what a program printed or what else could
//! be typed, and `sh,norun` cannot be run here: a comment in it says why.

#[path = "pages/kubelet.rs"]
mod kubelet;
#[path = "pages/page.rs"]
mod page;
#[path = "pages/reader.rs"]
mod reader;

use std::process::ExitCode;

use reader::Reader;
use slipway_e2e::suite::{Suite, Test};

const TESTS: &[Test<Reader>] = &[
    ("the_steps_of_docs_zones_work_word_for_word", reader::zones),
    (
        "the_steps_of_docs_restarts_work_word_for_word",
        reader::restarts,
    ),
];

fn main() -> ExitCode {
    let suite = Suite {
        title: "pages",
        // One after another: each installs for itself.
        alone: TESTS,
        tests: &[],
        lanes: 1,
        servers: 1,
        set: Reader::set,
        clear: |_| Ok(()),
    };
    suite.main()
}
