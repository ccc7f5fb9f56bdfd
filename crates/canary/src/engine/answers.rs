//! Questions and answers, as plain values.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_api::canary::HookType;

use super::rules::Rules;

/// What is asked: by its place in the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// A webhook.
    Hook(usize),
    /// A measure.
    Metric(usize),
}

/// A question: what, and for which tick. The same question is never asked for two things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    /// What.
    pub check: Check,
    /// For which tick.
    pub at: Timestamp,
}

/// What was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reading {
    /// The value.
    pub value: f64,
    /// What the source has, where that is asked for.
    pub baseline: Option<f64>,
    /// From how many samples, where that is asked for.
    pub samples: Option<f64>,
}

/// What was heard. A failure is an answer too.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A webhook said yes.
    Yes,
    /// A webhook said no, or could not be asked, for this reason.
    No(String),
    /// Something was measured.
    Value(Reading),
    /// There was nothing to measure.
    NoValues,
    /// It could not be measured, for this reason.
    Error(String),
}

/// All that was heard.
pub type Answers = BTreeMap<Ask, Answer>;

/// What webhooks of one type say together.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    /// This one has to be asked first.
    Unknown(Ask),
    /// All said yes, or there is none.
    Yes,
    /// This one said no: its place, and why.
    No(usize, String),
}

/// Asks webhooks of one type, one after the other; the first no is the answer.
pub(super) fn hear(rules: &Rules, answers: &Answers, kind: HookType, at: Timestamp) -> Heard {
    for (place, _) in of_type(rules, kind) {
        let ask = Ask {
            check: Check::Hook(place),
            at,
        };
        match answers.get(&ask) {
            None => return Heard::Unknown(ask),
            Some(Answer::Yes) => {}
            Some(Answer::No(why) | Answer::Error(why)) => return Heard::No(place, why.clone()),
            Some(Answer::Value(_) | Answer::NoValues) => {
                return Heard::No(place, "its answer is not a webhook's".to_owned());
            }
        }
    }
    Heard::Yes
}

/// What webhooks say whose yes sends the version back: the first yes is the answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Alarm {
    /// This one has to be asked first.
    Unknown(Ask),
    /// None says so.
    Quiet,
    /// This one does, by its name.
    Raised(String),
}

/// Asks whether the version is to go back.
pub(super) fn alarm(rules: &Rules, answers: &Answers, at: Timestamp) -> Alarm {
    for (place, name) in of_type(rules, HookType::Rollback) {
        let ask = Ask {
            check: Check::Hook(place),
            at,
        };
        match answers.get(&ask) {
            None => return Alarm::Unknown(ask),
            Some(Answer::Yes) => return Alarm::Raised(name.to_owned()),
            Some(_) => {}
        }
    }
    Alarm::Quiet
}

fn of_type(rules: &Rules, kind: HookType) -> impl Iterator<Item = (usize, &str)> {
    let hooks = rules.hooks.iter().enumerate();
    hooks
        .filter(move |(_, hook)| hook.kind == kind)
        .map(|(place, hook)| (place, hook.name.as_str()))
}
