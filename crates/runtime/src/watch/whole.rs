//! Objects as far as their projections read them: of their metadata a watch itself needs little more than the name.
//!
//! `managedFields` are often the larger part of an object, and few ask for them: where nobody does, they are not even
//! built. Other parts that nobody reads are let go object by object, before the next page comes.

use std::borrow::Cow;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::DynamicResourceScope;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use slipway_kernel::identity::Kind;
use slipway_kernel::parts::{Part, Parts, Read};
use slipway_kernel::store::Meta;

use super::Watch;

/// All parts, for projections that read `managedFields`.
const ALL: u8 = Parts::ALL.bits();
/// What is built of an object for all others.
const MOST: u8 = Parts::ALL.without(Part::ManagedFields).bits();

impl Watch {
    fn api<const PARTS: u8>(&self) -> Api<Whole<PARTS>> {
        let client = self.client.clone();
        if self.key.namespace.is_empty() {
            Api::all_with(client, &self.key.kind)
        } else {
            Api::namespaced_with(client, &self.key.namespace, &self.key.kind)
        }
    }

    /// All objects, and what becomes of them.
    pub(super) fn objects(&self) -> BoxStream<'static, Result<Event<Value>, watcher::Error>> {
        let (config, reads) = (self.config(), self.reads);
        if reads.has(Part::ManagedFields) {
            let events = watcher::watcher(self.api::<ALL>(), config);
            return events.map(move |event| Ok(value_of(event?, reads))).boxed();
        }
        let events = watcher::watcher(self.api::<MOST>(), config);
        events.map(move |event| Ok(value_of(event?, reads))).boxed()
    }

    /// One object.
    pub(super) async fn object(&self, name: &str) -> Result<Option<Value>, kube::Error> {
        let found = self.api::<ALL>().get_opt(name).await?;
        Ok(found.map(|whole| whole.read(self.reads)))
    }

    /// Some of the objects, and where the next ones are.
    pub(super) async fn page(
        &self,
        params: &ListParams,
    ) -> Result<(Vec<Value>, Option<String>), kube::Error> {
        let (objects, metadata) = if self.reads.has(Part::ManagedFields) {
            let page = self.api::<ALL>().list(params).await?;
            (self.read(page.items), page.metadata)
        } else {
            let page = self.api::<MOST>().list(params).await?;
            (self.read(page.items), page.metadata)
        };
        let next = metadata.continue_.filter(|token| !token.is_empty());
        Ok((objects, next))
    }

    fn read<const PARTS: u8>(&self, objects: Vec<Whole<PARTS>>) -> Vec<Value> {
        let objects = objects.into_iter();
        objects.map(|whole| whole.read(self.reads)).collect()
    }
}

fn value_of<const PARTS: u8>(event: Event<Whole<PARTS>>, reads: Parts) -> Event<Value> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(object.read(reads)),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(object.read(reads)),
        Event::Delete(object) => Event::Delete(object.read(reads)),
    }
}

/// Any object, with these parts.
#[derive(Debug, Clone)]
struct Whole<const PARTS: u8> {
    meta: ObjectMeta,
    value: Value,
}

impl<const PARTS: u8> Whole<PARTS> {
    /// What its projections read.
    fn read(self, reads: Parts) -> Value {
        let mut value = self.value;
        reads.keep(&mut value);
        value
    }
}

impl<'de, const PARTS: u8> Deserialize<'de> for Whole<PARTS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read::<PARTS>(value) = Read::deserialize(deserializer)?;
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

impl<const PARTS: u8> Resource for Whole<PARTS> {
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
