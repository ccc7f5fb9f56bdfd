//! Downscales that wait until the pods have been prepared for long enough, and preparations that are called off.
//!
//! A pod that is to go is asked by POST, and answers when it was first asked; a pod that stays is told so by DELETE.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::purpose::zones::{CANCEL, KEEP, PREPARE};
use slipway_api::zones;
use slipway_kernel::Purpose;
use slipway_kernel::fact::{Answer, Question, QuestionId, Request};
use slipway_kernel::instant::later;
use slipway_kernel::question::Failure;

use super::{Adjustment, Held};
use crate::group::{pod_host, prometheus_duration, with_host};
use crate::observe::{World, Zone};
use crate::reasons::Reason;
use crate::settings::Settings;

/// The beginning of the period that `now` is in.
pub(crate) fn floor(now: Timestamp, period: Duration) -> Timestamp {
    let period = i64::try_from(period.as_secs()).unwrap_or(i64::MAX).max(1);
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(period)).unwrap_or(now)
}

/// The beginning of the next period.
pub(crate) fn next(now: Timestamp, period: Duration) -> Option<Timestamp> {
    later(floor(now, period), period.max(Duration::from_secs(1)))
}

/// The answers that later plans need: the last one of each pod that is asked to prepare or told that it stays, and of the
/// resource whose replicas are mirrored. Which zone has its turn makes no difference.
pub(crate) fn kept(world: &World) -> BTreeSet<QuestionId> {
    let mut last: BTreeMap<Slot<'_>, (Timestamp, &QuestionId)> = BTreeMap::new();
    for (id, (at, _)) in world.answers.iter() {
        let slot = (id.uid.as_str(), id.purpose, id.attempt);
        let newest = last.entry(slot).or_insert((*at, id));
        // Of two that came at once, the one that was due later.
        if newest.0 <= *at {
            *newest = (*at, id);
        }
    }
    let is_needed = |id: &QuestionId| {
        let zone = world.zones.iter().find(|z| z.set.meta().uid == id.uid);
        zone.is_some_and(|zone| {
            let set = zone.set.body();
            let is_pod = i64::from(id.attempt) < set.desired();
            match id.purpose {
                PREPARE | CANCEL => is_pod && set.scaling.delay.is_some(),
                KEEP => is_pod && !world.locks.is_empty(),
                _ => true,
            }
        })
    };
    let newest = last.into_values().map(|(_, id)| id);
    newest.filter(|id| is_needed(id)).cloned().collect()
}

/// The zone's uid, the purpose, and the pod.
type Slot<'a> = (&'a str, Purpose, u32);

/// The questions about one zone's pods.
pub(super) struct Pods<'a> {
    settings: &'a Settings,
    world: &'a World,
    zone: &'a Zone,
    url: &'a str,
    now: Timestamp,
}

/// How far a zone may be scaled towards `wanted`. Asks what has to be known, and calls off what is not wanted any more.
pub(super) fn allowed(
    settings: &Settings,
    world: &World,
    zone: &Zone,
    wanted: i64,
    adjustment: &mut Adjustment,
    now: Timestamp,
) -> Result<i64, Held> {
    let set = zone.set.body();
    let Some((delay, url)) = &set.scaling.delay else {
        return Ok(wanted);
    };
    let invalid = |name: &str, problem: String| {
        Held::new(
            Reason::InvalidAnnotation,
            format!("annotation {name} of {}: {problem}", zone.set.meta().name),
            "correcting the annotation",
        )
    };
    let delay = prometheus_duration(delay)
        .map_err(|error| invalid(zones::DELAYED_DOWNSCALE, error.to_string()))?;
    if with_host(url, "pod").is_none() {
        let problem = format!("{url:?} is no URL");
        return Err(invalid(zones::PREPARE_DELAYED_DOWNSCALE_URL, problem));
    }
    if delay.is_zero() {
        return Ok(wanted);
    }
    let pods = Pods::new(settings, world, zone, url, now);
    let current = set.desired();
    let called_off = pods.call_off(wanted.min(current), adjustment);
    if wanted >= current {
        return if called_off {
            Ok(wanted)
        } else {
            Err(preparing(zone, "called off"))
        };
    }
    pods.downscale(wanted, current, delay, adjustment)
}

fn preparing(zone: &Zone, what: &str) -> Held {
    let name = &zone.set.meta().name;
    let message = format!("the preparations of pods of {name} are being {what}");
    Held::new(Reason::Preparing, message, "the answers of the pods")
}

impl<'a> Pods<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        world: &'a World,
        zone: &'a Zone,
        url: &'a str,
        now: Timestamp,
    ) -> Self {
        Self {
            settings,
            world,
            zone,
            url,
            now,
        }
    }

    pub(super) fn id(&self, purpose: Purpose, pod: i64, due: Timestamp) -> QuestionId {
        QuestionId {
            controller: crate::NAME,
            uid: self.zone.set.meta().uid.clone(),
            purpose,
            attempt: u32::try_from(pod).unwrap_or(u32::MAX),
            due,
        }
    }

    pub(super) fn question(&self, id: QuestionId, method: &'static str, pod: i64) -> Question {
        let set = self.zone.set.body();
        let name = &self.zone.set.meta().name;
        let host = pod_host(
            name,
            set.start + pod,
            &set.service,
            &self.world.namespace,
            &self.settings.cluster_domain,
        );
        let url = with_host(self.url, &host).unwrap_or_default();
        let request = Request::Pod { method, url };
        Question::new(id, request, self.settings.question_timeout)
    }

    /// The last answer of a pod.
    pub(super) fn last(&self, purpose: Purpose, pod: i64) -> Option<&(Timestamp, Answer)> {
        let from = self.id(purpose, pod, Timestamp::MIN);
        let to = self.id(purpose, pod, Timestamp::MAX);
        let answers = self
            .world
            .answers
            .range(from..=to)
            .map(|(_, answer)| answer);
        answers.max_by_key(|(at, _)| *at)
    }

    /// Tells the first pods that they stay: each once per heartbeat, after a preparation, and again where it failed. Gives
    /// whether all have answered.
    fn call_off(&self, staying: i64, adjustment: &mut Adjustment) -> bool {
        let mut all = true;
        for pod in 0..staying {
            let prepared = self.last(PREPARE, pod).map(|(at, _)| *at);
            let needed = self.last(CANCEL, pod).is_none_or(|(at, answer)| {
                let failed = !matches!(
                    answer,
                    Answer::Said {
                        code: 200..=299 | 409,
                        ..
                    }
                );
                *at < floor(self.now, self.settings.heartbeat)
                    || prepared.is_some_and(|prepared| prepared > *at)
                    || failed && *at < floor(self.now, self.settings.prepare_every)
            });
            if needed {
                all = false;
                let id = self.id(CANCEL, pod, floor(self.now, self.settings.poll));
                adjustment.questions.push(self.question(id, "DELETE", pod));
            }
        }
        all
    }

    /// How far the zone may be scaled down: from the last pod downwards, as far as all have been prepared for long enough.
    fn downscale(
        &self,
        wanted: i64,
        current: i64,
        delay: Duration,
        adjustment: &mut Adjustment,
    ) -> Result<i64, Held> {
        let due = floor(self.now, self.settings.prepare_every);
        let again = next(self.now, self.settings.prepare_every);
        adjustment.wake(again);
        let mut prepared: Vec<(i64, Timestamp)> = Vec::new();
        let mut open = false;
        let mut failed = None;
        for pod in wanted..current {
            let id = self.id(PREPARE, pod, due);
            match self.world.answers.get(&id) {
                None => {
                    open = true;
                    adjustment.questions.push(self.question(id, "POST", pod));
                }
                Some((_, answer)) => match timestamp(answer) {
                    Ok(since) => prepared.push((pod, since)),
                    Err(problem) => failed = failed.or(Some((pod, problem))),
                },
            }
        }
        if let Some((pod, problem)) = failed {
            let ordinal = self.zone.set.body().start + pod;
            let name = &self.zone.set.meta().name;
            let message = format!("pod {name}-{ordinal} could not be prepared: {problem}");
            let held = Held::new(Reason::PrepareFailed, message, "the pod");
            return Err(held.until(again));
        }
        if open {
            return Err(preparing(self.zone, "made"));
        }
        let mut target = current;
        for (pod, since) in prepared.iter().rev() {
            let free = later(*since, delay);
            if free.is_none_or(|free| self.now < free) {
                if target < current {
                    break;
                }
                let name = &self.zone.set.meta().name;
                let message =
                    format!("the last pod of {name} has been prepared since {since} only");
                let held = Held::new(Reason::DelayNotReached, message, "time");
                return Err(held.until(free));
            }
            target = *pod;
        }
        Ok(target)
    }
}

/// When a pod was first asked to prepare.
fn timestamp(answer: &Answer) -> Result<Timestamp, String> {
    let body = match answer {
        Answer::Said {
            code: 200..=299,
            body,
        } => body,
        Answer::Said { code, .. } => return Err(format!("it answered {code}")),
        Answer::Read(reply) => return Err(format!("it answered {}", reply.code)),
        Answer::Failed(Failure::Timeout(_)) => return Err("it did not answer in time".to_owned()),
        Answer::Failed(failure) => return Err(failure.why().into_owned()),
        Answer::NoRight(why) => return Err(why.clone()),
    };
    let parsed: Value =
        serde_json::from_str(body).map_err(|_| "its answer is no JSON".to_owned())?;
    let second = parsed.get("timestamp").and_then(Value::as_i64);
    second
        .filter(|second| *second != 0)
        .and_then(|second| Timestamp::from_second(second).ok())
        .ok_or_else(|| "its answer has no timestamp".to_owned())
}
