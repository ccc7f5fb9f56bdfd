//! Progressive delivery of a workload: a new version proves itself on part of the traffic, then takes over, or goes back.
//!
//! The [`engine`] decides, over plain values; what it says of traffic becomes objects in the routers, and what it says of
//! versions and replicas becomes objects in a mode. None of them reads a clock or asks anybody: questions are values.

pub mod alerts;
pub mod engine;
pub mod gauges;
pub mod provider;
pub mod reasons;
pub mod router;
pub mod settings;
pub mod show;
pub mod spec;
pub mod standalone;
pub mod webhooks;

/// Names the capability in keys, metrics, logs, events and claims.
pub const NAME: &str = "canary";
