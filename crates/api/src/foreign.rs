//! The little of other projects' kinds that we touch: their names, and the fields that are read or written.
//!
//! Whole objects are never modelled: what we do not know in them is kept as it is.

pub mod gateway;
pub mod ingress_nginx;
pub mod istio;
pub mod smi;
