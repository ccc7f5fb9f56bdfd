//! Which pods are replaced now, in which zone, and if none, why.
//!
//! ```text
//! every StatefulSet: OnDelete, status up to date, not being deleted     otherwise nothing
//! zones with a pod down: none → in order of names; one → that one; more → nothing
//! per zone: paused → the next; outdated pods → some of them, and no other zone; none → settle, the next
//! ```

use jiff::Timestamp;
use slipway_kernel::capability::show::count;
use slipway_kernel::identity::kinds;
use slipway_kernel::{Blocker, ObjectRef};

use super::reserve;
use crate::budget;
use crate::guard::{BudgetRefusal, Guard};
use crate::observe::{World, ZONE_BUDGET, blindness};
use crate::readiness::{Member, Survey};
use crate::reasons::Reason;

/// A pod that is to go.
#[derive(Debug, Clone)]
pub struct Victim<'w> {
    /// The place of its zone.
    pub zone: usize,
    /// The pod.
    pub member: Member<'w>,
}

/// What a look at the zones came to.
#[derive(Debug, Default)]
pub struct Rollout<'w> {
    /// Pods to be deleted, all of one zone.
    pub victims: Vec<Victim<'w>>,
    /// Zones that are done, and whose status does not say so yet.
    pub settled: Vec<usize>,
    /// The zone whose turn it is.
    pub turn: Option<usize>,
    /// Why not more is done.
    pub blockers: Vec<Blocker>,
    /// When that changes by itself.
    pub wake_at: Option<Timestamp>,
}

/// What became of one zone.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// There is nothing to do in it.
    Done,
    /// It has the turn.
    Ongoing,
}

struct Decider<'a, 'w> {
    world: &'w World,
    surveys: &'a [Survey<'w>],
    now: Timestamp,
    rollout: Rollout<'w>,
}

/// Decides about the pods of a group.
pub fn decide<'w>(world: &'w World, surveys: &[Survey<'w>], now: Timestamp) -> Rollout<'w> {
    let mut decider = Decider {
        world,
        surveys,
        now,
        rollout: Rollout::default(),
    };
    decider.group();
    decider.rollout
}

impl<'w> Decider<'_, 'w> {
    fn group(&mut self) {
        if self.unfit() {
            return;
        }
        let disrupted: Vec<usize> = self
            .surveys
            .iter()
            .enumerate()
            .filter(|(_, survey)| survey.unavailable() > 0)
            .map(|(place, _)| place)
            .collect();
        for place in &disrupted {
            self.wake(self.surveys.get(*place).and_then(|s| s.settled_at));
        }
        match disrupted.as_slice() {
            [] => {
                for place in 0..self.surveys.len() {
                    if self.zone(place) == Progress::Ongoing {
                        return;
                    }
                }
            }
            [only] => {
                self.rollout.turn = Some(*only);
                if self.zone(*only) == Progress::Done {
                    self.held_up(*only);
                }
            }
            several => {
                for place in several {
                    self.held_up(*place);
                }
            }
        }
    }

    fn wake(&mut self, at: Option<Timestamp>) {
        let now = self.now;
        if let Some(at) = at.filter(|at| *at > now) {
            let known = self.rollout.wake_at;
            self.rollout.wake_at = Some(known.map_or(at, |known| known.min(at)));
        }
    }

    fn block(&mut self, reason: Reason, object: ObjectRef, message: String, unblock: &str) {
        self.rollout
            .blockers
            .push(reason.blocker(object, message, unblock, self.now));
    }

    fn set_ref(&self, survey: &Survey<'_>) -> ObjectRef {
        self.world.set_ref(survey.zone)
    }

    /// Whether the group as a whole may not be touched.
    fn unfit(&mut self) -> bool {
        for survey in self.surveys {
            let set = survey.set();
            let name = survey.name();
            let generation = survey.zone.set.meta().generation;
            let (reason, message, unblock) = if set.strategy != "OnDelete" {
                (
                    Reason::WrongStrategy,
                    format!(
                        "StatefulSet {name} has {} update strategy while OnDelete is expected, skipping reconcile",
                        set.strategy
                    ),
                    "set spec.updateStrategy.type to OnDelete, or take it out of the group",
                )
            } else if set.is_deleting {
                (
                    Reason::Deleting,
                    format!("StatefulSet {name} is being deleted"),
                    "its deletion",
                )
            } else if set.status.observed_generation < generation {
                (
                    Reason::StatusLags,
                    format!(
                        "the controller of StatefulSet {name} has not yet observed generation {generation}"
                    ),
                    "the StatefulSet controller",
                )
            } else {
                continue;
            };
            let object = self.set_ref(survey);
            self.block(reason, object, message, unblock);
        }
        !self.rollout.blockers.is_empty()
    }

    /// Said of pods that an eviction may take, and that are still there: whoever evicts goes on trying, because somebody else
    /// refuses after us.
    fn let_go(survey: &Survey<'_>) -> String {
        match survey.let_go.as_slice() {
            [] => String::new(),
            pods => format!(
                "; counted as unavailable because it was let go, although it is still there: {}",
                pods.join(", ")
            ),
        }
    }

    /// A zone keeps the others from being touched.
    fn held_up(&mut self, place: usize) {
        let Some(survey) = self.surveys.get(place) else {
            return;
        };
        let set = survey.set();
        let message = format!(
            "StatefulSets have some not-Ready pods, skipping reconcile: {} has {} of {} unavailable ({} missing; status {}/{} ready){}{}",
            survey.name(),
            survey.unavailable(),
            set.desired(),
            survey.missing,
            set.status.ready,
            set.status.replicas,
            if set.is_paused { ", and is paused" } else { "" },
            Self::let_go(survey),
        );
        let object = self.set_ref(survey);
        let unblock = "the pods becoming ready";
        self.block(Reason::ZonesNotReady, object, message, unblock);
    }

    fn zone(&mut self, place: usize) -> Progress {
        let Some(survey) = self.surveys.get(place) else {
            return Progress::Done;
        };
        let set = survey.set();
        if set.is_paused {
            if survey.outdated() > 0 {
                let message = format!(
                    "{} is paused with {} pods to be replaced",
                    survey.name(),
                    survey.outdated()
                );
                let unblock = "removing the annotation grafana.com/rollout-paused";
                let object = self.set_ref(survey);
                self.block(Reason::Paused, object, message, unblock);
            }
            return Progress::Done;
        }
        if set.status.current_revision.is_empty() || set.status.update_revision.is_empty() {
            let message = format!("the status of {} names no revision", survey.name());
            let object = self.set_ref(survey);
            let unblock = "the StatefulSet controller";
            self.block(Reason::RevisionUnknown, object, message, unblock);
            return Progress::Ongoing;
        }
        if survey.outdated() == 0 {
            return self.settle(place, survey);
        }
        self.rollout.turn = Some(place);
        self.replace(place, survey);
        Progress::Ongoing
    }

    /// All pods of the zone are of its revision: it is done when they are ready.
    fn settle(&mut self, place: usize, survey: &Survey<'w>) -> Progress {
        if survey.unavailable() > 0 {
            let message = format!(
                "{} is up to date; {} not ready yet{}",
                survey.name(),
                count(survey.unavailable(), "pod"),
                Self::let_go(survey),
            );
            self.not_ready(survey, message);
            return Progress::Ongoing;
        }
        let status = &survey.set().status;
        if status.current_revision != status.update_revision {
            self.rollout.settled.push(place);
        }
        Progress::Done
    }

    fn not_ready(&mut self, survey: &Survey<'w>, message: String) {
        let object = self.set_ref(survey);
        self.block(Reason::NotReady, object, message, "the pods becoming ready");
    }

    fn replace(&mut self, place: usize, survey: &Survey<'w>) {
        let mut guard = Guard::new(self.world, self.now);
        let victims = budget::victims(survey);
        for member in &victims.stuck {
            guard.take(member);
            self.rollout.victims.push(Victim {
                zone: place,
                member: (*member).clone(),
            });
        }
        let hidden = self.hidden();
        let is_seen = hidden.is_none();
        if let Some((reason, message, unblock)) = hidden
            && !victims.next.is_empty()
        {
            let object = self.set_ref(survey);
            self.block(reason, object, message, unblock);
        }
        let asked = victims.next.iter().filter(|_| is_seen);
        for member in asked {
            match guard.ask(survey, member) {
                Ok(()) => self.rollout.victims.push(Victim {
                    zone: place,
                    member: (*member).clone(),
                }),
                Err(denial) => self.refused(member, &denial),
            }
        }
        let unadopted = survey.members.iter().find(|m| m.is_outdated && !m.is_owned);
        if let Some(member) = unadopted {
            let name = &member.pod.meta().name;
            let object = self.world.object(kinds::POD, name);
            let message = format!(
                "pod {name} is named after {} but not controlled by it",
                survey.name()
            );
            let unblock = "its adoption by the StatefulSet controller, or its deletion";
            self.block(Reason::NotAdopted, object, message, unblock);
        }
        let is_idle = victims.stuck.is_empty() && victims.next.is_empty() && victims.waiting == 0;
        if is_idle && unadopted.is_none() {
            let message = format!(
                "the outdated pods of {} are on their way out; {} unavailable{}",
                survey.name(),
                survey.unavailable(),
                Self::let_go(survey),
            );
            self.not_ready(survey, message);
        }
        if victims.waiting > 0 && is_seen {
            let message = format!(
                "{}: {} unavailable, {} reserved; limit {}; {} still to be replaced{}",
                survey.name(),
                survey.unavailable(),
                victims.next.len(),
                survey.set().most_unavailable(),
                count(victims.waiting, "pod"),
                Self::let_go(survey),
            );
            let object = self.set_ref(survey);
            let unblock = "the pods becoming ready, or a greater rollout-max-unavailable";
            self.block(Reason::MaxUnavailable, object, message, unblock);
        }
    }

    /// What could forbid that pods go and cannot be seen, and what ends that.
    fn hidden(&self) -> Option<(Reason, String, &'static str)> {
        if let Some(why) = self.world.blind {
            let (message, unblock) = blindness(why, &self.world.namespace);
            return Some((Reason::BudgetsHidden, message, unblock));
        }
        let (message, unblock) = reserve::hidden(self.world)?;
        Some((Reason::NotesHidden, message, unblock))
    }

    fn refused(&mut self, member: &Member<'_>, denial: &BudgetRefusal) {
        let name = &member.pod.meta().name;
        let object = match &denial.budget {
            Some(budget) => self.world.object(ZONE_BUDGET, budget),
            None => self.world.object(kinds::POD, name),
        };
        let message = format!("pod eviction denied for {name}: {}", denial.message);
        self.wake(denial.until);
        let unblock = "the pods that it counts becoming ready";
        let mut blocker = Reason::DisruptionBudget.blocker(object, message, unblock, self.now);
        blocker.until = denial.until;
        self.rollout.blockers.push(blocker);
    }
}
