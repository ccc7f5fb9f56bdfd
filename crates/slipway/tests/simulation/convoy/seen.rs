//! What the convoy keeps of objects.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::store::{Projection, Undecodable};

use super::{DONE, FLAVOUR, TURN};

fn texts(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let fields = object.pointer(pointer).and_then(Value::as_object);
    let fields = fields.into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// A `ConfigMap`: the order, a member, or what is a member's own.
#[derive(Debug)]
pub(crate) struct Map {
    pub(super) data: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

impl Projection for Map {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self {
            data: texts(object, "/data"),
            annotations: texts(object, "/metadata/annotations"),
        })
    }
}

impl Map {
    /// The image that the member has the turn for, or had.
    pub(super) fn turn(&self) -> Option<&str> {
        self.annotations.get(TURN).map(String::as_str)
    }

    /// Whether it has its turn, and is not done.
    pub(super) fn is_under_way(&self) -> bool {
        let done = self.annotations.get(DONE).map(String::as_str);
        self.turn().is_some() && self.turn() != done
    }
}

/// A member's Deployment.
#[derive(Debug)]
pub(crate) struct App {
    pub(super) image: String,
    pub(super) flavour: String,
    pub(super) is_rolled_out: bool,
}

impl Projection for App {
    const READS: Parts = Parts::NONE.and(Part::Status).and(Part::PodSpec);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
        let replicas = number("/spec/replicas").unwrap_or(1);
        let generation = number("/metadata/generation");
        let annotations = texts(object, "/metadata/annotations");
        Ok(Self {
            image: text("/spec/template/spec/containers/0/image")
                .unwrap_or_default()
                .to_owned(),
            flavour: annotations.get(FLAVOUR).cloned().unwrap_or_default(),
            is_rolled_out: number("/status/observedGeneration") >= generation
                && number("/status/updatedReplicas") >= Some(replicas)
                && number("/status/availableReplicas") >= Some(replicas),
        })
    }
}

/// Of what only the name and version matter.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Projection for Nothing {
    const READS: Parts = Parts::NONE;

    fn project(_: &Value) -> Result<Self, Undecodable> {
        Ok(Self)
    }
}
