//! Why an operator ended.

/// Why an operator could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two capabilities want different selections of one kind by one projection.
    #[error(
        "two interests in {kind} by {projection} select {one} and {other}: give one its own projection"
    )]
    Interests {
        /// The kind.
        kind: String,
        /// The projection.
        projection: &'static str,
        /// One selection.
        one: String,
        /// The other one.
        other: String,
    },
    /// Two capabilities have one name.
    #[error("two capabilities are called {0}: each needs a name of its own")]
    Name(&'static str),
    /// The settings contradict each other.
    #[error("settings.{field}: {problem}")]
    Settings {
        /// Which one.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
}
