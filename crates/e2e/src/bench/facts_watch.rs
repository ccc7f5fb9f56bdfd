//! The capability of the bench: each `ConfigMap` with a label asks three questions every ten seconds, at a moment of its own.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::address::Url;
use slipway_kernel::capability::Gauge;
use slipway_kernel::fact::{Question, QuestionId};
use slipway_kernel::identity::{ClusterId, kinds};
use slipway_kernel::instant::later;
use slipway_kernel::interest::Interest;
use slipway_kernel::parts::Parts;
use slipway_kernel::question::prometheus::Query;
use slipway_kernel::question::{Call, Wanted};
use slipway_kernel::store::{Meta, Projection, Stores, Undecodable};
use slipway_kernel::{Action, Controller, Facts, Fence, Key, Lane, Plan, Purpose};

/// Where everything is.
pub(crate) const PLACE: &str = "default";
/// The label of what is looked at.
pub(crate) const LABEL: &str = "watch";
/// How often each asks.
pub(crate) const EVERY: Duration = Duration::from_secs(10);
const NAME: &str = "watch";

/// The planner.
pub(crate) struct Watch {
    /// Who is asked.
    pub(crate) world: Url,
}

#[derive(Debug)]
struct Anything;

impl Projection for Anything {
    const READS: Parts = Parts::NONE;

    fn project(_: &Value) -> Result<Self, Undecodable> {
        Ok(Self)
    }
}

fn key(meta: &Meta) -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: NAME,
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
    }
}

/// When a key's questions were last due: keys are spread over the period.
fn due(meta: &Meta, now: Timestamp) -> Timestamp {
    let period = i64::try_from(EVERY.as_millis()).unwrap_or(10_000);
    let spread = meta.name.bytes().fold(7_i64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(i64::from(byte))
    });
    let offset = spread.wrapping_mul(7_919).rem_euclid(period);
    let since = (now.as_millisecond() - offset).rem_euclid(period);
    Timestamp::from_millisecond(now.as_millisecond() - since).unwrap_or(now)
}

impl Watch {
    fn calls(&self) -> [(&'static str, Call); 3] {
        let hook = |path: &str| {
            let url = self.world.clone().join(path);
            Call::post(url, r#"{"name":"app","phase":"Progressing"}"#.to_owned())
        };
        let mut text = hook("text");
        text.wanted = Wanted::Text;
        [
            (
                "measure",
                Query::new(self.world.clone(), "sum(rate(errors[1m]))").call(),
            ),
            ("gate", hook("gate")),
            ("text", text),
        ]
    }
}

impl Controller for Watch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        let on_map = |_: &ClusterId, meta: &Meta, _: &Stores| vec![key(meta)];
        vec![Interest::of::<Anything>(kinds::CONFIG_MAP, on_map).labelled(LABEL)]
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
        let all = stores.list::<Anything>(&ClusterId::local(), &kinds::CONFIG_MAP);
        all.map(|entry| key(entry.meta)).collect()
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan> {
        let (cluster, kind) = (&key.cluster, &kinds::CONFIG_MAP);
        let meta = stores
            .get::<Anything>(cluster, kind, &key.namespace, &key.name)?
            .meta;
        let due = due(meta, now);
        let mut plan = Plan::default();
        for (purpose, call) in self.calls() {
            let id = QuestionId {
                controller: NAME,
                uid: meta.uid.clone(),
                purpose: Purpose::new(purpose),
                attempt: 0,
                due,
            };
            if facts.answers.contains_key(&id) {
                plan.keeps.insert(id);
            } else {
                plan.act(Action::Ask(Question::outside(id, call)));
            }
        }
        plan.wake(later(due, EVERY)?);
        Some(plan)
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}
