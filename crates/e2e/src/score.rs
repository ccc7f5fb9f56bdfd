//! How many of how many held.

/// What runs came to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Score {
    /// How many were run.
    pub ran: usize,
    /// How many of them held.
    pub held: usize,
}

impl Score {
    /// One more, which held or did not.
    pub fn count(&mut self, holds: bool) {
        self.ran += 1;
        self.held += usize::from(holds);
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.ran == 0 {
            return f.write_str("not run");
        }
        write!(f, "{}/{}", self.held, self.ran)
    }
}
