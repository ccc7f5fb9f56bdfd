//! The lookout with bugs on purpose: each gets answers wrong.

use std::sync::Arc;

use slipway_sim::stage::Setup;

use super::{Lookout, Slip};
use crate::mutants::{Bend, Mutant};

fn slips(setup: Setup, slip: Slip) -> Setup {
    Setup {
        capabilities: vec![Arc::new(Lookout { slip: Some(slip) })],
        ..setup
    }
}

macro_rules! slips {
    ($slip:ident) => {
        || Bend::Instead(|setup| slips(setup, Slip::$slip))
    };
}

const PASSAGE: &[&str] = &["lookout-passage"];

/// All of them.
pub(crate) const ALL: &[Mutant] = &[
    Mutant {
        name: "silence is a yes",
        scenarios: PASSAGE,
        by: &["Q1"],
        bend: slips!(Silence),
    },
    Mutant {
        name: "no data is no error",
        scenarios: PASSAGE,
        by: &["Q1"],
        bend: slips!(NoData),
    },
    Mutant {
        name: "some of the data is all of it",
        scenarios: PASSAGE,
        by: &["Q1"],
        bend: slips!(Partial),
    },
    Mutant {
        name: "what was not heard is not said again",
        scenarios: PASSAGE,
        by: &["Q2"],
        bend: slips!(Once),
    },
    Mutant {
        name: "one name for several questions",
        scenarios: PASSAGE,
        by: &["A1"],
        bend: slips!(Name),
    },
];
