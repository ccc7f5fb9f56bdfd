//! The plan of an assemblage where it is expanded: by the hub, for one that names a cluster, and by the agent, for others.

mod gather;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::json;
use slipway_api::fleet::assemblage::{AssemblageStatus, ClusterRecord, SyncState, SyncStatus};
use slipway_api::fleet::names::EXPANDED;
use slipway_api::fleet::sync::NamedSync;
use slipway_api::purpose::fleet as purpose;
use slipway_kernel::fact::Unseen;
use slipway_kernel::finalizer::{self, Finalizers, Phase};
use slipway_kernel::instant::later;
use slipway_kernel::store::{Item, Store};
use slipway_kernel::{Action, Facts, Kind, ObjectRef, Plan, Purpose, Target};

use crate::assemblage::state::Told;
use crate::assemblage::{self, Decision, KustomizationSeen, SourceSeen, World};
use crate::hub::interests::MADE;
use crate::hub::reach::{PATIENCE, is_gone, tell_fate, was_forgotten};
use crate::hub::remote::Fate;
use crate::hub::rollout::READING;
use crate::hub::view::{View, unsettled};
use crate::namespaces::{has_namespace, namespace};
use crate::observe::kept::Kept;
use crate::observe::seen::Assembled;
use crate::reasons::Reason;
use crate::reasons::condition::DELETING;
use crate::remote::summary;
use crate::render::flux::TARGET_NAMESPACE;
use crate::specialise::Specialised;
use crate::steps::Steps;
use crate::{conditions, kinds};

/// One assemblage, where it is expanded.
pub(crate) struct Expansion<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) item: &'a Item<Assembled>,
    /// What became of the cluster that it is for: where that is gone, what was applied there is gone with it.
    pub(crate) fate: Fate,
    /// What is recorded of that cluster.
    pub(crate) record: Option<ClusterRecord>,
    /// Whether it has been asked which cluster it is, and has not answered yet.
    pub(crate) is_unread: bool,
    /// Whether there may be Assemblages in it that we have no right to see: another control plane's.
    pub(crate) is_hidden: bool,
    /// Why nothing is applied to that cluster under its name, if nothing is: a word, and a sentence. What was applied stays.
    pub(crate) objection: Option<(&'static str, String)>,
}

/// Why nothing is taken away in a cluster that may be another control plane's.
const HIDDEN: &str = "our user in the cluster has no right to list and watch Assemblages, so it is not known whose it is; what was \
     applied there stays until that is known";

/// Whether Flux is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flux {
    There,
    /// It is not installed.
    Missing,
    /// There is no right to see its objects.
    Hidden,
    /// That is not known yet.
    Unread,
}

impl Flux {
    /// Why nothing can be applied, where it is known that nothing can.
    fn trouble(self) -> Option<&'static str> {
        match self {
            Self::Missing => {
                Some("Flux is not installed here: there are no GitRepositories or Kustomizations")
            }
            Self::Hidden => Some(
                "there is no right to list and watch the GitRepositories and Kustomizations of Flux here",
            ),
            Self::There | Self::Unread => None,
        }
    }
}

impl Expansion<'_> {
    fn flux(&self, facts: &Facts) -> Flux {
        let (home, source) = (&self.view.home, &kinds::GIT_REPOSITORY);
        let kustomization = &kinds::KUSTOMIZATION;
        if facts.is_absent(home, source) || facts.is_absent(home, kustomization) {
            return Flux::Missing;
        }
        let sources = self.store::<SourceSeen>(source);
        let kustomizations = self.store::<KustomizationSeen>(kustomization);
        let seen = [
            (source, sources.is_some_and(Store::is_synced)),
            (kustomization, kustomizations.is_some_and(Store::is_synced)),
        ];
        let unseen: Vec<&Kind> = seen
            .into_iter()
            .filter_map(|(kind, is_seen)| (!is_seen).then_some(kind))
            .collect();
        let is_hidden = |kind: &&Kind| facts.is_unseen(Unseen::Forbidden, home, kind);
        if unseen.is_empty() {
            Flux::There
        } else if unseen.iter().any(is_hidden) {
            Flux::Hidden
        } else {
            Flux::Unread
        }
    }

    /// Whether the cluster that it is for is gone for certain.
    fn is_gone(&self, now: Timestamp) -> bool {
        is_gone(&self.kept().status_but_syncs().conditions, self.fate, now)
    }

    /// Whether the cluster that it is for is gone for certain, or was when this was forgotten: nothing is to be taken away in it.
    fn is_forgotten(&self, now: Timestamp) -> bool {
        let conditions = self.kept().status_but_syncs().conditions;
        is_gone(&conditions, self.fate, now) || was_forgotten(&conditions, self.object())
    }

    /// Whether nothing stands for the cluster that it is for, but not for long enough to be certain.
    fn is_absent(&self, now: Timestamp) -> bool {
        self.fate == Fate::Absent && !self.is_gone(now)
    }

    /// The plan.
    pub(crate) fn plan(&self, facts: &Facts, now: Timestamp) -> Plan {
        let mut steps = Steps::new(facts, now);
        let finalizers = Finalizers::of(self.object());
        let flux = self.flux(facts);
        let until = unsettled(self.object(), now);
        match finalizers.phase(EXPANDED) {
            Phase::Unguarded => {
                let add = finalizer::add(self.target(), &finalizers, EXPANDED, purpose::GUARD);
                steps.prepare(add);
            }
            Phase::Released => {}
            Phase::Ending if self.view.is_undefined(&kinds::ASSEMBLAGE) => {
                // What is applied stays, and is known again when there are assemblages again.
                self.release(&mut steps, &finalizers);
            }
            Phase::Ending if until.is_some() => steps.plan.wake_at = until,
            Phase::Ending if self.fate == Fate::Unread || self.is_absent(now) => {
                // It may be there again in a moment: then what was applied there is taken away.
                self.tell(&mut steps, self.kept().status().syncs, now);
            }
            Phase::Ending => self.end(&mut steps, facts, &finalizers, (flux, now)),
            Phase::Guarded if self.is_gone(now) => steps.delete(self.target(), purpose::FORGET),
            Phase::Guarded => self.keep(&mut steps, facts, (flux, now)),
        }
        steps.plan
    }

    /// Brings what it is expanded to to what it asks for, or tells why not.
    fn keep(&self, steps: &mut Steps<'_>, facts: &Facts, (flux, now): (Flux, Timestamp)) {
        if let Some((reason, message)) = &self.objection {
            if let Some(at) = later(now, PATIENCE) {
                // Whoever ends it may change another object than this.
                steps.plan.wake(at);
            }
            self.tell_blocked(steps, (*reason, message.as_str()), now);
        } else if let Some(trouble) = flux.trouble() {
            self.tell_blocked(steps, (Reason::FluxMissing.as_str(), trouble), now);
        } else if self.is_unread || flux == Flux::Unread {
            wake(steps, now);
        } else {
            self.expand(steps, facts, now);
        }
    }

    fn expand(&self, steps: &mut Steps<'_>, facts: &Facts, now: Timestamp) {
        let mut world = self.world(facts);
        self.make_namespaces(&mut world, steps, facts, now);
        let decision = assemblage::decide(&world, now);
        let is_unread = world
            .syncs
            .iter()
            .any(|(_, specialised)| matches!(specialised, Specialised::Unread { .. }));
        if is_unread {
            wake(steps, now);
        }
        self.delete(&decision, steps);
        let Decision {
            apply, mend, syncs, ..
        } = decision;
        for mended in mend {
            if let Some(target) = self.made(&kinds::GIT_REPOSITORY, &mended.name) {
                let action = Action::Patch {
                    target,
                    purpose: purpose::SOURCE,
                    body: mended.body,
                };
                steps.act(action, Vec::new());
            }
        }
        for applied in apply {
            let purpose = purpose_of(&applied.object.kind);
            steps.plan.prepares |= purpose == purpose::VALUES;
            steps.apply(applied, purpose, Vec::new());
        }
        self.tell(steps, syncs, now);
    }

    /// Namespaces that something is to be in are made first. A sync whose namespace has not been seen waits.
    fn make_namespaces(
        &self,
        world: &mut World,
        steps: &mut Steps<'_>,
        facts: &Facts,
        now: Timestamp,
    ) {
        for name in self.namespaces() {
            let mut instead = Specialised::Unread {
                needs: BTreeSet::new(),
                references: BTreeSet::new(),
            };
            match has_namespace(self.view.stores, facts, &self.view.home, &name) {
                Some(true) => continue,
                Some(false) => {
                    steps.plan.prepares = true;
                    let made = namespace(&name);
                    if let Some(said) = world.refusals.get(&made.object) {
                        let said = assemblage::state::shortened(said);
                        instead = Specialised::Blocked {
                            reason: Reason::RefusedByApi.as_str(),
                            message: format!("the API refused to make namespace {name}: {said}"),
                            references: BTreeSet::new(),
                        };
                    }
                    steps.apply(made, purpose::NAMESPACE, Vec::new());
                }
                None => wake(steps, now),
            }
            for (sync, specialised) in &mut world.syncs {
                if target_namespace(sync).as_ref() == Some(&name) {
                    *specialised = instead.clone();
                }
            }
        }
    }

    fn tell(&self, steps: &mut Steps<'_>, syncs: Vec<SyncStatus>, now: Timestamp) {
        let before = self.kept().status();
        let generation = self.meta().generation;
        let mut after = AssemblageStatus {
            observed_generation: Some(generation),
            conditions: before.conditions.clone(),
            cluster: self.record.clone(),
            summary: Some(summary(&syncs)),
            syncs,
        };
        conditions::set(&mut after, generation, now);
        if let Some(at) = tell_fate(&mut after.conditions, self.fate, generation, now) {
            steps.plan.wake(at);
        }
        let stored = self.object().get("status");
        steps.status(self.target(), (&before, stored), &after);
    }

    /// Nothing can be applied, and that is told on each sync.
    fn tell_blocked(&self, steps: &mut Steps<'_>, (reason, message): (&str, &str), now: Timestamp) {
        let before = self.kept().status().syncs;
        let told = |sync: NamedSync| {
            let before = before.iter().find(|told| told.name == sync.name);
            let told = Told::new(SyncState::Blocked, reason, message.to_owned());
            assemblage::state::since(before, &sync.name, sync.revision, told, now)
        };
        let syncs = self.syncs().into_iter().map(told).collect();
        self.tell(steps, syncs, now);
    }

    /// It is being deleted, and so is what was applied: that is told on each sync.
    fn tell_going(&self, steps: &mut Steps<'_>, now: Timestamp) {
        let before = self.kept().status().syncs;
        let told = |known: &SyncStatus| {
            let message = "it is being deleted, and what was applied goes with it".to_owned();
            let told = Told::new(SyncState::Updating, DELETING, message);
            let revision = known.observed_revision.clone();
            assemblage::state::since(Some(known), &known.name, revision, told, now)
        };
        let syncs = before.iter().map(told).collect();
        self.tell(steps, syncs, now);
    }

    fn delete(&self, decision: &Decision, steps: &mut Steps<'_>) {
        let kinds = [
            (kinds::KUSTOMIZATION, &decision.delete_kustomizations),
            (kinds::GIT_REPOSITORY, &decision.delete_sources),
            (kinds::SECRET, &decision.delete_secrets),
        ];
        for (kind, names) in kinds {
            for name in names {
                if let Some(target) = self.made(&kind, name) {
                    steps.delete(target, purpose::PRUNE);
                }
            }
        }
    }

    /// Something that was made, as it was seen.
    fn made(&self, kind: &Kind, name: &str) -> Option<Target> {
        let namespace = &self.meta().namespace;
        let store = if *kind == kinds::KUSTOMIZATION {
            self.store::<KustomizationSeen>(kind)
        } else if *kind == kinds::GIT_REPOSITORY {
            self.store::<SourceSeen>(kind)
        } else {
            self.view.secrets(MADE)
        };
        let meta = &store?.get(namespace, name)?.meta;
        let object = ObjectRef::local(kind.clone(), namespace, name);
        Some(Target::seen(object, meta))
    }

    /// Takes away all that was made for it, Kustomizations first: Flux needs their sources until what was applied is gone.
    fn end(
        &self,
        steps: &mut Steps<'_>,
        facts: &Facts,
        finalizers: &Finalizers,
        (flux, now): (Flux, Timestamp),
    ) {
        match (flux, flux.trouble()) {
            (Flux::Unread, _) => return wake(steps, now),
            (Flux::Hidden, Some(trouble)) => {
                // What was made for it can neither be seen nor taken away.
                let told = (Reason::FluxMissing.as_str(), trouble);
                return self.tell_blocked(steps, told, now);
            }
            _ => {}
        }
        let mut world = self.world(facts);
        world.syncs.clear();
        let ours: BTreeMap<&String, &KustomizationSeen> = world
            .kustomizations
            .iter()
            .filter(|(_, seen)| seen.is_of(&world.name))
            .collect();
        if self.is_forgotten(now) || self.objection.is_some() {
            // Nothing can be taken away in a cluster that is not there, and nothing is in one that is not meant by this name: Flux
            // has to be told not to try.
            let active: Vec<&String> = ours
                .iter()
                .filter(|(_, seen)| !seen.is_suspended)
                .map(|(name, _)| *name)
                .collect();
            for name in &active {
                let target = self.made(&kinds::KUSTOMIZATION, name);
                steps.prepare(target.map(|target| Action::Patch {
                    target,
                    purpose: purpose::CLEAR,
                    body: json!({"spec": {"suspend": true}}),
                }));
            }
            if !active.is_empty() {
                return;
            }
        } else if !ours.is_empty() {
            if self.is_hidden {
                if let Some(at) = later(now, PATIENCE) {
                    steps.plan.wake(at);
                }
                return self.tell_blocked(steps, (Reason::AgentMissing.as_str(), HIDDEN), now);
            }
            self.tell_going(steps, now);
        }
        let decision = assemblage::decide(&world, Timestamp::UNIX_EPOCH);
        self.delete(&decision, steps);
        let is_clean = ours.is_empty() && self.secrets().is_empty();
        let has_deletions = !decision.delete_sources.is_empty();
        if is_clean && !has_deletions {
            self.release(steps, finalizers);
        }
    }

    fn release(&self, steps: &mut Steps<'_>, finalizers: &Finalizers) {
        let remove = finalizer::remove(self.target(), finalizers, EXPANDED, purpose::RELEASE);
        if let Some(remove) = remove {
            steps.act(remove, Vec::new());
        }
    }
}

fn wake(steps: &mut Steps<'_>, now: Timestamp) {
    if let Some(at) = later(now, READING) {
        steps.plan.wake(at);
    }
}

/// The namespace that a sync is to be in, unless every cluster has it.
fn target_namespace(sync: &NamedSync) -> Option<String> {
    let package = sync.package.as_ref()?;
    let name = package.kustomize.as_ref()?.target_namespace.clone()?;
    (name != TARGET_NAMESPACE).then_some(name)
}

fn purpose_of(kind: &Kind) -> Purpose {
    if *kind == kinds::SECRET {
        purpose::VALUES
    } else if *kind == kinds::GIT_REPOSITORY {
        purpose::SOURCE
    } else {
        purpose::SWITCH
    }
}

/// How many syncs of an assemblage are how far, for numbers.
pub(crate) fn states(assemblage: &Kept) -> BTreeMap<SyncState, u32> {
    let mut all = BTreeMap::new();
    for told in assemblage.status().syncs {
        *all.entry(told.state).or_default() += 1;
    }
    all
}
