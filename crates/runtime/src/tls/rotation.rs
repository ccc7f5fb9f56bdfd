//! Keeps a certificate of our own making in a Secret, renews it, and decides when it is shown.
//!
//! One turn lists the webhook configurations, then reads (or makes, or renews) the Secret, then injects, then shows.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::identity::{ObjectRef, kinds};

use super::inject::{Injected, Injector};
use super::issue::issue;
use super::secret::{Content, Kept, pruned, renewed};
use super::served::Served;
use super::{Error, Pace, SelfSigned};
use crate::environment::Environment;
use crate::request::{ApiRequest, Outcome, Refused};
use crate::state::Shared;

/// A request without an answer is given up after this time.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// From the injection to the showing: API servers must have seen it.
const SETTLE: Duration = Duration::from_secs(5);
/// How often a Secret is tried in one turn that others write too.
const ATTEMPTS: u32 = 5;

/// A certificate of our own making.
pub(super) struct Rotation {
    wanted: SelfSigned,
    environment: Environment,
    client: Option<kube::Client>,
    served: Arc<Served>,
    injector: Option<Injector>,
    /// What the Secret had last, and when that was first seen.
    kept: Option<(Kept, Timestamp)>,
    /// Since when it has been trusted everywhere.
    trusted: Option<Timestamp>,
    told: String,
}

/// How a write of the Secret ended.
enum Written {
    /// It is this now.
    Done(Value),
    /// Look again.
    Again,
}

impl Rotation {
    pub(super) fn new(
        wanted: SelfSigned,
        environment: Environment,
        client: Option<kube::Client>,
        served: Arc<Served>,
        shared: Option<Arc<Shared>>,
    ) -> Self {
        let names = wanted.names.clone();
        let injector = wanted.inject.clone();
        let injector = injector.map(|injection| Injector::new(injection, names, shared));
        Self {
            wanted,
            environment,
            client,
            served,
            injector,
            kept: None,
            trusted: None,
            told: String::new(),
        }
    }

    /// The first turn; it fails if there is no certificate after it.
    pub(super) async fn prepare(&mut self) -> Result<(), Error> {
        self.round().await.map(|_| ())
    }

    pub(super) async fn turn(&mut self) -> Pace {
        match self.round().await {
            Ok(pace) => {
                self.told.clear();
                pace
            }
            Err(error) => {
                let error = error.to_string();
                if self.told != error {
                    tracing::warn!(error, "webhook certificate not checked, retrying");
                    self.told = error;
                }
                Pace::Failed
            }
        }
    }

    async fn round(&mut self) -> Result<Pace, Error> {
        let client = self.client.clone().ok_or(Error::NoCluster)?;
        let now = self.environment.now();
        let listed = match &mut self.injector {
            Some(injector) => Some(injector.list(&client, now).await),
            None => None,
        };
        let kept = self.look(&client).await?;
        let injected = match (&mut self.injector, listed) {
            (Some(injector), Some(listed)) => {
                let now = self.environment.now();
                injector.inject(&client, listed, &kept.bundle, now).await
            }
            _ => Injected::Forbidden,
        };
        let waits = !self.show(kept, injected);
        Ok(match injected {
            Injected::Failed => Pace::Failed,
            Injected::Everywhere if waits => Pace::Waiting,
            Injected::Everywhere | Injected::Forbidden => Pace::Steady,
        })
    }

    /// Shows the pair if it is time to; gives whether it is shown.
    fn show(&mut self, kept: Kept, injected: Injected) -> bool {
        let now = self.environment.now();
        let pair = kept.pair.clone();
        let since = match self.kept.take() {
            Some((known, since)) if pair.is_same(known.pair.key()) => since,
            _ => {
                self.trusted = None;
                now
            }
        };
        self.kept = Some((kept, since));
        match injected {
            Injected::Everywhere => self.trusted = self.trusted.or(Some(now)),
            Injected::Forbidden | Injected::Failed => self.trusted = None,
        }
        if self.served.shows(&pair) {
            return true;
        }
        let settled = |at: Timestamp| at.checked_add(SETTLE).is_ok_and(|at| now >= at);
        let due = match self.served.end() {
            None => true,
            // Without trust the old one is shown for half of the rest of its time.
            Some(end) => {
                let rest = end.duration_since(since) / 2;
                let latest = since.checked_add(rest).unwrap_or(since);
                now >= latest || self.trusted.is_some_and(settled)
            }
        };
        if due {
            self.served.show(pair);
        }
        due
    }

    fn object(&self) -> ObjectRef {
        ObjectRef::local(kinds::SECRET, &*self.wanted.namespace, &*self.wanted.secret)
    }

    /// The pair in the Secret, which is made or renewed if need be.
    async fn look(&mut self, client: &kube::Client) -> Result<Kept, Error> {
        let object = self.object();
        for _ in 0..ATTEMPTS {
            let secret = match ApiRequest::get(&object).send(client, TIMEOUT).await {
                Outcome::Done(secret) => Some(secret),
                Outcome::Absent(_) => None,
                other => return Err(self.secret_error("read", other)),
            };
            if let Some(kept) = self.take(client, secret).await? {
                return Ok(kept);
            }
        }
        Err(Error::Restless {
            namespace: self.wanted.namespace.clone(),
            name: self.wanted.secret.clone(),
        })
    }

    /// What a Secret that was read leads to; none if it has to be read again.
    async fn take(
        &mut self,
        client: &kube::Client,
        secret: Option<Value>,
    ) -> Result<Option<Kept>, Error> {
        let now = self.environment.now();
        let names = &self.wanted.names;
        let known = self.kept.as_ref().map(|(kept, _)| kept.bundle.clone());
        let mut trusted: Vec<Vec<u8>> = Vec::new();
        let mut usable = None;
        match secret.as_ref().map(Content::of) {
            None | Some(Content::Empty) => {}
            Some(Content::Lacks(key)) => {
                return Err(Error::Foreign {
                    namespace: self.wanted.namespace.clone(),
                    name: self.wanted.secret.clone(),
                    key,
                });
            }
            Some(Content::Texts(texts)) => {
                trusted.push(texts.authorities());
                match texts.read(names, now) {
                    Ok(kept) if now < kept.pair.renew_at() => {
                        if kept.stale {
                            self.prune(client, secret, now).await;
                        }
                        return Ok(Some(kept));
                    }
                    Ok(kept) => {
                        tracing::info!(end = %kept.pair.end(), "webhook certificate is renewed");
                        usable = Some(kept);
                    }
                    Err(problem) => {
                        let name = &self.wanted.secret;
                        tracing::warn!(name, %problem, "certificate in the Secret cannot be used; a new one is made");
                    }
                }
            }
        }
        trusted.extend(known);
        match (self.renew(client, secret, &trusted, now).await, usable) {
            (Ok(Written::Done(secret)), _) => match Content::of(&secret) {
                Content::Texts(texts) => Ok(texts.read(&self.wanted.names, now).ok()),
                Content::Empty | Content::Lacks(_) => Ok(None),
            },
            (Ok(Written::Again), _) => Ok(None),
            (Err(error), Some(kept)) => {
                tracing::warn!(%error, "webhook certificate not renewed yet, retrying");
                Ok(Some(kept))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Writes a new pair into the Secret, unless somebody else has written it meanwhile.
    async fn renew(
        &self,
        client: &kube::Client,
        secret: Option<Value>,
        trusted: &[Vec<u8>],
        now: Timestamp,
    ) -> Result<Written, Error> {
        let issued = issue(&self.wanted, now).map_err(|source| Error::Issue {
            names: self.wanted.names.clone(),
            source,
        })?;
        let object = self.object();
        let trusted: Vec<&[u8]> = trusted.iter().map(Vec::as_slice).collect();
        let exists = secret.is_some();
        let body = renewed(secret, &object, &issued, &trusted, now);
        let (verb, wanted) = if exists {
            ("update", ApiRequest::replace(&object, body))
        } else {
            let namespace = &self.wanted.namespace;
            (
                "create",
                ApiRequest::create(&kinds::SECRET, namespace, body),
            )
        };
        match wanted.send(client, TIMEOUT).await {
            Outcome::Done(secret) => Ok(Written::Done(secret)),
            // Whoever was first has made the one that all of us use; a write without an answer may have been done.
            Outcome::Conflict | Outcome::Unknown(..) => Ok(Written::Again),
            Outcome::Absent(_) if exists => Ok(Written::Again),
            other => Err(self.secret_error(verb, other)),
        }
    }

    /// Takes former CAs out that have ended. It does not matter whether that succeeds now.
    async fn prune(&self, client: &kube::Client, secret: Option<Value>, now: Timestamp) {
        if let Some(secret) = secret {
            let wanted = ApiRequest::replace(&self.object(), pruned(secret, now));
            let _ = wanted.send(client, TIMEOUT).await;
        }
    }

    fn secret_error(&self, verb: &'static str, outcome: Outcome) -> Error {
        let why = match outcome {
            Outcome::Refused(why) | Outcome::Absent(why) | Outcome::Unknown(why, _) => why,
            other => Refused::new(other.as_str(), "the API did not do it"),
        };
        Error::Secret {
            verb,
            namespace: self.wanted.namespace.clone(),
            name: self.wanted.secret.clone(),
            reason: why.reason.as_str().to_owned(),
            message: why.message,
        }
    }
}
