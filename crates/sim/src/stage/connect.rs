//! The ways of one replica to the clusters of a stage. Each is a wire of its own, so that what goes wrong on it is known by
//! replica and cluster.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use slipway_apiserver::environment::Clock;
use slipway_kernel::member::Member;
use slipway_runtime::Channel;
use slipway_runtime::connect::{Connect, Unconnected};

use super::setup::{Feign, Tamper};
use crate::fault::Adversary;
use crate::replica::Replica;
use crate::wire::{Address, Weather, Wire};

/// What all wires of a replica have in common.
pub(super) struct Sockets {
    pub(super) agent: String,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) replica: Arc<Replica>,
    pub(super) adversary: Arc<Mutex<Adversary>>,
    pub(super) tamper: Option<Tamper>,
    pub(super) feign: Option<Feign>,
    pub(super) weather: Arc<Weather>,
    pub(super) index: u32,
    pub(super) relist: Duration,
    pub(super) namespace: String,
    /// What it shows where it runs.
    pub(super) token: String,
}

impl Sockets {
    /// The way home.
    pub(super) fn home(&self, address: &Arc<Address>) -> Client {
        self.client(address, &self.token, None)
    }

    fn client(
        &self,
        address: &Arc<Address>,
        token: &str,
        bottleneck: Option<Arc<tokio::sync::Mutex<()>>>,
    ) -> Client {
        let wire = Wire {
            port: address.port(),
            address: address.clone(),
            token: token.to_owned(),
            agent: self.agent.clone(),
            clock: self.clock.clone(),
            replica: self.replica.clone(),
            adversary: self.adversary.clone(),
            tamper: self.tamper,
            feign: self.feign,
            weather: self.weather.clone(),
            index: self.index,
            relist: self.relist,
            bottleneck,
            is_within: !address.name.is_local() && token == self.token,
        };
        Client::new(wire, &self.namespace)
    }
}

/// Connects one replica to the clusters besides home, by what their Secrets say: `NAME TOKEN`. Which cluster is reached is the
/// Secret's word, as it is outside of a simulation, and not that of the object that names it.
pub(super) struct Anchorage {
    sockets: Sockets,
    addresses: Vec<Arc<Address>>,
    bottleneck: Option<Arc<tokio::sync::Mutex<()>>>,
}

impl Anchorage {
    /// Ways to all clusters but the first of these. Where it `is_narrow` requests go one after the other.
    pub(super) fn new(sockets: Sockets, addresses: &[Arc<Address>], is_narrow: bool) -> Self {
        Self {
            sockets,
            addresses: addresses.iter().skip(1).cloned().collect(),
            bottleneck: is_narrow.then(Arc::default),
        }
    }
}

impl Connect for Anchorage {
    fn connect(&self, member: &Member, credentials: &[u8]) -> Result<Channel, Unconnected> {
        let said = std::str::from_utf8(credentials).ok();
        let said = said.and_then(|text| text.trim().split_once(' '));
        let Some((name, token)) = said else {
            let cluster = &member.cluster;
            return Err(Unconnected(format!(
                "the credentials of {cluster} are not of the form `NAME TOKEN`"
            )));
        };
        let mut all = self.addresses.iter();
        let Some(address) = all.find(|address| address.name.as_str() == name) else {
            return Err(Unconnected(format!("there is no cluster {name}")));
        };
        let bottleneck = self.bottleneck.clone();
        Ok(self
            .sockets
            .client(address, token.trim(), bottleneck)
            .into())
    }
}
