//! The changes of a cluster, in the order of its versions, and how its objects were at which version.
//!
//! Oracles ask for states at many versions: a run of a scenario with a few thousand changes is asked a few hundred times. What is
//! looked up in is made when somebody first asks, and anew after a change.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use super::{Change, Image, Object};

/// For each object the places of its changes, in order.
type Places = BTreeMap<Object, Vec<usize>>;

/// The changes of a cluster, in the order of its versions.
#[derive(Debug, Clone, Default)]
pub struct Log {
    changes: Vec<Change>,
    places: OnceLock<Places>,
}

impl Deref for Log {
    type Target = Vec<Change>;

    fn deref(&self) -> &Vec<Change> {
        &self.changes
    }
}

impl DerefMut for Log {
    fn deref_mut(&mut self) -> &mut Vec<Change> {
        self.places = OnceLock::new();
        &mut self.changes
    }
}

impl From<Vec<Change>> for Log {
    fn from(changes: Vec<Change>) -> Self {
        Self {
            changes,
            places: OnceLock::new(),
        }
    }
}

impl Log {
    fn places(&self) -> &Places {
        self.places.get_or_init(|| {
            let mut all = Places::new();
            for (place, change) in self.changes.iter().enumerate() {
                match all.get_mut(&change.object) {
                    Some(places) => places.push(place),
                    None => {
                        all.insert(change.object.clone(), vec![place]);
                    }
                }
            }
            all
        })
    }

    /// The last of these changes up to a version, and what it left.
    fn left(&self, places: &[usize], version: u64) -> Option<&Arc<Image>> {
        let is_before = |place: &usize| {
            let change = self.changes.get(*place);
            change.is_some_and(|change| change.version <= version)
        };
        let before = places.partition_point(is_before);
        let last = places.get(before.checked_sub(1)?)?;
        self.changes.get(*last)?.after.as_ref()
    }

    /// How an object was at a version.
    pub fn state(&self, object: &Object, version: u64) -> Option<&Arc<Image>> {
        self.left(self.places().get(object)?, version)
    }

    /// All objects of a resource as they were at a version.
    pub fn states(&self, resource: &str, version: u64) -> BTreeMap<&Object, &Arc<Image>> {
        let first: Object = (resource.into(), "".into(), "".into());
        let of_it = self.places().range(first..);
        of_it
            .take_while(|(object, _)| &*object.0 == resource)
            .filter_map(|(object, places)| Some((object, self.left(places, version)?)))
            .collect()
    }

    /// The objects of the end, of all resources.
    pub fn ends(&self) -> BTreeMap<&Object, &Arc<Image>> {
        let all = self.places().iter();
        all.filter_map(|(object, places)| Some((object, self.left(places, u64::MAX)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::ChangeKind;
    use super::*;

    fn object(resource: &str, name: &str) -> Object {
        (resource.into(), "shop".into(), name.into())
    }

    fn change(version: u64, object: Object, image: Option<u64>) -> Change {
        Change {
            at: Timestamp::UNIX_EPOCH,
            version,
            kind: ChangeKind::Modified,
            object,
            before: None,
            after: image.map(|number| Arc::new(Image::made(json!(number)))),
            by: None,
        }
    }

    #[test]
    fn an_object_is_what_its_last_change_left() {
        let (pod, other) = (object("/pods", "a"), object("/pods", "b"));
        let map = object("/configmaps", "a");
        let mut log = Log::default();
        log.push(change(1, pod.clone(), Some(1)));
        log.push(change(2, other.clone(), Some(2)));
        log.push(change(2, pod.clone(), Some(3)));
        log.push(change(4, map, Some(4)));
        let number = |image: Option<&Arc<Image>>| image.and_then(|image| image.value().as_u64());
        let pods = |log: &Log, version| log.states("/pods", version).len();
        assert_eq!(number(log.state(&pod, 0)), None);
        assert_eq!(number(log.state(&pod, 1)), Some(1));
        assert_eq!(number(log.state(&pod, 3)), Some(3));
        assert_eq!((pods(&log, 0), pods(&log, 1), pods(&log, 9)), (0, 1, 2));
        assert_eq!(log.ends().len(), 3);
        // What was asked before is not remembered after a change.
        log.push(change(5, pod.clone(), None));
        assert_eq!(number(log.state(&pod, 4)), Some(3));
        assert_eq!(number(log.state(&pod, 5)), None);
        assert_eq!((pods(&log, 5), log.ends().len()), (1, 2));
        assert_eq!(number(log.state(&other, 9)), Some(2));
    }
}
