//! What the person who runs the operator decides about restarts. By default nothing is restarted that no Flipper of its
//! own namespace asks for; [`Settings::drop_in`] is what the original does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The interval of the default criteria, and of a policy that names none.
pub const DEFAULT_INTERVAL: Duration = Duration::from_mins(10);

/// Stamps are whole seconds, so nothing can be restarted more often than this.
pub const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Where a cluster's own parts run: protected unless somebody says otherwise.
pub const SYSTEM_NAMESPACE: &str = "kube-system";

/// Which workloads a Flipper can reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of every namespace, as designed.
    Cluster,
    /// Those of its own namespace only.
    #[default]
    OwnNamespace,
}

/// What is restarted while there is no Flipper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultCriteria {
    /// At least one of these labels; empty for any.
    pub labels: BTreeMap<String, String>,
    /// One of these namespaces; empty for any.
    pub namespaces: BTreeSet<String>,
    /// How often.
    pub interval: Duration,
}

impl Default for DefaultCriteria {
    fn default() -> Self {
        Self {
            labels: BTreeMap::from([("mesh".to_owned(), "true".to_owned())]),
            namespaces: BTreeSet::new(),
            interval: DEFAULT_INTERVAL,
        }
    }
}

/// All settings of restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What is restarted while there is no Flipper; none switches that off.
    pub default_criteria: Option<DefaultCriteria>,
    /// Which workloads a Flipper can reach.
    pub scope: Scope,
    /// Namespaces that are left alone unless a policy names them.
    pub protected_namespaces: BTreeSet<String>,
    /// The operator's own Deployment (namespace, name), which it never restarts.
    pub own_deployment: Option<(String, String)>,
    /// Where the `ConfigMap` with the status of the default criteria is; none switches it off.
    pub operator_namespace: Option<String>,
    /// Shorter intervals are raised to this.
    pub floor: Duration,
    /// How many workloads may be rolling at once, over all policies.
    pub max_concurrent: Option<usize>,
    /// Leave workloads alone that another controller owns.
    pub skip_controlled: bool,
}

impl Settings {
    /// What the original does: Flippers reach every namespace, and the default criteria act while there is none.
    pub fn drop_in() -> Self {
        Self {
            default_criteria: Some(DefaultCriteria::default()),
            scope: Scope::Cluster,
            protected_namespaces: BTreeSet::new(),
            ..Self::default()
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_criteria: None,
            scope: Scope::default(),
            protected_namespaces: BTreeSet::from([SYSTEM_NAMESPACE.to_owned()]),
            own_deployment: None,
            operator_namespace: None,
            floor: SHORTEST_INTERVAL,
            max_concurrent: None,
            skip_controlled: false,
        }
    }
}
