//! The stage of restarts; see [`slipway_kernel::stage`].

use crate::Restarts;

/// Objects, a clock, and the planner of restarts over them.
pub type Stage = slipway_kernel::stage::Stage<Restarts>;
