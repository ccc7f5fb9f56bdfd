//! An in-memory Kubernetes API server that answers like the real one.
//!
//! It promises what a client can see: the status codes, reasons, messages and bodies of kube-apiserver for the
//! resources and verbs listed in [`builtin`] and for any custom resource, held against a real kube-apiserver by
//! the conformance suite in `tests/conformance`. It does not promise durability: a cluster lives in memory.
//!
//! ```text
//!   tower::Service (in process) ─┐
//!                                ├─► Server ─► Cluster ─► route ─► authn/authz ─► decode ─► admit ─► store
//!   HTTPS shell (own thread) ────┘               │                                                     │
//!                                                └────────── watch ◄── per-resource event log ◄────────┘
//! ```
//!
//! One core, two shells: clock, entropy and the outgoing dialler are constructor parameters
//! ([`cluster::Environment`]), so that under a virtual clock a run is a function of its seed.
//!
//! ```
//! use std::sync::Arc;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//! use slipway_apiserver::cluster::Config;
//! use slipway_apiserver::environment::InProcess;
//! use slipway_apiserver::faults::{Fault, Frequency, Match};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Ids and versions come from the seed; webhooks would be services in the process; no socket is opened.
//! let cluster = Config::seeded("test", 7, Arc::new(InProcess::default())).with_admin("token").build();
//! let client = kube::Client::new(cluster.service("token"), "default");
//! let maps: Api<ConfigMap> = Api::default_namespaced(client);
//!
//! // The next create is carried out, but its answer is lost.
//! cluster.faults().add(
//!     Match { verb: "create".to_owned(), ..Match::default() },
//!     Frequency::once(),
//!     Fault::Lose,
//! );
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("a".to_owned());
//! assert!(maps.create(&PostParams::default(), &map).await.is_err());
//! assert!(maps.get("a").await.is_ok());
//! # Ok(())
//! # }
//! ```

pub mod admission;
pub mod apply;
pub mod authenticate;
pub mod authorize;
pub mod builtin;
pub mod cluster;
pub mod collect;
pub mod crd;
pub mod decode;
pub mod dial;
pub mod discovery;
pub mod environment;
mod exchange;
pub mod faults;
pub mod field;
pub mod https;
pub mod meta;
pub mod negotiate;
pub mod openapi;
mod options;
pub mod origin;
pub mod patch;
mod registry;
pub mod resource;
mod route;
pub mod schema;
pub mod selector;
pub mod server;
mod shelf;
pub mod shell;
pub mod status;
pub mod store;
pub mod table;
pub mod trace;
pub mod value;
mod verbs;
