//! What is done one after the other.

use std::fmt;
use std::sync::Arc;

use slipway_kernel::capability::Lane;
use slipway_kernel::identity::{ClusterId, Key};

/// What one controller does in one cluster.
pub(crate) type Post = (ClusterId, &'static str);

/// Whose work a key is.
pub(crate) fn post(key: &Key) -> Post {
    (key.cluster.clone(), key.controller)
}

/// What is done one after the other: part of what one controller does in one cluster, or all of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneId {
    pub(crate) cluster: ClusterId,
    pub(crate) controller: &'static str,
    part: Part,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    All,
    Group(String),
    Key(String, String),
}

impl LaneId {
    /// The lane of a key that shares this.
    pub(crate) fn new(key: &Key, lane: Lane) -> Self {
        let part = match lane {
            Lane::Cluster => Part::All,
            Lane::Group(group) => Part::Group(group),
            Lane::Key => Part::Key(key.namespace.clone(), key.name.clone()),
        };
        Self {
            cluster: key.cluster.clone(),
            controller: key.controller,
            part,
        }
    }

    /// The first of all lanes of a controller in a cluster.
    pub(super) fn first((cluster, controller): &Post) -> Self {
        Self {
            cluster: cluster.clone(),
            controller: *controller,
            part: Part::All,
        }
    }

    pub(super) fn is_of(&self, (cluster, controller): &Post) -> bool {
        self.cluster == *cluster && self.controller == *controller
    }
}

/// What a key shares with others.
#[derive(Clone)]
pub(crate) struct Sharing(Arc<dyn Fn(&Key) -> Lane + Send + Sync>);

impl Sharing {
    pub(crate) fn new(of: impl Fn(&Key) -> Lane + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// The lane of a key.
    pub(crate) fn lane(&self, key: &Key) -> LaneId {
        LaneId::new(key, (self.0)(key))
    }
}

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing").finish_non_exhaustive()
    }
}
