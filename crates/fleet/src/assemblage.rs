//! What is to be done about one assemblage where it is expanded: a function of its world.
//!
//! For each sync, and for each alone: the source is made, and when it has been fetched the Kustomization is changed, in one
//! write. What was applied before stays until then, and for as long as something is in the way. What fails for one sync is told
//! on that one and stops no other.

mod insistence;
mod read;
pub mod state;

use std::collections::{BTreeMap, BTreeSet};

use insistence::Correction;
use serde_json::Value;
use slipway_api::fleet::assemblage::{SyncState, SyncStatus};
use slipway_api::fleet::sync::{NamedSync, Source};
use slipway_api::foreign::git_repository::{GitRepositorySpec, GitRepositoryStatus};
use slipway_api::foreign::kustomization::{KustomizationSpec, KustomizationStatus};
use slipway_bindings::revision;
use slipway_kernel::{Kind, ObjectRef};

use crate::reasons::Reason;
use crate::render::Applied;
use crate::render::flux::{self, Maker};
use crate::specialise::{Specialised, Substitutions};
use crate::{kinds, naming};

/// All that the plan of one assemblage depends on.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The Secret with the kubeconfig of the cluster that it is for; none if that is the one that it is in.
    pub kubeconfig: Option<String>,
    /// Its syncs, each with what its bindings come to.
    pub syncs: Vec<(NamedSync, Specialised<Substitutions>)>,
    /// A hash of each sync as it is in the API, by name.
    pub hashes: BTreeMap<String, String>,
    /// What its status said before, by name.
    pub before: BTreeMap<String, SyncStatus>,
    /// The sources of the namespace that were made for assemblages.
    pub sources: BTreeMap<String, SourceSeen>,
    /// The Kustomizations of the namespace.
    pub kustomizations: BTreeMap<String, KustomizationSeen>,
    /// The Secrets with values of this assemblage.
    pub secrets: BTreeSet<String>,
    /// The sources that other assemblages of the namespace want.
    pub wanted_by_others: BTreeSet<String>,
    /// What the API refused to write, and what it said.
    pub refusals: BTreeMap<ObjectRef, String>,
}

/// A source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceSeen {
    /// Its generation.
    pub generation: i64,
    /// What it is asked for, as far as we ask for it.
    pub spec: GitRepositorySpec,
    /// All that is said in it of what is fetched, and that may be left unsaid, by where it is said.
    pub said: BTreeMap<&'static str, Value>,
    /// What of it has been put right before.
    pub put_right: Option<String>,
    /// How far it is.
    pub status: GitRepositoryStatus,
}

/// A Kustomization.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KustomizationSeen {
    /// The name of the assemblage that it was made for, if it was made for one.
    pub made_for: Option<String>,
    /// Its generation.
    pub generation: i64,
    /// The revision of the sync that it was made from.
    pub revision: Option<String>,
    /// A hash of what we asked for.
    pub written: Option<String>,
    /// What of it has been put right before.
    pub put_right: Option<String>,
    /// What it is asked for, as far as we ask for it.
    pub spec: KustomizationSpec,
    /// How far it is.
    pub status: KustomizationStatus,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether it applies and takes away nothing.
    pub is_suspended: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// What is applied.
    pub apply: Vec<Applied>,
    /// Sources out of which is taken what somebody else put in: to apply them would leave it there.
    pub mend: Vec<Mended>,
    /// The Kustomizations that are no longer wanted. Flux takes what they applied away with them.
    pub delete_kustomizations: Vec<String>,
    /// The sources that nobody refers to.
    pub delete_sources: Vec<String>,
    /// The Secrets that nobody refers to.
    pub delete_secrets: Vec<String>,
    /// How far each sync is.
    pub syncs: Vec<SyncStatus>,
}

/// A source that is changed to what it should be, by a merge patch.
#[derive(Debug, Clone, PartialEq)]
pub struct Mended {
    /// Its name.
    pub name: String,
    /// The patch.
    pub body: Value,
}

/// Decides about an assemblage.
pub fn decide(world: &World, now: jiff::Timestamp) -> Decision {
    let mut decision = Decision::default();
    let mut secrets = BTreeSet::new();
    for (sync, specialised) in &world.syncs {
        let told = expand(world, sync, specialised, &mut decision, &mut secrets);
        let before = world.before.get(&sync.name);
        let revision = sync.revision.clone();
        let status = state::since(before, &sync.name, revision, told, now);
        decision.syncs.push(SyncStatus {
            observed_sync: world.hashes.get(&sync.name).cloned(),
            ..status
        });
    }
    collect(world, &secrets, &mut decision);
    decision
}

fn expand(
    world: &World,
    sync: &NamedSync,
    specialised: &Specialised<Substitutions>,
    decision: &mut Decision,
    secrets: &mut BTreeSet<String>,
) -> state::Told {
    let values = match specialised {
        Specialised::Done(values) => values,
        Specialised::Unread { .. } => {
            let message = "what its bindings refer to has not been read yet".to_owned();
            return state::Told::new(SyncState::Updating, Reason::BindingUnread.as_str(), message);
        }
        Specialised::Blocked {
            reason, message, ..
        } => {
            return state::Told::new(SyncState::Blocked, reason, message.clone());
        }
    };
    let Some(source) = &sync.source else {
        let message = "it names a module, and what that says is not here".to_owned();
        return state::Told::new(SyncState::Blocked, Reason::RevisionGone.as_str(), message);
    };
    let name = naming::kustomization(&world.name, &sync.name);
    let seen = world.kustomizations.get(&name);
    if seen.is_some_and(|seen| !seen.is_of(&world.name)) {
        let message = format!("Kustomization {name} is somebody else's, and is left alone");
        return state::Told::new(SyncState::Blocked, Reason::OwnedByOther.as_str(), message);
    }
    let maker = Maker {
        namespace: &world.namespace,
        name: &world.name,
        kubeconfig: world.kubeconfig.as_deref(),
    };
    let secret = secret(world, sync, values);
    secrets.extend(secret.clone());
    let spec = flux::kustomization_spec(maker, sync, source, values, secret.as_deref());
    let unprepared = prepare(
        world,
        maker,
        (sync, source),
        (values, secret.as_ref()),
        decision,
    );
    if seen.is_some_and(|seen| seen.is_deleting) {
        let message = "the former Kustomization is being taken away".to_owned();
        return state::Told::new(SyncState::Updating, "Waiting", message);
    }
    let written = revision::of_template(&spec);
    let is_current =
        |seen: &&KustomizationSeen| seen.is_written(sync, &written) && spec.is_within(&seen.spec);
    let found = world.sources.get(&naming::source(source));
    match (seen.filter(is_current), unprepared) {
        // What has been applied stays applied, whatever becomes of its source.
        (Some(seen), None | Some(Unprepared::Waits(_))) => {
            state::told(seen, found, world.before.get(&sync.name), (sync, values))
        }
        (_, Some(Unprepared::Waits(told) | Unprepared::IsNot(told))) => told,
        (None, None) => {
            let changed = seen.filter(|seen| seen.is_written(sync, &written));
            let changed = changed.map(|seen| revision::of_template(&seen.spec));
            if changed.is_some()
                && seen.and_then(|seen| seen.put_right.as_ref()) == changed.as_ref()
            {
                return insistence::told(&format!("Kustomization {name}"));
            }
            let marks = (written.as_str(), changed.as_deref());
            decision
                .apply
                .push(flux::kustomization(maker, sync, &spec, marks));
            let refused = world.refused(kinds::KUSTOMIZATION, &name, values);
            refused.unwrap_or_else(|| {
                let message = "it is handed over to Flux".to_owned();
                state::Told::new(SyncState::Updating, "Applying", message)
            })
        }
    }
}

/// Why a switch has to wait.
enum Unprepared {
    /// For what has to be there before, and may go again later.
    Waits(state::Told),
    /// Because the source is not what it should be: what is applied may be something else.
    IsNot(state::Told),
}

impl World {
    /// What is told of an object that the API does not let us write. It may quote what it refuses: where values are secret, its words
    /// are not repeated.
    fn refused(&self, kind: Kind, name: &str, values: &Substitutions) -> Option<state::Told> {
        let object = ObjectRef::local(kind, &self.namespace, name);
        let said = self.refusals.get(&object)?;
        let said = if object.kind == kinds::SECRET {
            "what it says may have secret values in it, and is not repeated".to_owned()
        } else if values.secret.is_empty() {
            state::shortened(said)
        } else {
            "what it said is in the operator's log".to_owned()
        };
        let message = format!("the API refused to change {object}: {said}");
        Some(state::Told::blocked(Reason::RefusedByApi, &message))
    }
}

/// The Secret of the secret values of a sync. Its name tells which Secrets they came from, and nothing of what is in them.
fn secret(world: &World, sync: &NamedSync, values: &Substitutions) -> Option<String> {
    let stamps = revision::of_values(&values.secret)?;
    let revision = sync.revision.as_deref().unwrap_or("none");
    let address = revision::digest(&format!("{revision}/{stamps}"), 10);
    Some(naming::values(&world.name, &sync.name, &address))
}

/// What has to be there before the switch: the source, as it should be and fetched, and the Secret. None when it is.
fn prepare(
    world: &World,
    maker: Maker<'_>,
    (sync, source): (&NamedSync, &Source),
    (values, secret): (&Substitutions, Option<&String>),
    decision: &mut Decision,
) -> Option<Unprepared> {
    let missing = secret.filter(|name| !world.secrets.contains(*name));
    if let Some(name) = missing {
        decision.apply.push(flux::values(maker, sync, name, values));
    }
    let name = naming::source(source);
    let unsaid = missing.and_then(|name| world.refused(kinds::SECRET, name, values));
    let refused = unsaid.or_else(|| world.refused(kinds::GIT_REPOSITORY, &name, values));
    let updating = |message: &str| {
        let reason = Reason::SourceNotReady.as_str();
        state::Told::new(SyncState::Updating, reason, message.to_owned())
    };
    let waits = |message: &str| Some(Unprepared::Waits(updating(message)));
    let mut make = |mark: Option<&str>| {
        let made = flux::source(&world.namespace, source, mark);
        // Several syncs may want the same.
        if !decision.apply.contains(&made) {
            decision.apply.push(made);
        }
    };
    let Some(seen) = world.sources.get(&name) else {
        make(None);
        let refused = refused.map(Unprepared::Waits);
        return refused.or_else(|| waits("the source is made"));
    };
    let wanted = flux::source_spec(source);
    if let Some(correction) = insistence::correction(&name, seen, &wanted) {
        // Its name says what is in it: whoever made or changed it otherwise is overruled once, before anything of it is applied.
        let told = match correction {
            Correction::Apply(mark) => {
                make(Some(&mark));
                None
            }
            Correction::Patch(mended) => {
                if !decision.mend.contains(&mended) {
                    decision.mend.push(mended);
                }
                None
            }
            Correction::Insisted(told) => Some(told),
        };
        let told = told.or(refused);
        let right = || updating("the source is not what its name says, and is put right");
        return Some(Unprepared::IsNot(told.unwrap_or_else(right)));
    }
    if !seen.status.is_ready_at(seen.generation) {
        let failed = state::source_failed(seen).map(Unprepared::Waits);
        return failed.or_else(|| waits("the source is fetched"));
    }
    match missing {
        Some(_) => refused
            .map(Unprepared::Waits)
            .or_else(|| waits("the Secret with its values is made")),
        None => None,
    }
}

/// What is there and not wanted any more.
fn collect(world: &World, secrets: &BTreeSet<String>, decision: &mut Decision) {
    let wanted = |kustomization: &str| {
        let mut syncs = world.syncs.iter();
        syncs.any(|(sync, _)| naming::kustomization(&world.name, &sync.name) == kustomization)
    };
    let mut used_sources: BTreeSet<String> = world.wanted_by_others.clone();
    let mut used_secrets = secrets.clone();
    for (name, seen) in &world.kustomizations {
        if seen.is_of(&world.name) && !wanted(name) && !seen.is_deleting {
            decision.delete_kustomizations.push(name.clone());
        }
        // Also what is going still refers to its source: Flux may need it to take things away.
        used_sources.insert(seen.spec.source_ref.name.clone());
        let from = seen
            .spec
            .post_build
            .iter()
            .flat_map(|build| &build.substitute_from);
        used_secrets.extend(from.map(|from| from.name.clone()));
    }
    used_sources.extend(
        world
            .syncs
            .iter()
            .filter_map(|(sync, _)| Some(naming::source(sync.source.as_ref()?))),
    );
    let unused = world
        .sources
        .keys()
        .filter(|name| !used_sources.contains(*name));
    decision.delete_sources = unused.cloned().collect();
    let unused = world
        .secrets
        .iter()
        .filter(|name| !used_secrets.contains(*name));
    decision.delete_secrets = unused.cloned().collect();
}
