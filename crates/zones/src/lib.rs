//! Rollouts of `StatefulSets` zone by zone, and the webhooks that guard them.

pub mod admit;
