//! The four webhooks: what may be scaled down and what may be evicted.
//!
//! ```text
//! body ─► review::parse ─► Review ─► judge(review, stores, facts, now) ─► Decide | Need ─► review::render ─► body
//! ```
//!
//! Everything here is pure. Requests to pods and to the API are questions, whose answers are facts of the next look;
//! a review whose time is up is judged as if each open question had timed out, so its verdict and what is to be undone
//! come from the same code.
//!
//! Errors let a change pass in no-downscale, and in prepare-downscale until it is known that pods have to be prepared;
//! everywhere else they stop it.

pub mod access;
mod inquiry;
pub mod no_downscale;
pub mod pod_eviction;
pub mod prepare_downscale;
mod replicas;
mod reservations;
mod seen;
pub mod zpdb_validation;

use slipway_kernel::admission::Admit;
pub use slipway_kernel::admission::review;

use crate::settings::Settings;

/// How the webhooks are run, besides the settings of zones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switches {
    /// Whether the times of downscales are kept in the zone tracker (`-use-zone-tracker`).
    pub tracks_zones: bool,
    /// Whether no-downscale refuses what it cannot see (`--strict-admission`).
    pub is_strict: bool,
}

/// The four webhooks, by path.
pub fn webhooks(settings: &Settings, switches: Switches) -> Vec<Box<dyn Admit>> {
    let prepare = prepare_downscale::PrepareDownscale {
        tracker: switches.tracks_zones.then(|| settings.tracker.to_owned()),
        cluster_domain: settings.cluster_domain.clone(),
        pod_timeout: settings.question_timeout,
    };
    vec![
        Box::new(no_downscale::NoDownscale {
            strict: switches.is_strict,
        }),
        Box::new(pod_eviction::PodEviction {
            replicas: settings.replicas,
        }),
        Box::new(prepare),
        Box::new(zpdb_validation::ZpdbValidation),
    ]
}
