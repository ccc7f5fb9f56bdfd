//! Clients of clusters other than our own, made from kubeconfigs that somebody put into Secrets.
//!
//! It promises that such a kubeconfig can say where the API server is and who we are there, and nothing else: it runs no
//! program, reads no file, uses no proxy, trusts nobody blindly, and what is secret in it is in no error and no log.
//! A member costs one connection. What it does not do: read Secrets, notice that they change, or decide what a member is.

mod client;
mod connect;
pub mod kubeconfig;
pub(crate) mod wire;

pub use client::ClientError;
pub use connect::ByKubeconfig;
pub use kubeconfig::{Kubeconfig, KubeconfigError};
