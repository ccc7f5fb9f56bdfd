//! Versioned configuration, rolled out over clusters and specialised to each.
//!
//! ```text
//! Rollout ───────┐
//! its revisions ─┼─ observe ─► plan::decide ─► Decision ─┬─ render ─► Modules, one entry of each cluster's assemblage
//! clusters ──────┘                                       └─ plan::status ─► the Rollout's status
//!
//! RemoteAssemblage ─► remote::decide ─► Decision ─► the Assemblage in its cluster, the RemoteAssemblage's status
//!
//! Assemblage ───────────┐
//! its Flux objects ─────┼─► assemblage::decide ─► Decision ─► sources, Kustomizations, Secrets, the Assemblage's status
//! what bindings come to ┘
//! ```
//!
//! All are functions of values. Two controllers gather the values and hand on what is decided: [`Hub`] in the control plane,
//! which works on all clusters of the fleet, and [`Agent`] in each of them.
//!
//! What always holds:
//!
//! - A cluster is moved from revision to revision by one write to one object, and its Kustomization stays the same object.
//! - An incremental rollout changes one cluster first, and no other before that one is ready at the new revision; then never
//!   more than `maxUnreadyClusters` are unready because of it.
//! - An assignment that others made is never touched.
//! - A source never changes, and a Kustomization changes to one only when it has been fetched.
//! - Many clusters never lose their configuration at once without a person's word.
//! - What cannot be done for one cluster, or one sync, is told there and stops no other.
//! - When nothing is to be done, nothing is decided.

pub mod access;
pub mod agent;
pub mod assemblage;
pub mod budget;
pub mod capability;
mod conditions;
mod expansion;
pub mod gauges;
pub mod hub;
pub mod kinds;
mod namespaces;
pub mod naming;
pub mod observe;
pub mod order;
pub mod plan;
pub mod reasons;
pub mod remote;
pub mod render;
pub mod settings;
pub mod show;
pub mod specialise;
mod steps;
mod work;

pub use agent::Agent;
pub use capability::{AGENT_CAPABILITY, CAPABILITY};
pub use hub::Hub;
pub use plan::{Decision, decide};
pub use settings::Settings;

/// Names the capability in keys, metrics, logs, events and claims.
pub const NAME: &str = "fleet";
/// Names the part of it that runs in workload clusters.
pub const AGENT: &str = "agent";
