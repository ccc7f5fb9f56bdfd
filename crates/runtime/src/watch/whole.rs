//! Objects as far as their projections read them: of their metadata a watch itself needs little more than the name.
//!
//! `managedFields` are often the larger part of an object, and few ask for them: where nobody does, they are not even
//! built. Other parts that nobody reads are let go object by object, before the next page comes.

use kube::api::{GetParams, ListParams};
use kube::core::Request;
use serde::Deserialize;
use serde_json::Value;
use slipway_kernel::parts::{Part, Parts, Read};

use super::attend::Listener;
use super::bounds::Taken;
use super::{Watch, WatchKey};
use crate::channel::{good, understood};

/// All parts, for projections that read `managedFields`.
pub(super) const ALL: u8 = Parts::ALL.bits();
/// What is built of an object for all others.
pub(super) const MOST: u8 = Parts::ALL.without(Part::ManagedFields).bits();

/// One answer to a list.
#[derive(Deserialize)]
struct Answer<const PARTS: u8> {
    #[serde(default)]
    metadata: Head,
    // Some servers say null where there is nothing.
    items: Option<Vec<Read<PARTS>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// A page of a list.
pub(super) struct Page {
    pub(super) objects: Vec<Value>,
    /// The version of the list.
    pub(super) version: Option<String>,
    /// Where the next page is.
    pub(super) next: Option<String>,
}

impl Page {
    fn of<const PARTS: u8>(answer: Answer<PARTS>, reads: Parts) -> Self {
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        let objects = answer.items.unwrap_or_default().into_iter();
        Self {
            objects: objects.map(|object| kept(object, reads)).collect(),
            version: said(answer.metadata.resource_version),
            next: said(answer.metadata.next),
        }
    }
}

/// What its projections read of an object.
pub(super) fn kept<const PARTS: u8>(Read(mut value): Read<PARTS>, reads: Parts) -> Value {
    reads.keep(&mut value);
    value
}

/// Reads one page of a list, as far as it is within the bounds of what is taken of that.
pub(super) async fn page(
    listener: &Listener,
    (key, reads): (&WatchKey, Parts),
    params: &ListParams,
    taken: &mut Taken,
) -> Result<Page, kube::Error> {
    let request = Request::new(key.kind.path(&key.namespace)).list(params);
    let request = request.map_err(kube::Error::BuildRequest)?;
    let answer = good(listener.ask(request).await?).await?;
    let text = taken.text(answer).await?;
    let page = if reads.has(Part::ManagedFields) {
        Page::of::<ALL>(understood(&text)?, reads)
    } else {
        Page::of::<MOST>(understood(&text)?, reads)
    };
    taken.page(page.objects.len())?;
    Ok(page)
}

impl Watch {
    /// One object.
    pub(super) async fn object(&self, name: &str) -> Result<Option<Value>, kube::Error> {
        let request = Request::new(self.key.kind.path(&self.key.namespace));
        let request = request.get(name, &GetParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = good(self.listener.ask(request).await?).await;
        let found = match answer {
            Ok(answer) => Taken::nothing(self.bounds).text(answer).await?,
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let found: Read<ALL> = understood(&found)?;
        Ok(Some(kept(found, self.reads)))
    }
}

/// Which objects are listed, page by page.
pub(super) fn listed(key: &WatchKey) -> ListParams {
    let (label_selector, field_selector) = selected(key);
    ListParams {
        label_selector,
        field_selector,
        ..ListParams::default().limit(super::PAGE)
    }
}

/// By which labels and fields objects are selected.
pub(super) fn selected(key: &WatchKey) -> (Option<String>, Option<String>) {
    let labels = Some(&key.labels).filter(|labels| !labels.is_empty());
    let name = key.name.as_ref();
    let field = name.map(|name| format!("metadata.name={name}"));
    (labels.cloned(), field)
}
