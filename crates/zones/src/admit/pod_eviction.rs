//! `/admission/pod-eviction`: a pod is evicted only if its zone-aware budget can bear it.
//!
//! It decides on what has been seen, and asks the API only to record a pod that it lets go (see [`super::reservations`]),
//! and whether a pod under a budget that was seen doing no work still does none: nothing is recorded of that one, so a
//! replica that has not heard from the API for a while would let its successor go. A dry run records nothing and asks
//! nothing. Whatever is not known stops the eviction.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::admission::{Admission, Admit, Expiry, Remarks, Review, Verdict};
use slipway_kernel::identity::kinds;
use slipway_kernel::store::Projection;
use slipway_kernel::{Facts, Stores};

use super::disruption::{self, Denial, Scene, budget_of, evict};
use super::inquiry::{Decision, Failure, Inquiry, Pending, expiry};
use super::outcome::Outcome;
use super::reservations::{self, Map};
use super::seen::{self, Unlisted};
use super::zpdb::{Budget, BudgetSeen};
use crate::observe::{Pod, blind, blindness};

/// How often a map that others change is looked at again.
const MOST_ROUNDS: u32 = 16;

/// What the log says of each pod that counts against a budget, as people look for it.
const NOT_READY: &str = "Pod not considered ready";

/// The webhook.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodEviction;

/// What one review is judged on.
struct Case<'a> {
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

fn denied(denial: Denial) -> Decision {
    let (_, code) = denial.outcome.pair();
    let mut decision = decided(denial.outcome, Verdict::refused(code, denial.message));
    let is_noted = !denial.away.is_empty();
    decision.remarks.notes = is_noted.then_some((NOT_READY, denial.away));
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
    fn new(review: &'a Review, stores: &'a Stores, facts: &'a Facts, now: Timestamp) -> Self {
        Self {
            review,
            stores,
            facts,
            now,
        }
    }

    fn decide(&self, inquiry: &mut Inquiry<'_>) -> Result<Decision, Pending> {
        self.judge(inquiry)
            .map(|judged| judged.unwrap_or_else(denied))
    }

    fn judge(&self, inquiry: &mut Inquiry<'_>) -> Result<Result<Decision, Denial>, Pending> {
        let (pod, budget) = match self.subject() {
            Ok(Subject::Free(decision)) => return Ok(Ok(decision)),
            Ok(Subject::Idle) => return self.still_idle(inquiry),
            Ok(Subject::Guarded(pod, budget)) => (pod, budget),
            Err(denial) => return Ok(Err(denial)),
        };
        let guard = (budget.0, budget.1, budget.2);
        // What is known here already may be enough to say no.
        if let Err(denial) = self.look(guard, &pod, &self.facts.holds) {
            return Ok(Err(denial));
        }
        if self.review.is_dry_run {
            return Ok(Ok(decided(Outcome::Allowed, Verdict::allowed())));
        }
        self.reserve(inquiry, guard, &pod)
    }

    /// The pod and its budget, if it has one.
    fn subject(&self) -> Result<Subject<'a>, Denial> {
        check(self.review)?;
        let Review {
            namespace, name, ..
        } = self.review;
        let pod = seen::pod_of(self.stores, namespace, name)?.ok_or_else(|| {
            Denial::new(Outcome::PodNotFound, format!("pods \"{name}\" not found"))
        })?;
        if pod.is_idle {
            let budgets = seen::budgets(self.stores, self.facts, namespace);
            let is_free = budgets.is_ok_and(|all| matches!(budget_of(&all, pod.labels), Ok(None)));
            let is_sure = is_free || self.review.is_dry_run;
            return Ok(if is_sure {
                Subject::Free(idle())
            } else {
                Subject::Idle
            });
        }
        if let Some(why) = blind(self.facts) {
            let (message, _) = blindness(why, namespace);
            return Err(Denial::new(Outcome::BudgetsHidden, message));
        }
        let budgets = seen::budgets(self.stores, self.facts, namespace)?;
        let Some((budget, terms)) = budget_of(&budgets, pod.labels)? else {
            let allowed = decided(Outcome::PodNotInScope, Verdict::allowed());
            return Ok(Subject::Free(allowed));
        };
        let mut all = budgets.into_iter();
        let seen = all.find(|(name, _)| *name == budget);
        Ok(match seen {
            Some((name, seen)) => Subject::Guarded(pod, (name, seen, terms)),
            None => Subject::Free(decided(Outcome::PodNotInScope, Verdict::allowed())),
        })
    }

    /// Lets a pod go that does no work, if that is so now.
    fn still_idle(&self, inquiry: &mut Inquiry<'_>) -> Result<Result<Decision, Denial>, Pending> {
        let Review {
            namespace, name, ..
        } = self.review;
        let path = format!("{}/{name}", kinds::POD.path(namespace));
        let unknown = |message: String| Denial::new(Outcome::StatusNotDetermined, message);
        let object = match inquiry.api_again(("read-pod", 0), "GET", &path, &Value::Null)? {
            Ok(object) => object,
            Err(Failure {
                code: Some(404), ..
            }) => {
                let message = format!("pods \"{name}\" not found");
                return Ok(Err(Denial::new(Outcome::PodNotFound, message)));
            }
            Err(failure) => {
                let message = format!("whether pod {name} is ready is not known: {failure}");
                return Ok(Err(unknown(message)));
            }
        };
        Ok(match Pod::project(&object) {
            Ok(pod) if pod.is_idle || pod.is_deleting => Ok(idle()),
            Ok(_) => {
                let message = format!("pod {name} has become ready just now; try again");
                Err(unknown(message))
            }
            Err(error) => Err(unknown(format!("pod {name} cannot be read: {error}"))),
        })
    }

    fn look(
        &self,
        budget: Guard<'a>,
        pod: &disruption::Pod<'_>,
        held: &BTreeMap<String, Timestamp>,
    ) -> Result<(), Denial> {
        let namespace = &self.review.namespace;
        let (name, seen, terms) = budget;
        let zones = seen::zones(self.stores, namespace, terms, pod)?;
        let scene = Scene {
            budgets: &[(name, seen)],
            zones: &zones,
            held,
            now: self.now,
        };
        evict(&scene, pod, None)
    }

    /// Lets the pod go once that is recorded for all replicas.
    fn reserve(
        &self,
        inquiry: &mut Inquiry<'_>,
        budget: Guard<'a>,
        pod: &disruption::Pod<'_>,
    ) -> Result<Result<Decision, Denial>, Pending> {
        let namespace = self.review.namespace.as_str();
        let unrecorded = |why: &str| {
            let message = format!("the eviction could not be recorded: {why}");
            Ok(Err(Denial::new(Outcome::StatusNotDetermined, message)))
        };
        for round in 0..MOST_ROUNDS {
            let map = match reservations::read(inquiry, round, namespace, budget.0)? {
                // A map that was seen can be kept: others keep it, and would not know.
                Ok(Map::Forbidden) if seen::is_kept(self.stores, namespace, budget.0) => {
                    return unrecorded("reading it is forbidden just now");
                }
                Ok(map) => map,
                Err(failure) => return unrecorded(&failure.message),
            };
            let mut held = self.facts.holds.clone();
            held.extend(reservations::held(&map, self.now));
            if let Err(denial) = self.look(budget, pod, &held) {
                return Ok(Err(denial));
            }
            let place = (namespace, budget.0);
            match reservations::write(inquiry, round, place, &map, pod.uid, self.now)? {
                Ok(true) => {
                    let mut decision = decided(Outcome::Allowed, Verdict::allowed());
                    let hold = (pod.uid.to_owned(), reservations::until(self.now));
                    decision.remarks.hold = Some(hold);
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
    Free(Decision),
    /// It was seen doing no work.
    Idle,
    /// This one may.
    Guarded(disruption::Pod<'a>, Guard<'a>),
}

impl Admit for PodEviction {
    fn path(&self) -> &'static str {
        "/admission/pod-eviction"
    }

    fn judge(
        &self,
        review: &Review,
        stores: &Stores,
        facts: &Facts,
        now: Timestamp,
    ) -> (Admission, Remarks) {
        let mut inquiry = Inquiry::open(review, facts);
        let decided = Case::new(review, stores, facts, now).decide(&mut inquiry);
        inquiry.admission(decided)
    }

    fn admit(&self, review: &Review, stores: &Stores, facts: &Facts, now: Timestamp) -> Admission {
        self.judge(review, stores, facts, now).0
    }

    fn expire(&self, review: &Review, stores: &Stores, facts: &Facts, now: Timestamp) -> Expiry {
        let mut inquiry = Inquiry::over(review, facts);
        let decided = Case::new(review, stores, facts, now).decide(&mut inquiry);
        expiry(decided, Verdict::refused(500, "context deadline exceeded"))
    }
}
