//! A pod that goes, by an eviction that was let through or by a deletion of ours, and what the budget over it counts then.

use jiff::Timestamp;
use regex::Regex;
use serde_json::Value;
use slipway_api::purpose::runtime::REVIEW;
use slipway_api::purpose::zones as purpose;

use super::{
    Deletion, Scene, Zone, budget_over, evictions_allowed, is_ready, on_their_way, replicas,
};
use slipway_sim::history::{History, Image, Request, Review};
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

fn uid_of(scene: &Scene<'_>, (namespace, name): (&str, &str)) -> Option<String> {
    let pod = scene.pod(namespace, name);
    pod.and_then(|pod| pod.text("/metadata/uid").map(str::to_owned))
}

/// Pods that were let go before an eviction, or while it was being judged, and are not back: namespace and name. A review may
/// wait for so long that there is another pod in the place of one that went meanwhile.
fn leaving(
    history: &History,
    scene: &Scene<'_>,
    review: &Review,
    version: u64,
) -> Vec<(String, String)> {
    let before = on_their_way(history, scene, version, review.ended);
    let before = before.into_iter().map(|(namespace, name)| {
        let uid = uid_of(scene, (&namespace, &name));
        (namespace, name, uid)
    });
    let meanwhile = evictions_allowed(history).filter(|other| {
        !std::ptr::eq(*other, review)
            && (review.at..=review.ended).contains(&other.ended)
            && version < other.versions.1
            && other.versions.1 < review.versions.1
    });
    let meanwhile = meanwhile.map(|other| {
        let (namespace, name) = (other.text("/namespace"), other.text("/name"));
        let uid = uid_of(&Scene::at(history, other.versions.1), (namespace, name));
        (namespace.to_owned(), name.to_owned(), uid)
    });
    let later = Scene::at(history, review.versions.1);
    let is_back = |namespace: &str, name: &str, uid: &Option<String>| {
        let is_ready = later.pod(namespace, name).is_some_and(is_ready);
        is_ready && uid_of(&later, (namespace, name)) != *uid
    };
    before
        .chain(meanwhile)
        .filter(|(namespace, name, uid)| !is_back(namespace, name, uid))
        .map(|(namespace, name, _)| (namespace, name))
        .collect()
}

/// A ready pod under a budget that was let go or deleted.
pub(super) struct Departure<'a> {
    at: Timestamp,
    name: &'a str,
    /// What was done, for people.
    deed: &'static str,
    own: Zone<'a>,
    budget: &'a Image,
    /// How many pods the budget lets go.
    most: i64,
    /// The zones under the budget, its own in any case, each with its other pods that are down or have been let go.
    zones: Vec<(Zone<'a>, Vec<String>)>,
}

impl<'a> Departure<'a> {
    /// An eviction that was let through.
    pub(super) fn let_through(case: &Case<'a>, review: &'a Review) -> Option<Self> {
        let history = case.history;
        let version = decided_at(case, review);
        let namespace = review.text("/namespace");
        let scene = Scene::at(history, version);
        let pod = scene.pod(namespace, review.text("/name"));
        let pod = pod.filter(|pod| is_ready(pod))?;
        let budget = budget_over(history, version, namespace, pod)?;
        let own = scene.zone_of(pod)?;
        let leaving = leaving(history, &scene, review, version);
        let away = |zone: &Zone<'_>| {
            let mut away = scene.down(zone);
            let more = leaving.iter().filter(|(place, pod)| {
                place == namespace && zone.places().any(|expected| expected == *pod)
            });
            away.extend(more.map(|(_, pod)| pod.clone()));
            away
        };
        let mut departure = Self {
            at: review.ended,
            name: review.text("/name"),
            deed: "let go",
            own,
            budget,
            most: most(budget, &own),
            zones: Vec::new(),
        };
        departure.count(covered(&scene, budget, &own), away);
        Some(departure)
    }

    /// A deletion of ours, under a budget that we had seen. A budget of zero means what the zone itself allows.
    pub(super) fn deleted(
        history: &'a History,
        deletion: &Deletion<'a>,
        budget: &'a Image,
    ) -> Option<Self> {
        let own = deletion.seen.zone_of(deletion.pod)?;
        let instead = if partitions(budget).is_some() {
            1
        } else {
            own.most_unavailable()
        };
        let mut departure = Self {
            at: deletion.change.at,
            name: &deletion.change.object.2,
            deed: "deleted",
            own,
            budget,
            most: Some(most(budget, &own))
                .filter(|most| *most > 0)
                .unwrap_or(instead),
            zones: Vec::new(),
        };
        let zones = covered(&deletion.seen, budget, &own);
        departure.count(zones, |zone| deletion.down(history, zone));
        Some(departure)
    }

    fn count(&mut self, zones: Vec<Zone<'a>>, away: impl Fn(&Zone<'_>) -> Vec<String>) {
        for zone in zones {
            let mut away = away(&zone);
            away.retain(|place| place != self.name);
            away.sort();
            away.dedup();
            self.zones.push((zone, away));
        }
    }

    /// Whether partitions are counted, and not zones.
    pub(super) fn is_by_partition(&self) -> bool {
        partitions(self.budget).is_some()
    }

    /// Checks that no other zone is down, and of the pod's own fewer than the budget, with every pod that was let go before.
    pub(super) fn check_zones(&self, findings: &mut Findings) {
        for (zone, away) in &self.zones {
            let is_own = zone.object == self.own.object;
            self.limited(findings, away, if is_own { self.most } else { 1 });
        }
    }

    /// Checks that fewer of a pod's own partition are down in other zones than the budget; a zone without a pod of it counts
    /// as one that is.
    pub(super) fn check_partition(&self, findings: &mut Findings) {
        let Some(partitions) = partitions(self.budget) else {
            return;
        };
        let own = partitions.of(self.name);
        findings.check(self.at, own.is_some(), || {
            format!("{} was {}, and is of no partition", self.name, self.deed)
        });
        let mut all = Vec::new();
        let others = self.zones.iter();
        for (zone, away) in others.filter(|(zone, _)| zone.object != self.own.object) {
            let is_peer = |pod: &String| partitions.of(pod) == own;
            all.extend(away.iter().filter(|pod| is_peer(pod)).cloned());
            if !zone.places().any(|place| is_peer(&place)) {
                all.push(format!("whatever there should be in {}", zone.name()));
            }
        }
        self.limited(findings, &all, self.most);
    }

    fn limited(&self, findings: &mut Findings, away: &[String], limit: i64) {
        let count = i64::try_from(away.len()).unwrap_or(i64::MAX);
        findings.check(self.at, count < limit, || {
            let (name, deed) = (self.name, self.deed);
            format!("{name} was {deed} while {} was down", away.join(", "))
        });
    }
}

/// How many pods of a zone, or of a partition, a budget lets go.
fn most(budget: &Image, own: &Zone<'_>) -> i64 {
    let number = |pointer: &str| budget.at(pointer).and_then(Value::as_i64);
    match number("/spec/maxUnavailablePercentage") {
        Some(percent) => {
            let pods = replicas(own.set).min(own.set.number("/status/replicas"));
            let some = i64::from(percent > 0 && pods > 0);
            (percent * pods / 100).max(some)
        }
        None => number("/spec/maxUnavailable").unwrap_or(1),
    }
}

/// The zones under a budget, and the pod's own.
fn covered<'a>(scene: &Scene<'a>, budget: &Image, own: &Zone<'a>) -> Vec<Zone<'a>> {
    let labels = budget.at("/spec/selector/matchLabels");
    let labels = labels.cloned().unwrap_or_default();
    let mut zones = scene.labelled(&own.object.1, &labels);
    if !zones.iter().any(|zone| zone.object == own.object) {
        zones.push(*own);
    }
    zones
}

/// Which partition a pod is of.
struct Partitions {
    /// None where it makes no sense, so that no pod is of any.
    pattern: Option<Regex>,
    group: usize,
}

/// How partitions are told by names, if the budget asks for them.
fn partitions(budget: &Image) -> Option<Partitions> {
    let pattern = budget.at("/spec/podNamePartitionRegex")?.as_str()?;
    let group = budget.at("/spec/podNameRegexGroup");
    let group = group.and_then(Value::as_u64).unwrap_or(1);
    Some(Partitions {
        pattern: Regex::new(pattern).ok(),
        group: usize::try_from(group).unwrap_or(usize::MAX),
    })
}

impl Partitions {
    fn of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let found = self.pattern.as_ref()?.captures(name)?.get(self.group)?;
        (!found.is_empty()).then_some(found.as_str())
    }
}
