//! All tests of the fleet's planners: worlds in, decisions out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "tests"
)]

#[path = "suite/applied.rs"]
mod applied;
#[path = "suite/cases.rs"]
mod cases;
#[path = "suite/exhaustive.rs"]
mod exhaustive;
#[path = "suite/expansion.rs"]
mod expansion;
#[path = "suite/laws.rs"]
mod laws;
#[path = "suite/newcomers.rs"]
mod newcomers;
#[path = "suite/observing.rs"]
mod observing;
#[path = "suite/obstacles.rs"]
mod obstacles;
#[path = "suite/pipeline.rs"]
mod pipeline;
#[path = "suite/properties.rs"]
mod properties;
#[path = "suite/remoting.rs"]
mod remoting;
#[path = "suite/renderers.rs"]
mod renderers;
#[path = "suite/silence.rs"]
mod silence;
#[path = "suite/specialising.rs"]
mod specialising;
#[path = "suite/stage.rs"]
mod stage;
#[path = "suite/stories.rs"]
mod stories;
#[path = "suite/story.rs"]
mod story;
#[path = "suite/words.rs"]
mod words;
