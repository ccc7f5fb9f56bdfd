//! A simulated cluster: the controllers around an API server, played by actors; scenarios that are played on it in
//! virtual time, faults that are put into them, and oracles that judge what came of it.
//!
//! [`actors`] holds stand-ins for kube-controller-manager, kube-scheduler and the kubelets. They speak to any API server
//! through a `kube::Client`, wait by tokio's time, and take everything else from parameters; so against the embedded
//! server under a paused clock a run is a function of its seed.
//!
//! ```text
//! Scenario + Wiring + Trial ─► Stage (clusters, actors, people, replicas behind a Wire) ─► History ─► oracles
//!                                                     ▲                                      │
//!                                                     └───────── explore: every fault ◄──────┘
//! ```
//!
//! It knows the operator's runtime but no capability: what a replica runs is given by whoever calls.

pub mod actors;
pub mod explore;
pub mod fault;
pub mod history;
pub mod oracles;
pub mod quick;
pub mod replica;
pub mod routes;
pub mod runner;
pub mod scenario;
pub mod share;
pub mod spell;
pub mod stage;
pub mod trial;
pub mod user;
pub mod wire;
