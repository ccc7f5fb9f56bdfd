//! What is wrong on the line by the clock: a run's spells, as requests and watches meet them.

use std::sync::{Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

use http::request::Parts;
use slipway_apiserver::status::Status;
use slipway_kernel::identity::ClusterId;
use tokio::time::Instant;

use crate::spell::{Disturbance, Spell};

/// The kind by which replicas agree on who leads.
const LEASES: &str = "leases.coordination.k8s.io";

/// What happens to a request.
#[derive(Debug, Clone)]
pub(super) enum Hit {
    /// It does not arrive.
    Broken,
    /// Nobody answers until then.
    NoAnswer(Instant),
    /// It is refused; the header `Retry-After` says this.
    Refused(Box<Status>, Option<u64>),
    /// It is carried out, and answered late.
    LateAnswer,
    /// It arrives late.
    LateArrival,
    /// It is carried out, and nobody hears of it until then.
    Unheard(Instant),
    /// It takes so long.
    Slow(Duration),
}

impl Hit {
    /// What a history calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Broken => "outage",
            Self::NoAnswer(_) => "black-hole",
            Self::Refused(..) => "refused",
            Self::LateAnswer => "late-answer",
            Self::LateArrival => "late-arrival",
            Self::Unheard(_) => "unheard",
            Self::Slow(_) => "slow-answer",
        }
    }
}

/// Who asks, and which cluster.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The number of the replica.
    pub(super) replica: u32,
    /// As the operator means it, whichever cluster has that name now.
    pub(super) cluster: ClusterId,
    /// Whether who asks runs in that cluster, though it is not home: what is wrong on the way from home does not reach it.
    pub(super) is_within: bool,
}

impl Line {
    fn meets(&self, spell: &Spell) -> bool {
        let befalls_itself = matches!(
            spell.disturbance,
            Disturbance::Restore | Disturbance::Replaced | Disturbance::Undefined(_)
        );
        spell.reaches(self.replica)
            && spell.is_in(&self.cluster)
            && (befalls_itself || !self.is_within)
    }
}

/// What becomes of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flow {
    /// It goes on.
    Open,
    /// It is open, and nothing comes of it any more.
    Silent,
    /// It breaks.
    Broken,
}

/// The spells of one run.
#[derive(Debug)]
pub struct Weather {
    began: Instant,
    spells: Vec<Spell>,
    /// How many of them, the first ones, are the scenario's own, and no fault of this run.
    own: usize,
    /// Of open watches: those that break have to notice.
    wakers: Mutex<Vec<Waker>>,
}

/// Which kind a path is about, as `plural.group`, and what else of it matters here.
pub(super) struct About<'a> {
    pub(super) kind: String,
    group: &'a str,
    pub(super) namespace: &'a str,
    /// Empty for a collection.
    pub(super) name: &'a str,
    is_discovery: bool,
}

impl<'a> About<'a> {
    pub(super) fn of(path: &'a str) -> Self {
        let mut parts = path.split('/').skip(1);
        let group = match parts.next() {
            Some("apis") => parts.next().unwrap_or_default(),
            _ => "",
        };
        let _version = parts.next();
        let mut rest = parts.next().unwrap_or_default();
        let mut namespace = "";
        let mut name = parts.next().unwrap_or_default();
        if rest == "namespaces"
            && let Some(plural) = parts.next()
        {
            (namespace, rest) = (name, plural);
            name = parts.next().unwrap_or_default();
        }
        Self {
            kind: slipway_apiserver::status::qualified(group, rest),
            group,
            namespace,
            name,
            is_discovery: rest.is_empty(),
        }
    }

    /// Whether this is the group of a kind.
    fn has(&self, kind: &str) -> bool {
        let group = kind.split_once('.').map_or("", |(_, group)| group);
        !group.is_empty() && group == self.group
    }
}

impl Weather {
    /// The spells of a run that began at this moment: the scenario's own, and those of the run.
    pub fn new(began: Instant, own: &[Spell], others: &[Spell]) -> Self {
        Self {
            began,
            spells: [own, others].concat(),
            own: own.len(),
            wakers: Mutex::default(),
        }
    }

    /// All of them; the scenario's own come first.
    pub fn spells(&self) -> &[Spell] {
        &self.spells
    }

    /// Whether a spell, by its number, is a fault of this run.
    pub fn is_fault(&self, number: usize) -> bool {
        number >= self.own
    }

    /// Those that are on now, and reach this line, with their numbers.
    fn now<'a>(&'a self, line: &'a Line) -> impl Iterator<Item = (usize, &'a Spell)> {
        let now = self.began.elapsed();
        self.spells
            .iter()
            .enumerate()
            .filter(move |(_, spell)| line.meets(spell) && spell.at <= now && now < spell.ends())
    }

    /// What happens to a request, and whether that is a fault of this run. `is_new` says whether what it writes is not there
    /// yet.
    pub(super) fn on_request(
        &self,
        line: &Line,
        parts: &Parts,
        is_new: impl Fn(&About<'_>) -> bool,
    ) -> Option<(Hit, bool)> {
        if self.spells.is_empty() {
            return None;
        }
        let about = About::of(parts.uri.path());
        let method = parts.method.as_str();
        let is_list = method == "GET" && about.name.is_empty() && !about.is_discovery;
        self.now(line).find_map(|(number, spell)| {
            let hit = match &spell.disturbance {
                Disturbance::Outage => Some(Hit::Broken),
                Disturbance::BlackHole | Disturbance::RequestsLost => {
                    Some(Hit::NoAnswer(self.began + spell.ends()))
                }
                Disturbance::AnswersLost => Some(Hit::Unheard(self.began + spell.ends())),
                Disturbance::Slow(seconds) => Some(Hit::Slow(Duration::from_secs(*seconds))),
                Disturbance::Revoked => Some(refused(401)),
                Disturbance::Refusal(code, kind) => {
                    // A Lease is read and written singly.
                    let whole = about.kind == LEASES;
                    let listed = (is_list || whole) && about.kind == *kind;
                    let discovered = *code != 404 && about.is_discovery && about.has(kind);
                    (listed || discovered).then(|| refused(*code))
                }
                Disturbance::Unknown(kind) => {
                    let listed = is_list && about.kind == *kind;
                    let discovered = about.is_discovery && about.has(kind);
                    (listed || discovered).then(|| refused(404))
                }
                Disturbance::Quota => {
                    let makes = about.kind == "configmaps" && method != "GET" && is_new(&about);
                    makes.then(|| quota(&about))
                }
                Disturbance::RetryAfter(code, seconds) => {
                    let reason = if *code == 429 {
                        "TooManyRequests"
                    } else {
                        "ServiceUnavailable"
                    };
                    let status = Status::failure(*code, reason, "later, please");
                    Some(Hit::Refused(Box::new(status), Some(*seconds)))
                }
                Disturbance::LateAnswers if method == "DELETE" => Some(Hit::LateAnswer),
                Disturbance::LateArrivals if method == "DELETE" => Some(Hit::LateArrival),
                _ => None,
            };
            hit.map(|hit| (hit, self.is_fault(number)))
        })
    }

    /// What becomes of a watch of a kind that was opened then.
    pub(super) fn on_watch(&self, line: &Line, kind: &str, opened: Instant) -> Flow {
        let now = self.began.elapsed();
        let opened = opened.duration_since(self.began);
        let met = self
            .spells
            .iter()
            .filter(|spell| line.meets(spell) && spell.at <= now && opened < spell.ends());
        let flows = met.map(|spell| match &spell.disturbance {
            Disturbance::Outage | Disturbance::Restore | Disturbance::Revoked => Flow::Broken,
            // One that was opened before is to the first cluster, one that was opened since to the other.
            Disturbance::Replaced if opened < spell.at || spell.ends() <= now => Flow::Broken,
            Disturbance::Refusal(_, about) | Disturbance::Unknown(about) if about == kind => {
                Flow::Broken
            }
            Disturbance::BlackHole | Disturbance::AnswersLost => Flow::Silent,
            Disturbance::Silence(about) if about.is_empty() || about == kind => Flow::Silent,
            _ => Flow::Open,
        });
        flows.max().unwrap_or(Flow::Open)
    }

    /// Wakes whoever reads from a watch when the weather turns.
    pub(super) fn wake(&self, waker: &Waker) {
        if self.spells.is_empty() {
            return;
        }
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// A spell begins.
    pub fn turn(&self) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        for waker in std::mem::take(&mut *wakers) {
            waker.wake();
        }
    }
}

pub(super) fn refused(code: u16) -> Hit {
    let status = match code {
        401 => Status::unauthorized(),
        403 => Status::forbidden("", "", "", "on purpose"),
        404 => Status::no_such_resource(),
        410 => Status::expired("too old resource version: on purpose"),
        _ => Status::failure(code, "InternalError", "on purpose"),
    };
    Hit::Refused(Box::new(status), None)
}

fn quota(about: &About<'_>) -> Hit {
    let why = "exceeded quota: objects, requested: configmaps=1, used: configmaps=10, limited: configmaps=10";
    let status = Status::forbidden("", "configmaps", about.name, why);
    Hit::Refused(Box::new(status), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_about_its_kind() {
        for (path, kind, namespace, name) in [
            ("/api/v1/pods", "pods", "", ""),
            ("/api/v1/namespaces/a/pods/b", "pods", "a", "b"),
            ("/api/v1/namespaces/a", "namespaces", "", "a"),
            (
                "/apis/apps/v1/namespaces/a/deployments",
                "deployments.apps",
                "a",
                "",
            ),
        ] {
            let about = About::of(path);
            assert_eq!(
                (about.kind.as_str(), about.namespace, about.name),
                (kind, namespace, name)
            );
        }
        assert!(About::of("/apis/apps/v1").is_discovery);
        assert!(About::of("/apis/apps/v1").has("deployments.apps"));
        assert!(!About::of("/apis/apps/v1").has("pods"));
    }
}
