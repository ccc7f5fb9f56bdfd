//! The oracles' own reading of rollout groups: what a zone is, which of its places are down, and through whom.

mod budgets;
mod departures;
mod evictions;
mod guards;
mod progress;
mod replicas;
mod rollout;
mod webhooks;

pub(super) use budgets::rollouts;
pub(super) use evictions::{evictions, fresh, partitions};
pub(super) use guards::guarded;
pub(super) use progress::explained;
pub(super) use replicas::{followers, one_at_a_time, undone};
pub(super) use rollout::{
    budget, claims, order, outdated, paused, settled, shown_budget, sound_group, terminating,
    zones_apart,
};
pub(super) use webhooks::{dry_runs, let_pass, no_downscale, prepared, prompt, unchanged};

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_api::zones::{MAX_UNAVAILABLE, REVISION_LABEL, ROLLOUT_GROUP};
use slipway_sim::fault::{EventFault, LATE};
use slipway_sim::history::{Change, Event, History, Image, Object, Request, Review};

pub(super) const SETS: &str = "apps/statefulsets";
pub(super) const PODS: &str = "/pods";
pub(super) const MAPS: &str = "/configmaps";

/// For how long a pod that was let go counts as on its way.
pub(super) const LET_GO: SignedDuration = SignedDuration::from_mins(1);

/// Where the webhooks are.
pub(super) const EVICTION: &str = "/admission/pod-eviction";
pub(super) const PREPARE: &str = "/admission/prepare-downscale";

/// Objects of a kind at a moment.
type States<'a> = BTreeMap<&'a Object, &'a Arc<Image>>;

/// `StatefulSet`s and pods as they were at a moment, which need not be the same for both.
pub(super) struct Scene<'a> {
    sets: States<'a>,
    pods: States<'a>,
}

/// One zone of a group.
#[derive(Clone, Copy)]
pub(super) struct Zone<'a> {
    pub(super) object: &'a Object,
    pub(super) set: &'a Image,
}

impl<'a> Scene<'a> {
    /// At a version.
    pub(super) fn at(history: &'a History, version: u64) -> Self {
        Self {
            sets: history.states(SETS, version),
            pods: history.states(PODS, version),
        }
    }

    /// What a request was decided on.
    pub(super) fn behind(history: &'a History, change: &Change, request: &Request) -> Self {
        let seen = |plural: &str| {
            let basis = request.context.basis.get(plural).copied();
            basis.unwrap_or(change.version - 1)
        };
        Self {
            sets: history.states(SETS, seen("statefulsets")),
            pods: history.states(PODS, seen("pods")),
        }
    }

    /// What a replica knew when it sent a request. What it wrote itself or read singly makes the basis younger than what
    /// its watch has brought, and tells of these objects only.
    pub(super) fn known(history: &'a History, request: &Request) -> Self {
        let singly = |kind: &'static str, plural: &'static str| Knowledge {
            history,
            request,
            kind,
            plural,
        };
        Self {
            sets: singly(SETS, "statefulsets").states(),
            pods: singly(PODS, "pods").states(),
        }
    }

    /// The zones of a group, by name.
    pub(super) fn group(&self, namespace: &str, group: &str) -> Vec<Zone<'a>> {
        let sets = self.sets.iter();
        sets.filter(|(object, set)| {
            &*object.1 == namespace && set.label(ROLLOUT_GROUP) == Some(group)
        })
        .map(|(object, set)| Zone { object, set })
        .collect()
    }

    /// All zones of a namespace that these labels fit.
    pub(super) fn labelled(&self, namespace: &str, labels: &Value) -> Vec<Zone<'a>> {
        let sets = self.sets.iter();
        sets.filter(|(object, set)| &*object.1 == namespace && fits(set, labels))
            .map(|(object, set)| Zone { object, set })
            .collect()
    }

    /// The zone that controls a pod.
    pub(super) fn zone_of(&self, pod: &Image) -> Option<Zone<'a>> {
        let owner = controller(pod)?;
        let mut sets = self.sets.iter();
        sets.find(|(_, set)| set.text("/metadata/uid") == Some(owner))
            .map(|(object, set)| Zone { object, set })
    }

    /// A zone by its name.
    pub(super) fn zone(&self, namespace: &str, name: &str) -> Option<Zone<'a>> {
        let mut sets = self.sets.iter();
        sets.find(|(object, _)| &*object.1 == namespace && &*object.2 == name)
            .map(|(object, set)| Zone { object, set })
    }

    /// A pod by its name.
    pub(super) fn pod(&self, namespace: &str, name: &str) -> Option<&'a Image> {
        let object: Object = (PODS.into(), namespace.into(), name.into());
        self.pods.get(&object).map(|image| &***image)
    }

    /// The places of a zone where no ready pod is.
    pub(super) fn down(&self, zone: &Zone<'_>) -> Vec<String> {
        let names = zone.places();
        names
            .filter(|name| !self.pod(&zone.object.1, name).is_some_and(is_ready))
            .collect()
    }

    /// The pods that a zone controls.
    pub(super) fn pods_of(&self, zone: &Zone<'_>) -> impl Iterator<Item = (&'a Object, &'a Image)> {
        let uid = zone
            .set
            .text("/metadata/uid")
            .unwrap_or_default()
            .to_owned();
        let pods: Vec<(&'a Object, &'a Image)> = self
            .pods
            .iter()
            .map(|(object, pod)| (*object, &***pod))
            .collect();
        pods.into_iter()
            .filter(move |(_, pod)| controller(pod) == Some(uid.as_str()))
    }
}

/// What a replica knew of a kind when it sent a request.
struct Knowledge<'a, 'r> {
    history: &'a History,
    request: &'r Request,
    kind: &'static str,
    plural: &'static str,
}

impl<'a> Knowledge<'a, '_> {
    fn requests(&self) -> impl Iterator<Item = &'a Request> {
        let (replica, number) = (&self.request.replica, self.request.number);
        let all = self.history.requests.iter();
        all.filter(move |r| r.replica == *replica && r.number < number)
    }

    /// Objects that the replica wrote or read singly, with the versions at which it knew them, and when.
    fn single(&self) -> impl Iterator<Item = (&'a Object, u64, Timestamp)> {
        let done = self.requests().filter(|r| r.ending.is_done());
        done.filter_map(|request| {
            let mut parts = request
                .path()
                .split('/')
                .skip_while(|part| *part != self.plural);
            let name = parts.nth(1)?;
            let changes = self.history.changes.iter().rev();
            let mut older = changes.filter(|change| change.version <= request.versions.1);
            let found = older.find(|c| &*c.object.0 == self.kind && &*c.object.2 == name);
            found.map(|change| (&change.object, change.version, request.at))
        })
    }

    /// Whether what was committed by one moment had been brought by another. That is sure a second later where nothing else went wrong
    /// than that watch events were late, and none is any more.
    fn is_brought(&self, from: Timestamp, to: Timestamp) -> bool {
        let since = |at: Timestamp| to.duration_since(at);
        let mut requests = self.history.requests.iter();
        let mut late = self
            .history
            .marks
            .iter()
            .filter_map(|mark| match mark.what {
                Event::Watch(_, _, fault) => {
                    Some(fault == EventFault::Delay.name() && since(mark.at).unsigned_abs() >= LATE)
                }
                Event::Spell(_) => Some(false),
                _ => None,
            });
        since(from) >= SignedDuration::from_secs(1)
            && late.next() == Some(true)
            && late.all(|is_over| is_over)
            && requests.all(|request| request.fault.is_none())
    }

    fn states(&self) -> States<'a> {
        let single: Vec<(&Object, u64, Timestamp)> = self.single().collect();
        let requests = self.requests().chain(std::iter::once(self.request));
        let bases = requests.filter_map(|r| Some((*r.context.basis.get(self.plural)?, r.at)));
        let bases: Vec<(u64, Timestamp)> = bases.collect();
        // A basis that is the version of something that it wrote may be no more than that.
        let is_brought = |(basis, at): &&(u64, Timestamp)| {
            let mut own = single.iter().filter(|(_, version, _)| version == basis);
            own.all(|(_, _, done)| self.is_brought(*done, *at))
        };
        let brought = match bases.iter().filter(is_brought).max() {
            Some((brought, _)) => *brought,
            // It says nothing of this kind.
            None if bases.is_empty() => self.request.versions.0,
            None => 0,
        };
        let mut states = self.history.states(self.kind, brought);
        let newer = single.into_iter().filter(|single| brought < single.1);
        for (object, version, _) in newer {
            match self.history.state(object, version) {
                Some(image) => states.insert(object, image),
                None => states.remove(object),
            };
        }
        states
    }
}

impl Zone<'_> {
    pub(super) fn name(&self) -> &str {
        &self.object.2
    }

    pub(super) fn replicas(&self) -> i64 {
        replicas(self.set)
    }

    /// The names of the pods that there should be.
    pub(super) fn places(&self) -> impl Iterator<Item = String> {
        let start = self.set.number("/spec/ordinals/start");
        let name = self.name().to_owned();
        (start..start + self.replicas()).map(move |ordinal| format!("{name}-{ordinal}"))
    }

    /// Whether a pod is of another revision than the zone.
    pub(super) fn is_outdated(&self, pod: &Image) -> bool {
        pod.label(REVISION_LABEL) != self.set.text("/status/updateRevision")
    }

    /// Z3: how many of its pods may be unavailable.
    pub(super) fn most_unavailable(&self) -> i64 {
        let replicas = self.replicas();
        let text = self.set.annotation(MAX_UNAVAILABLE).unwrap_or_default();
        let asked = match text.strip_suffix('%') {
            Some(percent) => percent
                .parse::<i64>()
                .ok()
                .filter(|percent| *percent > 0)
                .map(|percent| (percent.min(100) * replicas / 100).max(1)),
            None => text.parse().ok().filter(|number| *number > 0),
        };
        asked.unwrap_or(1).min(replicas.max(1))
    }
}

/// How many replicas are asked for.
pub(super) fn replicas(object: &Image) -> i64 {
    let asked = object.at("/spec/replicas").and_then(Value::as_i64);
    asked.unwrap_or(1)
}

/// The uid of the `StatefulSet` that controls a pod.
pub(super) fn controller(pod: &Image) -> Option<&str> {
    let owners = pod.at("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| {
        owner.get("controller").and_then(Value::as_bool) == Some(true)
            && owner.get("kind").and_then(Value::as_str) == Some("StatefulSet")
    })?;
    owner.get("uid")?.as_str()
}

/// Whether an object has all these labels.
pub(super) fn fits(object: &Image, labels: &Value) -> bool {
    let pairs = labels.as_object().into_iter().flatten();
    pairs
        .into_iter()
        .all(|(key, value)| object.label(key) == value.as_str())
}

pub(super) fn is_going(pod: &Image) -> bool {
    pod.at("/metadata/deletionTimestamp").is_some()
}

/// Running, ready, and not on its way out.
pub(super) fn is_ready(pod: &Image) -> bool {
    let conditions = pod.at("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some("Ready")
            && condition.get("status").and_then(Value::as_str) == Some("True")
    });
    ready && !is_going(pod) && pod.text("/status/phase") == Some("Running")
}

/// A deletion of a pod by the operator.
pub(super) struct Deletion<'a> {
    pub(super) change: &'a Change,
    pub(super) pod: &'a Image,
    pub(super) request: &'a Request,
    /// What it was decided on.
    pub(super) seen: Scene<'a>,
    /// How it was just before.
    pub(super) before: Scene<'a>,
}

impl<'a> Deletion<'a> {
    /// The pod's zone, as it was seen, and the zones of its group.
    pub(super) fn zone(&self) -> Option<(Zone<'a>, Vec<Zone<'a>>)> {
        let zone = self.seen.zone_of(self.pod)?;
        let group = zone.set.label(ROLLOUT_GROUP)?;
        Some((zone, self.seen.group(&zone.object.1, group)))
    }

    pub(super) fn name(&self) -> String {
        let (_, namespace, name) = &self.change.object;
        format!("pod {namespace}/{name}")
    }

    /// The places of a zone that are down just before, and were not taken down by others since the decision.
    pub(super) fn down(&self, history: &'a History, zone: &Zone<'_>) -> Vec<String> {
        let version = self.change.version - 1;
        let namespace = &zone.object.1;
        let mut down = self.before.down(zone);
        down.retain(|name| !is_by_others(history, &self.seen, (namespace, name), version));
        let leaving = on_their_way(history, &self.before, version, self.change.at);
        let leaving = leaving.into_iter().filter(|(place, name)| {
            **place == **namespace && zone.places().any(|expected| expected == *name)
        });
        for (_, name) in leaving {
            if !down.contains(&name) {
                down.push(name);
            }
        }
        down
    }
}

/// All pods that the operator deleted.
pub(super) fn deletions(history: &History) -> impl Iterator<Item = Deletion<'_>> {
    history.deeds().filter_map(|(change, request)| {
        (&*change.object.0 == PODS && request.method == "DELETE").then_some(())?;
        Some(Deletion {
            change,
            pod: change.before.as_deref()?,
            request,
            seen: Scene::behind(history, change, request),
            before: Scene::at(history, change.version - 1),
        })
    })
}

/// Whether a place was filled in what was seen, and others than the operator have emptied it since.
fn is_by_others(
    history: &History,
    seen: &Scene<'_>,
    (namespace, name): (&str, &str),
    version: u64,
) -> bool {
    let Some(known) = seen.pod(namespace, name) else {
        // It was not there: that was known, unless it was not asked for.
        let zone = name.rsplit_once('-').map_or(name, |(zone, _)| zone);
        let zone = seen.zone(namespace, zone);
        return !zone.is_some_and(|zone| zone.places().any(|place| place == name));
    };
    if !is_ready(known) {
        return false;
    }
    let uid = known.text("/metadata/uid");
    let end = history.changes.iter().find(|change| {
        let pod = change.after.as_deref().or(change.before.as_deref());
        let goes = change.after.as_deref().is_none_or(is_going);
        &*change.object.0 == PODS
            && change.version <= version
            && goes
            && pod.and_then(|pod| pod.text("/metadata/uid")) == uid
    });
    match end {
        // It is there, and no longer ready.
        None => true,
        Some(end) => end.by.is_none() && !was_let_go(history, end),
    }
}

/// Whether a webhook of ours let a pod go shortly before it went.
fn was_let_go(history: &History, end: &Change) -> bool {
    evictions_allowed(history).any(|review| {
        review.text("/namespace") == &*end.object.1
            && review.text("/name") == &*end.object.2
            && review.versions.1 <= end.version
            && end.at.duration_since(review.ended) <= LET_GO
    })
}

/// Evictions that were let through, and not only tried.
pub(super) fn evictions_allowed(history: &History) -> impl Iterator<Item = &Review> {
    let reviews = history.reviews.iter();
    reviews.filter(|r| r.path == EVICTION && r.is_allowed() && !r.is_dry_run())
}

/// Pods under a zone-aware budget whose eviction was let through before, and which have not gone yet: namespace and name.
pub(super) fn on_their_way(
    history: &History,
    scene: &Scene<'_>,
    version: u64,
    now: Timestamp,
) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for review in evictions_allowed(history) {
        if review.versions.1 > version || now.duration_since(review.ended) >= LET_GO {
            continue;
        }
        // What had gone by then is there again, and on its way no more.
        if history.is_taken_back((review.ended, review.ended), now) {
            continue;
        }
        let (namespace, name) = (review.text("/namespace"), review.text("/name"));
        let then = history.states(PODS, review.versions.1);
        let object: Object = (PODS.into(), namespace.into(), name.into());
        let then = then.get(&object).and_then(|pod| pod.text("/metadata/uid"));
        let pod = scene.pod(namespace, name);
        let guarded =
            pod.is_some_and(|pod| budget_over(history, version, namespace, pod).is_some());
        if guarded && pod.and_then(|pod| pod.text("/metadata/uid")) == then {
            all.push((namespace.to_owned(), name.to_owned()));
        }
    }
    all
}

/// The zone-aware budgets over a pod.
pub(super) fn budgets_over<'a>(
    history: &'a History,
    version: u64,
    namespace: &str,
    pod: &Image,
) -> Vec<&'a Image> {
    const BUDGETS: &str = "rollout-operator.grafana.com/zoneawarepoddisruptionbudgets";
    let budgets = history.states(BUDGETS, version).into_iter();
    let over = budgets.filter(|(object, budget)| {
        let labels = budget.at("/spec/selector/matchLabels");
        &*object.1 == namespace && labels.is_some_and(|labels| fits(pod, labels))
    });
    over.map(|(_, budget)| &**budget).collect()
}

/// The first of them.
pub(super) fn budget_over<'a>(
    history: &'a History,
    version: u64,
    namespace: &str,
    pod: &Image,
) -> Option<&'a Image> {
    let over = budgets_over(history, version, namespace, pod);
    over.into_iter().next()
}
