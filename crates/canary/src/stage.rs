//! The stage of canary; see [`slipway_kernel::stage`].

use crate::Canaries;

/// Objects, a clock, and the planner of Canaries over them.
pub type Stage = slipway_kernel::stage::Stage<Canaries>;
