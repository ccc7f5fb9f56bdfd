//! The convoy with bugs on purpose: each forgets a cluster somewhere.

use std::sync::Arc;

use slipway_sim::stage::Setup;

use super::{Convoy, Slip};
use crate::mutants::{Bend, Mutant};

fn slips(setup: Setup, slip: Slip) -> Setup {
    Setup {
        capabilities: vec![Arc::new(Convoy { slip: Some(slip) })],
        ..setup
    }
}

macro_rules! slips {
    ($slip:ident) => {
        || Bend::Instead(|setup| slips(setup, Slip::$slip))
    };
}

/// All of them.
pub(crate) const ALL: &[Mutant] = &[
    Mutant {
        name: "a key forgets its cluster",
        scenarios: &["members-quiet"],
        by: &["expect"],
        bend: slips!(Key),
    },
    Mutant {
        name: "a store forgets its cluster",
        scenarios: &["members-quiet"],
        by: &["C2"],
        bend: slips!(Store),
    },
    Mutant {
        name: "a fact forgets its cluster",
        scenarios: &["members-quiet"],
        by: &["C5"],
        bend: slips!(Fact),
    },
    Mutant {
        name: "a budget over clusters has several lanes",
        scenarios: &["members-quiet"],
        by: &["C1"],
        bend: slips!(Lane),
    },
    Mutant {
        name: "all clusters are one lane",
        scenarios: &["member-lost", "members-apart"],
        by: &["C3"],
        bend: || {
            Bend::Instead(|setup| Setup {
                is_narrow: true,
                ..setup
            })
        },
    },
    Mutant {
        name: "a fence forgets other clusters",
        scenarios: &["members-fenced"],
        by: &["C4"],
        bend: slips!(Fence),
    },
    Mutant {
        name: "a missing right forgets its cluster",
        scenarios: &["member-forbidden"],
        by: &["C4"],
        bend: slips!(Right),
    },
    Mutant {
        // The record follows whoever answers.
        name: "whatever answers for a cluster is that cluster",
        scenarios: &["member-replaced"],
        by: &["M1"],
        bend: slips!(Identity),
    },
    Mutant {
        name: "the operator itself confirms whoever answers for a cluster",
        scenarios: &["member-replaced"],
        by: &["M1"],
        bend: slips!(Word),
    },
];
