//! What the engine asks, as questions of the kernel, and what was heard, as the engine's answers.
//!
//! A question's name is made of what is sent: the same name is never used for two things, also where a person changes a
//! webhook in the middle of a check.

use std::collections::BTreeSet;

use jiff::Timestamp;
use slipway_api::canary::{Analysis, HookType, Metric, Phase, Webhook};
use slipway_api::purpose::canary as purpose;
use slipway_kernel::Purpose;
use slipway_kernel::address::Url;
use slipway_kernel::fact::{Answer as Told, Question, QuestionId};
use slipway_kernel::question::{Call, Failure, Method, Reply, Target, Value, Wanted};

use crate::NAME;
use crate::engine::{Answer, Answers, Ask, Check, Reading, Run, Sight};
use crate::measures::{self, Side, Subject};
use crate::spec::{Source, sources};
use crate::standalone::hash::digest;
use crate::webhooks::{self, About};

/// How often an answer may send us elsewhere.
const REDIRECTS: u8 = 5;
/// For how many checks answers are kept: the last one, and the one before while that is not complete.
const KEPT: usize = 2;

/// Whoever asks for one Canary.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// What is measured.
    pub subject: Subject<'a>,
    /// Steps, checks and gates.
    pub analysis: &'a Analysis,
    /// What is remembered.
    pub run: &'a Run,
    /// What is seen.
    pub sight: &'a Sight,
}

/// How far a question has come.
enum State {
    /// It has an answer.
    Known(Answer),
    /// These are to be asked.
    Open(Vec<Question>),
}

/// What was heard, and by which questions.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// As the engine takes it.
    pub answers: Answers,
    used: BTreeSet<QuestionId>,
}

impl Heard {
    /// The questions whose answers are needed again: those of the last checks since the one that is due.
    pub fn kept(&self, due: Option<Timestamp>) -> BTreeSet<QuestionId> {
        let Some(due) = due else {
            return BTreeSet::new();
        };
        let ticks: BTreeSet<Timestamp> = self.used.iter().map(|id| id.due).collect();
        let last: BTreeSet<Timestamp> = ticks.into_iter().rev().take(KEPT).collect();
        let all = self.used.iter();
        let needed = all.filter(|id| id.due >= due && last.contains(&id.due));
        needed.cloned().collect()
    }
}

impl Asker<'_> {
    /// All that was heard.
    pub fn heard(&self) -> Heard {
        let mut heard = Heard::default();
        let known = &self.subject.world.answers;
        let ticks: BTreeSet<Timestamp> = known.keys().map(|id| id.due).collect();
        let hooks = (0..self.analysis.webhooks.len()).map(Check::Hook);
        let metrics = (0..sources(&self.analysis.metrics).len()).map(Check::Metric);
        let checks: Vec<Check> = hooks.chain(metrics).collect();
        for at in ticks {
            for check in &checks {
                let ask = Ask { check: *check, at };
                let before = heard.used.len();
                let state = self.state(ask, &mut heard.used);
                // What nobody was asked for has not been heard, although it may be known that it cannot be asked.
                if let State::Known(answer) = state
                    && heard.used.len() > before
                {
                    heard.answers.insert(ask, answer);
                }
            }
        }
        heard
    }

    /// What is to be asked so that this gets an answer; the answer, if nobody has to be asked.
    pub fn put(&self, ask: Ask) -> Result<Vec<Question>, Answer> {
        match self.state(ask, &mut BTreeSet::new()) {
            State::Open(questions) => Ok(questions),
            State::Known(answer) => Err(answer),
        }
    }

    fn state(&self, ask: Ask, used: &mut BTreeSet<QuestionId>) -> State {
        let unknown = || State::Known(Answer::Error("there is no such check".to_owned()));
        match ask.check {
            Check::Hook(place) => match self.analysis.webhooks.get(place) {
                Some(hook) => self.hook(hook, (place, ask.at), used),
                None => unknown(),
            },
            Check::Metric(place) => {
                let all = sources(&self.analysis.metrics);
                match all.get(place) {
                    Some((metric, source)) => {
                        self.metric((*metric, *source), (place, ask.at), used)
                    }
                    None => unknown(),
                }
            }
        }
    }

    fn told(&self, id: &QuestionId, used: &mut BTreeSet<QuestionId>) -> Option<&Told> {
        let (_, answer) = self.subject.world.answers.get(id)?;
        used.insert(id.clone());
        Some(answer)
    }

    /// A webhook is asked again as often as it says, after a failure that may pass.
    fn hook(
        &self,
        hook: &Webhook,
        (place, at): (usize, Timestamp),
        used: &mut BTreeSet<QuestionId>,
    ) -> State {
        let call = match self.hook_call(hook) {
            Ok(call) => call,
            Err(why) => return State::Known(Answer::No(why)),
        };
        let retries = webhooks::retries(hook);
        for retry in 0..=retries {
            let id = self.id(purpose::ASK, (place, retry), &call, at);
            let Some(told) = self.told(&id, used) else {
                let mut question = Question::outside(id, call);
                if retry > 0 {
                    question.pause = webhooks::pause(retry);
                }
                return State::Open(vec![question]);
            };
            let answer = meaning(hook, told);
            if retry == retries || answer == Answer::Yes || !may_pass(told) {
                return State::Known(answer);
            }
        }
        State::Known(Answer::No("it was not asked".to_owned()))
    }

    fn hook_call(&self, hook: &Webhook) -> Result<Call, String> {
        let kind = HookType::of(hook.kind.as_deref()).unwrap_or(HookType::Rollout);
        let url = Url::parse(&hook.url).map_err(|error| format!("its url: {error}"))?;
        let metadata = &self.subject.canary.metadata;
        let about = About {
            name: metadata.name.as_deref().unwrap_or_default(),
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            phase: match kind {
                HookType::PreRollout
                | HookType::Rollout
                | HookType::ConfirmTrafficIncrease
                | HookType::ConfirmPromotion => Phase::Progressing,
                _ => self.run.phase,
            },
            revision: if kind == HookType::ConfirmRollout {
                self.sight.target.revision.as_ref()
            } else {
                self.run.target.as_ref()
            },
        };
        let body = webhooks::body(&about, hook).to_string();
        let method = hook.method.as_deref().unwrap_or_default();
        let mut call = match method.to_ascii_uppercase().as_str() {
            "" | "POST" => Call::post(url, body),
            "GET" => Call::get(url),
            "PUT" => Call {
                method: Method::Put,
                ..Call::post(url, body)
            },
            other => return Err(format!("its method {other} is not supported; use POST")),
        };
        call.redirects = REDIRECTS;
        call.timeout = webhooks::timeout(hook);
        call.wanted = Wanted::Text;
        call.signed_with = webhooks::signed_with(hook, about.namespace);
        Ok(call)
    }

    /// A measure, with what it is compared with and how many samples there are, where that is asked for.
    fn metric(
        &self,
        (metric, source): (&Metric, Source<'_>),
        (place, at): (usize, Timestamp),
        used: &mut BTreeSet<QuestionId>,
    ) -> State {
        let mut parts = vec![(
            purpose::MEASURE,
            self.subject.call(metric, source, Side::Target),
        )];
        if metric.baseline.is_some() {
            let call = self.subject.call(metric, source, Side::Source);
            parts.push((purpose::COMPARE, call));
        }
        if let Some(least) = &metric.minimum_samples {
            let call = self.subject.count(metric, source, &least.query);
            parts.push((purpose::COUNT, call));
        }
        let (mut open, mut known) = (Vec::new(), Vec::new());
        for (purpose, call) in parts {
            let call = match call {
                Ok(call) => call,
                Err(why) => return State::Known(Answer::Error(why)),
            };
            let id = self.id(purpose, (place, 0), &call, at);
            match self.told(&id, used) {
                None => open.push(Question::outside(id, call)),
                Some(told) => known.push((purpose, measured(told))),
            }
        }
        if open.is_empty() {
            State::Known(together(known))
        } else {
            State::Open(open)
        }
    }

    fn id(
        &self,
        purpose: Purpose,
        (place, retry): (usize, u32),
        call: &Call,
        due: Timestamp,
    ) -> QuestionId {
        let uid = self.subject.canary.metadata.uid.as_deref();
        named(uid.unwrap_or_default(), purpose, (place, retry), call, due)
    }
}

/// The name of a question for a Canary of this uid: of several for one moment, the one at this place, asked again so often.
pub(crate) fn named(
    uid: &str,
    purpose: Purpose,
    (place, retry): (usize, u32),
    call: &Call,
    due: Timestamp,
) -> QuestionId {
    let to = match &call.target {
        Target::Url(url) => url.to_string(),
        Target::Secret(reference) | Target::SecretWith(reference, _) => reference.to_string(),
    };
    let method = call.method.as_str();
    let mut sent = format!("{place}/{retry}/{method} {to} {}", call.body);
    if let Some(key) = &call.signed_with {
        sent = format!("{sent} {key}");
    }
    let digest = digest(sent.as_bytes());
    let attempt = digest.get(..8).unwrap_or_default();
    QuestionId {
        controller: NAME,
        uid: uid.to_owned(),
        purpose,
        attempt: u32::from_str_radix(attempt, 16).unwrap_or_default(),
        due,
    }
}

/// Whether it is worth asking again.
pub(crate) fn may_pass(told: &Told) -> bool {
    match told {
        Told::Read(Reply { code, .. }) => webhooks::is_worth_a_retry(*code),
        Told::Failed(failure) => {
            matches!(failure, Failure::Timeout(_) | Failure::Unreachable(_))
        }
        Told::Said { .. } | Told::NoRight(_) => false,
    }
}

/// What a webhook's answer means.
fn meaning(hook: &Webhook, told: &Told) -> Answer {
    match told {
        Told::Read(Reply { code, value }) => {
            let text = match value {
                Value::Text(text) => text.text.as_str(),
                _ => "",
            };
            webhooks::answer(hook, *code, text)
        }
        Told::Failed(failure) => Answer::No(failure.to_string()),
        Told::Said { .. } | Told::NoRight(_) => Answer::No("its answer is none".to_owned()),
    }
}

/// What was measured.
fn measured(told: &Told) -> Result<f64, Answer> {
    match told {
        Told::Read(Reply { value, .. }) => measures::number(value),
        Told::Failed(failure) => Err(Answer::Error(failure.to_string())),
        Told::Said { .. } | Told::NoRight(_) => Err(Answer::Error("the answer is none".to_owned())),
    }
}

/// All that was measured of one metric.
fn together(parts: Vec<(Purpose, Result<f64, Answer>)>) -> Answer {
    let mut reading = Reading::default();
    for (purpose, value) in parts {
        match value {
            Ok(value) if purpose == purpose::COMPARE => reading.baseline = Some(value),
            Ok(value) if purpose == purpose::COUNT => reading.samples = Some(value),
            Ok(value) => reading.value = value,
            // The engine says what it means that these have no values.
            Err(Answer::NoValues) if purpose != purpose::MEASURE => {}
            Err(answer) => return answer,
        }
    }
    Answer::Value(reading)
}
