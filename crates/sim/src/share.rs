//! Which scenarios have a budget together, and how much of it: said by the wiring, so that whoever explores knows no scenario by
//! its name.

use std::time::Duration;

/// The scenarios that one capability brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// What reports call it.
    pub name: &'static str,
    /// Its scenarios, by name.
    pub scenarios: Vec<String>,
    /// How much of what a share gets is for this one, in hundredths.
    pub weight: u32,
}

impl Share {
    /// What a whole share weighs.
    pub const WHOLE: u32 = 100;

    /// A whole share.
    pub fn whole(name: &'static str, scenarios: Vec<String>) -> Self {
        Self {
            name,
            scenarios,
            weight: Self::WHOLE,
        }
    }

    /// What it gets of a budget.
    pub fn of(&self, budget: Duration) -> Duration {
        budget * self.weight / Self::WHOLE
    }

    /// Whether a scenario, by its name, is one of its own.
    pub fn has(&self, scenario: &str) -> bool {
        self.scenarios.iter().any(|name| name == scenario)
    }
}

/// The first of these scenarios that is not in one share, and one only: it would be broken never, or twice.
pub fn misplaced<'a>(
    shares: &[Share],
    mut scenarios: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    scenarios.find(|name| shares.iter().filter(|share| share.has(name)).count() != 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(name: &'static str, scenarios: &[&str], weight: u32) -> Share {
        let scenarios = scenarios.iter().map(|name| (*name).to_owned()).collect();
        Share {
            weight,
            ..Share::whole(name, scenarios)
        }
    }

    #[test]
    fn a_share_gets_what_it_weighs() {
        let minutes = Duration::from_mins;
        assert_eq!(share("a", &[], Share::WHOLE).of(minutes(4)), minutes(4));
        assert_eq!(share("a", &[], 25).of(minutes(4)), minutes(1));
        assert_eq!(share("a", &[], 200).of(minutes(4)), minutes(8));
        assert_eq!(share("a", &[], 25).of(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_scenario_in_no_share_or_in_two_is_seen() {
        let shares = [share("a", &["one", "two"], 100), share("b", &["two"], 100)];
        assert_eq!(misplaced(&shares, ["one"].into_iter()), None);
        assert_eq!(misplaced(&shares, ["one", "two"].into_iter()), Some("two"));
        assert_eq!(misplaced(&shares, ["three"].into_iter()), Some("three"));
    }
}
