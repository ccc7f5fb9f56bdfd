//! Making clusters, in virtual and in real time.

use std::sync::Arc;

use super::{Cluster, Environment, Snapshot};
use crate::authenticate::{MASTERS, Tokens, User};
use crate::environment::{
    Clock, Dial, InProcess, SeededEntropy, SystemClock, SystemEntropy, TokioClock,
};
use crate::server::InProcessService;
use crate::trace;

/// The moment at which virtual clusters begin.
const VIRTUAL_EPOCH: jiff::Timestamp = jiff::Timestamp::constant(1_767_225_600, 0);

/// What a cluster begins with.
#[derive(Debug)]
pub(super) enum Start {
    /// Nothing.
    Bare,
    /// The namespaces, roles and services of a fresh cluster.
    Fresh,
    /// The objects of another one.
    With(Snapshot),
}

/// What a fresh cluster is made of.
#[derive(Debug)]
pub struct Config {
    pub(super) name: String,
    pub(super) tokens: Tokens,
    pub(super) start: Start,
    pub(super) environment: Environment,
    /// How many records of the trace are kept.
    pub(super) trace: usize,
}

impl Config {
    /// A cluster whose ids come from `seed` and whose clock is tokio's, paused or not. It opens no socket: webhooks
    /// are services in the process, registered with `services`. Call it inside a tokio runtime.
    pub fn seeded(name: &str, seed: u64, services: Arc<InProcess>) -> Self {
        let entropy = Arc::new(SeededEntropy::new(seed));
        let environment = Environment {
            clock: Arc::new(TokioClock::starting_at(VIRTUAL_EPOCH)),
            entropy,
            dial: services,
        };
        Self {
            name: name.to_owned(),
            tokens: Tokens::new(u128::from(seed)),
            start: Start::Fresh,
            environment,
            trace: trace::KEPT,
        }
    }

    /// A cluster in real time, with ids that nobody can guess, whose webhooks are called by `dial`.
    pub fn real(name: &str, dial: Arc<dyn Dial>) -> std::io::Result<Self> {
        let entropy = Arc::new(SystemEntropy::new()?);
        let key = crate::environment::Entropy::draw(&*entropy);
        let environment = Environment {
            clock: Arc::new(SystemClock),
            entropy,
            dial,
        };
        Ok(Self {
            name: name.to_owned(),
            tokens: Tokens::new(key),
            start: Start::Fresh,
            environment,
            trace: trace::KEPT_IN_REAL_TIME,
        })
    }

    /// Lets a user in with this token.
    #[must_use]
    pub fn with_token(mut self, token: &str, user: User) -> Self {
        self.tokens.add(token, user);
        self
    }

    /// Lets a user in with this token who may do everything.
    #[must_use]
    pub fn with_admin(self, token: &str) -> Self {
        self.with_token(token, User::new("admin", &[MASTERS]))
    }

    /// Takes the time from this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.environment.clock = clock;
        self
    }

    /// Starts without the namespaces, roles and services of a fresh cluster.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.start = Start::Bare;
        self
    }

    /// Starts with the objects of another cluster.
    #[must_use]
    pub fn beginning_with(mut self, snapshot: &Snapshot) -> Self {
        self.start = Start::With(snapshot.clone());
        self
    }

    /// The cluster.
    pub fn build(self) -> Arc<Cluster> {
        Cluster::new(self)
    }
}

impl Cluster {
    /// The cluster as a `tower::Service`, for `kube::Client::new`. Requests without credentials get this token.
    pub fn service(self: &Arc<Self>, token: &str) -> InProcessService {
        InProcessService::new(self.clone(), Some(token))
    }
}
