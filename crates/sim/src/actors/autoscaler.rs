//! To come.
use super::key::Key;
use super::script::Script;
use super::world::World;
use super::write::Step;
use jiff::Timestamp;

/// What an autoscaler remembers.
#[derive(Debug, Default)]
pub(crate) struct Memory;

pub(crate) fn reconcile(
    _world: &mut World,
    _script: &Script,
    _key: &Key,
    _started: Timestamp,
    _now: Timestamp,
) -> Step {
    Step::default()
}
