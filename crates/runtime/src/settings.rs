//! What an operator is told when it starts.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use slipway_kernel::identity::ClusterId;

use crate::error::Error;
use crate::watch::SILENCE;

/// How one replica of the operator runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// This replica's identity, as Leases and events show it.
    pub replica: String,
    /// The address of the API server, as log lines name it; empty if there is none.
    pub server: String,
    /// The operator's own namespace: Leases and its `ConfigMap`s are there.
    pub namespace: String,
    /// The namespaces that are watched; empty for all.
    pub namespaces: Vec<String>,
    /// How replicas agree on who acts; none if there is only one.
    pub election: Option<Election>,
    /// After this time a request without an answer is given up.
    pub request_timeout: Duration,
    /// At most one status write per object in this time, except when a condition changes its status.
    pub status_every: Duration,
    /// Writes in flight per cluster.
    pub concurrency: usize,
    /// How long to wait after failures.
    pub backoff: Backoff,
    /// Everything is looked at again after this time, whether or not anything has changed.
    pub heartbeat: Duration,
    /// Changes within this time become one plan.
    pub debounce: Duration,
    /// Kinds that may be listed but not watched are listed this often.
    pub poll: Duration,
    /// Everything is listed again after this time, in case a watch has lost an event.
    pub relist: Duration,
    /// While a watch at home says nothing, the API is asked this often whether it still answers about that kind.
    pub silence: Duration,
    /// How other clusters are looked at.
    pub members: Members,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            replica: "slipway-0".to_owned(),
            server: String::new(),
            namespace: "slipway-system".to_owned(),
            namespaces: Vec::new(),
            election: Some(Election::default()),
            request_timeout: Duration::from_secs(10),
            status_every: Duration::from_secs(5),
            concurrency: 16,
            backoff: Backoff::default(),
            heartbeat: Duration::from_mins(5),
            debounce: Duration::from_millis(30),
            poll: Duration::from_secs(5),
            relist: Duration::from_mins(30),
            silence: SILENCE,
            members: Members::default(),
        }
    }
}

impl Settings {
    /// After how long everything of a cluster is listed again. Members differ by their names, a quarter more or less: those that
    /// came at once are not listed at once for ever.
    pub(crate) fn relist_of(&self, cluster: &ClusterId) -> Duration {
        if cluster.is_local() {
            return self.relist;
        }
        let mut name = DefaultHasher::new();
        cluster.as_str().hash(&mut name);
        let part = u32::try_from(name.finish() % 500).unwrap_or_default();
        self.relist.saturating_mul(750 + part) / 1_000
    }

    /// How many objects of a kind are taken in of a cluster; 0 for all that there are.
    pub(crate) fn bound_of(&self, cluster: &ClusterId) -> usize {
        if cluster.is_local() {
            return 0;
        }
        self.members.objects
    }
}

/// How clusters are looked at besides the one that the operator runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// How those are looked at where nothing is under way.
    pub quiet: Quiet,
    /// A member is asked this often whether it answers and which cluster it is, a little more or less; one that does not
    /// answer more often.
    pub check: Duration,
    /// So many members have metrics of their own; of all they are counted by state.
    pub series: usize,
    /// So many objects of a kind are taken in of a member, and 2.5 KB for each in one list. Where there is more, it is not known, and
    /// nothing is done there that needs it.
    pub objects: usize,
}

/// How members are looked at where nothing is under way ([`slipway_kernel::member::Attention`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// As closely as the others: one open watch for each kind, over one connection.
    Watch,
    /// By a list of each kind, this often, a little more or less. Nothing is open in between, and changes are seen as late.
    Read {
        /// How often.
        every: Duration,
    },
}

impl Default for Members {
    fn default() -> Self {
        Self {
            quiet: Quiet::Watch,
            check: Duration::from_secs(30),
            series: 1_000,
            objects: 100_000,
        }
    }
}

impl Members {
    /// What would ask members without a pause is refused.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refused = |field| {
            Err(Error::Settings {
                field,
                problem: "must be longer than nothing, or members would be asked all the time"
                    .to_owned(),
            })
        };
        match self.quiet {
            _ if self.objects == 0 => Err(Error::Settings {
                field: "members.objects",
                problem: "must be more than none, or nothing of members would be known".to_owned(),
            }),
            _ if self.check.is_zero() => refused("members.check"),
            Quiet::Read { every } if every.is_zero() => refused("members.quiet"),
            Quiet::Watch | Quiet::Read { .. } => Ok(()),
        }
    }
}

/// The times of a leader election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    /// How long others wait after the last renewal that they have seen.
    pub lease_duration: Duration,
    /// How long a leader acts after its last successful renewal; less than `lease_duration`.
    pub renew_deadline: Duration,
    /// Between two attempts.
    pub retry_period: Duration,
    /// How far clocks may run apart within the other times.
    pub skew: Duration,
    /// What a replica does that may not use the Lease.
    pub without_lease: WithoutLease,
}

/// What a replica does that has been kept from the Lease for as long as a lease lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WithoutLease {
    /// It does everything but act, and says so: another one may be there.
    #[default]
    Wait,
    /// Where the right to it is missing, it acts: whoever chose this runs one replica.
    Alone,
}

impl Default for Election {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            skew: Duration::from_secs(2),
            without_lease: WithoutLease::default(),
        }
    }
}

/// How long to wait after the n-th failure in a row: doubling, without jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first one.
    pub first: Duration,
    /// At most.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            most: Duration::from_mins(5),
        }
    }
}

impl Backoff {
    /// The wait after `attempts` failures in a row, counted from 1.
    pub fn after(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn back_off_doubles_to_its_cap_and_stays_there() {
        let backoff = Backoff::default();
        let waits: Vec<u64> = (0..12).map(|n| backoff.after(n).as_secs()).collect();
        assert_eq!(waits, [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.after(u32::MAX), backoff.most);
    }

    #[test]
    fn members_are_listed_again_at_different_times_and_home_when_it_was_said() {
        let settings = Settings::default();
        let relist = settings.relist;
        assert_eq!(settings.relist_of(&ClusterId::local()), relist);
        let times: BTreeSet<Duration> = (0..100)
            .map(|n| settings.relist_of(&ClusterId::remote(&format!("member-{n}"))))
            .collect();
        assert!(times.len() > 50, "{times:?}");
        let range = relist * 3 / 4..=relist * 5 / 4;
        assert!(times.iter().all(|time| range.contains(time)), "{times:?}");
    }

    #[test]
    fn members_are_not_asked_all_the_time() {
        let none = Duration::ZERO;
        let usual = Members::default();
        assert!(usual.check().is_ok());
        let every = |every| Members {
            quiet: Quiet::Read { every },
            ..usual.clone()
        };
        assert!(every(Duration::from_secs(1)).check().is_ok());
        assert!(every(none).check().is_err());
        let check = Members {
            check: none,
            ..usual.clone()
        };
        assert!(check.check().is_err());
        let objects = Members {
            objects: 0,
            ..usual.clone()
        };
        assert!(objects.check().is_err());
    }
}
