//! What follows from a busy server.
//!
//! It says so of one request: the object waits for as long as the server asks, and the others go on. Only when one object
//! after the other is sent away is it the server that is busy, and then all that the controller does in the cluster waits, for as
//! long as the first of them has to.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_kernel::identity::ObjectRef;

use super::{Execution, StepResult};
use crate::request::Refused;

/// So many objects, with no other answer between them, mean that it is not about one of them.
const MANY: usize = 3;

/// The objects of a controller that a busy server has sent away since it last did anything else, and for how long.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttle(BTreeMap<ObjectRef, Duration>);

impl Throttle {
    /// One more; gives for how long the controller is to wait, if it is.
    fn add(&mut self, object: &ObjectRef, wait: Duration) -> Option<Duration> {
        self.0.insert(object.clone(), wait);
        let least = self.0.values().min().copied();
        least.filter(|_| self.0.len() >= MANY)
    }
}

impl Execution {
    /// The server has too much to do for a write to this object under this name.
    pub(super) fn busy(&self, object: &ObjectRef, by: &str, asked: Option<Duration>) -> StepResult {
        let refused = Refused::new("TooManyRequests", "the server has too much to do");
        let (now, backoff) = (self.shared.environment.now(), self.shared.settings.backoff);
        let mut state = self.shared.lock();
        let wait = state.refuse((object, by), refused, asked, backoff, now);
        let pause = state.of_mut(&object.cluster).and_then(|known| {
            let throttle = known.throttles.entry(self.key.controller).or_default();
            throttle.add(object, wait)
        });
        StepResult::Busy(pause)
    }
}

#[cfg(test)]
mod tests {
    use slipway_kernel::identity::kinds;

    use super::*;

    #[test]
    fn one_object_s_busy_server_slows_no_other_and_many_objects_slow_the_lane() {
        let object = |name: &str| ObjectRef::local(kinds::POD, "default", name);
        let (long, short) = (Duration::from_mins(5), Duration::from_secs(3));
        let mut throttle = Throttle::default();
        for _ in 0..10 {
            assert_eq!(throttle.add(&object("a"), long), None);
        }
        assert_eq!(throttle.add(&object("b"), short), None);
        assert_eq!(throttle.add(&object("c"), long), Some(short));
    }
}
