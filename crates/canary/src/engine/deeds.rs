//! What to do so that the world is as the run says.
//!
//! Deeds are levels and not edges: each is asked for until it is seen to be done, and then not again. What makes something
//! larger may be done at any time; what makes something smaller waits until nobody needs it any more.

use jiff::Timestamp;
use slipway_api::canary::Phase;
use slipway_kernel::instant::later;

use super::advance::{Hold, News, is_promoted};
use super::promote::{divided, needed};
use super::rules::{Finish, Rules, Strategy};
use super::run::{Revision, Run};
use super::sight::{Readiness, Sight, Weights};
use crate::reasons::Reason;

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Divide the traffic so.
    Route(Weights),
    /// Give the source so many replicas.
    SizeSource(u32),
    /// Give the target so many replicas.
    SizeTarget(u32),
    /// Make the source be of this version; make it, if it is not there.
    Template(Revision),
}

/// All that is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deeds {
    /// What, in this order.
    pub list: Vec<Deed>,
    /// Why not more.
    pub holds: Vec<Hold>,
    /// What is told of it.
    pub news: Vec<News>,
}

impl Deeds {
    fn hold(&mut self, reason: Reason, message: impl Into<String>) {
        self.holds.push(Hold {
            reason,
            message: message.into(),
            until: None,
        });
    }
}

/// What is to be done now. The run must have been written.
pub fn deeds(rules: &Rules, run: &Run, sight: &Sight, now: Timestamp) -> Deeds {
    let mut deeds = Deeds::default();
    let is_ours = !matches!(run.phase, Phase::Terminating | Phase::Terminated);
    if rules.suspend || !is_ours {
        return deeds;
    }
    let scene = Scene {
        rules,
        run,
        sight,
        now,
    };
    if let Some(revision) = scene.template() {
        deeds.list.push(Deed::Template(revision.clone()));
    }
    scene.route(&mut deeds);
    scene.size_target(&mut deeds);
    scene.size_source(&mut deeds);
    deeds
}

/// How so many replicas are divided by a weight: the target's, then the source's. Neither is left without while it has a
/// share.
pub fn split(replicas: u32, weight: u8) -> (u32, u32) {
    let weight = u32::from(weight.min(100));
    let target = share(replicas, weight).max(u32::from(weight > 0));
    let source = replicas.saturating_sub(target);
    (target, source.max(u32::from(weight < 100)))
}

/// So many percent, rounded up.
fn share(replicas: u32, percent: u32) -> u32 {
    let share = (u64::from(replicas) * u64::from(percent)).div_ceil(100);
    u32::try_from(share).unwrap_or(u32::MAX)
}

struct Scene<'a> {
    rules: &'a Rules,
    run: &'a Run,
    sight: &'a Sight,
    now: Timestamp,
}

impl Scene<'_> {
    /// The version that the source should be of, where it is not.
    fn template(&self) -> Option<&Revision> {
        let (run, source) = (self.run, &self.sight.source);
        if self.rules.finish == Finish::OntoTarget {
            return None;
        }
        let wanted = self.sight.target.revision.as_ref();
        let is_gone = source.readiness == Readiness::Missing;
        match run.phase {
            Phase::Initializing if is_gone => wanted,
            // It never became ready, and a person has corrected the workload.
            Phase::Initializing if self.is_unborn() && source.revision.as_ref() != wanted => wanted,
            Phase::Promoting if !is_promoted(run, self.sight) => {
                run.target.as_ref().filter(|target| wanted == Some(*target))
            }
            // A promotion was taken back, or the version that served is wanted again after one that failed.
            Phase::Failed if run.weight == 0 || run.draining || !run.is_new() => {
                let serving = run.serving.as_ref();
                let seen = source.revision.as_ref();
                serving.filter(|serving| match seen {
                    Some(seen) => seen != *serving,
                    None => is_gone && wanted == Some(*serving),
                })
            }
            // The promotion failed, and another version came: what served before is to be compared with it.
            Phase::Failed if wanted != run.target.as_ref() => {
                let is_other = source.revision.is_some() && source.revision != run.serving;
                let is_broken = is_other && !source.state().is_ready() && !is_gone;
                run.serving.as_ref().filter(|_| is_broken)
            }
            // Somebody has deleted it: it is made again of what the workload is, where that is what served.
            Phase::Finalising if is_gone => {
                run.target.as_ref().filter(|target| wanted == Some(*target))
            }
            Phase::Initialized | Phase::Succeeded | Phase::Waiting if is_gone => run
                .serving
                .as_ref()
                .filter(|serving| wanted == Some(*serving)),
            _ => None,
        }
    }

    /// Whether what is to serve has never answered anybody: it is down, and nobody is led to it yet.
    fn is_unborn(&self) -> bool {
        self.sight.source.state().is_down() && self.sight.routing.weights.is_none()
    }

    fn route(&self, deeds: &mut Deeds) {
        let (routing, wanted) = (&self.sight.routing, self.run.weights());
        if routing.weights == Some(wanted) {
            if let Some(why) = &routing.pending {
                deeds.hold(Reason::RoutingPending, why.clone());
            }
            return;
        }
        let seen = routing.weights.unwrap_or_default();
        if wanted.exposes_more_than(seen) && !self.can_take(wanted) {
            let why = self.sight.target.readiness.why();
            deeds.hold(
                Reason::TargetNotReady,
                format!("the new version gets no more traffic yet: {why}"),
            );
            return;
        }
        let source = &self.sight.source.readiness;
        let is_first = self.run.phase == Phase::Initializing;
        let is_gone = *source == Readiness::Missing && wanted.source() > 0;
        if is_gone || (is_first && !source.is_ready()) {
            deeds.hold(Reason::SourceNotReady, source.why());
            return;
        }
        if let Some(text) = self.drift(wanted) {
            deeds.news.push(News {
                text,
                is_warning: true,
                alert: None,
            });
        }
        deeds.list.push(Deed::Route(wanted));
    }

    /// Whether the target can take what it is to have.
    fn can_take(&self, wanted: Weights) -> bool {
        let target = &self.sight.target;
        target.serves(self.run.target.as_ref()) && target.size >= self.target_size(wanted)
    }

    /// Whether somebody else has changed the weights: neither these were recorded, nor those before them.
    fn drift(&self, wanted: Weights) -> Option<String> {
        let is_running = matches!(self.run.phase, Phase::Progressing | Phase::WaitingPromotion);
        let Strategy::Weights(steps) = &self.rules.strategy else {
            return None;
        };
        if !is_running || wanted.target == 0 {
            return None;
        }
        let before = steps.iter().rev().find(|step| **step < wanted.target);
        let before = before.copied().unwrap_or_default();
        let (seen, wanted) = (self.sight.routing.weights?.target, wanted.target);
        (seen != before && seen != wanted).then(|| {
            format!("Somebody has given the new version weight {seen}; it is set to {wanted} again")
        })
    }

    fn size_target(&self, deeds: &mut Deeds) {
        let target = &self.sight.target;
        let is_up = match self.run.phase {
            Phase::Progressing | Phase::WaitingPromotion => !self.run.draining,
            Phase::Promoting => self.rules.finish == Finish::OntoTarget || self.run.weight > 0,
            Phase::Failed | Phase::Finalising => self.run.weight > 0,
            _ => false,
        };
        if is_up {
            let size = self.target_size(self.run.weights());
            let is_small = target.size < size && target.revision.is_some() && !self.is_scaled();
            if is_small || (target.size > size && self.is_more_than_its_share()) {
                deeds.list.push(Deed::SizeTarget(size));
            }
            return;
        }
        let is_down = match self.run.phase {
            Phase::Initializing => self.sight.source.state().is_ready(),
            // Whoever alone has pods keeps them.
            Phase::Finalising => {
                let is_down = self.sight.source.state().is_down();
                self.rules.finish == Finish::IntoSource && !is_down
            }
            // Another version may wait for leave already, or what serves be wanted again.
            Phase::Failed | Phase::Progressing | Phase::Waiting | Phase::Succeeded => {
                self.run.draining
            }
            _ => false,
        };
        let is_free = self.sight.routing.is_at(Weights::SOURCE) && self.is_let_go();
        if is_down && is_free && target.size > 0 {
            deeds.list.push(Deed::SizeTarget(0));
        }
    }

    /// Whether an autoscaler has the last word on the target's replicas: it had as many as its share needs when it got that.
    fn is_scaled(&self) -> bool {
        let target = &self.sight.target;
        let has_share = self.sight.routing.weights == Some(self.run.weights());
        target.most.is_some() && target.size > 0 && has_share
    }

    /// Whether the target has more replicas than its share, where these are the weights, and others are there for the rest.
    fn is_more_than_its_share(&self) -> bool {
        let Some(all) = divided(self.rules, self.run, self.sight) else {
            return false;
        };
        let source = &self.sight.source;
        let is_judged = matches!(self.run.phase, Phase::Progressing | Phase::WaitingPromotion);
        let is_led = self.sight.routing.is_at(self.run.weights());
        let is_borne = source.state().is_ready() && source.size >= split(all, self.run.weight).1;
        is_judged && is_led && is_borne
    }

    /// Whether the data plane has had its time to take the weights.
    fn is_let_go(&self) -> bool {
        let grace = self.rules.grace_in(self.run.phase);
        if grace.is_zero() {
            return true;
        }
        let end = self.run.free_since.and_then(|since| later(since, grace));
        end.is_some_and(|end| end <= self.now)
    }

    /// How many replicas the target has to have for this share.
    fn target_size(&self, weights: Weights) -> u32 {
        let (source, target) = (&self.sight.source, &self.sight.target);
        let size = match divided(self.rules, self.run, self.sight) {
            // One is there before it has a share: it is asked whether it may have one.
            Some(all) => split(all, weights.target).0.max(1),
            None if self.run.matching => target.full,
            None => target
                .full
                .max(share(source.size, u32::from(weights.target))),
        };
        target.bounded(size)
    }

    fn size_source(&self, deeds: &mut Deeds) {
        let source = &self.sight.source;
        let needed = || needed(self.rules, self.run, self.sight);
        let size = match (self.rules.finish, self.run.phase) {
            (Finish::IntoSource, Phase::Promoting) if source.revision == self.run.target => {
                needed()
            }
            // It is about to get all traffic back.
            (Finish::IntoSource, Phase::Failed)
                if [&self.run.serving, &self.run.target].contains(&&source.revision) =>
            {
                needed()
            }
            // A run that was cancelled, or the one before, may have taken some.
            (Finish::IntoSource, Phase::Finalising | Phase::Waiting | Phase::Succeeded)
                if self.run.replicas.is_some() =>
            {
                needed()
            }
            (Finish::OntoTarget, Phase::Failed) => source.size.max(source.full),
            (Finish::OntoTarget, Phase::Finalising) => {
                let is_free = self.sight.routing.is_at(Weights::to_target(100));
                if is_free && self.can_take(Weights::to_target(100)) {
                    0
                } else {
                    source.size
                }
            }
            (_, Phase::Progressing | Phase::WaitingPromotion) => self.split_source(),
            _ => source.size,
        };
        if size != source.size && source.readiness != Readiness::Missing {
            deeds.list.push(Deed::SizeSource(size));
        }
    }

    /// Where replicas are the weights, the source shrinks when the target's added pods are ready and requests are led to them. Where
    /// the target has all requests, the source keeps what it had: that is who there is to go back to.
    fn split_source(&self) -> u32 {
        let (source, target) = (&self.sight.source, &self.sight.target);
        let Some(all) = divided(self.rules, self.run, self.sight) else {
            return source.size;
        };
        let (for_target, for_source) = split(all, self.run.weight);
        let is_led = self.sight.routing.weights == Some(self.run.weights());
        let is_ready = target.readiness.is_ready() && target.size >= for_target;
        if for_source > source.size || (is_ready && is_led && self.run.weight < 100) {
            for_source
        } else {
            source.size
        }
    }
}
