//! An operator: capabilities, run against a cluster.

use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use slipway_kernel::admission::Admit;
use slipway_kernel::capability::Controller;
use tokio::sync::mpsc;

use crate::connect::{Connect, Nowhere};
use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::Error;
use crate::gather::{Gather, Nobody};
use crate::message::Message;
use crate::metrics::client::measured;
use crate::request_filter::RequestFilter;
use crate::settings::Settings;
use crate::state::Shared;
use crate::view::View;
use crate::webhook::{Admissions, Limits};

/// One replica of the operator.
pub struct Operator {
    client: kube::Client,
    gatherer: Arc<dyn Gather>,
    connect: Arc<dyn Connect>,
    shared: Arc<Shared>,
    hooks: Vec<Arc<dyn Admit>>,
    limits: Limits,
    guests: BoxFuture<'static, ()>,
    sender: mpsc::UnboundedSender<Message>,
    inbox: mpsc::UnboundedReceiver<Message>,
}

impl Operator {
    /// An operator without capabilities. Build the client without retries: they are decided here.
    pub fn new(environment: Environment, client: kube::Client, settings: Settings) -> Self {
        let (sender, inbox) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(environment, settings));
        Self {
            client: measured(client, &shared),
            gatherer: Arc::new(Nobody),
            connect: Arc::new(Nowhere),
            shared,
            hooks: Vec::new(),
            limits: Limits::default(),
            guests: Box::pin(ready(())),
            sender,
            inbox,
        }
    }

    /// The same with one capability more.
    #[must_use]
    pub fn with(self, capability: Arc<dyn Controller>) -> Self {
        if let Some(passes) = capability.passes() {
            let namespaced = self.shared.settings.namespaces.len() != 1;
            let metrics = &self.shared.metrics;
            metrics.show_passes(capability.name(), passes, namespaced);
        }
        self.shared.lock().capabilities.push(capability);
        self
    }

    /// The same with webhooks, each at its own path; see [`Operator::admissions`].
    #[must_use]
    pub fn admitting(mut self, hooks: Vec<Arc<dyn Admit>>) -> Self {
        self.hooks.extend(hooks);
        self
    }

    /// The same with other limits for its webhooks.
    #[must_use]
    pub fn limited(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same with somebody who answers questions, of plans and of webhooks.
    #[must_use]
    pub fn gathering(mut self, gatherer: Arc<dyn Gather>) -> Self {
        self.shared.metrics.show_also(gatherer.as_ref());
        self.gatherer = gatherer;
        self
    }

    /// The same with somebody who reaches the clusters that its capabilities name.
    #[must_use]
    pub fn connecting(mut self, connect: Arc<dyn Connect>) -> Self {
        self.connect = connect;
        self
    }

    /// The same, but after it was told to end, and has given up its leases, it goes on watching, and undoing what webhooks
    /// leave to be undone, until this is over: as long as they are served. It is not ready meanwhile.
    #[must_use]
    pub fn outlasting(mut self, guests: impl Future<Output = ()> + Send + 'static) -> Self {
        self.guests = Box::pin(guests);
        self
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The same with somebody who looks at requests, to probes and to webhooks, before they are answered.
    #[must_use]
    pub fn with_request_filter(self, filter: Arc<dyn RequestFilter>) -> Self {
        // A second one would have come too late for requests that are under way.
        let _ = self.shared.request_filter.set(filter);
        self
    }

    /// The client that it was given, measured for its metrics: for whoever asks the API on its behalf.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// What others may see while it runs.
    pub fn view(&self) -> View {
        View::new(self.shared.clone())
    }

    /// The webhooks of this replica, to be served. They ask whoever was named last with [`Operator::gathering`]; what
    /// is left to be undone after an answer is done by [`Operator::run`].
    pub fn admissions(&self) -> Admissions {
        Admissions::new(
            self.shared.clone(),
            self.client.clone(),
            self.gatherer.clone(),
            self.sender.clone(),
            self.hooks.clone(),
            self.limits,
        )
    }

    /// Runs until `stop`, then ends in good order: no new steps, answers awaited, leases released.
    ///
    /// Everything happens in this one future: whoever does not poll it pauses the replica, and dropping it is a crash.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let capabilities = self.shared.lock().capabilities.clone();
        let mut engine = Engine::new(
            self.shared,
            (self.gatherer, self.connect),
            (self.sender, self.inbox),
            capabilities,
        )?;
        engine.add_home(&self.client);
        engine.elect(&self.client);
        // The engine is large; whoever awaits this should not have to carry it around.
        Box::pin(engine.run(self.client, stop, self.guests)).await;
        Ok(())
    }
}
