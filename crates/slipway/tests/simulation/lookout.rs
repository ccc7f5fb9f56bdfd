//! A capability that asks before it acts, as small as it can be: the lookout.
//!
//! A passage (`ConfigMap lookout-NAME` with the label `lookout=passage`) goes from stage to stage until the last one. Every
//! half minute it may take one: if a gate says yes, whom a token is shown that is in a Secret, and if Prometheus measures few
//! errors. Neither a no nor silence is a yes. When the last stage is reached, that is told in a chat, and again until
//! somebody has heard it.
//!
//! It is part of no program: it is what calls to the world outside are broken with until a capability makes some.

#[path = "lookout/mutants.rs"]
pub(crate) mod mutants;
#[path = "lookout/oracles.rs"]
mod oracles;
#[path = "lookout/setup.rs"]
mod setup;

pub(crate) use setup::{find, scenarios, wiring};

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::action::Target;
use slipway_kernel::address::Url;
use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::Gauge;
use slipway_kernel::fact::{Answer, Question, QuestionId};
use slipway_kernel::identity::{ClusterId, kinds};
use slipway_kernel::instant::later;
use slipway_kernel::interest::Interest;
use slipway_kernel::parts::Parts;
use slipway_kernel::question::prometheus::{Measured, Query, Reading};
use slipway_kernel::question::{Call, Credential, Number, Reply, SecretRef, Value as Read};
use slipway_kernel::store::{Entry, Meta, Projection, Stores, Undecodable};
use slipway_kernel::{Action, Controller, Facts, Fence, Key, Lane, Plan, Purpose};

pub(crate) const NAME: &str = "lookout";
pub(crate) const LEASE: &str = "lookout.slipway.dev";
/// Where everything of it is.
const PLACE: &str = "bridge";
const LABEL: &str = "lookout";
/// What the names of its own maps begin with.
const PREFIX: &str = "lookout-";
/// On a map: for which half minute the last stage was taken.
const TAKEN: &str = "lookout/taken";
/// Who is asked.
const GATE: &str = "gate.test";
const PROMETHEUS: &str = "prometheus.test";
const CHAT: &str = "chat.test";
const QUERY: &str = "sum(rate(errors[1m]))";
/// So many errors are too many.
const TOO_MANY: f64 = 0.1;
/// How often a stage may be taken.
const EVERY: Duration = Duration::from_secs(30);
/// How long to wait before something is told again.
const AGAIN: Duration = Duration::from_secs(5);

const TAKE: Purpose = Purpose::new("take");
const ASK: Purpose = Purpose::new("ask");
const MEASURE: Purpose = Purpose::new("measure");
const TELL: Purpose = Purpose::new("tell");
const HEARD: Purpose = Purpose::new("heard");

/// A passage.
#[derive(Debug)]
struct Passage {
    stage: u32,
    last: u32,
    told: bool,
    taken: Option<String>,
}

impl Projection for Passage {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let number = |pointer: &str| text(pointer).and_then(|n| n.parse().ok()).unwrap_or(0);
        Ok(Self {
            stage: number("/data/stage"),
            last: number("/data/last"),
            told: text("/data/told").is_some(),
            taken: text("/metadata/annotations/lookout~1taken").map(str::to_owned),
        })
    }
}

/// The planner.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lookout {
    /// What it gets wrong, if it is a mutant.
    slip: Option<Slip>,
}

/// What can be got wrong about answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slip {
    /// Who does not answer has said yes.
    Silence,
    /// Where nothing was measured there are no errors.
    NoData,
    /// Some of the data is all of it.
    Partial,
    /// What was said once needs no second time, whatever came of it.
    Once,
    /// A name is used for whatever is asked next.
    Name,
}

fn key(meta: &Meta) -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: NAME,
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
    }
}

/// The beginning of the half minute that it is now.
fn floor(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(30)).unwrap_or(now)
}

fn id(meta: &Meta, purpose: Purpose, number: u32, due: Timestamp) -> QuestionId {
    QuestionId {
        controller: NAME,
        uid: meta.uid.clone(),
        purpose,
        attempt: number,
        due,
    }
}

fn url(host: &str, path: &str) -> Option<Url> {
    Url::parse(&format!("https://{host}{path}")).ok()
}

/// Asks the gate.
fn gate(meta: &Meta, stage: u32) -> Option<Call> {
    let body = json!({"name": meta.name, "namespace": meta.namespace, "stage": stage});
    let mut call = Call::post(url(GATE, "/pass")?, body.to_string());
    call.credentials = vec![Credential::Bearer(SecretRef {
        namespace: PLACE.to_owned(),
        name: "gate".to_owned(),
        key: "token".to_owned(),
    })];
    Some(call)
}

/// Whether an answer is a yes.
fn is_good(answer: &Answer) -> bool {
    matches!(
        answer,
        Answer::Read(Reply {
            code: 200..=299,
            ..
        })
    )
}

/// What was measured, if anything was.
fn measured(answer: &Answer) -> Option<&Measured> {
    match answer {
        Answer::Read(Reply {
            value: Read::Measured(measured),
            ..
        }) => Some(measured),
        _ => None,
    }
}

/// Whether these are few errors.
fn is_few(reading: &Reading) -> bool {
    matches!(reading, Reading::Vector(Number::Finite(errors)) if *errors < TOO_MANY)
}

/// What stands in the way, in words.
fn why(answer: &Answer) -> String {
    match answer {
        Answer::Failed(failure) => failure.to_string(),
        answer => format!("{answer:?}"),
    }
}

impl Lookout {
    fn has(self, slip: Slip) -> bool {
        self.slip == Some(slip)
    }

    /// Whether an answer is a yes.
    fn is_yes(self, answer: &Answer) -> bool {
        is_good(answer) || self.has(Slip::Silence) && matches!(answer, Answer::Failed(_))
    }

    /// Whether few errors were measured, on all data.
    fn is_calm(self, answer: &Answer) -> bool {
        let Some(measured) = measured(answer) else {
            return false;
        };
        // What was measured on some of the data says nothing about the rest.
        let is_calm = measured.whole().is_some_and(is_few);
        let any = measured.even_if_partial();
        is_calm
            || self.has(Slip::NoData) && *any == Reading::NoData
            || self.has(Slip::Partial) && is_few(any)
    }

    fn pass(self, meta: &Meta, passage: &Passage, facts: &Facts, now: Timestamp, plan: &mut Plan) {
        let due = floor(now);
        let next = later(due, EVERY).unwrap_or(now);
        plan.wake(next);
        if passage.taken.as_deref() == Some(due.to_string().as_str()) {
            return;
        }
        let always = Timestamp::UNIX_EPOCH;
        // A clock that is set back brings a moment twice, and the gate is asked about another stage then.
        let (stage, of) = if self.has(Slip::Name) {
            (0, always)
        } else {
            (passage.stage, due)
        };
        let (asked, measured) = (id(meta, ASK, stage, of), id(meta, MEASURE, 0, due));
        let Some((gate, prometheus)) = gate(meta, passage.stage).zip(url(PROMETHEUS, "/")) else {
            return;
        };
        let query = Query::new(prometheus, QUERY).call();
        let mut answers = Vec::new();
        for (id, call) in [(asked, gate), (measured, query)] {
            match facts.answers.get(&id) {
                None => plan.act(Action::Ask(Question::outside(id, call))),
                Some((_, answer)) => {
                    answers.push(answer);
                    plan.keeps.insert(id);
                }
            }
        }
        if answers.len() == 2 && self.has(Slip::Name) {
            // Whoever asks again under an old name has to have forgotten what it was told.
            plan.keeps.clear();
        }
        let [said, errors] = answers.as_slice() else {
            return;
        };
        let object = slipway_kernel::ObjectRef::local(kinds::CONFIG_MAP, PLACE, &meta.name);
        if self.is_yes(said) && self.is_calm(errors) {
            plan.act(Action::Patch {
                target: Target::seen(object, meta),
                purpose: TAKE,
                body: json!({
                    "metadata": {"annotations": {TAKEN: due.to_string()}},
                    "data": {"stage": (passage.stage + 1).to_string()},
                }),
            });
            return;
        }
        let blocks = if self.is_yes(said) { errors } else { said };
        plan.blockers.push(Blocker {
            reason: "NotPassable",
            message: why(blocks),
            object,
            since: due,
            until: Some(next),
            unblock: "the gate, and few errors".to_owned(),
        });
    }

    /// Says that it is done, and that it was heard.
    fn tell(self, meta: &Meta, facts: &Facts, now: Timestamp, plan: &mut Plan) {
        let id = id(meta, TELL, 0, Timestamp::UNIX_EPOCH);
        let Some(chat) = url(CHAT, "/say") else {
            return;
        };
        match facts.answers.get(&id) {
            None => {
                let text = json!({"text": format!("{} is done", meta.name)});
                let call = Call::post(chat, text.to_string());
                plan.act(Action::Ask(Question::outside(id, call)));
            }
            Some((_, answer)) if is_good(answer) => {
                let object = slipway_kernel::ObjectRef::local(kinds::CONFIG_MAP, PLACE, &meta.name);
                plan.keeps.insert(id);
                plan.act(Action::Patch {
                    target: Target::seen(object, meta),
                    purpose: HEARD,
                    body: json!({"data": {"told": "yes"}}),
                });
            }
            Some(_) if self.has(Slip::Once) => {
                plan.keeps.insert(id);
            }
            // It is forgotten that it failed, and asked again under the same name.
            Some(_) => plan.wake(later(now, AGAIN).unwrap_or(now)),
        }
    }
}

impl Controller for Lookout {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        let on_map = |_: &ClusterId, meta: &Meta, _: &Stores| vec![key(meta)];
        vec![Interest::of::<Passage>(kinds::CONFIG_MAP, on_map).labelled(LABEL)]
    }

    fn lane(&self, _: &Key) -> Lane {
        Lane::Key
    }

    fn lease(&self) -> &'static str {
        LEASE
    }

    fn fence(&self) -> Fence {
        Fence::WaitOut
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        let all = stores.list::<Passage>(&ClusterId::local(), &kinds::CONFIG_MAP);
        all.map(|entry| key(entry.meta)).collect()
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan> {
        let (cluster, kind) = (&key.cluster, &kinds::CONFIG_MAP);
        let found = stores.get::<Passage>(cluster, kind, &key.namespace, &key.name)?;
        let Entry { meta, body, .. } = found;
        let mut plan = Plan {
            basis: slipway_kernel::basis::basis(stores, cluster),
            ..Plan::default()
        };
        if body.stage < body.last {
            self.pass(meta, body, facts, now, &mut plan);
        } else if !body.told {
            self.tell(meta, facts, now, &mut plan);
        }
        Some(plan)
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}
