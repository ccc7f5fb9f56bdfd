//! What the person who runs the operator decides about the fleet.

/// All settings of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many writes one plan of a Rollout asks for at most; the rest is for the next one, at once.
    pub max_steps: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_steps: 256 }
    }
}
