//! Runs any [`Controller`](slipway_kernel::Controller) against any `kube::Client`, and against the clusters that it names.
//!
//! ```text
//! watch (one per kind) → Stores → Queue → plan → execute (leader, fence, ledger) → API
//!   ▲                                                 │ answers are overlaid on the stores
//!   └─────────────────────────────────────────────────┘
//! ```
//!
//! It promises: one replica acts at a time; what a plan was made of is at least as new as our own last write; a write
//! whose outcome is unknown is looked up before anything else is done; refused writes back off; nothing to do means no
//! request. It does not decide anything: that is the capabilities' part.

pub mod channel;
mod clusters;
mod collection;
pub mod connect;
mod connections;
pub mod cores;
mod election;
mod engine;
pub mod environment;
pub mod error;
mod events;
mod execute;
pub mod gather;
mod journal;
mod lease;
mod ledger;
mod line;
pub mod link;
pub mod member;
mod message;
mod metrics;
pub mod operator;
pub mod outside;
pub mod probes;
mod queue;
mod request;
pub mod request_filter;
mod rights;
mod roots;
pub mod settings;
mod state;
mod status;
pub mod tls;
pub mod view;
mod watch;
pub mod webhook;

pub use channel::Channel;
pub use connect::Connect;
pub use environment::Environment;
pub use error::Error;
pub use link::Link;
pub use operator::Operator;
pub use settings::{Backoff, Election, Members, Quiet, Settings, WithoutLease};
pub use view::View;
pub use webhook::Admissions;
