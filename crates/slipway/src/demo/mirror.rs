//! The objects of an embedded cluster, decoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use slipway_apiserver::store::Stored;
use slipway_kernel::capability::show::Objects;

/// Objects by namespace and name, each with its version.
type Decoded = BTreeMap<(String, String), (u64, Arc<Value>)>;

/// The objects of a cluster, decoded; what has not changed is not decoded again.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    objects: BTreeMap<String, Decoded>,
}

impl Mirror {
    /// Takes in all objects of a moment.
    pub(crate) fn observe(&mut self, everything: &[(Box<str>, Arc<Stored>)]) {
        let mut before = std::mem::take(&mut self.objects);
        for (resource, stored) in everything {
            let key = (
                stored.header.namespace.to_string(),
                stored.header.name.to_string(),
            );
            let known = before
                .get_mut(resource.as_ref())
                .and_then(|all| all.remove(&key));
            let entry = match known {
                Some(known) if known.0 == stored.version => known,
                _ => (stored.version, Arc::new(stored.decode())),
            };
            self.objects
                .entry(resource.to_string())
                .or_default()
                .insert(key, entry);
        }
    }
}

impl Objects for Mirror {
    fn all<'a>(&'a self, resource: &str) -> Box<dyn Iterator<Item = &'a Value> + 'a> {
        let objects = self.objects.get(resource).into_iter();
        let objects = objects.flat_map(BTreeMap::values);
        Box::new(objects.map(|(_, object)| object.as_ref()))
    }
}
