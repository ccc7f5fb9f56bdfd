//! W7 and Z10: which evictions were let through.

use regex::Regex;
use serde_json::Value;
use slipway_api::purpose::runtime::REVIEW;
use slipway_api::purpose::zones as purpose;

use super::replicas::downscale;
use super::{
    EVICTION, PREPARE, Scene, Zone, budget_over, evictions_allowed, is_ready, on_their_way,
};
use slipway_sim::history::{Call, History, Image, Request, Review};
use slipway_sim::oracles::{Case, Findings};

/// The version at which the verdict on an eviction was reached: a review may have waited for long.
fn decided_at(case: &Case<'_>, review: &Review) -> u64 {
    let history = case.history;
    let (namespace, name) = (review.text("/namespace"), review.text("/name"));
    let mut requests = history.requests.iter().filter(|request| {
        request.replica == review.replica && request.at >= review.at && request.at <= review.ended
    });
    let is_recorded = |request: &&Request| {
        let scene = Scene::at(history, request.versions.0);
        let pod = scene.pod(namespace, name);
        let uid = pod.and_then(|pod| pod.text("/metadata/uid"));
        let data = request.body.get("data");
        request.is_for(purpose::WRITE_RESERVATION)
            && uid.is_some_and(|uid| data.is_some_and(|data| data.get(uid).is_some()))
    };
    // What is not recorded rests on the first read of the namespace's pods that began after the review arrived.
    let pods = format!("/namespaces/{namespace}/pods");
    let is_read = |request: &&Request| request.is_for(REVIEW) && request.path().ends_with(&pods);
    let recorded = requests.clone().rfind(is_recorded);
    let decisive = recorded.or_else(|| requests.find(is_read));
    decisive.map_or(review.versions.0, |request| request.versions.0)
}

/// An eviction of a ready pod that was let through, and what was known of the pods under the same budget.
struct Eviction<'a> {
    review: &'a Review,
    scene: Scene<'a>,
    own: Zone<'a>,
    budget: &'a Image,
    /// Pods that were let go before it, or while it was being judged: namespace and name.
    leaving: Vec<(String, String)>,
}

impl<'a> Eviction<'a> {
    fn of(case: &Case<'a>, review: &'a Review) -> Option<Self> {
        let history = case.history;
        let version = decided_at(case, review);
        let namespace = review.text("/namespace");
        let scene = Scene::at(history, version);
        let pod = scene.pod(namespace, review.text("/name"));
        let pod = pod.filter(|pod| is_ready(pod))?;
        let budget = budget_over(history, version, namespace, pod)?;
        let own = scene.zone_of(pod)?;
        let mut leaving = on_their_way(history, &scene, version, review.ended);
        let meanwhile = evictions_allowed(history).filter(|other| {
            !std::ptr::eq(*other, review) && other.ended >= review.at && other.ended <= review.ended
        });
        let meanwhile = meanwhile
            .filter(|other| version < other.versions.1 && other.versions.1 < review.versions.1);
        leaving.extend(meanwhile.map(|other| {
            let text = |path| other.text(path).to_owned();
            (text("/namespace"), text("/name"))
        }));
        Some(Self {
            review,
            scene,
            own,
            budget,
            leaving,
        })
    }

    fn name(&self) -> &str {
        self.review.text("/name")
    }

    /// How many pods the budget lets go.
    fn most(&self) -> i64 {
        let most = self.budget.at("/spec/maxUnavailable");
        most.and_then(Value::as_i64).unwrap_or(1)
    }

    /// The zones under the budget.
    fn zones(&self) -> Vec<Zone<'a>> {
        let labels = self.budget.at("/spec/selector/matchLabels");
        let labels = labels.cloned().unwrap_or_default();
        self.scene.labelled(self.review.text("/namespace"), &labels)
    }

    /// The other pods of a zone that are down, or have been let go.
    fn away(&self, zone: &Zone<'_>) -> Vec<String> {
        let namespace = self.review.text("/namespace");
        let mut away = self.scene.down(zone);
        let more = self.leaving.iter().filter(|(place, pod)| {
            place == namespace && zone.places().any(|expected| expected == *pod)
        });
        away.extend(more.map(|(_, pod)| pod.clone()));
        away.retain(|place| place != self.name());
        away.sort();
        away.dedup();
        away
    }

    /// How partitions are told by names, if the budget asks for them.
    fn partitions(&self) -> Option<Partitions> {
        let pattern = self.budget.at("/spec/podNamePartitionRegex")?.as_str()?;
        let group = self.budget.at("/spec/podNameRegexGroup");
        let group = group.and_then(Value::as_u64).unwrap_or(1);
        Some(Partitions {
            pattern: Regex::new(pattern).ok(),
            group: usize::try_from(group).unwrap_or(usize::MAX),
        })
    }
}

/// Which partition a pod is of.
struct Partitions {
    /// None where it makes no sense, so that no pod is of any.
    pattern: Option<Regex>,
    group: usize,
}

impl Partitions {
    fn of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let found = self.pattern.as_ref()?.captures(name)?.get(self.group)?;
        (!found.is_empty()).then_some(found.as_str())
    }
}

/// W7: no other zone is down, and of the pod's own fewer than the budget, with every pod that was let go before.
pub(in super::super) fn evictions(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let all = evictions_allowed(case.history).filter_map(|review| Eviction::of(case, review));
    for eviction in all.filter(|eviction| eviction.partitions().is_none()) {
        for zone in eviction.zones() {
            let away = eviction.away(&zone);
            let is_own = zone.object == eviction.own.object;
            let limit = if is_own { eviction.most() } else { 1 };
            let count = i64::try_from(away.len()).unwrap_or(i64::MAX);
            findings.check(eviction.review.ended, count < limit, || {
                let name = eviction.name();
                format!("{name} was let go while {} was down", away.join(", "))
            });
        }
    }
    findings
}

/// Z10: where partitions are counted, fewer of a pod's own are down in other zones than the budget; a zone without a pod of
/// it counts as one that is.
pub(in super::super) fn partitions(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for review in evictions_allowed(case.history) {
        let Some(eviction) = Eviction::of(case, review) else {
            continue;
        };
        let Some(partitions) = eviction.partitions() else {
            continue;
        };
        let name = eviction.name();
        let own = partitions.of(name);
        findings.check(review.ended, own.is_some(), || {
            format!("{name} was let go, and is of no partition")
        });
        let mut away = Vec::new();
        let zones = eviction.zones().into_iter();
        for zone in zones.filter(|zone| zone.object != eviction.own.object) {
            let is_peer = |pod: &String| partitions.of(pod) == own;
            away.extend(eviction.away(&zone).into_iter().filter(is_peer));
            if !zone.places().any(|place| is_peer(&place)) {
                away.push(format!("whatever there should be in {}", zone.name()));
            }
        }
        let count = i64::try_from(away.len()).unwrap_or(i64::MAX);
        findings.check(review.ended, count < eviction.most(), || {
            format!("{name} was let go while {} was down", away.join(", "))
        });
    }
    findings
}

/// Whether all of a kind in the namespace of a review was read for reviews while it was judged.
fn has_read(history: &History, review: &Review, kind: &str) -> bool {
    let collection = format!("/namespaces/{}/{kind}", review.text("/namespace"));
    history.requests.iter().any(|request| {
        request.replica == review.replica
            && (review.at..=review.ended).contains(&request.at)
            && request.is_for(REVIEW)
            && request.path().ends_with(&collection)
            && request.ending.is_done()
    })
}

/// W11: what is let through rests on a look that began after the question came, and not on what was seen before.
pub(in super::super) fn fresh(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let passed = |review: &&Review| review.is_allowed() && !review.is_open();
    for review in history.reviews.iter().filter(passed) {
        let namespace = review.text("/namespace");
        let scene = Scene::at(history, review.versions.0);
        let pod = scene.pod(namespace, review.text("/name"));
        let needed = match review.path.as_str() {
            EVICTION => pod.is_some_and(|pod| {
                budget_over(history, review.versions.0, namespace, pod).is_some()
            }),
            // A downscale that pods were told of.
            PREPARE => {
                let told = |call: &Call| {
                    call.replica == review.replica
                        && call.method == "POST"
                        && (review.at..=review.ended).contains(&call.at)
                };
                downscale(&scene, review).is_some() && history.calls.iter().any(told)
            }
            _ => false,
        };
        if !needed {
            continue;
        }
        // A pod that is down already is missed by nobody: its own state is all there is to see. The other zones of a downscale
        // are listed by their group.
        let kinds: &[&str] = match review.path.as_str() {
            EVICTION if pod.is_some_and(is_ready) => {
                &["pods", "statefulsets", "zoneawarepoddisruptionbudgets"]
            }
            _ => &["pods"],
        };
        let mut kinds = kinds.iter();
        let looked = kinds.all(|kind| has_read(history, review, kind));
        findings.check(review.ended, looked, || {
            let name = review.text("/name");
            format!("{name} was let through, and nobody had looked since it was asked")
        });
    }
    findings
}
