//! Serves a review as the runtime does: asks, answers, asks again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::admission::{Admission, Admit, Collection, Reading, Remarks, Review, Verdict};
use slipway_kernel::fact::{Answer, Missing, Question, Unseen};
use slipway_kernel::{Action, ClusterId, Facts, Kind, Stores};

pub(crate) fn now() -> Timestamp {
    "2026-03-04T12:00:00Z".parse().unwrap()
}

/// Facts of a replica that does not see a kind as it is.
pub(crate) fn without(how: Unseen, kind: &Kind) -> Facts {
    let missing = Missing::unseen(how, &ClusterId::local(), kind);
    Facts {
        missing: [missing].into(),
        ..Facts::default()
    }
}

/// Answers questions, and remembers them.
pub(crate) trait Peer {
    fn answer(&mut self, question: &Question) -> Answer;

    /// What comes of reading a collection: what the stores hold is what there is.
    fn read(&mut self, collection: &Collection, facts: &Facts) -> Reading {
        let is = |how| facts.is_unseen(how, &ClusterId::local(), &collection.kind);
        if is(Unseen::Absent) {
            return Reading::Undefined;
        }
        if is(Unseen::Forbidden) {
            return Reading::Failed("forbidden".to_owned());
        }
        Reading::Current
    }
}

/// Reads what a review needs to have read.
pub(crate) fn read(facts: &mut Facts, collections: Vec<Collection>, peer: &mut dyn Peer) {
    assert!(!collections.is_empty(), "nothing to read");
    for collection in collections {
        let reading = peer.read(&collection, facts);
        facts.readings.insert(collection, reading);
    }
}

/// A peer whom nobody may ask.
pub(crate) struct Nobody;

impl Peer for Nobody {
    fn answer(&mut self, question: &Question) -> Answer {
        panic!("asked {} {}", question.method(), question.address());
    }
}

/// Answers by method and address; what it does not know it has not found.
#[derive(Default)]
pub(crate) struct Fixed(pub(crate) BTreeMap<String, Answer>);

impl Peer for Fixed {
    fn answer(&mut self, question: &Question) -> Answer {
        let key = format!("{} {}", question.method(), question.address());
        self.0
            .get(&key)
            .cloned()
            .unwrap_or_else(|| said(404, &json!({"message": "not found"})))
    }
}

pub(crate) fn said(code: u16, body: &Value) -> Answer {
    Answer::Said {
        code,
        body: body.to_string(),
    }
}

/// What came of a review.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) verdict: Verdict,
    pub(crate) remarks: Remarks,
    pub(crate) actions: Vec<Action>,
}

impl Served {
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allowed { .. })
    }

    pub(crate) fn denial(&self) -> (Option<u16>, &str) {
        match &self.verdict {
            Verdict::Denied { code, message } => (*code, message),
            other @ Verdict::Allowed { .. } => panic!("{other:?}"),
        }
    }

    pub(crate) fn warnings(&self) -> &[String] {
        match &self.verdict {
            Verdict::Allowed { warnings, .. } => warnings,
            other @ Verdict::Denied { .. } => panic!("{other:?}"),
        }
    }
}

/// Serves a review to its end; what is done with the verdict is asked of the peer too.
pub(crate) fn serve(
    webhook: &dyn Admit,
    review: &Review,
    stores: &Stores,
    facts: &Facts,
    peer: &mut dyn Peer,
) -> Served {
    serve_late(webhook, review, (stores, stores), facts, peer)
}

/// The same by a replica that has seen the first stores, while the second are what there is.
pub(crate) fn serve_late(
    webhook: &dyn Admit,
    review: &Review,
    (seen, there): (&Stores, &Stores),
    facts: &Facts,
    peer: &mut dyn Peer,
) -> Served {
    let mut facts = facts.clone();
    // As much of its objects as the webhook says to read.
    let review = &review.clone().read_with(webhook.reads());
    let mut stores = seen;
    for _ in 0..100 {
        match webhook.judge(review, stores, &facts, now()) {
            (Admission::Decide(verdict, actions), remarks) => {
                for action in &actions {
                    let Action::Ask(question) = action else {
                        panic!("{action:?}")
                    };
                    peer.answer(question);
                }
                return Served {
                    verdict,
                    remarks,
                    actions,
                };
            }
            (Admission::Read(collections), _) => {
                read(&mut facts, collections, peer);
                stores = there;
            }
            (Admission::Need(needs), _) => {
                assert!(!needs.is_empty(), "nothing decided and nothing needed");
                for need in needs {
                    let Action::Ask(question) = need else {
                        panic!("{need:?}")
                    };
                    let answer = peer.answer(&question);
                    facts.answers.insert(question.id, (now(), answer));
                }
            }
        }
    }
    panic!("no end");
}

/// An update of an object from one state to another.
pub(crate) fn update(
    resource: &str,
    subresource: &str,
    name: &str,
    old: Value,
    object: Value,
) -> Review {
    Review {
        uid: "review".to_owned(),
        operation: "UPDATE".to_owned(),
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
        object,
        old,
        is_dry_run: false,
    }
}
