//! Slipway's own kinds, one file each, with the names that other programs and people match on.
//!
//! It promises types, schemas and names, and nothing that decides. A field that a user may write is as lenient as the
//! API server is (`interval` is a string): an object that was stored before a rule existed can always be read.

pub mod alert_provider;
pub mod canary;
pub mod crds;
pub mod flagger;
pub mod fleet;
pub mod flipper;
pub mod foreign;
pub mod metric_template;
pub mod names;
pub mod purpose;
pub mod replica_template;
pub mod waiting;
pub mod zones;
pub mod zpdb;
