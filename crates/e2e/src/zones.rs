//! What tests and benches of zones share: a namespace with the original's manifests and an operator for it, zones, and
//! what the API's watches showed of a rollout.

mod place;
mod trace;

pub use place::{GROUP, Place, ZONES, definitions, registrations, zone};
pub use trace::{Seen, Trace};
