//! The certificate of the webhook server: made, kept in a Secret or read from files, renewed and swapped while serving.
//!
//! It promises: no handshake fails because a certificate is replaced; replicas that share a Secret agree on one pair;
//! a new certificate is shown only after the webhook configurations trust its CA (or when the old one is about to end);
//! what cannot be read, written or injected is told and tried again, and the last good certificate stays. Expiry ends
//! nothing. It does not serve: [`Certificates::server_config`] is for whoever does.
//!
//! ```text
//! Secret ca, cert, key (+ ca-previous) ─► bundle = ca + ca-previous ─► webhooks[].clientConfig.caBundle
//!                    └──────────── shown when the bundle is everywhere ────────────► handshakes
//! ```

mod callers;
mod error;
mod files;
mod inject;
mod issue;
mod pair;
mod rotation;
mod secret;
mod served;
mod validity;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::environment::Environment;
use crate::settings::Backoff;
use crate::state::Shared;
use crate::view::View;
use callers::Callers;
pub use error::{Error, Problem};
use files::Watched;
pub(crate) use pair::{Pair, certificates};
use rotation::Rotation;
use served::Served;

/// Between looks at the Secret and the webhook configurations.
const EVERY: Duration = Duration::from_secs(10);
/// The same while a new certificate waits to be shown.
const EVERY_WHILE_WAITING: Duration = Duration::from_secs(2);
/// Between looks at files.
const FILES_EVERY: Duration = Duration::from_secs(5);
/// After failures.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_mins(1),
};

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// We make it, and keep it in a Secret.
    SelfSigned(SelfSigned),
    /// Somebody else puts it into files.
    Files(Files),
}

/// A certificate of our own making.
#[derive(Debug, Clone)]
pub struct SelfSigned {
    /// Where the Secret is.
    pub namespace: String,
    /// Its name.
    pub secret: String,
    /// The DNS names that the certificate must be good for; the first one is checked by clients of the original.
    pub names: Vec<String>,
    /// Whom it is said to be of, beside the names that clients check.
    pub common_name: String,
    /// Who is said to have made it.
    pub organisation: String,
    /// From the making to the end.
    pub lifetime: Duration,
    /// Which webhook configurations get the CA; none for none.
    pub inject: Option<Injection>,
}

/// Which webhook configurations are looked at for webhooks that get the CA: those that are called by a name that the
/// certificate is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// As a label selector.
    pub selector: String,
}

/// Files in PEM.
#[derive(Debug, Clone)]
pub struct Files {
    /// The certificate, and those between it and the CA.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Nothing special.
    Steady,
    /// A certificate waits to be shown.
    Waiting,
    /// Something failed, and is tried again.
    Failed,
}

enum Keeper {
    SelfSigned(Box<Rotation>),
    Files(Watched),
}

/// The certificate that is shown now, and whoever sees to it. Clones are the same one.
#[derive(Clone)]
pub struct Certificates {
    environment: Environment,
    served: Arc<Served>,
    keeper: Arc<Mutex<Keeper>>,
    callers: Option<Arc<Callers>>,
    config: Arc<rustls::ServerConfig>,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Nothing is read or written before [`Certificates::prepare`]. A client is needed for [`Source::SelfSigned`]; the
    /// view's metrics show what could not be done, and it is not ready before there is a certificate.
    pub fn new(
        source: Source,
        environment: Environment,
        client: Option<kube::Client>,
        view: Option<&View>,
    ) -> Self {
        let shared: Option<Arc<Shared>> = view.map(View::shared);
        if let Some(shared) = &shared {
            shared.lock().certificate_needed = true;
        }
        let served = Arc::new(Served::new(shared.clone()));
        let keeper = match source {
            Source::SelfSigned(wanted) => Keeper::SelfSigned(Box::new(Rotation::new(
                wanted,
                environment.clone(),
                client,
                served.clone(),
                shared,
            ))),
            Source::Files(files) => Keeper::Files(Watched::new(files, served.clone())),
        };
        Self {
            environment,
            config: served::config(&served, None),
            served,
            keeper: Arc::new(Mutex::new(keeper)),
            callers: None,
        }
    }

    /// The same, but only clients with a certificate of a CA in this file get through a handshake.
    #[must_use]
    pub fn only_for(mut self, ca: PathBuf) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let callers = Arc::new(Callers::new(ca, provider));
        self.config = served::config(&self.served, Some(&callers));
        self.callers = Some(callers);
        self
    }

    /// How a TLS server that offers HTTP/2 and HTTP/1.1 shows the certificate of the moment.
    pub fn server_config(&self) -> Arc<rustls::ServerConfig> {
        self.config.clone()
    }

    /// When the certificate that is shown now ends; none before the first one.
    pub fn ends(&self) -> Option<Timestamp> {
        self.served.end()
    }

    /// Loads or makes the first certificate, and has its CA trusted. Before this no handshake succeeds.
    pub async fn prepare(&self) -> Result<(), Error> {
        if let Some(callers) = &self.callers {
            callers.load()?;
        }
        match &mut *self.keeper.lock().await {
            Keeper::SelfSigned(rotation) => rotation.prepare().await,
            Keeper::Files(watched) => watched.prepare(self.environment.now()),
        }
    }

    /// Renews, swaps and injects until `stop`. Never ends by itself: what fails is told and tried again.
    pub async fn keep(&self, stop: impl Future<Output = ()> + Send) {
        let mut stop = std::pin::pin!(stop);
        let mut failures = 0;
        loop {
            if let Some(callers) = &self.callers {
                callers.turn();
            }
            let turn = async {
                match &mut *self.keeper.lock().await {
                    Keeper::SelfSigned(rotation) => (rotation.turn().await, EVERY),
                    Keeper::Files(watched) => (watched.turn(self.environment.now()), FILES_EVERY),
                }
            };
            let (pace, steady) = tokio::select! {
                biased;
                () = &mut stop => return,
                ended = turn => ended,
            };
            let wait = match pace {
                Pace::Steady => steady,
                Pace::Waiting => EVERY_WHILE_WAITING,
                Pace::Failed => BACKOFF.after(failures + 1),
            };
            failures = match pace {
                Pace::Failed => failures.saturating_add(1),
                Pace::Steady | Pace::Waiting => 0,
            };
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = self.environment.sleep(wait) => {}
            }
        }
    }
}
