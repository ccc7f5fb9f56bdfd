//! A Canary that is deleted gives the workload back, if it is asked to (`revertOnDeletion`).
//!
//! ```text
//! the workload gets as many replicas as what serves ─► it is ready ─► the apex and the routes lead to it ─► let go
//! ```
//!
//! Nothing is taken from what serves before the workload is there to serve.

use slipway_kernel::finalizer::Phase as Guard;

use crate::engine::{Readiness, Side};

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The finalizer is to be added: whoever may have to give something back is asked to.
    Guard,
    /// Nothing: the Canary is not being deleted.
    Live,
    /// The workload is to have so many replicas.
    Size(u32),
    /// The workload is not ready yet.
    Wait,
    /// The apex Service and the routes are to lead to the workload.
    Route,
    /// All is given back: the finalizer can go.
    Release,
    /// Nothing is left to do.
    Gone,
}

/// What comes next, by what is seen: whether the workload is asked to be given back, how the object is guarded, the two
/// sides, and whether apex and routes lead to the workload already.
pub fn next(asked: bool, guard: Guard, source: &Side, target: &Side, is_routed: bool) -> Step {
    match guard {
        Guard::Unguarded if asked => Step::Guard,
        Guard::Unguarded | Guard::Guarded => Step::Live,
        Guard::Released => Step::Gone,
        Guard::Ending => undo(source, target, is_routed),
    }
}

fn undo(source: &Side, target: &Side, is_routed: bool) -> Step {
    // Without the workload there is nobody to give anything to.
    if target.readiness == Readiness::Missing {
        return Step::Release;
    }
    let size = if source.readiness == Readiness::Missing {
        target.full
    } else {
        source.size.max(1)
    };
    let size = target.bounded(size);
    if target.size < size {
        return Step::Size(size);
    }
    if !target.state().is_ready() {
        return Step::Wait;
    }
    if is_routed {
        Step::Release
    } else {
        Step::Route
    }
}
