//! A capability that asks: for each config map all that it was made to ask, and writes down what it was told.

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::Purpose;
use slipway_kernel::action::{Action, Target};
use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::{Controller, Fence, Gauge, Lane};
use slipway_kernel::event::{Event, EventType};
use slipway_kernel::fact::{Answer, Facts, Question, QuestionId, Request};
use slipway_kernel::identity::{ClusterId, Key, kinds};
use slipway_kernel::interest::Interest;
use slipway_kernel::parts::Parts;
use slipway_kernel::plan::{Plan, Step};
use slipway_kernel::store::{Meta, Projection, Stores, Undecodable};

const NAME: &str = "curious";

/// What a config map has been told.
#[derive(Debug)]
struct Told(Option<String>);

impl Projection for Told {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let told = object.pointer("/data/told").and_then(Value::as_str);
        Ok(Self(told.map(str::to_owned)))
    }
}

/// Asks these for each config map, once, and again when somebody takes away what it was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Curious {
    pub(crate) requests: Vec<(&'static str, Request)>,
}

fn key(cluster: &ClusterId, meta: &Meta) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: NAME,
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
    }
}

/// One line for each answer, as a status would have it.
fn line(purpose: &str, answer: &Answer) -> String {
    match answer {
        Answer::Failed(failure) => format!("{purpose}: {failure}"),
        answer => format!("{purpose}: {answer:?}"),
    }
}

impl Curious {
    fn question(meta: &Meta, purpose: &'static str, request: &Request) -> Question {
        let id = QuestionId {
            controller: NAME,
            uid: meta.uid.clone(),
            purpose: Purpose::new(purpose),
            attempt: 0,
            due: Timestamp::UNIX_EPOCH,
        };
        match request {
            Request::Outside(call) => Question::outside(id, (**call).clone()),
            request => Question::new(id, request.clone(), std::time::Duration::from_secs(5)),
        }
    }
}

impl Controller for Curious {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        vec![Interest::of::<Told>(
            kinds::CONFIG_MAP,
            |cluster: &ClusterId, meta: &Meta, _: &Stores| vec![key(cluster, meta)],
        )]
    }

    fn lane(&self, _: &Key) -> Lane {
        Lane::Key
    }

    fn lease(&self) -> &'static str {
        NAME
    }

    fn fence(&self) -> Fence {
        Fence::WaitOut
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        let home = ClusterId::local();
        let all = stores.list::<Told>(&home, &kinds::CONFIG_MAP);
        all.map(|entry| key(&home, entry.meta)).collect()
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, _: Timestamp) -> Option<Plan> {
        let store = stores.typed::<Told>(&key.cluster, &kinds::CONFIG_MAP)?;
        let (place, name) = (&key.namespace, &key.name);
        let entry = stores.get::<Told>(&key.cluster, &kinds::CONFIG_MAP, place, name)?;
        let mut plan = Plan::default();
        if entry.body.0.is_some() || !entry.meta.name.starts_with("asks") {
            return Some(plan);
        }
        // Whatever another key was told is not seen here.
        let mut answers = facts.answers.keys();
        assert!(answers.all(|id| id.uid == entry.meta.uid));
        let mut lines = Vec::new();
        for (purpose, request) in &self.requests {
            let question = Self::question(entry.meta, purpose, request);
            match facts.answers.get(&question.id) {
                None => plan.act(Action::Ask(question)),
                Some((_, answer)) => {
                    lines.push(line(purpose, answer));
                    plan.keeps.insert(question.id);
                }
            }
        }
        let object = store.reference(entry.meta);
        let told = lines.join("\n");
        plan.blockers.push(Blocker {
            reason: "Asked",
            message: told.clone(),
            object: object.clone(),
            since: Timestamp::UNIX_EPOCH,
            until: None,
            unblock: "answers".to_owned(),
        });
        if lines.len() == self.requests.len() {
            let words = (EventType::Normal, "Told", "Ask");
            let event = Event::on(object.clone(), &entry.meta.uid, words, told.clone(), "");
            plan.steps.push(Step {
                action: Action::Patch {
                    target: Target::seen(object, entry.meta),
                    purpose: Purpose::new("tell"),
                    body: json!({"data": {"told": told}}),
                },
                events: vec![event],
            });
        }
        Some(plan)
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}
