//! The machine on the embedded API server, in virtual time, with a toy capability.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "tests"
)]

mod answers;
mod asking;
mod barren;
mod connections;
mod contact;
mod curious;
mod drain;
mod election;
mod evictions;
mod fencing;
mod flow;
mod ground;
mod groups;
mod hostile;
mod hostile_answers;
mod late_kinds;
mod member;
mod members;
mod no_right;
mod outside;
mod outside_tenants;
mod peers;
mod questions;
mod records;
mod restarts;
mod restore;
mod rights;
mod role;
mod series;
mod signed;
mod spellings;
mod stage;
mod telling;
mod tls;
mod tls_callers;
mod tls_files;
mod tls_inject;
mod tls_rotation;
mod touching;
mod toy;
mod watches;
mod webhook;
mod webhook_tls;
