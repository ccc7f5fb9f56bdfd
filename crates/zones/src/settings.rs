//! What the person who runs the operator decides about zones. The default is what the original does.

use std::time::Duration;

use slipway_api::zones;
use slipway_kernel::Facts;
use slipway_kernel::fact::Right;

/// All settings of zones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The DNS domain of the cluster, as pods are addressed in it.
    pub cluster_domain: String,
    /// The `ConfigMap` that tells when each zone was last scaled down.
    pub tracker: &'static str,
    /// How often the scale of a mirrored resource is asked for: nobody tells when it changes.
    pub poll: Duration,
    /// How often a pod that waits for its downscale is asked to prepare.
    pub prepare_every: Duration,
    /// How often a group is looked at although nothing has changed; also how often preparations are called off anew.
    pub heartbeat: Duration,
    /// How long a pod or the API has to answer a question.
    pub question_timeout: Duration,
    /// For how long a zone is claimed at a time.
    pub claim: Duration,
    /// Which webhook configurations are told about, as a label selector; none where no webhooks are served.
    pub webhooks: Option<String>,
    /// Whether there may be other replicas.
    pub replicas: Replicas,
}

/// Whether there may be other replicas: then what one lets go has to be noted where the others look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replicas {
    /// There may be.
    #[default]
    Several,
    /// Not where there is no right to the Lease by which they would agree on who acts: as the original is run.
    OneWithoutLease,
    /// There is one, by the word of whoever started it.
    One,
}

impl Replicas {
    /// Whether a replica that acts is known to be the only one.
    pub fn is_one(self, facts: &Facts) -> bool {
        match self {
            Self::Several => false,
            Self::OneWithoutLease => {
                let mut missing = facts.missing.iter();
                missing.any(|one| one.right == Right::Lead(zones::LEASE.to_owned()))
            }
            Self::One => true,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster_domain: "cluster.local.".to_owned(),
            tracker: zones::ZONE_TRACKER,
            poll: Duration::from_secs(5),
            prepare_every: Duration::from_secs(30),
            heartbeat: Duration::from_mins(5),
            question_timeout: Duration::from_secs(5),
            claim: Duration::from_mins(10),
            webhooks: None,
            replicas: Replicas::default(),
        }
    }
}
