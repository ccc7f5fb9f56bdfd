//! The shapes that every capability shares: what it may see ([`store`], [`fact`]), what it answers ([`plan`],
//! [`action`], [`blocker`], [`event`], [`condition`]) and what it declares ([`capability`], [`interest`], [`member`], [`permission`]).
//!
//! Everything here is a value. Nothing here reads a clock, waits, draws a number or depends on the order of a hash.
//!
//! ```text
//! watch → Stores ─┐
//!                 ├─ observe(stores, facts, key) → World → plan(&World, now) → Plan → executor
//! Facts ──────────┘
//! ```

pub mod action;
pub mod address;
pub mod admission;
pub mod basis;
pub mod blocker;
pub mod capability;
pub mod claim;
pub mod condition;
pub mod cron;
pub mod disruption_budget;
pub mod duration;
pub mod event;
pub mod fact;
pub mod fields;
pub mod finalizer;
pub mod identity;
pub mod instant;
pub mod interest;
pub mod member;
pub mod parts;
pub mod permission;
pub mod plan;
pub mod prune;
pub mod question;
pub mod reason;
pub mod selector;
pub mod sensitive;
pub mod stage;
pub mod status_map;
pub mod store;
pub mod text;
pub mod window;

pub use action::{Action, FieldManager, Target};
pub use basis::Basis;
pub use blocker::Blocker;
pub use capability::{Capability, Controller, Fence, Lane};
pub use event::Event;
pub use fact::Facts;
pub use identity::{ClusterId, Key, Kind, ObjectRef};
pub use member::{Member, MemberState};
pub use plan::{Plan, Step};
pub use sensitive::Sensitive;
pub use slipway_api::purpose::Purpose;
pub use store::Stores;
