//! How ownership moves: what an update takes from others, what an apply claims, drops and collides with.

use serde_json::Value;

use super::OtherVersion;
use super::compare::{Comparison, compare};
use super::fields::{field_set, reconciled, with_named_fields, without};
use super::merge::merge;
use super::owners::{Entry, Identity, Owners};
use super::place::Place;
use super::set::Set;
use super::step::{Step, same};

/// One field that another manager owns and an apply would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Who owns it.
    pub(super) owner: Identity,
    /// Which field.
    pub(super) path: Vec<Step>,
}

/// What every operation needs to know.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    /// The root of the schema.
    pub(super) place: Place<'a>,
    /// What the endpoint does not write, and so nobody can own or fight for through it.
    pub(super) reset: &'a Set,
    /// The object in the versions in which others wrote it.
    pub(super) others: &'a [OtherVersion],
}

/// The fields that are never recorded: the server's own.
fn server_fields() -> Set {
    Set::of_paths([
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
}

impl Ground<'_> {
    fn changes(&self, old: &Value, new: &Value) -> Comparison {
        compare(self.place, old, new).outside(self.reset)
    }

    fn reconcile(&self, owners: &mut Owners) {
        for entry in owners.0.values_mut() {
            let other = self.other(entry);
            let place = other.map_or(self.place, |o| Place::root(&o.schema));
            if let Some(fields) = reconciled(place, &entry.fields) {
                entry.fields = fields;
            }
        }
    }

    /// The version in which an entry was recorded, if it is not the one at hand.
    fn other(&self, entry: &Entry) -> Option<&OtherVersion> {
        self.others
            .iter()
            .find(|other| other.api_version == entry.api_version)
    }

    /// Records an update: what it changed it takes from everybody, what it removed nobody owns any more.
    pub(super) fn update(
        &self,
        old: &Value,
        new: &Value,
        owners: &mut Owners,
        identity: Identity,
        mut entry: Entry,
    ) {
        self.reconcile(owners);
        let changes = self.changes(old, new);
        let taken = changes.modified.union(&changes.added);
        let lost = taken.union(&changes.removed);
        for entry in owners.0.values_mut() {
            match self.other(entry) {
                None => entry.fields.remove(&lost),
                Some(other) => {
                    let changes = compare(Place::root(&other.schema), &other.old, &other.new)
                        .outside(self.reset);
                    let lost = changes.modified.union(&changes.added);
                    entry.fields.remove(&lost.union(&changes.removed));
                }
            }
        }
        owners.drop_empty();
        let taken = taken.difference(&server_fields());
        if taken.is_empty() {
            return;
        }
        entry.fields = match owners.0.remove(&identity) {
            Some(mut previous) => {
                previous.fields.add(&taken);
                previous.fields
            }
            None => taken,
        };
        owners.0.insert(identity, entry);
    }

    /// Merges an applied configuration: the new object, or nothing if the object stays as it is.
    pub(super) fn apply(
        &self,
        live: &Value,
        config: &Value,
        owners: &mut Owners,
        identity: &Identity,
        api_version: &str,
        force: bool,
    ) -> Result<Option<Value>, Vec<Conflict>> {
        self.reconcile(owners);
        let merged = merge(self.place, live, config);
        let last = owners.0.get(identity).cloned();
        let claimed = Entry {
            api_version: api_version.to_owned(),
            time: last.as_ref().and_then(|last| last.time),
            fields: field_set(self.place, config).outside(self.reset),
        };
        // Who sends all that it sent before takes nothing away. To find that out by pruning is most of what an apply costs.
        let last = last.filter(|last| !last.fields.is_within(&claimed.fields));
        owners.0.insert(identity.clone(), claimed);
        let new = match last {
            Some(last) => self.prune(&merged, owners, &last.fields),
            None => merged,
        };
        self.settle(live, &new, owners, identity, force)?;
        if let Some(entry) = owners.0.get_mut(identity) {
            entry.fields = entry.fields.difference(&server_fields());
        }
        owners.drop_empty();
        Ok(if same(live, &new) { None } else { Some(new) })
    }

    fn settle(
        &self,
        live: &Value,
        new: &Value,
        owners: &mut Owners,
        identity: &Identity,
        force: bool,
    ) -> Result<(), Vec<Conflict>> {
        let changes = self.changes(live, new);
        let taken = changes.modified.union(&changes.added);
        if !force {
            let conflicts: Vec<Conflict> = owners
                .0
                .iter()
                .filter(|(owner, _)| *owner != identity)
                .flat_map(|(owner, entry)| conflicts(owner, &entry.fields.intersection(&taken)))
                .collect();
            if !conflicts.is_empty() {
                return Err(conflicts);
            }
        }
        let lost = taken.union(&changes.removed);
        for (owner, entry) in &mut owners.0 {
            if owner != identity {
                entry.fields.remove(&lost);
            }
        }
        Ok(())
    }

    /// Removes what the applier owned before, does not send any more, and nobody else owns.
    pub(super) fn prune(&self, merged: &Value, owners: &Owners, last: &Set) -> Value {
        let place = self.place;
        let named = |set: &Set| with_named_fields(place, set);
        let all = named(&field_set(place, merged));
        let last = named(last);
        let bare = without(place, merged, &last);
        let kept = named(&field_set(place, &bare)).union(&named(&owners.all_fields()));
        let owned = without(place, merged, &all.difference(&kept));
        let owned = named(&field_set(place, &owned));
        without(place, merged, &all.difference(&owned).intersection(&last))
    }
}

fn conflicts(owner: &Identity, fields: &Set) -> Vec<Conflict> {
    fields
        .paths()
        .into_iter()
        .map(|path| Conflict {
            owner: owner.clone(),
            path,
        })
        .collect()
}
