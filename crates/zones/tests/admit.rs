//! The webhooks as the runtime asks them: a review in, questions and answers, a verdict out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

#[path = "admit/eviction.rs"]
mod eviction;
#[path = "admit/harness.rs"]
mod harness;
#[path = "admit/no_downscale.rs"]
mod no_downscale;
#[path = "admit/prepare.rs"]
mod prepare;
#[path = "admit/properties.rs"]
mod properties;
#[path = "admit/validation.rs"]
mod validation;
#[path = "admit/world.rs"]
mod world;
