//! What the person who runs the operator decides about zones. The default is what the original does.

use std::time::Duration;

use slipway_api::zones;

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
        }
    }
}
