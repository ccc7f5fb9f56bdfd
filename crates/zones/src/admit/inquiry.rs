//! What a review has been told so far, and what it still has to ask or to read.
//!
//! A webhook is judged from the top each time; [`Inquiry::ask`] gives the answer of a question that has been put, and
//! otherwise notes it as needed. When time is up every open question counts as timed out, so that the same code gives
//! the verdict of an expired review and what is to be undone.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::Action;
use slipway_kernel::Purpose;
use slipway_kernel::admission::{Admission, Collection, Expiry, Reading, Remarks, Review, Verdict};
use slipway_kernel::fact::{Answer, Facts, Question, QuestionId, Request};
use slipway_kernel::identity::Kind;
use slipway_kernel::question::Failure as NoAnswer;

/// How long one request to the API may take.
const API_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the API is asked the same thing.
const ATTEMPTS: u32 = 3;

/// The answer cannot be given before the questions that were noted are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending;

/// A verdict, what is done with it, and what is noted beside it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) actions: Vec<Action>,
    pub(super) remarks: Remarks,
}

impl Decision {
    /// Whether it lets something go, with a warning.
    pub(super) fn warns(&self) -> bool {
        matches!(&self.verdict, Verdict::Allowed { warnings, .. } if !warnings.is_empty())
    }
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Self {
        Self {
            verdict,
            actions: Vec::new(),
            remarks: Remarks::default(),
        }
    }
}

/// The questions and answers of one review.
#[derive(Debug)]
pub(super) struct Inquiry<'a> {
    review: &'a Review,
    facts: &'a Facts,
    is_over: bool,
    needs: Vec<Action>,
    unread: Vec<Collection>,
}

impl<'a> Inquiry<'a> {
    pub(super) fn open(review: &'a Review, facts: &'a Facts) -> Self {
        Self {
            review,
            facts,
            is_over: false,
            needs: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// One in which there is no time left to ask.
    pub(super) fn over(review: &'a Review, facts: &'a Facts) -> Self {
        Self {
            is_over: true,
            ..Self::open(review, facts)
        }
    }

    pub(super) fn question(
        &self,
        purpose: Purpose,
        attempt: u32,
        request: Request,
        timeout: Duration,
    ) -> Question {
        Question::new(self.id(purpose, attempt), request, timeout)
    }

    fn id(&self, purpose: Purpose, attempt: u32) -> QuestionId {
        QuestionId {
            controller: "zones",
            uid: self.review.uid.clone(),
            purpose,
            attempt,
            due: Timestamp::UNIX_EPOCH,
        }
    }

    /// The answer; without one the question is noted, and nothing can be decided now.
    pub(super) fn ask(&mut self, question: Question) -> Result<Answer, Pending> {
        if let Some((_, answer)) = self.facts.answers.get(&question.id) {
            return Ok(answer.clone());
        }
        if self.is_over {
            return Ok(Answer::timeout());
        }
        self.needs.push(Action::Ask(question));
        Err(Pending)
    }

    /// Has the stores hold these kinds of the review's namespace as they are after it arrived. Gives what came of reading
    /// each; without that it is noted as needed, and nothing can be decided now.
    pub(super) fn read<const N: usize>(
        &mut self,
        kinds: [Kind; N],
    ) -> Result<[Reading; N], Pending> {
        let readings = kinds.map(|kind| self.reading(kind));
        if readings.iter().any(Option::is_none) {
            return Err(Pending);
        }
        Ok(readings.map(|reading| reading.unwrap_or(Reading::Current)))
    }

    fn reading(&mut self, kind: Kind) -> Option<Reading> {
        let collection = Collection {
            kind,
            namespace: self.review.namespace.clone(),
        };
        match self.facts.readings.get(&collection) {
            Some(reading) => Some(reading.clone()),
            None if self.is_over => Some(Reading::Failed("context deadline exceeded".to_owned())),
            None => {
                self.unread.push(collection);
                None
            }
        }
    }

    /// Whether anything has been read for the review.
    pub(super) fn has_read(&self) -> bool {
        !self.facts.readings.is_empty()
    }

    /// Whether there is no time left to ask.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The answer to a question, if it has one.
    pub(super) fn told(&self, id: &QuestionId) -> Option<&Answer> {
        self.facts.answers.get(id).map(|(_, answer)| answer)
    }

    /// Whether the API has been asked this, and has answered.
    pub(super) fn is_answered(&self, purpose: Purpose, attempt: u32) -> bool {
        self.told(&self.id(purpose, attempt)).is_some()
    }

    /// The same for what is asked several times in a round.
    pub(super) fn is_answered_in(&self, purpose: Purpose, round: u32) -> bool {
        self.is_answered(purpose, round * ATTEMPTS)
    }

    /// Has something done whatever the answer is; gives it back if there is no time left.
    pub(super) fn attempt(&mut self, question: Question) -> Result<Option<Question>, Pending> {
        if self.is_over && self.told(&question.id).is_none() {
            return Ok(Some(question));
        }
        self.ask(question).map(|_| None)
    }

    /// A request to the API itself.
    pub(super) fn to_api(
        &self,
        purpose: Purpose,
        attempt: u32,
        method: &'static str,
        path: String,
        body: Value,
    ) -> Question {
        let request = Request::Api { method, path, body };
        self.question(purpose, attempt, request, API_TIMEOUT)
    }

    /// Asks the API itself.
    pub(super) fn api(
        &mut self,
        purpose: Purpose,
        attempt: u32,
        method: &'static str,
        path: String,
        body: Value,
    ) -> Result<Result<Value, Failure>, Pending> {
        let question = self.to_api(purpose, attempt, method, path, body);
        self.ask(question).map(|answer| object(&answer))
    }

    /// Asks the API the same thing up to three times, with pauses: a read until it is answered, a write until it is not
    /// forbidden.
    /// What is decided without the API, or without a right, must not hang on one answer that went astray. `round` tells
    /// several of a purpose apart.
    pub(super) fn api_again(
        &mut self,
        (purpose, round): (Purpose, u32),
        method: &'static str,
        path: &str,
        body: &Value,
    ) -> Result<Result<Value, Failure>, Pending> {
        let first = round * ATTEMPTS;
        let mut last = Err(Failure::default());
        for attempt in first..first + ATTEMPTS {
            let question = Question {
                pause: pause(attempt - first),
                ..self.to_api(purpose, attempt, method, path.to_owned(), body.clone())
            };
            last = object(&self.ask(question)?);
            let is_final = match &last {
                Ok(_) => true,
                Err(failure) if failure.is_no_right => true,
                Err(failure) if method == "GET" => failure.code == Some(404),
                Err(failure) => failure.code != Some(403),
            };
            if is_final {
                break;
            }
        }
        Ok(last)
    }

    pub(super) fn admission(self, decided: Result<Decision, Pending>) -> (Admission, Remarks) {
        match decided {
            Ok(decision) => (
                Admission::Decide(decision.verdict, decision.actions),
                decision.remarks,
            ),
            Err(Pending) if self.unread.is_empty() => {
                (Admission::Need(self.needs), Remarks::default())
            }
            Err(Pending) => (Admission::Read(self.unread), Remarks::default()),
        }
    }
}

/// How long to wait before asking again: short, as somebody waits for the verdict.
fn pause(repeated: u32) -> Duration {
    match repeated {
        0 => Duration::ZERO,
        1 => Duration::from_millis(50),
        _ => Duration::from_millis(200),
    }
}

/// The outcome of a review whose time is up; `closed` is said where even that could not be decided.
pub(super) fn expiry(decided: Result<Decision, Pending>, closed: Verdict) -> Expiry {
    match decided {
        Ok(decision) => Expiry {
            verdict: decision.verdict,
            undo: decision.actions,
        },
        Err(Pending) => Expiry {
            verdict: closed,
            undo: Vec::new(),
        },
    }
}

/// A request to the API that did not succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct Failure {
    /// The HTTP code; none if there was no answer.
    pub(super) code: Option<u16>,
    /// Whether the API says that we have no right to it. A quota or a policy forbids with the same code.
    pub(super) is_no_right: bool,
    /// What the API said, or why it said nothing.
    pub(super) message: String,
}

/// The object in an answer of the API.
fn object(answer: &Answer) -> Result<Value, Failure> {
    let silent = |message: &str| Failure {
        message: message.to_owned(),
        ..Failure::default()
    };
    match answer {
        Answer::Said { code, body } if (200..300).contains(code) => {
            serde_json::from_str(body).map_err(|error| silent(&error.to_string()))
        }
        Answer::Said { code, body } => {
            let status: Option<Value> = serde_json::from_str(body).ok();
            let message = status
                .as_ref()
                .and_then(|status| status.get("message")?.as_str());
            Err(Failure {
                code: Some(*code),
                is_no_right: false,
                message: message.map_or_else(|| format!("the API answered {code}"), str::to_owned),
            })
        }
        Answer::NoRight(why) => Err(Failure {
            code: Some(403),
            is_no_right: true,
            message: why.clone(),
        }),
        Answer::Failed(NoAnswer::Timeout(_)) => Err(silent("context deadline exceeded")),
        Answer::Failed(failure) => Err(silent(&failure.why())),
        Answer::Read(_) => Err(silent("it is no answer of the API")),
    }
}
