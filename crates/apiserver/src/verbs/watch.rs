//! Watches: from a version on, with bookmarks, initial events and an end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{list, render};
use crate::cluster::Cluster;
use crate::exchange::{Content, Exchange, Reply};
use crate::faults::{Facts, WatchFault};
use crate::negotiate::Transform;
use crate::options::ListOptions;
use crate::resource::{Context, Resource};
use crate::shell::Body;
use crate::status::{Outcome, Status};
use crate::store::{Change, ChangeKind, Stored};
use crate::table::{IncludeObject, Presenter};

/// How long a watch lasts that says nothing about it. The real server draws between 30 and 60 minutes; a fixed value
/// keeps runs the same.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);

/// The longest that a watch lasts, whatever it says: more than a clock can show ahead would be no moment at all.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24 * 365);

/// How often a bookmark is sent to a watch that wants them.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);

/// A bookmark is sent so long before the watch ends, so that the client can go on from there.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// A watch of a custom resource goes on for so long after its definition has gone, as with the real server, which lets requests
/// that have just come find what they are about.
const AFTER_DEFINITION: Duration = Duration::from_secs(1);

/// How many encoded events may wait for a slow client before the watch waits too.
const BUFFER: usize = 100;

/// A watch in progress: everything of the exchange that outlives the request.
struct Watch {
    cluster: Arc<Cluster>,
    resource: Arc<Resource>,
    /// Under which name the objects are kept.
    bucket: String,
    definition: Option<Definition>,
    options: ListOptions,
    namespace: String,
    version: String,
    user: String,
    agent: String,
    transform: Option<Transform>,
    include: IncludeObject,
    /// Everything up to here has been sent.
    position: u64,
    columns_sent: bool,
    out: mpsc::Sender<Bytes>,
}

/// The definition that a custom resource was watched under.
struct Definition {
    name: String,
    uid: Option<Box<str>>,
}

impl Definition {
    fn of(cluster: &Cluster, resource: &Resource) -> Option<Self> {
        let name = || format!("{}.{}", resource.names.plural, resource.names.group);
        let name = resource.custom.then(name)?;
        let uid = Self::uid(cluster, &name);
        Some(Self { name, uid })
    }

    fn uid(cluster: &Cluster, name: &str) -> Option<Box<str>> {
        let definitions = "apiextensions.k8s.io/customresourcedefinitions";
        let stored = cluster.store.get(definitions, "", name);
        stored.map(|stored| stored.header.uid.clone())
    }

    /// Whether it has gone; one that was made anew since is another.
    fn is_gone(&self, cluster: &Cluster) -> bool {
        self.uid.is_none() || Self::uid(cluster, &self.name) != self.uid
    }
}

/// The stream has ended: the client has gone, or the server said the last word.
struct Ended;

/// Starts a watch.
pub(super) fn watch(ex: &Exchange<'_>, options: ListOptions) -> Outcome<Reply> {
    let (out, events) = mpsc::channel(BUFFER);
    let agent = ex
        .headers
        .get(http::header::USER_AGENT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let cluster = ex.cluster.clone();
    let initial = options.initial_events == Some(true) || matches!(options.version, None | Some(0));
    let initial = initial && options.initial_events != Some(false);
    let mut watch = Watch {
        position: options.version.unwrap_or_default(),
        definition: Definition::of(&cluster, &ex.resource),
        bucket: ex.bucket(),
        cluster,
        resource: ex.resource.clone(),
        options,
        namespace: ex.target.namespace.clone(),
        version: ex.target.version.clone(),
        user: ex.user.name.clone(),
        agent: agent.to_owned(),
        transform: ex.form.transform,
        include: IncludeObject::parse(ex.query.get("includeObject"))?,
        columns_sent: false,
        out,
    };
    if !initial && watch.position == 0 {
        watch.position = watch.cluster.store.version();
    }
    if ex.cluster.is_draining() {
        return Err(Box::new(Status::failure(
            503,
            "ServiceUnavailable",
            "the server is shutting down",
        )));
    }
    let open = ex.cluster.count_watch();
    tokio::spawn(async move {
        let _ = watch.run(initial).await;
        drop(open);
    });
    Ok(Reply {
        code: 200,
        content: Content::Stream(Body::Stream(events)),
        warnings: Vec::new(),
        retry_after: None,
    })
}

fn too_old(asked: u64, oldest: u64) -> Status {
    Status::expired(format!("too old resource version: {asked} ({oldest})"))
}

impl Watch {
    async fn run(&mut self, initial: bool) -> Result<(), Ended> {
        let start = Instant::now();
        let lasts = self
            .options
            .timeout_seconds
            .map_or(DEFAULT_TIMEOUT, Duration::from_secs)
            .min(LONGEST_TIMEOUT);
        let mut end = start + lasts;
        let cluster = self.cluster.clone();
        let drained = cluster.drained();
        tokio::pin!(drained);
        // Of these there is one for the whole watch: it turns with every write to any resource.
        let out = self.out.clone();
        let closed = out.closed();
        tokio::pin!(closed);
        if initial {
            self.send_initial().await?;
        }
        let early = lasts.saturating_sub(BOOKMARK_BEFORE_END);
        let mut bookmark = start + BOOKMARK_EVERY.min(early);
        loop {
            let written = cluster.store.written();
            self.send_changes().await?;
            if self.definition.take_if(|d| d.is_gone(&cluster)).is_some() {
                end = end.min(Instant::now() + AFTER_DEFINITION);
            }
            tokio::select! {
                biased;
                () = &mut closed => return Err(Ended),
                () = &mut drained => return Ok(()),
                () = tokio::time::sleep_until(end) => return Ok(()),
                () = written => {}
                () = tokio::time::sleep_until(bookmark), if self.options.bookmarks => {
                    self.send_bookmark(false).await?;
                    let last = start + early;
                    let next = Instant::now() + BOOKMARK_EVERY;
                    bookmark = if Instant::now() >= last { end + BOOKMARK_EVERY } else { next.min(last) };
                }
            }
        }
    }

    async fn send_initial(&mut self) -> Result<(), Ended> {
        let options = &self.options;
        let snapshot = self
            .cluster
            .store
            .list(&self.bucket, &self.namespace, &|o| {
                list::matches(options, o)
            });
        self.position = snapshot.version;
        for stored in &snapshot.objects {
            self.send("ADDED", stored).await?;
        }
        if self.options.initial_events == Some(true) && self.options.bookmarks {
            self.send_bookmark(true).await?;
        }
        Ok(())
    }

    async fn send_changes(&mut self) -> Result<(), Ended> {
        let changes = match self.cluster.store.changes(&self.bucket, self.position) {
            Ok((changes, complete)) => {
                if changes.is_empty() && complete > self.position {
                    self.position = complete;
                }
                changes
            }
            Err(compacted) => {
                let status = too_old(self.position, compacted.oldest);
                self.send_value("ERROR", &serde_json::to_value(&status).unwrap_or_default())
                    .await?;
                return Err(Ended);
            }
        };
        for change in changes {
            self.position = change.version;
            if let Some((kind, stored)) = self.seen(&change) {
                self.send_faulty(kind, &stored).await?;
            }
        }
        Ok(())
    }

    /// What a change looks like through the selectors: an object that starts to match is added, one that stops is
    /// deleted.
    fn seen(&self, change: &Change) -> Option<(&'static str, Arc<Stored>)> {
        if !self.namespace.is_empty() && *change.object.header.namespace != *self.namespace {
            return None;
        }
        let matches = |object: &Stored| list::matches(&self.options, object);
        let before = change.before.as_deref().is_some_and(matches);
        let after = change.kind != ChangeKind::Deleted && matches(&change.object);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(("ADDED", change.object.clone())),
            (true, true) => Some(("MODIFIED", change.object.clone())),
            // The last form that matched, at the version of the change.
            (true, false) if change.kind == ChangeKind::Deleted => {
                Some(("DELETED", change.object.clone()))
            }
            (true, false) => Some((
                "DELETED",
                Arc::new(change.before.as_ref()?.at(change.version)),
            )),
        }
    }

    async fn send_faulty(&mut self, kind: &'static str, stored: &Stored) -> Result<(), Ended> {
        let facts = Facts {
            verb: "watch",
            resource: &self.bucket,
            name: &stored.header.name,
            user: &self.user,
            agent: &self.agent,
            index: self.position,
        };
        match self.cluster.faults.on_event(&facts) {
            None => self.send(kind, stored).await,
            Some(WatchFault::Drop) => Ok(()),
            Some(WatchFault::Duplicate) => {
                self.send(kind, stored).await?;
                self.send(kind, stored).await
            }
            Some(WatchFault::Delay(time)) => {
                tokio::time::sleep(time).await;
                self.send(kind, stored).await
            }
            Some(WatchFault::Close) => Err(Ended),
            Some(WatchFault::Gone) => {
                let status = too_old(self.position, self.cluster.store.version());
                self.send_value("ERROR", &serde_json::to_value(&status).unwrap_or_default())
                    .await?;
                Err(Ended)
            }
        }
    }

    async fn send(&mut self, kind: &str, stored: &Stored) -> Result<(), Ended> {
        let api_version = self.resource.api_version(&self.version);
        if self.transform.is_none() && self.resource.serves_as_is(stored) {
            let mut out = Vec::with_capacity(stored.text.len() + 96);
            out.extend_from_slice(b"{\"type\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\",\"object\":");
            stored.write_as(&api_version, &self.resource.names.kind, &mut out);
            out.extend_from_slice(b"}\n");
            return self.out.send(Bytes::from(out)).await.map_err(|_| Ended);
        }
        let object = render::decode_for(&self.resource, &self.version, stored);
        let shown = self.transformed(object);
        self.send_value(kind, &shown).await
    }

    fn transformed(&mut self, object: Value) -> Value {
        let Some(transform) = self.transform else {
            return object;
        };
        let presenter = Presenter {
            transform,
            include: self.include,
            resource: &self.resource,
            is_custom: self.resource.custom,
            cx: Context {
                version: &self.version,
                now: self.cluster.now(),
                user: None,
            },
        };
        let shown = presenter.event(&object, !self.columns_sent);
        self.columns_sent = true;
        shown
    }

    async fn send_bookmark(&mut self, initial_end: bool) -> Result<(), Ended> {
        let mut object = json!({
            "apiVersion": self.resource.api_version(&self.version),
            "kind": self.resource.names.kind,
            "metadata": {"resourceVersion": self.position.to_string()},
        });
        if initial_end {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let shown = self.transformed(object);
        self.send_value("BOOKMARK", &shown).await
    }

    async fn send_value(&self, kind: &str, object: &Value) -> Result<(), Ended> {
        // The type first, as the real server has it: whoever reads knows then what comes.
        let line = format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
        self.out.send(Bytes::from(line)).await.map_err(|_| Ended)
    }
}
