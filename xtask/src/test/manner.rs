//! How tiers follow each other, and how far the simulation goes beside them: as far as can be where nobody waits, and so that
//! five minutes are enough where somebody does and there is nothing to compare with.

/// Processor seconds that the simulation has for each capability where somebody waits and nothing else takes minutes.
const SECONDS: u32 = 8;

/// In which manner the tiers are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Nobody waits: everything.
    Gate,
    /// At a desk with a real control plane: the tiers that drive it take minutes, whatever runs beside them.
    Desk,
    /// At a desk without one: what runs on embedded servers only waits for most of its time, so that more of it goes on at once, and
    /// beside what is patient.
    Alone,
}

impl Manner {
    /// The one for a run of the gate, or for one with a real control plane or without.
    pub(super) fn of(is_ci: bool, has_real: bool) -> Self {
        match (is_ci, has_real) {
            (true, _) => Self::Gate,
            (false, true) => Self::Desk,
            (false, false) => Self::Alone,
        }
    }

    /// How many tiers on servers run at once: they wait for most of their time.
    pub(super) fn lanes(self) -> usize {
        match self {
            Self::Gate | Self::Desk => 2,
            Self::Alone => 5,
        }
    }

    /// Whether tiers on servers begin beside those that need nothing but Rust and do not mind.
    pub(super) fn is_alone(self) -> bool {
        self == Self::Alone
    }

    /// Whether the simulation leaves most of its runs to the gate.
    pub(super) fn is_brief(self) -> bool {
        self != Self::Gate
    }

    /// What the simulation is told. Each commit has other positions, and what is left out at a desk, the gate of the same commit
    /// tries: its order is the same, and it goes further.
    pub(super) fn simulation(self, commit: &str) -> Vec<String> {
        let draw = ["--draw".to_owned(), commit.to_owned()];
        let brief = "--brief".to_owned();
        match self {
            Self::Gate => draw.into(),
            Self::Desk => vec![brief],
            Self::Alone => {
                let bound = ["--at-most".to_owned(), SECONDS.to_string()];
                // Brief first: it is a whole effort, of which the others change something.
                [brief].into_iter().chain(bound).chain(draw).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Manner;

    #[test]
    fn the_gate_is_the_gate_whatever_there_is() {
        for has_real in [true, false] {
            let manner = Manner::of(true, has_real);
            assert_eq!(manner, Manner::Gate);
            assert!(!manner.is_alone() && !manner.is_brief());
            assert_eq!(manner.lanes(), 2);
            assert_eq!(manner.simulation("abc"), ["--draw", "abc"]);
        }
    }

    #[test]
    fn with_a_real_control_plane_tiers_run_as_in_the_gate() {
        let manner = Manner::of(false, true);
        assert!(!manner.is_alone() && manner.is_brief());
        assert_eq!(manner.lanes(), Manner::Gate.lanes());
        assert_eq!(manner.simulation("abc"), ["--brief"]);
    }

    #[test]
    fn without_one_the_simulation_is_bounded_after_it_is_brief() {
        let manner = Manner::of(false, false);
        assert!(manner.is_alone() && manner.is_brief());
        assert!(manner.lanes() > Manner::Gate.lanes());
        let words = manner.simulation("abc");
        assert_eq!(words.first().map(String::as_str), Some("--brief"));
        assert!(words.contains(&"--at-most".to_owned()), "{words:?}");
        assert!(words.ends_with(&["--draw".to_owned(), "abc".to_owned()]));
    }
}
