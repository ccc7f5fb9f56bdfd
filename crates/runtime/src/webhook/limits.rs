//! How large a request may be, and how long it may take.

use std::time::Duration;

use slipway_kernel::duration;

/// The limits of a replica's webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long the caller waits: at most this, or less if its request says so. Answers come within nine tenths of it.
    pub request_timeout: Duration,
    /// How large a body may be. A review holds an object twice, and the API server takes objects of up to 3 MiB.
    pub body_bytes: usize,
    /// How many connections may be open. Who comes when all are takes the place of the one that has been idle for longest,
    /// or waits while none is.
    pub connections: usize,
    /// How long a connection may be open without a request.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(10),
            body_bytes: 8 << 20,
            connections: 1_024,
            idle: Duration::from_mins(2),
        }
    }
}

impl Limits {
    /// How long a review may take, by the query of its request (`timeout=10s`).
    pub(super) fn patience(&self, query: Option<&str>) -> Duration {
        let named = query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .find_map(|pair| pair.strip_prefix("timeout="))
            .and_then(|text| duration::parse(text).ok())
            .filter(|named| !named.is_zero());
        let whole = named.map_or(self.request_timeout, |named| {
            named.min(self.request_timeout)
        });
        whole / 10 * 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_has_nine_tenths_of_what_its_caller_waits_w6() {
        let limits = Limits::default();
        let millis = |query| limits.patience(query).as_millis();
        assert_eq!(millis(None), 9_000);
        assert_eq!(millis(Some("timeout=5s")), 4_500);
        assert_eq!(millis(Some("dryRun=All&timeout=500ms")), 450);
        assert_eq!(millis(Some("timeout=30s")), 9_000, "never more than ours");
        for nonsense in ["timeout=", "timeout=0s", "timeout=-5s", "timeout=x", "&&"] {
            assert_eq!(millis(Some(nonsense)), 9_000, "{nonsense}");
        }
    }
}
