//! How API servers are spoken with, ours and those of members alike.

use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;

/// What every client of an API server has in common: nothing is tried again by the client, because whether something is
/// tried again is decided by who asked for it; connecting and writing take no longer than a request may; requests say
/// whose they are.
#[derive(Debug, Clone)]
pub struct Link {
    /// How long a request may take.
    pub request_timeout: Duration,
    /// What we call ourselves.
    pub agent: &'static str,
}

impl Link {
    /// Makes a client's settings so. Watches have their own deadlines, and requests are limited by the operator: reading is
    /// not limited here.
    pub fn apply(&self, config: &mut kube::Config) {
        config.default_retry = false;
        config.connect_timeout = Some(self.request_timeout);
        config.write_timeout = Some(self.request_timeout);
        let agent = HeaderValue::from_static(self.agent);
        config.headers.push((USER_AGENT, agent));
    }
}
