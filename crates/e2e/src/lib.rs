//! What end-to-end tests and benches stand on: servers, the operator as a process, kubectl, and watches.
//!
//! Everything is driven from outside, as a user would: by the release binary and by kubectl. Whatever is started ends
//! with the value that stands for it.

pub mod canary;
pub mod client;
pub mod cluster;
pub mod documents;
pub mod figures;
pub mod flood;
pub mod gates;
pub mod git;
pub mod growth;
mod https;
pub mod install;
pub mod listener;
pub mod operator;
pub mod order;
pub mod ports;
pub mod process;
pub mod record;
pub mod review;
pub mod score;
pub mod server;
pub mod suite;
pub mod watch;
pub mod wire;
pub mod zones;
