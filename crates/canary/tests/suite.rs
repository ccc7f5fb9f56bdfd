//! All tests of canary: the engine over plain values, routers and the standalone mode over objects.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::float_cmp,
    missing_docs,
    reason = "tests"
)]

#[path = "suite/adoption.rs"]
mod adoption;
#[path = "suite/changes.rs"]
mod changes;
#[path = "suite/claims.rs"]
mod claims;
#[path = "suite/cluster.rs"]
mod cluster;
#[path = "suite/commands.rs"]
mod commands;
#[path = "suite/crowds.rs"]
mod crowds;
#[path = "suite/endings.rs"]
mod endings;
#[path = "suite/exhaustive.rs"]
mod exhaustive;
#[path = "suite/foreign.rs"]
mod foreign;
#[path = "suite/gates.rs"]
mod gates;
#[path = "suite/gateway.rs"]
mod gateway;
#[path = "suite/harm.rs"]
mod harm;
#[path = "suite/iterations.rs"]
mod iterations;
#[path = "suite/leaving.rs"]
mod leaving;
#[path = "suite/measuring.rs"]
mod measuring;
#[path = "suite/meshes.rs"]
mod meshes;
#[path = "suite/metrics.rs"]
mod metrics;
#[path = "suite/obstacles.rs"]
mod obstacles;
#[path = "suite/outages.rs"]
mod outages;
#[path = "suite/patience.rs"]
mod patience;
#[path = "suite/planner.rs"]
mod planner;
#[path = "suite/play.rs"]
mod play;
#[path = "suite/properties.rs"]
mod properties;
#[path = "suite/refusals.rs"]
mod refusals;
#[path = "suite/replicas.rs"]
mod replicas;
#[path = "suite/rests.rs"]
mod rests;
#[path = "suite/routes.rs"]
mod routes;
#[path = "suite/specs.rs"]
mod specs;
#[path = "suite/standalone.rs"]
mod standalone;
#[path = "suite/taken_over.rs"]
mod taken_over;
#[path = "suite/weights.rs"]
mod weights;
#[path = "suite/workloads.rs"]
mod workloads;
