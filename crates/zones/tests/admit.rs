//! The webhooks as the runtime asks them: a review in, questions and answers, a verdict out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

#[path = "admit/harness.rs"]
mod harness;
#[path = "admit/no_downscale.rs"]
mod no_downscale;
#[path = "admit/validation.rs"]
mod validation;
