//! How fast virtual time goes by: what people ask for, or what the picture can bear.

use std::time::Duration;

use super::model::Pace;

/// Virtual seconds a second while nothing moves.
const HURRY: f64 = 180.0;
/// While something does.
const WATCH: f64 = 12.0;
const SLOWEST: f64 = 0.25;
const FASTEST: f64 = 20_000.0;

impl Pace {
    /// The pace at the start.
    pub(crate) fn begin(speed: Option<f64>) -> Self {
        Self {
            speed: speed.unwrap_or(WATCH),
            automatic: speed.is_none(),
            paused: false,
        }
    }

    /// Stops, or goes on.
    pub(crate) fn pause(&mut self) {
        self.paused = !self.paused;
    }

    /// Goes by what happens again.
    pub(crate) fn automatically(&mut self) {
        self.automatic = true;
        self.paused = false;
    }

    /// Becomes faster or slower by this factor, and stays so.
    pub(crate) fn change(&mut self, factor: f64) {
        self.speed = (self.speed * factor).clamp(SLOWEST, FASTEST);
        self.automatic = false;
    }

    /// Follows what happens, if it may.
    pub(crate) fn follow(&mut self, lively: bool) {
        if self.automatic {
            self.speed = if lively { WATCH } else { HURRY };
        }
    }

    /// How much virtual time goes by in this much real time.
    pub(crate) fn passes(&self, real: Duration) -> Duration {
        if self.paused {
            return Duration::ZERO;
        }
        real.mul_f64(self.speed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_hurries_until_something_moves() {
        let mut pace = Pace::begin(None);
        pace.follow(false);
        assert_eq!(pace.passes(Duration::from_secs(1)), Duration::from_mins(3));
        pace.follow(true);
        assert_eq!(pace.passes(Duration::from_secs(1)), Duration::from_secs(12));
    }

    #[test]
    fn what_a_person_asks_for_stays() {
        let mut pace = Pace::begin(Some(10.0));
        pace.follow(false);
        pace.change(2.0);
        assert_eq!(pace.passes(Duration::from_secs(1)), Duration::from_secs(20));
        for _ in 0..40 {
            pace.change(2.0);
        }
        assert!(pace.speed <= FASTEST);
        pace.pause();
        assert_eq!(pace.passes(Duration::from_secs(1)), Duration::ZERO);
        pace.pause();
        pace.automatically();
        pace.follow(false);
        assert_eq!(pace.passes(Duration::from_secs(1)), Duration::from_mins(3));
    }
}
