//! What runs begin with.

use std::sync::Arc;

use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::store;

use super::{Image, Object};

/// What there is in a cluster when runs begin, in the order of its versions. Runs that begin with one snapshot share it, so that each of
/// these objects is decoded once, and not in every run.
#[derive(Debug, Clone)]
pub struct Beginning(pub(super) Arc<Vec<(u64, Object, Arc<Image>)>>);

impl Beginning {
    /// What there is in a cluster now.
    pub fn of(cluster: &Cluster) -> Self {
        let (mut objects, _) = cluster.everything();
        objects.sort_by_key(|(_, object)| object.version);
        let all = objects.into_iter().map(|(resource, stored)| {
            let object = named(&resource, &stored);
            (stored.version, object, Arc::new(Image::stored(stored)))
        });
        Self(Arc::new(all.collect()))
    }
}

/// Which object that is.
pub(super) fn named(resource: &str, stored: &store::Stored) -> Object {
    let header = &stored.header;
    let (namespace, name) = ((*header.namespace).into(), (*header.name).into());
    (resource.into(), namespace, name)
}
