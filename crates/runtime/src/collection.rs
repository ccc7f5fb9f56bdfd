//! Reads all objects of a kind in a namespace, consistently, and brings the stores up to what was found.
//!
//! Cheap where nothing has changed: the API is asked for metadata only, and an object that the stores hold in the version
//! of the answer is as new as the answer. Only if something differs are the objects read whole. It promises nothing about
//! objects that no store is for.

mod heads;
#[cfg(test)]
mod heads_tests;
#[cfg(test)]
mod heads_written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use slipway_api::purpose::runtime as purpose;
use slipway_kernel::admission::{Collection, Reading};
use slipway_kernel::capability::WatchEvent;
use slipway_kernel::identity::{ClusterId, ObjectRef};
use slipway_kernel::store::{Meta, Store, StoreKey, Stores, number};
use tokio::sync::mpsc;

use self::heads::{HEADS, Head, HeadMeta, Heads, ListMeta, NoList};
use crate::message::Message;
use crate::state::{Shared, State};

/// How often a read that fails is tried.
const ATTEMPTS: u32 = 3;
/// How long one may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Whole objects in one answer.
const PAGE: usize = 500;
/// How much of an answer is read: metadata of some 20,000 pods.
const LARGEST_ANSWER: usize = 64 << 20;

const WHOLE: &str = "application/json";

/// Whoever reads collections.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: kube::Client,
    /// Whoever deals with what a read shows beside the objects.
    pub(crate) inbox: mpsc::UnboundedSender<Message>,
}

/// Why a collection was not read.
enum Unread {
    /// There is no such path.
    Absent,
    /// Something else.
    Failed(String),
}

#[derive(Deserialize)]
struct Page {
    metadata: ListMeta,
    #[serde(default)]
    items: Option<Vec<Value>>,
}

impl Reader {
    /// Reads a collection; one answer that went astray decides nothing.
    pub(crate) async fn read(&self, collection: &Collection) -> Reading {
        let environment = &self.shared.environment;
        let mut last = Reading::Failed("it was not read".to_owned());
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                let pause = Duration::from_millis(50 * u64::from(attempt * attempt));
                environment.sleep(pause).await;
            }
            last = tokio::select! {
                biased;
                () = environment.sleep(TIMEOUT) => {
                    Reading::Failed(format!("no answer within {} s", TIMEOUT.as_secs()))
                }
                read = self.once(collection) => match read {
                    Ok(()) => Reading::Current,
                    Err(Unread::Absent) => self.absent(collection).await,
                    Err(Unread::Failed(why)) => Reading::Failed(why),
                },
            };
            if !matches!(last, Reading::Failed(_)) {
                break;
            }
        }
        last
    }

    async fn once(&self, collection: &Collection) -> Result<(), Unread> {
        let (known, history) = {
            let state = self.shared.lock();
            (newest(&state, collection), history(&state, collection)?)
        };
        let path = collection.kind.path(&collection.namespace);
        let (kind, answer) = self.get(&path, HEADS).await?;
        let heads = Heads::read(&kind, &answer).map_err(|why| no_list(&why.to_string()))?;
        // A consistent answer is never older than what was seen before it was asked for.
        let version = number(&heads.metadata.resource_version);
        if version < known {
            return Err(Unread::Failed(format!(
                "the API server answered with version {version}, and {known} was seen before"
            )));
        }
        let items = heads.items.unwrap_or_default();
        let before = {
            let state = self.shared.lock();
            stays(&state, collection, history)?;
            if is_held(&state, collection, &items, version) {
                return Ok(());
            }
            state.stores.only(&ClusterId::local())
        };
        self.take_in(collection, &before, history).await
    }

    /// Reads the objects whole, page by page, and takes in what is new and what is gone. `before` is what was seen before it
    /// is asked for them, and so cannot be newer: if it is, the API's storage was restored, and versions have been given out
    /// again since.
    async fn take_in(
        &self,
        collection: &Collection,
        before: &Stores,
        history: u64,
    ) -> Result<(), Unread> {
        let path = collection.kind.path(&collection.namespace);
        let mut heads: Vec<Head<'static>> = Vec::new();
        let mut next = String::new();
        loop {
            let token =
                percent_encoding::utf8_percent_encode(&next, percent_encoding::NON_ALPHANUMERIC);
            let page = format!("{path}?limit={PAGE}&continue={token}");
            let (_, answer) = self.get(&page, WHOLE).await?;
            let page: Page =
                serde_json::from_slice(&answer).map_err(|error| no_list(&error.to_string()))?;
            if page.metadata.resource_version.is_empty() {
                return Err(no_list(&NoList::NoVersion.to_string()));
            }
            let mut state = self.shared.lock();
            stays(&state, collection, history)?;
            for value in page.items.unwrap_or_default() {
                let meta = Meta::of(&value);
                let namespace = &meta.namespace;
                if !namespace.is_empty() && *namespace != collection.namespace {
                    return Err(Unread::Failed(format!(
                        "the API server answered with an object of namespace {namespace:?}"
                    )));
                }
                let object = object(collection, &meta.name);
                if is_past(&state, collection, before, &meta) {
                    let cluster = object.cluster.clone();
                    // Nobody listens when the replica has ended.
                    let _ = self.inbox.send(Message::Rewound(cluster, history));
                    return Err(Unread::Failed(format!(
                        "{object} is older than it was, as after a restore of the API's storage"
                    )));
                }
                if !is_known(&state, collection, &meta) {
                    self.observe(&mut state, &object, &value);
                }
                heads.push(Head::from(meta));
            }
            next = page.metadata.r#continue;
            if next.is_empty() {
                let version = number(&page.metadata.resource_version);
                let names = heads.iter().map(|head| head.metadata.name.as_ref());
                let listed: BTreeSet<&str> = names.collect();
                for meta in gone(&state, collection, &listed, version) {
                    state.overlay_absence(&object(collection, &meta.name), &meta.uid);
                }
                // The stores take in nothing that is older than what they were told meanwhile.
                if !is_held(&state, collection, &heads, version) {
                    return Err(Unread::Failed(
                        "what was read is not what was seen meanwhile".to_owned(),
                    ));
                }
                break;
            }
        }
        self.shared.notify_observers();
        Ok(())
    }

    /// Takes in one object, and counts it where a capability counts arrivals.
    fn observe(&self, state: &mut State, object: &ObjectRef, value: &Value) {
        let before = state.changes.len();
        state.overlay(object, value);
        if state.changes.len() == before {
            return;
        }
        let arrival = WatchEvent {
            kind: &object.kind,
            object: value,
            is_deletion: false,
            is_new: true,
        };
        for capability in &state.capabilities {
            if let Some(count) = capability.metric_for(&arrival) {
                self.shared.metrics.traffic.count(&count);
            }
        }
    }

    /// What it means that there is no such path: that the kind is not served, if discovery says so too.
    async fn absent(&self, collection: &Collection) -> Reading {
        let (kind, version) = (&collection.kind, collection.kind.api_version());
        let served = tokio::select! {
            biased;
            () = self.shared.environment.sleep(TIMEOUT) => None,
            served = self.client.list_api_group_resources(&version) => Some(served),
        };
        let is_undefined = match served {
            Some(Ok(served)) => served.resources.iter().all(|one| one.name != kind.plural),
            Some(Err(kube::Error::Api(status))) => status.code == 404,
            _ => false,
        };
        if is_undefined && !kind.group.is_empty() {
            return Reading::Undefined;
        }
        let plural = &kind.plural;
        Reading::Failed(format!(
            "the API server did not find {plural}, and defines them"
        ))
    }

    /// An answer, and what type it is of.
    async fn get(&self, path: &str, accept: &'static str) -> Result<(String, Bytes), Unread> {
        let failed = |why: String| Unread::Failed(why);
        let mut request = Request::get(path)
            .body(Body::empty())
            .map_err(|error| failed(error.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let context = format!(
            "replica={};purpose={}",
            self.shared.settings.replica,
            purpose::REVIEW
        );
        if let Ok(context) = HeaderValue::from_str(&context) {
            headers.insert(HeaderName::from_static("x-trace-context"), context);
        }
        let response = self.client.send(request).await;
        let response = response.map_err(|error| failed(error.to_string()))?;
        let code = response.status().as_u16();
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect();
        let body = body.await.map_err(|error| failed(error.to_string()))?;
        let body = body.to_bytes();
        match code {
            200..=299 => Ok((kind, body)),
            404 => Err(Unread::Absent),
            code => {
                let status: Option<Value> = serde_json::from_slice(&body).ok();
                let said = status.as_ref().and_then(|s| s.get("message")?.as_str());
                let said = said.map_or_else(|| format!("the API answered {code}"), str::to_owned);
                Err(failed(said))
            }
        }
    }
}

/// The history that the stores are of; what they hold cannot be compared with an answer while that is not sure.
fn history(state: &State, collection: &Collection) -> Result<u64, Unread> {
    let history = state.history_of(&ClusterId::local(), &collection.kind);
    history.ok_or_else(|| {
        let plural = &collection.kind.plural;
        Unread::Failed(format!(
            "the API's storage was restored, and {plural} are being listed again"
        ))
    })
}

/// Fails if the stores are of another history: an answer that was asked for before a restore is none.
fn stays(state: &State, collection: &Collection, before: u64) -> Result<(), Unread> {
    if history(state, collection)? == before {
        return Ok(());
    }
    Err(Unread::Failed(
        "the API's storage was restored meanwhile".to_owned(),
    ))
}

fn no_list(why: &str) -> Unread {
    Unread::Failed(format!("the answer is no list: {why}"))
}

fn object(collection: &Collection, name: &str) -> ObjectRef {
    ObjectRef {
        cluster: ClusterId::local(),
        kind: collection.kind.clone(),
        namespace: collection.namespace.clone(),
        name: name.to_owned(),
    }
}

/// The stores that hold the whole collection.
fn stores<'a>(
    state: &'a State,
    collection: &'a Collection,
) -> impl Iterator<Item = (&'a StoreKey, &'a Store)> {
    let is_whole = |key: &StoreKey| {
        state.home.selectors.get(key).is_none_or(|selector| {
            selector.labels.is_empty()
                && !selector.named
                && (selector.namespaces.is_empty()
                    || selector.namespaces.contains(&collection.namespace))
        })
    };
    let mine = state.stores.of_kind(&ClusterId::local(), &collection.kind);
    mine.filter(move |(key, _)| is_whole(key))
}

/// The newest version that was seen of the kind.
fn newest(state: &State, collection: &Collection) -> u64 {
    let versions = stores(state, collection).map(|(_, store)| store.version());
    versions.max().unwrap_or_default()
}

/// Whether the stores hold this object in this version: then there is nothing to be remembered of the answer.
fn is_known(state: &State, collection: &Collection, meta: &Meta) -> bool {
    stores(state, collection).all(|(_, store)| {
        let seen = store.get(&collection.namespace, &meta.name);
        seen.is_some_and(|seen| seen.meta.uid == meta.uid && seen.meta.version == meta.version)
    })
}

/// Whether something newer had been seen before, or the object's end.
fn is_past(state: &State, collection: &Collection, before: &Stores, meta: &Meta) -> bool {
    let mut all = stores(state, collection).filter_map(|(key, _)| before.store(key));
    all.any(|store| store.is_past(&collection.namespace, &meta.name, &meta.version))
}

/// Whether the stores hold exactly these objects, each in this version or in one that is newer than the answer.
fn is_held(state: &State, collection: &Collection, items: &[Head<'_>], version: u64) -> bool {
    let listed: BTreeMap<&str, &HeadMeta<'_>> = items
        .iter()
        .map(|item| (item.metadata.name.as_ref(), &item.metadata))
        .collect();
    stores(state, collection).all(|(_, store)| {
        let mut found = 0;
        for seen in store.in_namespace(&collection.namespace) {
            let meta = &seen.meta;
            let item = listed.get(meta.name.as_str());
            found += usize::from(item.is_some());
            let is_same =
                item.is_some_and(|i| i.uid == meta.uid && i.resource_version == meta.version);
            if !is_same && number(&meta.version) <= version {
                return false;
            }
        }
        found == listed.len()
    })
}

/// What the stores hold and a list of this version does not.
fn gone(
    state: &State,
    collection: &Collection,
    listed: &BTreeSet<&str>,
    version: u64,
) -> Vec<Meta> {
    stores(state, collection)
        .flat_map(|(_, store)| store.in_namespace(&collection.namespace))
        .map(|seen| &seen.meta)
        .filter(|meta| !listed.contains(meta.name.as_str()) && number(&meta.version) <= version)
        .cloned()
        .collect()
}
