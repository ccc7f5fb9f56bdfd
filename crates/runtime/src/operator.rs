//! An operator: capabilities, run against a cluster.

use std::sync::Arc;

use slipway_kernel::capability::Capability;
use slipway_kernel::identity::ClusterId;

use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::Error;
use crate::gather::{Gather, Nobody};
use crate::settings::Settings;
use crate::state::Shared;
use crate::view::View;

/// One replica of the operator.
pub struct Operator {
    client: kube::Client,
    gatherer: Arc<dyn Gather>,
    shared: Arc<Shared>,
}

impl Operator {
    /// An operator without capabilities. Build the client without retries: they are decided here.
    pub fn new(environment: Environment, client: kube::Client, settings: Settings) -> Self {
        Self {
            client,
            gatherer: Arc::new(Nobody),
            shared: Arc::new(Shared::new(environment, settings)),
        }
    }

    /// The same with one capability more.
    #[must_use]
    pub fn with(self, capability: Arc<dyn Capability>) -> Self {
        if let Some(passes) = capability.passes() {
            let namespaced = self.shared.settings.namespaces.len() != 1;
            let metrics = &self.shared.metrics;
            metrics.show_passes(capability.name(), passes, namespaced);
        }
        self.shared.lock().capabilities.push(capability);
        self
    }

    /// The same with somebody who answers questions.
    #[must_use]
    pub fn gathering(mut self, gatherer: Arc<dyn Gather>) -> Self {
        self.gatherer = gatherer;
        self
    }

    /// What others may see while it runs.
    pub fn view(&self) -> View {
        View::new(self.shared.clone())
    }

    /// Runs until `stop`, then ends in good order: no new steps, answers awaited, leases released.
    ///
    /// Everything happens in this one future: whoever does not poll it pauses the replica, and dropping it is a crash.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let capabilities = self.shared.lock().capabilities.clone();
        let mut engine = Engine::new(self.shared, self.gatherer, capabilities)?;
        engine.add_cluster(&ClusterId::local(), &self.client);
        engine.elect(&self.client);
        // The engine is large; whoever awaits this should not have to carry it around.
        Box::pin(engine.run(self.client, stop)).await;
        Ok(())
    }
}
