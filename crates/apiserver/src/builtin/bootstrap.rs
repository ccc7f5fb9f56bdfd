//! The objects that a fresh cluster has.
