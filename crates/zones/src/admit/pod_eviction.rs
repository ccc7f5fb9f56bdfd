//! `/admission/pod-eviction`: a pod is evicted only if its zone-aware budget can bear it.
//!
//! A refusal after which the client tries again may rest on what has been seen. Everything else rests on budgets, pods and
//! zones as they are after the review arrived, and on the record of the pods that were let go before (see
//! [`super::reservations`]), which an eviction that is let through enters. A dry run reads, and records nothing. Whatever
//! is not known stops the eviction.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_kernel::admission::{
    Admission, Admit, Collection, Expiry, Hold, InFlight, Reading, Remarks, Review, Verdict,
};
use slipway_kernel::identity::kinds;
use slipway_kernel::parts::Parts;
use slipway_kernel::{ClusterId, Facts, Stores};

use super::inquiry::{Decision, Inquiry, Pending, expiry};
use super::reservations::{self, Map};
use super::seen::{self, Basis, Unlisted};
use crate::disruption::outcome::Outcome;
use crate::disruption::{CountedPod, Denial, Scene, budget_of, evict};
use crate::observe::{ZONE_BUDGET, blind, blindness, held_here, keep_later};
use crate::settings::Replicas;
use crate::zpdb::{Budget, BudgetSeen};

/// How often a map that others change is looked at again.
const MAX_ROUNDS: u32 = 16;

/// What the log says of each pod that counts against a budget, as people look for it.
const NOT_READY: &str = "Pod not considered ready";

/// The webhook.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodEviction {
    /// Whether there may be other replicas, which have to know whom this one lets go.
    pub replicas: Replicas,
}

/// What one review is judged on.
struct Case<'a> {
    hook: PodEviction,
    review: &'a Review,
    stores: &'a Stores,
    facts: &'a Facts,
    now: Timestamp,
}

fn decided(outcome: Outcome, verdict: Verdict) -> Decision {
    Decision {
        remarks: Remarks {
            count: Some(outcome.count()),
            ..Remarks::default()
        },
        ..verdict.into()
    }
}

fn idle() -> Decision {
    let warned = Verdict::warned("pod is not ready");
    decided(Outcome::PodNotReady, warned)
}

fn free() -> Decision {
    decided(Outcome::PodNotInScope, Verdict::allowed())
}

/// What was to be read could not be.
fn unread(why: &str) -> Denial {
    let message = format!("unable to determine pod status in related StatefulSet: {why}");
    Denial::new(Outcome::StatusNotDetermined, message)
}

fn current(reading: &Reading) -> Result<(), Denial> {
    match reading {
        Reading::Current => Ok(()),
        Reading::Undefined => Err(unread("the API does not serve it")),
        Reading::Failed(why) => Err(unread(why)),
    }
}

fn denied(denial: Denial) -> Decision {
    let (_, code) = denial.outcome.pair();
    let mut decision = decided(denial.outcome, Verdict::refused(code, denial.message));
    let is_announced = !denial.away.is_empty();
    decision.remarks.notes = is_announced.then_some((NOT_READY, denial.away));
    decision
}

impl From<Unlisted> for Denial {
    fn from(unlisted: Unlisted) -> Self {
        Self::new(Outcome::NotKnownYet, unlisted.to_string())
    }
}

fn check(review: &Review) -> Result<(), Denial> {
    let wrong = |message: String| Err(Denial::new(Outcome::InvalidRequest, message));
    if review.operation != "CREATE" {
        let operation = &review.operation;
        return wrong(format!("request operation is not create, got: {operation}"));
    }
    if review.subresource != "eviction" {
        let subresource = &review.subresource;
        return wrong(format!(
            "request SubResource is not eviction, got: {subresource}"
        ));
    }
    if review.name.is_empty() || review.namespace.is_empty() {
        return wrong("request did not include both a namespace and a name".to_owned());
    }
    Ok(())
}

impl<'a> Case<'a> {
    fn decide(&self, inquiry: &mut Inquiry<'_>) -> Result<Decision, Pending> {
        self.judge(inquiry)
            .map(|judged| judged.unwrap_or_else(denied))
    }

    fn judge(&self, inquiry: &mut Inquiry<'_>) -> Result<Result<Decision, Denial>, Pending> {
        if let Err(denial) = check(self.review) {
            return Ok(Err(denial));
        }
        if !inquiry.has_read()
            && let Err(denial) = self.seen()
            && denial.is_passing()
        {
            return Ok(Err(denial));
        }
        if let Some(free) = self.unguarded(inquiry)? {
            return Ok(Ok(free));
        }
        let readings = inquiry.read([kinds::POD, ZONE_BUDGET, kinds::STATEFUL_SET])?;
        let subject = match self.read(readings) {
            Ok(subject) => subject,
            Err(denial) => return Ok(Err(denial)),
        };
        let (pod, guard) = match subject {
            Subject::Free(decision) => return Ok(Ok(*decision)),
            Subject::Guarded(pod, guard) => (pod, guard),
        };
        // What is known here already may be enough to say no.
        if let Err(denial) = self.look(guard, &pod, &self.held(), Basis::Read) {
            return Ok(Err(denial));
        }
        if self.review.is_dry_run {
            return Ok(Ok(decided(Outcome::Allowed, Verdict::allowed())));
        }
        self.reserve(inquiry, guard, &pod)
    }

    /// What has been seen says.
    fn seen(&self) -> Result<(), Denial> {
        match self.subject(Basis::Seen)? {
            Subject::Free(_) => Ok(()),
            Subject::Guarded(pod, guard) => self.look(guard, &pod, &self.held(), Basis::Seen),
        }
    }

    /// Lets a pod go in whose namespace there are no budgets: then nothing else has to be read.
    fn unguarded(&self, inquiry: &mut Inquiry<'_>) -> Result<Option<Decision>, Pending> {
        let Review {
            namespace, name, ..
        } = self.review;
        let pod = seen::pod_of(self.stores, namespace, name, Basis::Seen);
        let (Ok(Some(pod)), true) = (pod, seen::has_no_budget(self.stores, namespace)) else {
            return Ok(None);
        };
        let [budgets] = inquiry.read([ZONE_BUDGET])?;
        let is_sure = self.trust(budgets).is_ok();
        Ok(is_sure.then(|| if pod.is_idle { idle() } else { free() }))
    }

    /// Whether budgets are known as they are now. What there may be of them that the watch does not know stops evictions
    /// whatever a read says: a definition that has just come may have budgets a moment later.
    fn trust(&self, budgets: Reading) -> Result<(), Denial> {
        if let Some(why) = blind(self.facts, &ClusterId::local()) {
            let (message, _) = blindness(why, &self.review.namespace);
            return Err(Denial::new(Outcome::BudgetsHidden, message));
        }
        match budgets {
            Reading::Current => Ok(()),
            // Both must say so: the API's word now, and that of the watch.
            Reading::Undefined if self.facts.is_absent(&ClusterId::local(), &ZONE_BUDGET) => Ok(()),
            Reading::Undefined => Err(Unlisted::BUDGETS.into()),
            Reading::Failed(why) => Err(unread(&why)),
        }
    }

    /// The pod and its budget, as they are now.
    fn read(&self, [pods, budgets, sets]: [Reading; 3]) -> Result<Subject<'a>, Denial> {
        current(&pods)?;
        let subject = match (self.trust(budgets), self.subject(Basis::Read)) {
            // What does no work may go whatever the budgets are.
            (Err(denial), Ok(Subject::Free(free))) if !free.warns() => return Err(denial),
            (Err(denial), Ok(Subject::Guarded(..))) => return Err(denial),
            (_, subject) => subject?,
        };
        if let Subject::Guarded(..) = subject {
            current(&sets)?;
        }
        Ok(subject)
    }

    /// The pod and its budget, if it has one.
    fn subject(&self, basis: Basis) -> Result<Subject<'a>, Denial> {
        let Review {
            namespace, name, ..
        } = self.review;
        let pod = seen::pod_of(self.stores, namespace, name, basis)?.ok_or_else(|| {
            Denial::new(Outcome::PodNotFound, format!("pods \"{name}\" not found"))
        })?;
        if pod.is_idle {
            return Ok(Subject::Free(Box::new(idle())));
        }
        if basis == Basis::Seen
            && let Some(why) = blind(self.facts, &ClusterId::local())
        {
            let (message, _) = blindness(why, namespace);
            return Err(Denial::new(Outcome::BudgetsHidden, message));
        }
        let budgets = seen::budgets(self.stores, self.facts, namespace, basis)?;
        let Some((budget, terms)) = budget_of(&budgets, pod.labels)? else {
            return Ok(Subject::Free(Box::new(free())));
        };
        let mut all = budgets.into_iter();
        let seen = all.find(|(name, _)| *name == budget);
        Ok(match seen {
            Some((name, seen)) => Subject::Guarded(pod, (name, seen, terms)),
            None => Subject::Free(Box::new(free())),
        })
    }

    /// What this replica has let go, or is deleting.
    fn held(&self) -> BTreeMap<String, Timestamp> {
        held_here(self.facts)
    }

    fn look(
        &self,
        budget: Guard<'a>,
        pod: &CountedPod<'_>,
        held: &BTreeMap<String, Timestamp>,
        basis: Basis,
    ) -> Result<(), Denial> {
        let namespace = &self.review.namespace;
        let (name, seen, terms) = budget;
        let zones = seen::zones(self.stores, namespace, terms, pod, basis)?;
        let scene = Scene {
            budgets: &[(name, seen)],
            zones: &zones,
            held,
            now: self.now,
        };
        evict(&scene, pod, None)
    }

    /// Whether there may be others who have to know whom this replica lets go.
    fn has_company(&self) -> bool {
        !self.hook.replicas.is_one(self.facts)
    }

    /// Lets the pod go once that is recorded for all replicas.
    fn reserve(
        &self,
        inquiry: &mut Inquiry<'_>,
        budget: Guard<'a>,
        pod: &CountedPod<'_>,
    ) -> Result<Result<Decision, Denial>, Pending> {
        let namespace = self.review.namespace.as_str();
        let unrecorded = |why: &str| {
            let message = format!("the eviction could not be recorded: {why}");
            Ok(Err(Denial::new(Outcome::StatusNotDetermined, message)))
        };
        for round in 0..MAX_ROUNDS {
            let map = match reservations::read(inquiry, round, namespace, budget.0)? {
                // A map that was seen can be kept: others keep it, and would not know.
                Ok(Map::Forbidden) if seen::is_kept(self.stores, namespace, budget.0) => {
                    return unrecorded("reading it is forbidden just now");
                }
                Ok(Map::Forbidden) if self.has_company() => {
                    let why = format!(
                        "get on configmaps in namespace {namespace} is not granted, and other replicas would not know"
                    );
                    return match self.hook.replicas {
                        // It may yet turn out to be the only one, in seconds.
                        Replicas::OneWithoutLease => Ok(Err(Denial::new(Outcome::Denied, why))),
                        _ => unrecorded(&why),
                    };
                }
                Ok(map) => map,
                Err(failure) => return unrecorded(&failure.message),
            };
            let mut held = reservations::held(&map);
            keep_later(&mut held, self.held());
            if let Err(denial) = self.look(budget, pod, &held, Basis::Read) {
                return Ok(Err(denial));
            }
            let place = (namespace, budget.0);
            let written = reservations::write(inquiry, round, place, &map, pod.uid, self.now)?;
            let written = match written {
                // The only replica remembers by itself. A map that is there was written by somebody: then this is an
                // accident, and others would not know. What a quota forbids is not written either, but it is no right
                // that is missing: it is not let go.
                Err(failure) if failure.is_no_right && map == Map::None && !self.has_company() => {
                    Ok(true)
                }
                written => written,
            };
            match written {
                Ok(true) => {
                    let mut decision = decided(Outcome::Allowed, Verdict::allowed());
                    decision.remarks.hold = Some(Hold {
                        uid: pod.uid.to_owned(),
                        until: reservations::until(self.now),
                        within: Collection {
                            kind: kinds::POD,
                            namespace: namespace.to_owned(),
                        },
                    });
                    return Ok(Ok(decision));
                }
                Ok(false) => {}
                Err(failure) => return unrecorded(&failure.message),
            }
        }
        let message = "many evictions are being decided at once; try again";
        Ok(Err(Denial::new(Outcome::Denied, message)))
    }
}

type Guard<'a> = (&'a str, &'a BudgetSeen, &'a Budget);

enum Subject<'a> {
    /// No budget stands in the way.
    Free(Box<Decision>),
    /// This one may.
    Guarded(CountedPod<'a>, Guard<'a>),
}

impl PodEviction {
    fn case<'a>(
        self,
        review: &'a Review,
        stores: &'a Stores,
        facts: &'a Facts,
        now: Timestamp,
    ) -> Case<'a> {
        Case {
            hook: self,
            review,
            stores,
            facts,
            now,
        }
    }
}

impl Admit for PodEviction {
    fn path(&self) -> &'static str {
        "/admission/pod-eviction"
    }

    fn judge_name(&self) -> &'static str {
        "admission.PodEviction()"
    }

    fn in_flight(&self) -> Option<InFlight> {
        Some(InFlight {
            name: "rollout_operator_zpdb_inflight_eviction_requests",
            help: "Evictions that are being judged",
        })
    }

    fn reads(&self) -> Parts {
        Parts::NONE
    }

    fn judge(
        &self,
        review: &Review,
        stores: &Stores,
        facts: &Facts,
        now: Timestamp,
    ) -> (Admission, Remarks) {
        let mut inquiry = Inquiry::open(review, facts);
        let case = self.case(review, stores, facts, now);
        let decided = case.decide(&mut inquiry);
        inquiry.admission(decided)
    }

    fn expire(&self, review: &Review, stores: &Stores, facts: &Facts, now: Timestamp) -> Expiry {
        let mut inquiry = Inquiry::over(review, facts);
        let case = self.case(review, stores, facts, now);
        let decided = case.decide(&mut inquiry);
        expiry(decided, Verdict::refused(500, "context deadline exceeded"))
    }
}
