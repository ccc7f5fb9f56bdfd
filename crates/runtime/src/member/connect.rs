//! Reaches members by the kubeconfigs that their Secrets hold.

use slipway_kernel::address::AllowedHosts;
use slipway_kernel::member::Member;

use super::Kubeconfig;
use crate::channel::Channel;
use crate::connect::{Connect, Unconnected};
use crate::link::Link;

/// Makes a way out of a strict kubeconfig, if its API server is one that may be called.
#[derive(Debug, Clone)]
pub struct ByKubeconfig {
    allowed: AllowedHosts,
    link: Link,
}

impl ByKubeconfig {
    /// Calls these hosts, in this way.
    pub fn new(allowed: AllowedHosts, link: Link) -> Self {
        Self { allowed, link }
    }
}

impl Connect for ByKubeconfig {
    fn connect(&self, _: &Member, credentials: &[u8]) -> Result<Channel, Unconnected> {
        // Neither error has anything in it that is secret.
        let kubeconfig = Kubeconfig::parse(credentials, &self.allowed)
            .map_err(|error| Unconnected(error.to_string()))?;
        let channel = kubeconfig.channel(&self.link);
        channel.map_err(|error| Unconnected(error.to_string()))
    }
}
