//! The world of one Rollout, out of objects as the API has them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use slipway_api::fleet::MAX_SYNCS;
use slipway_api::fleet::rollout::{RolloutSpec, TemplateSpec};
use slipway_bindings::{Known, Reference};
use slipway_kernel::fields::text;
use slipway_kernel::selector::Selector;

use super::cluster::Registered;
use super::kept::Kept;
use super::{Cluster, Refused, Revision, Rollout, World, assemblage};
use crate::naming;
use crate::reasons::Reason;
use crate::specialise::{Assigned, Assigning, Specialised, Template, assignment};

/// When it was asked for that an object be deleted.
const DELETED: &str = "/metadata/deletionTimestamp";

/// Who assigns: `Rollout/name`, or `Module/name` where a module with a selector stands for a Rollout.
pub fn assigner(rollout: &Value) -> String {
    let kind = text(rollout, "/kind").unwrap_or("Rollout");
    let name = text(rollout, "/metadata/name").unwrap_or_default();
    format!("{kind}/{name}")
}

/// What is known of the objects that a Rollout is about.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The Rollout.
    pub rollout: &'a Value,
    /// The clusters of its namespace, by name.
    pub clusters: &'a BTreeMap<String, Registered>,
    /// Their assemblages, of the layer that the Rollout assigns in, by the name of the cluster.
    pub assemblages: &'a BTreeMap<String, &'a Kept>,
    /// The revisions that are kept, each with its template and when it was made.
    pub revisions: &'a BTreeMap<String, (TemplateSpec, Timestamp)>,
    /// What was read for its bindings, in the control plane.
    pub known: &'a Known,
    /// The clusters that cannot be reached now, and why.
    pub unreachable: &'a BTreeMap<String, String>,
    /// The clusters that have not been looked at since we began.
    pub unread: &'a BTreeSet<String>,
    /// The clusters whose assemblage the API does not let us write.
    pub refused: &'a BTreeMap<String, Refused>,
    /// The clusters whose assemblage, by its name, is somebody else's and about another cluster.
    pub taken: &'a BTreeSet<String>,
    /// The modules that syncs of any assemblage of the namespace name.
    pub named: &'a BTreeSet<&'a str>,
    /// Whether there may be clusters that we have no right to see.
    pub is_blind: bool,
}

/// The world of a Rollout, and what comes with it.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// What is decided on.
    pub world: World,
    /// What can be assigned, by cluster and revision.
    pub assignments: BTreeMap<(String, String), Assigned>,
    /// What has to be read before all values are known.
    pub needs: BTreeSet<Reference>,
    /// All that values come from: a change of one may be a change of an assignment.
    pub references: BTreeSet<Reference>,
}

/// Gathers the world of a Rollout.
pub fn gather(parts: &Parts<'_>) -> Gathered {
    let rollout = Rollout::of(parts.rollout);
    let spec = parts.rollout.get("spec").cloned().unwrap_or_default();
    let spec: RolloutSpec = serde_json::from_value(spec).unwrap_or_default();
    let made = parts.revisions.iter();
    let mut gathered = Gathered {
        world: World {
            revisions: made
                .map(|(name, (_, made))| (name.clone(), *made))
                .collect(),
            rollout,
            clusters: BTreeMap::new(),
            named: parts.named(),
            is_blind: parts.is_blind,
            forgets_who_came: false,
        },
        ..Gathered::default()
    };
    let selector = selector(parts.rollout);
    let wanted = Template::of(&spec.template.spec);
    let stable = parts.stable(wanted.spec).map(Template::of);
    let names: BTreeSet<&String> = parts
        .clusters
        .keys()
        .chain(parts.assemblages.keys())
        .collect();
    for name in names {
        let is_selected = |cluster: &Registered| {
            let selector = selector.as_ref();
            selector.is_some_and(|selector| selector.selects(&cluster.labels))
        };
        gathered.add(parts, (&wanted, stable.as_ref()), name, is_selected);
    }
    gathered
}

impl Gathered {
    fn add(
        &mut self,
        parts: &Parts<'_>,
        (wanted, stable): (&Template<'_>, Option<&Template<'_>>),
        name: &str,
        is_selected: impl Fn(&Registered) -> bool,
    ) {
        let (_, rollout) = self.world.rollout.name.split_once('/').unwrap_or_default();
        let rollout = rollout.to_owned();
        let by = assigner(parts.rollout);
        let registered = parts.clusters.get(name);
        let found = parts.assemblages.get(name);
        // One that is being deleted takes all with it, and then there is a new one.
        let is_going = found.is_some_and(|found| text(found.object(), DELETED).is_some());
        let assemblage = found.filter(|_| !is_going);
        let entry = assemblage.and_then(|found| assemblage::entry(found, &rollout, &by));
        let is_selected =
            registered.is_some_and(|cluster| cluster.is_listed && is_selected(cluster));
        if !is_selected && entry.is_none() {
            return;
        }
        let assigning = Assigning {
            by: &by,
            name: &rollout,
            cluster: name,
        };
        let is_full = entry.is_none()
            && assemblage.is_some_and(|found| assemblage::others(found, &rollout) >= MAX_SYNCS);
        let mut revision = |template: &Template<'_>| match registered {
            Some(_) if is_full => full(),
            Some(_) if parts.taken.contains(name) => taken(name),
            Some(cluster) => self.specialise(assigning, template, cluster, parts.known),
            // It is going, and gets nothing any more.
            None => Revision::Known(String::new()),
        };
        let wanted = revision(wanted);
        let stable = stable.map(&mut revision);
        let cluster = Cluster {
            is_selected,
            is_deleting: registered.is_none_or(|cluster| cluster.is_deleting),
            is_initialized: !is_going && registered.is_some_and(|cluster| cluster.is_initialized),
            is_reachable: !parts.unreachable.contains_key(name),
            away: parts.unreachable.get(name).cloned(),
            is_seen: !parts.unread.contains(name),
            wanted,
            stable,
            entry,
            refused: parts.refused.get(name).cloned(),
        };
        self.world.clusters.insert(name.to_owned(), cluster);
    }

    fn specialise(
        &mut self,
        assigning: Assigning<'_>,
        template: &Template<'_>,
        cluster: &Registered,
        known: &Known,
    ) -> Revision {
        match assignment(assigning, template, &cluster.given(), known) {
            Specialised::Done(assigned) => {
                self.references.extend(assigned.references.iter().cloned());
                let revision = assigned.sync.revision.clone().unwrap_or_default();
                let key = (cluster.name.clone(), revision.clone());
                self.assignments.insert(key, assigned);
                Revision::Known(revision)
            }
            Specialised::Unread { needs, references } => {
                self.references.extend(references);
                self.needs.extend(needs);
                Revision::Blocked {
                    reason: Reason::BindingUnread.as_str().to_owned(),
                    message: "what its bindings refer to has not been read yet".to_owned(),
                }
            }
            Specialised::Blocked {
                reason,
                message,
                references,
            } => {
                self.references.extend(references);
                Revision::Blocked {
                    reason: reason.to_owned(),
                    message,
                }
            }
        }
    }
}

impl Parts<'_> {
    /// The revisions whose modules somebody names.
    fn named(&self) -> BTreeSet<String> {
        let rollout = text(self.rollout, "/metadata/name").unwrap_or_default();
        let is_named = |revision: &&String| {
            let module = naming::module(rollout, revision);
            self.named.contains(module.as_str())
        };
        self.revisions.keys().filter(is_named).cloned().collect()
    }

    /// The template that proved itself last, where that is another one than that of now.
    fn stable(&self, target: &TemplateSpec) -> Option<&TemplateSpec> {
        let stable = self.rollout.pointer("/status/stableRevision")?.as_str()?;
        let (template, _) = self.revisions.get(stable)?;
        (template != target).then_some(template)
    }
}

/// Which clusters a Rollout is for: none where there is no selector, or a broken one.
pub fn selector(rollout: &Value) -> Option<Selector> {
    let spec = RolloutSpec::deserialize(rollout.get("spec")?).ok()?;
    let selector = spec.selector.filter(|selector| selector.check().is_ok())?;
    let selector = serde_json::to_value(selector).ok()?;
    Some(Selector::read(&selector))
}

fn taken(name: &str) -> Revision {
    Revision::Blocked {
        reason: Reason::OwnedByOther.as_str().to_owned(),
        message: format!("the assemblage {name} is somebody else's, and about another cluster"),
    }
}

fn full() -> Revision {
    Revision::Blocked {
        reason: Reason::AssemblageFull.as_str().to_owned(),
        message: format!("the cluster has {MAX_SYNCS} syncs already"),
    }
}
