//! V1: a replica says that it is ready when it can decide, and only then, as far as the line to the API tells.

use jiff::{SignedDuration, Timestamp};

use super::{Case, Findings};
use crate::history::{Event, History, WITHIN};
use crate::spell::Disturbance;

/// So long a replica may be out of contact and ready, with the time between two looks.
const OUT_OF_CONTACT: SignedDuration = SignedDuration::from_secs(30 + 2);
/// Within this time after contact, or after its start, it is ready, with the time between two looks.
const AGAIN: SignedDuration = SignedDuration::from_secs(10 + 2);
/// The same after something that was refused, and is not any more: it waits so long between two tries.
const REFUSED: SignedDuration = SignedDuration::from_secs(45);
/// The same where it was told to wait, or may have believed that it lacks a right.
const LONGEST: SignedDuration = SignedDuration::from_secs(5 * 60 + 15);
/// A request that nobody answers, and what follows.
const SINGLE: SignedDuration = SignedDuration::from_mins(3);
/// How often is looked.
const STEP: SignedDuration = SignedDuration::from_secs(1);

type Span = (Timestamp, Timestamp);

/// One process, from its start to its end.
struct Life<'a> {
    name: &'a str,
    index: u32,
    span: Span,
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn lives(history: &History) -> Vec<Life<'_>> {
    let mut all: Vec<Life<'_>> = Vec::new();
    for mark in &history.marks {
        match &mark.what {
            // Nobody asks those that run in other clusters.
            Event::Started(name) if name.starts_with(WITHIN) => {}
            Event::Started(name) => {
                let index = name.split('-').nth(1).and_then(|n| n.parse().ok());
                all.push(Life {
                    name,
                    index: index.unwrap_or_default(),
                    span: (mark.at, history.end),
                });
            }
            Event::Crashed(name) | Event::Ended(name, _) => {
                for life in all.iter_mut().filter(|life| life.name == name) {
                    life.span.1 = mark.at;
                }
            }
            _ => {}
        }
    }
    all
}

impl Life<'_> {
    /// When it was cut off from the API altogether.
    fn cuts(&self, history: &History) -> Vec<Span> {
        let spells = history.spells().filter(|(_, spell)| {
            spell.reaches(self.index)
                && matches!(
                    spell.disturbance,
                    Disturbance::Outage | Disturbance::BlackHole
                )
        });
        spells
            .map(|(at, spell)| (at, later(at, signed(spell.lasts))))
            .collect()
    }

    /// When it may be ready or not: nobody can tell from outside.
    fn doubts(&self, history: &History) -> Vec<Span> {
        let mut all = vec![(self.span.0, later(self.span.0, AGAIN))];
        for (at, spell) in history.spells().filter(|(_, s)| s.reaches(self.index)) {
            let after = match &spell.disturbance {
                Disturbance::Outage => AGAIN,
                Disturbance::RetryAfter(..)
                | Disturbance::Refusal(403, _)
                | Disturbance::AnswersLost
                | Disturbance::RequestsLost
                | Disturbance::Slow(_)
                | Disturbance::Revoked
                | Disturbance::Replaced => LONGEST,
                Disturbance::BlackHole | Disturbance::Silence(_) => SINGLE,
                Disturbance::Refusal(..)
                | Disturbance::Unknown(_)
                | Disturbance::Undefined(_)
                | Disturbance::Restore => REFUSED,
                Disturbance::Quota(_)
                | Disturbance::LateAnswers
                | Disturbance::LateArrivals
                | Disturbance::Skew(_)
                | Disturbance::LeaderDies => continue,
            };
            let lasts = match &spell.disturbance {
                Disturbance::Restore => SignedDuration::ZERO,
                Disturbance::Undefined(name) => history.absence(name, at).max(signed(spell.lasts)),
                _ => signed(spell.lasts),
            };
            all.push((at, later(at, lasts + after)));
        }
        for (name, at) in history.lost_definitions() {
            all.push((at, later(at, history.absence(name, at) + REFUSED)));
        }
        let requests = history.requests.iter();
        // Readiness is about home.
        let home = requests.filter(|r| r.is_home());
        let hit = home.filter(|r| r.replica == self.name && r.fault.is_some());
        let singly = hit.filter(|request| !is_by_spell(request.fault));
        all.extend(singly.map(|request| (request.at, later(request.at, LONGEST))));
        for mark in &history.marks {
            let lasts = match &mark.what {
                Event::Watch(..) => SINGLE,
                Event::Paused(name, time) | Event::CutOff(name, time) if name == self.name => {
                    signed(*time) + SINGLE
                }
                _ => continue,
            };
            all.push((mark.at, later(mark.at, lasts)));
        }
        all
    }

    /// Whether it said so at a moment.
    fn is_ready(&self, history: &History, at: Timestamp) -> bool {
        let said = history.marks.iter().take_while(|mark| mark.at <= at);
        let said = said.filter_map(|mark| match &mark.what {
            Event::Ready(name, ready) if name == self.name => Some(*ready),
            _ => None,
        });
        said.last().unwrap_or_default()
    }
}

fn signed(duration: std::time::Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// Whether a request was hit because of a spell, which is judged as a whole.
fn is_by_spell(fault: Option<&'static str>) -> bool {
    let by_spells = [
        "outage",
        "black-hole",
        "refused",
        "late-answer",
        "late-arrival",
        "unheard",
        "slow-answer",
    ];
    fault.is_some_and(|fault| by_spells.contains(&fault))
}

fn within(spans: &[Span], at: Timestamp) -> bool {
    spans.iter().any(|(from, to)| *from <= at && at < *to)
}

/// V1.
pub(super) fn readiness(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let is_watched = |mark: &crate::history::Mark| matches!(mark.what, Event::Ready(..));
    if !history.marks.iter().any(is_watched) {
        return findings;
    }
    for life in lives(history) {
        let cuts = life.cuts(history);
        let doubts = life.doubts(history);
        let blind: Vec<Span> = cuts
            .iter()
            .map(|(from, to)| {
                let known = later(*from, OUT_OF_CONTACT);
                // Who starts without the API has never been in contact.
                (if life.span.0 > *from { *from } else { known }, *to)
            })
            .collect();
        let mut wrong: Option<(Timestamp, &str)> = None;
        let mut at = life.span.0;
        while at < life.span.1 && wrong.is_none() {
            let ready = life.is_ready(history, at);
            if within(&blind, at) && ready {
                wrong = Some((at, "ready, and has been out of contact for long"));
            } else if !within(&cuts, at) && !within(&doubts, at) && !ready {
                wrong = Some((at, "not ready, and could decide"));
            }
            at = later(at, STEP);
        }
        let (at, what) = wrong.unwrap_or((life.span.1, ""));
        findings.check(at, wrong.is_none(), || format!("{} is {what}", life.name));
    }
    findings
}
