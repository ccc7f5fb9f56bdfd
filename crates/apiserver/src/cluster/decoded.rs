//! Objects that are asked for with every write, and seldom change: decoded once for as long as they are the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::Cluster;
use crate::store::Stored;

/// By the name under which a resource is kept: its objects, and what they say.
#[derive(Debug, Default)]
pub(super) struct Decoded(Mutex<BTreeMap<Box<str>, Known>>);

#[derive(Debug, Default)]
struct Known {
    objects: Vec<Arc<Stored>>,
    values: Arc<[Value]>,
}

impl Known {
    /// Whether it is of these very objects: each version of an object is another one.
    fn is_of(&self, objects: &[Arc<Stored>]) -> bool {
        self.objects.len() == objects.len()
            && self
                .objects
                .iter()
                .zip(objects)
                .all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

impl Cluster {
    /// All objects of a resource, decoded, in the order of their names.
    pub(crate) fn decoded(&self, bucket: &str) -> Arc<[Value]> {
        let objects = self.store.list(bucket, "", &|_| true).objects;
        let mut all = self
            .decoded
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(bucket).filter(|known| known.is_of(&objects)) {
            return known.values.clone();
        }
        let values: Arc<[Value]> = objects.iter().map(|stored| stored.decode()).collect();
        let known = Known {
            objects,
            values: values.clone(),
        };
        all.insert(bucket.into(), known);
        values
    }
}
