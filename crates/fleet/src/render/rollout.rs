//! A decision about a Rollout, as what is written.

use std::collections::BTreeSet;

use slipway_api::fleet::rollout::RolloutSpec;

use super::Applied;
use super::assignment::{self, Layer, Place};
use super::module::{self, Maker};
use crate::naming;
use crate::observe::cluster::Registered;
use crate::observe::gather::{Gathered, Parts, assigner};
use crate::observe::rollout::Asked;
use crate::observe::{Strategy, assemblage};
use crate::plan::{Assignment, Decision};
use slipway_bindings::revision::template_of;
use slipway_kernel::fields::{integer, text};

/// What is written for a decision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Writes {
    /// What is applied, in this order.
    pub applied: Vec<Applied>,
    /// Whether some of it only prepares the rest: Secrets have to be there before who refers to them, so that there is another
    /// plan when these have been written.
    pub prepares: bool,
}

/// What is applied for a decision. `secrets` are the Secrets with values that are there.
pub fn writes(
    parts: &Parts<'_>,
    gathered: &Gathered,
    decision: &Decision,
    secrets: &BTreeSet<String>,
) -> Writes {
    let mut all = Writes::default();
    let Asked::For(wanted) = &gathered.world.rollout.wanted else {
        return all;
    };
    let spec = parts.rollout.get("spec").cloned().unwrap_or_default();
    let spec: RolloutSpec = serde_json::from_value(spec).unwrap_or_default();
    let of = |path: &str| text(parts.rollout, path).unwrap_or_default();
    let maker = Maker {
        namespace: of("/metadata/namespace"),
        name: of("/metadata/name"),
        uid: of("/metadata/uid"),
        generation: integer(parts.rollout, "/metadata/generation").unwrap_or_default(),
        spec: &spec,
    };
    if let Some(revision) = &decision.make {
        all.applied
            .extend(module::revision(maker, wanted.strategy, revision));
    }
    let writing = Writing {
        parts,
        gathered,
        layer: match spec.target_kind.as_deref() {
            Some("BootstrapModule") => Layer::Bootstrap,
            _ => Layer::Remote,
        },
        by: assigner(parts.rollout),
        maker,
    };
    for assignment in &decision.assign {
        writing.assign(assignment, wanted.strategy, secrets, &mut all);
    }
    if wanted.strategy != Strategy::External
        && !wanted.is_paused
        && !gathered.world.rollout.is_deleting
    {
        writing.restore(secrets, &mut all);
    }
    all
}

struct Writing<'a> {
    parts: &'a Parts<'a>,
    gathered: &'a Gathered,
    layer: Layer,
    by: String,
    maker: Maker<'a>,
}

impl<'a> Writing<'a> {
    /// Where a cluster's assignments are: the kubeconfig is the one that its assemblage has, if it is there.
    fn place(&self, cluster: &'a str) -> Place<'a> {
        let found = self.parts.assemblages.get(cluster);
        let kubeconfig = found.and_then(|found| assemblage::kubeconfig(found.object()));
        let registered: Option<&Registered> = self.parts.clusters.get(cluster);
        let known = registered.map(|cluster| cluster.kubeconfig.as_str());
        Place {
            namespace: self.maker.namespace,
            cluster,
            kubeconfig: kubeconfig.or(known).unwrap_or_default(),
        }
    }

    fn assign(
        &self,
        assignment: &'a Assignment,
        strategy: Strategy,
        secrets: &BTreeSet<String>,
        all: &mut Writes,
    ) {
        let place = self.place(&assignment.cluster);
        if strategy == Strategy::External {
            let template = template_of(&assignment.revision);
            let module = naming::module(self.maker.name, template);
            let sync = assignment::reference(self.maker.name, &self.by, &module, template);
            let applied = assignment::assign(self.layer, place, &self.by, &sync);
            all.applied.push(applied);
            return;
        }
        let key = (assignment.cluster.clone(), assignment.revision.clone());
        let Some(assigned) = self.gathered.assignments.get(&key) else {
            return;
        };
        if let Some((name, data)) = &assigned.secret
            && !secrets.contains(name)
        {
            let secret = assignment::values(place, &self.by, name, data);
            all.applied.push(secret);
            all.prepares = true;
            return;
        }
        let applied = assignment::assign(self.layer, place, &self.by, &assigned.sync);
        all.applied.push(applied);
    }

    /// Secrets that assignments refer to and that are gone: a cluster can be built again only if they are there. Their values are
    /// those of the same revision.
    fn restore(&self, secrets: &BTreeSet<String>, all: &mut Writes) {
        for ((cluster, revision), assigned) in &self.gathered.assignments {
            let known = self.gathered.world.clusters.get(cluster);
            let entry = known.and_then(|known| known.entry.as_ref());
            let has_it = entry
                .is_some_and(|entry| entry.is_ours && entry.revision.as_ref() == Some(revision));
            if let Some((name, data)) = assigned.secret.as_ref().filter(|_| has_it)
                && !secrets.contains(name)
            {
                let secret = assignment::values(self.place(cluster), &self.by, name, data);
                all.applied.push(secret);
            }
        }
    }
}
