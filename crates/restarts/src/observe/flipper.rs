//! Flippers, and the `ConfigMap` that stands in for one while the default criteria apply.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::store::{Projection, Undecodable};

use super::{strings, text};
use crate::policy::{Invalid, Policy};

/// What is kept of a Flipper.
#[derive(Debug, Clone, PartialEq)]
pub struct Flipper {
    /// When it was made.
    pub created: Option<Timestamp>,
    /// What it asks for, or what is wrong with that.
    pub policy: Result<Policy, Invalid>,
    /// Its status as stored.
    pub status: Value,
}

impl Projection for Flipper {
    const READS: Parts = Parts::NONE.and(Part::Status);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self {
            created: text(object, "/metadata/creationTimestamp").and_then(|at| at.parse().ok()),
            policy: Policy::read(object.get("spec").unwrap_or(&Value::Null)),
            status: object.get("status").cloned().unwrap_or_default(),
        })
    }
}

/// What is kept of the `ConfigMap`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusMap {
    /// Its contents.
    pub data: BTreeMap<String, String>,
}

impl Projection for StatusMap {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self {
            data: strings(object, "/data"),
        })
    }
}
