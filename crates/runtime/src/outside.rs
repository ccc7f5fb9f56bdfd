//! Asks the world outside of the Kubernetes API.
//!
//! It promises, of whatever it is asked and whoever answers:
//! - a name is resolved once, every address that it has is checked ([`Rules`]), and a checked address is dialled; there is
//!   no proxy, and an answer that points elsewhere is followed only where the call says so, checked in the same way;
//! - heads, bodies and time are bounded, nothing is decompressed, and a call ends with an answer or a [`Failure`];
//! - only so many calls are under way, of which only some to one target, some for one namespace, and fewer for one namespace
//!   to one target; waiting is fair across namespaces, and across the keys of one;
//! - who cannot be reached at all is left alone for a while by everybody. What else is wrong, a namespace may have brought
//!   about itself (by the authorities or the query that it names), and only that namespace leaves the target alone;
//! - what is not wanted any more when its turn comes is not asked, and no Secret is read for it;
//! - values out of Secrets are put in here and nowhere else, and taken out of all that is kept of an answer.
//!
//! Nothing is tried twice: delivery is at least once because whoever asks asks again, with the same idempotency key.

mod clients;
mod dial;
mod exchange;
mod gate;
mod lines;
mod prepared;
mod redaction;
mod resolve;
mod secrets;
mod signature;
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
use crate::metrics::outgoing::{NONE, Outgoing};
use crate::settings::Backoff;
use dial::{Absent, Sockets};
use exchange::Way;
use gate::{Gate, Turn};
use lines::{Lines, Place};
use prepared::Prepared;
use waits::{Waits, left_alone};

pub use resolve::{Resolve, SystemResolver};
pub use secrets::{ApiSecrets, NoSecrets, Secrets, Use};
pub use transport::{Body, Manner, Transport};

/// A call to be made.
#[derive(Debug, Clone)]
pub struct Asked {
    /// On whose behalf; Secrets of its namespace may be used.
    pub key: Key,
    /// The question's name, the same however often it is asked.
    pub id: String,
    /// What is asked of whom.
    pub call: Call,
    /// Whether it still is to be asked when its turn comes.
    pub still: Still,
}

/// Says whether a call is wanted yet. Looked at when its turn has come, and before anybody is dialled.
#[derive(Clone)]
pub struct Still(Arc<dyn Fn() -> bool + Send + Sync>);

impl Still {
    /// As long as this says so.
    pub fn when(is_wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_wanted))
    }

    /// Whether it is wanted now.
    pub fn is_wanted(&self) -> bool {
        (self.0)()
    }
}

/// For as long as it takes.
impl Default for Still {
    fn default() -> Self {
        Self::when(|| true)
    }
}

impl std::fmt::Debug for Still {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Still").finish_non_exhaustive()
    }
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
    /// How many of them may be for one namespace.
    pub per_namespace: usize,
    /// How many of them may be for one namespace to one target: others have the rest of its places for themselves.
    pub per_share: usize,
    /// How long resolving a name and connecting may take; never more than half of what is left of a call's time.
    pub connecting: Duration,
    /// How long a call may take, whatever it says itself: who wants more asks again.
    pub longest: Duration,
    /// How long a target that cannot be reached is left alone.
    pub backoff: Backoff,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            at_once: 128,
            per_target: 16,
            per_namespace: 32,
            per_share: 12,
            connecting: Duration::from_secs(5),
            longest: Duration::from_mins(1),
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
    /// Whether what is in them may be sent without TLS.
    pub credentials_over_http: bool,
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
    /// The rules for who is asked on behalf of other clusters.
    for_others: Rules,
    transport: Arc<dyn Transport>,
    turns: AllTurns,
    /// Who cannot be reached by anybody.
    absent: Absent,
    /// Who is left alone by a namespace.
    waits: Mutex<Waits>,
    metrics: Outgoing,
}

/// The turns that a call needs, in this order. Whoever waits for a turn that others can take too holds only turns of their
/// own namespace, so that nobody waits behind somebody who waits for himself.
struct AllTurns {
    /// Of each namespace to each target.
    shares: Gate<Key>,
    /// Of each namespace.
    namespaces: Gate<Key>,
    /// Of each target.
    targets: Gate<Place>,
    /// Of all together.
    all: Gate<Place>,
}

/// All turns of one call. They end when it is dropped.
type HasTurn = (Turn<Key>, Turn<Key>, Turn<Place>, Turn<Place>);

impl AllTurns {
    fn new(limits: &Limits) -> Self {
        Self {
            shares: Gate::new(limits.per_share),
            namespaces: Gate::new(limits.per_namespace),
            targets: Gate::new(limits.per_target),
            all: Gate::new(limits.at_once),
        }
    }

    async fn turn(&self, key: &Key, lines: &Lines) -> HasTurn {
        let of_share = self.shares.turn(&lines.share, key.clone()).await;
        let of_namespace = self.namespaces.turn(&lines.namespace, key.clone()).await;
        let of_target = self.targets.turn(&lines.target, lines.place.clone()).await;
        let of_all = self.all.turn("", lines.place.clone()).await;
        (of_share, of_namespace, of_target, of_all)
    }
}

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}

impl Outside {
    /// Over sockets, as yet without connections. Calls need a tokio runtime with real time and I/O.
    pub fn new(terms: Terms) -> Self {
        let absent = Arc::new(Mutex::new(Waits::new(terms.limits.backoff)));
        let sockets = Sockets::new(&terms, absent.clone());
        Self::with(terms, Arc::new(sockets), absent)
    }

    /// Over something else: the same calls, bounds and waits, whoever carries requests to and fro.
    pub fn over(terms: Terms, transport: Arc<dyn Transport>) -> Self {
        let absent = Arc::new(Mutex::new(Waits::new(terms.limits.backoff)));
        Self::with(terms, transport, absent)
    }

    fn with(terms: Terms, transport: Arc<dyn Transport>, absent: Absent) -> Self {
        let secrets = terms.secrets.clone();
        let inner = Arc::new(Inner {
            for_others: Rules {
                for_others: true,
                ..terms.rules.clone()
            },
            transport,
            turns: AllTurns::new(&terms.limits),
            absent,
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
            let longest = inner.terms.limits.longest;
            let deadline = after(began, asked.call.timeout.min(longest));
            let checked = prepared::check(&asked, &inner.terms, inner.rules(&asked.key));
            let (host, answer) = if let Err(failure) = checked {
                (None, Err(failure))
            } else {
                let answer = inner.ask(&asked, secrets.as_ref(), deadline).await;
                (Some(prepared::label(&asked.call)), answer)
            };
            let answer = answer.map_err(Failure::shortened);
            let host = host.as_deref().unwrap_or(NONE);
            inner.metrics.asked(host, &answer, began.elapsed());
            answer
        })
    }
}

impl Inner {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rules(&self, key: &Key) -> &Rules {
        if key.cluster.is_local() {
            &self.terms.rules
        } else {
            &self.for_others
        }
    }

    /// How long somebody is to be left alone, by everybody or by this namespace.
    fn wait(&self, lines: &Lines) -> Option<(u32, Duration)> {
        let now = Instant::now();
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        let by_all = lines.host.as_ref().and_then(|at| absent.left(at, now));
        drop(absent);
        by_all.or_else(|| self.waits().left(&lines.wait, now))
    }

    /// Makes a call when it is its turn, unless its target is to be left alone.
    async fn ask(&self, asked: &Asked, secrets: &dyn Secrets, deadline: Instant) -> Answer {
        let lines = Lines::of(&asked.key, &asked.call);
        if let Some(wait) = self.wait(&lines) {
            return Err(Failure::Unreachable(left_alone(wait)));
        }
        let turn = timeout_at(deadline, self.turns.turn(&asked.key, &lines));
        let Ok(_turn) = turn.await else {
            return Err(Failure::Timeout(Waiting::Turn));
        };
        if !asked.still.is_wanted() {
            let why = "nobody wants to know it any more".to_owned();
            return Err(Failure::NotAllowed(why));
        }
        // Those who came before may have found out meanwhile that nobody is there.
        if let Some(wait) = self.wait(&lines) {
            return Err(Failure::Unreachable(left_alone(wait)));
        }
        let rules = self.rules(&asked.key);
        let prepared = timeout_at(
            deadline,
            prepared::prepare(asked, &self.terms, rules, secrets),
        );
        let prepared = prepared.await;
        let prepared = prepared.unwrap_or(Err(Failure::Timeout(Waiting::Answer)))?;
        let answer = self.make(asked, &prepared, deadline, &lines).await;
        prepared.redaction.of_answer(answer)
    }

    /// Makes a call, and remembers what that says of its target.
    async fn make(
        &self,
        asked: &Asked,
        prepared: &Prepared,
        deadline: Instant,
        lines: &Lines,
    ) -> Answer {
        let way = Way {
            transport: self.transport.as_ref(),
            rules: self.rules(&asked.key),
            connecting: self.terms.limits.connecting,
            deadline,
        };
        let mut followed = 0;
        let exchange = exchange::make(asked, prepared, &way, &mut followed);
        let answer = timeout_at(deadline, exchange).await;
        let answer = answer.unwrap_or(Err(Failure::Timeout(Waiting::Answer)));
        let mut waits = self.waits();
        match &answer {
            // It has pointed elsewhere, and so it is there. What became of that is not its fault.
            _ if followed > 0 => waits.succeeded(&lines.wait),
            Err(failure) if failure.is_of_target() => {
                waits.failed(&lines.wait, Instant::now());
            }
            // Nothing is known about the target.
            Err(Failure::NotAllowed(_) | Failure::Timeout(_)) => {}
            _ => waits.succeeded(&lines.wait),
        }
        drop(waits);
        answer
    }
}
