//! Asks the world outside of the Kubernetes API.
//!
//! It promises, of whatever it is asked and whoever answers:
//! - a name is resolved once, every address that it has is checked ([`Rules`]), and a checked address is dialled; there is
//!   no proxy, and an answer that points elsewhere is followed only where the call says so, checked in the same way;
//! - heads, bodies and time are bounded, nothing is decompressed, and a call ends with an answer or a [`Failure`];
//! - only so many calls are under way, of which only some to one target; waiting is fair across keys. Who cannot be
//!   reached is left alone for a while;
//! - values out of Secrets are put in here and nowhere else, and taken out of all that is kept of an answer.
//!
//! Nothing is tried twice: delivery is at least once because whoever asks asks again, with the same idempotency key.

mod dial;
mod exchange;
mod gate;
mod prepared;
mod redaction;
mod resolve;
mod secrets;
mod transport;
mod turns;
mod waits;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use slipway_kernel::address::Rules;
use slipway_kernel::identity::Key;
use slipway_kernel::question::{Answer, Call, Failure, OtherNamespaces, Waiting};
use tokio::time::{Instant, timeout_at};

use crate::environment::after;
use crate::metrics::outgoing::Outgoing;
use crate::settings::Backoff;
use dial::Sockets;
use gate::Gate;
use prepared::Prepared;
use waits::Waits;

pub use resolve::{Resolve, SystemResolver};
pub use secrets::{ApiSecrets, NoSecrets, Secrets};
pub use transport::{Body, Transport};

/// A call to be made.
#[derive(Debug, Clone)]
pub struct Asked {
    /// On whose behalf; Secrets of its namespace may be used.
    pub key: Key,
    /// The question's name, the same however often it is asked.
    pub id: String,
    /// What is asked of whom.
    pub call: Call,
}

/// Answers calls: by sockets, or whatever a simulation puts in their place.
pub trait Ask: Send + Sync + 'static {
    /// Makes a call. It ends within the call's time, and can be given up by being dropped.
    fn ask(&self, asked: Asked) -> BoxFuture<'static, Answer>;
}

/// How much at once, and for how long.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How many calls may be under way.
    pub at_once: usize,
    /// How many of them may be to one target.
    pub per_target: usize,
    /// How long resolving a name and connecting may take.
    pub connecting: Duration,
    /// How long a target that cannot be reached is left alone.
    pub backoff: Backoff,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            at_once: 128,
            per_target: 16,
            connecting: Duration::from_secs(5),
            backoff: Backoff {
                first: Duration::from_millis(500),
                most: Duration::from_secs(30),
            },
        }
    }
}

/// The administrator's settings, and what calls are made with.
#[derive(Clone)]
pub struct Terms {
    /// Who may be called.
    pub rules: Rules,
    /// Whose Secrets may be used.
    pub other_namespaces: OtherNamespaces,
    /// How much at once.
    pub limits: Limits,
    /// Where names are looked up.
    pub resolver: Arc<dyn Resolve>,
    /// Where Secrets are read.
    pub secrets: Arc<dyn Secrets>,
    /// What we call ourselves.
    pub agent: &'static str,
}

/// Makes calls. Clones are the same.
#[derive(Clone)]
pub struct Outside {
    inner: Arc<Inner>,
    /// Where Secrets are read.
    secrets: Arc<dyn Secrets>,
}

struct Inner {
    terms: Terms,
    transport: Arc<dyn Transport>,
    /// Of each target.
    targets: Gate<Key>,
    /// Of all targets together.
    all: Gate<Key>,
    waits: Mutex<Waits>,
    metrics: Outgoing,
}

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}

impl Outside {
    /// Over sockets, as yet without connections. Calls need a tokio runtime with real time and I/O.
    pub fn new(terms: Terms) -> Self {
        let sockets = Sockets::new(&terms);
        Self::over(terms, Arc::new(sockets))
    }

    /// Over something else: the same calls, bounds and waits, whoever carries requests to and fro.
    pub fn over(terms: Terms, transport: Arc<dyn Transport>) -> Self {
        let secrets = terms.secrets.clone();
        let inner = Arc::new(Inner {
            transport,
            targets: Gate::new(terms.limits.per_target),
            all: Gate::new(terms.limits.at_once),
            waits: Mutex::new(Waits::new(terms.limits.backoff)),
            metrics: Outgoing::default(),
            terms,
        });
        Self { inner, secrets }
    }

    /// The same with Secrets of another place: turns and waits are shared.
    #[must_use]
    pub fn reading(&self, secrets: Arc<dyn Secrets>) -> Self {
        let inner = self.inner.clone();
        Self { inner, secrets }
    }

    /// Has calls shown, by target host and outcome.
    pub fn register(&self, registry: &mut Registry) {
        self.inner.metrics.register(registry);
    }
}

impl Ask for Outside {
    fn ask(&self, asked: Asked) -> BoxFuture<'static, Answer> {
        let (inner, secrets) = (self.inner.clone(), self.secrets.clone());
        Box::pin(async move {
            let began = Instant::now();
            let deadline = after(began, asked.call.timeout);
            let prepared = inner.prepare(&asked, secrets.as_ref(), deadline).await;
            let (host, answer) = match prepared {
                Err(failure) => (String::new(), Err(failure)),
                Ok(prepared) => {
                    let answer = inner.make(&asked, &prepared, deadline).await;
                    (prepared.label.clone(), prepared.redaction.of_answer(answer))
                }
            };
            inner.metrics.asked(&host, &answer, began.elapsed());
            answer
        })
    }
}

impl Inner {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn prepare(
        &self,
        asked: &Asked,
        secrets: &dyn Secrets,
        deadline: Instant,
    ) -> Result<Prepared, Failure> {
        let prepared = timeout_at(deadline, prepared::prepare(asked, &self.terms, secrets));
        prepared
            .await
            .unwrap_or(Err(Failure::Timeout(Waiting::Answer)))
    }

    /// Makes a call when it is its turn, unless its target is to be left alone.
    async fn make(&self, asked: &Asked, prepared: &Prepared, deadline: Instant) -> Answer {
        let target = prepared.target();
        if let Some((failures, wait)) = self.waits().left(&target, Instant::now()) {
            return Err(Failure::Unreachable(format!(
                "it is left alone for another {wait:.1?} after {failures} failures in a row"
            )));
        }
        let turn = async {
            let of_target = self.targets.turn(&target, asked.key.clone()).await;
            let of_all = self.all.turn("", asked.key.clone()).await;
            (of_target, of_all)
        };
        let Ok(_turn) = timeout_at(deadline, turn).await else {
            return Err(Failure::Timeout(Waiting::Turn));
        };
        let exchange = exchange::make(
            &asked.call,
            prepared,
            self.transport.as_ref(),
            &self.terms.rules,
        );
        let answer = timeout_at(deadline, exchange).await;
        let answer = answer.unwrap_or(Err(Failure::Timeout(Waiting::Answer)));
        let mut waits = self.waits();
        match &answer {
            Err(failure) if failure.is_of_target() => waits.failed(&target, Instant::now()),
            // Nothing is known about the target.
            Err(Failure::NotAllowed(_)) => {}
            _ => waits.succeeded(&target),
        }
        drop(waits);
        answer
    }
}
