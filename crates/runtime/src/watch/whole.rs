//! An object as it is: nothing but its metadata is looked at, and of that only what a watch needs.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use slipway_kernel::identity::Kind;
use slipway_kernel::store::Meta;

/// Any object.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    meta: ObjectMeta,
    value: Value,
}

impl Whole {
    pub(crate) fn into_value(self) -> Value {
        self.value
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        // Often the larger part of an object, and nobody here asks for it.
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let known = Meta::of(&value);
        let meta = ObjectMeta {
            name: Some(known.name),
            namespace: Some(known.namespace).filter(|text| !text.is_empty()),
            uid: Some(known.uid),
            resource_version: Some(known.version),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, value })
    }
}

impl Resource for Whole {
    type DynamicType = Kind;
    type Scope = DynamicResourceScope;

    fn kind(kind: &Kind) -> Cow<'_, str> {
        kind.kind.as_ref().into()
    }

    fn group(kind: &Kind) -> Cow<'_, str> {
        kind.group.as_ref().into()
    }

    fn version(kind: &Kind) -> Cow<'_, str> {
        kind.version.as_ref().into()
    }

    fn plural(kind: &Kind) -> Cow<'_, str> {
        kind.plural.as_ref().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
