//! A capability that is as small as it can be: a config map whose `want` differs from its `have` gets it, at most
//! `budget` of them being written in one plan; a config map without `want` is a blocker.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::Purpose;
use slipway_kernel::action::{Action, Target};
use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::{Controller, Fence, Gauge};
use slipway_kernel::event::{Event, EventType};
use slipway_kernel::fact::{Answer, Facts, Question, QuestionId, Request};
use slipway_kernel::identity::{ClusterId, Key, Kind, ObjectRef, kinds};
use slipway_kernel::interest::{Interest, Need};
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::plan::{Plan, Status, Step};
use slipway_kernel::store::{Meta, Projection, Stores, Undecodable};

/// A kind of our own with a status.
pub(crate) const GADGET: Kind = Kind::namespaced("toy.dev", "v1", "Gadget", "gadgets");
/// A kind that is not always there.
pub(crate) const WIDGET: Kind = Kind::namespaced("toy.dev", "v1", "Widget", "widgets");

#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) want: Option<String>,
    pub(crate) have: Option<String>,
    pub(crate) ask: Option<String>,
    pub(crate) delete: bool,
    /// How many questions have to be answered.
    pub(crate) asks: Option<u32>,
    /// The name of a copy, to be applied.
    pub(crate) mirror: Option<String>,
}

impl Projection for Map {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let entry = |name: &str| {
            let found = object.pointer(&format!("/data/{name}"));
            found.and_then(Value::as_str).map(str::to_owned)
        };
        if entry("bad").is_some() {
            return Err(Undecodable {
                field: "data.bad".to_owned(),
                problem: "is there".to_owned(),
            });
        }
        assert_ne!(entry("panic").as_deref(), Some("project"));
        Ok(Self {
            want: entry("want"),
            have: entry("have"),
            ask: entry("ask"),
            asks: entry("asks").and_then(|n| n.parse().ok()),
            delete: entry("delete").is_some(),
            mirror: entry("mirror"),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Gadget {
    size: i64,
    seen: Option<i64>,
}

impl Projection for Gadget {
    const READS: Parts = Parts::NONE.and(Part::Status);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let number = |path: &str| object.pointer(path).and_then(Value::as_i64);
        Ok(Self {
            size: number("/spec/size").unwrap_or_default(),
            seen: number("/status/seen"),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Anything;

impl Projection for Anything {
    const READS: Parts = Parts::NONE;

    fn project(_: &Value) -> Result<Self, Undecodable> {
        Ok(Self)
    }
}

#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each test sets one")]
pub(crate) struct Toy {
    pub(crate) gadgets: bool,
    pub(crate) widgets: Option<Need>,
    /// Steps per plan.
    pub(crate) budget: usize,
    /// From the last object to the first.
    pub(crate) reverse: bool,
    /// Wakes up this often.
    pub(crate) every: Option<std::time::Duration>,
    pub(crate) lease: &'static str,
    pub(crate) fence: Fence,
    /// Forgets what a former leader may be about to do.
    pub(crate) careless: bool,
    /// Says that the next plan rests on the statuses that it writes.
    pub(crate) prepares: bool,
}

impl Default for Toy {
    fn default() -> Self {
        Self {
            gadgets: false,
            widgets: None,
            budget: 1_000,
            reverse: false,
            every: None,
            lease: "toy",
            fence: Fence::WaitOut,
            careless: false,
            prepares: false,
        }
    }
}

fn key(cluster: &ClusterId, namespace: &str) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: Toy::NAME,
        namespace: namespace.to_owned(),
        name: String::new(),
    }
}

fn step(target: Target, uid: &str, value: &str) -> Step {
    let regarding = target.object().clone();
    Step {
        action: Action::Patch {
            target,
            purpose: Purpose::new("follow"),
            body: json!({"data": {"have": value}}),
        },
        events: vec![Event {
            regarding,
            uid: uid.to_owned(),
            severity: EventType::Normal,
            reason: "Followed",
            action: "Follow",
            note: format!("have is {value} now"),
            instance: String::new(),
        }],
    }
}

impl Toy {
    fn maps(&self, stores: &Stores, facts: &Facts, key: &Key, plan: &mut Plan) {
        let Some(store) = stores.typed::<Map>(&key.cluster, &kinds::CONFIG_MAP) else {
            return;
        };
        let basis = (key.cluster.clone(), kinds::CONFIG_MAP);
        plan.basis.insert(basis, store.version());
        let mut all: Vec<_> = stores
            .list::<Map>(&key.cluster, &kinds::CONFIG_MAP)
            .collect();
        if self.reverse {
            all.reverse();
        }
        for entry in all {
            if entry.meta.namespace != key.namespace {
                continue;
            }
            let object = store.reference(entry.meta);
            let target = Target::seen(object.clone(), entry.meta);
            if entry.body.delete {
                let purpose = Purpose::new("remove");
                plan.act(Action::Delete { target, purpose });
                continue;
            }
            if let Some(n) = entry.body.asks {
                Self::ask_all(facts, entry.meta, n, target, plan);
                continue;
            }
            if let Some(ask) = &entry.body.ask {
                Self::ask(facts, entry.meta, ask, target, plan);
                continue;
            }
            if let Some(mirror) = &entry.body.mirror
                && store.get(&key.namespace, mirror).is_none()
            {
                let copy = ObjectRef {
                    name: mirror.clone(),
                    ..object.clone()
                };
                let body = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": mirror, "namespace": key.namespace},
                    "data": {"of": entry.meta.name},
                });
                plan.act(Action::apply(copy, Purpose::new("mirror"), body));
            }
            match (&entry.body.want, &entry.body.have) {
                (Some(want), have) if have.as_ref() != Some(want) => {
                    if plan.steps.len() < self.budget {
                        plan.steps.push(step(target, &entry.meta.uid, want));
                    }
                }
                (Some(_), _) => {}
                (None, _) => plan.blockers.push(Blocker {
                    reason: "NothingWanted",
                    message: format!("{object} wants nothing"),
                    object,
                    since: Timestamp::UNIX_EPOCH,
                    until: None,
                    unblock: "set data.want".to_owned(),
                }),
            }
        }
    }

    /// Asks so many questions; when all of them have answers, that is what the map has.
    fn ask_all(facts: &Facts, meta: &Meta, n: u32, target: Target, plan: &mut Plan) {
        let mut is_open = false;
        for attempt in 0..n {
            let id = QuestionId {
                controller: Self::NAME,
                uid: meta.uid.clone(),
                purpose: Purpose::new("ask-all"),
                attempt,
                due: Timestamp::UNIX_EPOCH,
            };
            if facts.answers.contains_key(&id) {
                plan.keeps.insert(id);
                continue;
            }
            is_open = true;
            plan.act(Self::question(id, attempt.to_string()));
        }
        if !is_open {
            let body = json!({"data": {"asks": null, "have": "all", "want": "all"}});
            plan.act(Action::Patch {
                target,
                purpose: Purpose::new("answer"),
                body,
            });
        }
    }

    fn question(id: QuestionId, url: String) -> Action {
        let request = Request::Pod { method: "GET", url };
        let timeout = std::time::Duration::from_secs(3);
        Action::Ask(Question::new(id, request, timeout))
    }

    fn ask(facts: &Facts, meta: &Meta, ask: &str, target: Target, plan: &mut Plan) {
        let id = QuestionId {
            controller: Self::NAME,
            uid: meta.uid.clone(),
            purpose: Purpose::new("ask"),
            attempt: 1,
            due: Timestamp::UNIX_EPOCH,
        };
        let value = match facts.answers.get(&id) {
            None => {
                return plan.act(Self::question(id, ask.to_owned()));
            }
            Some((_, Answer::Said { body, .. })) => body.clone(),
            Some((_, answer)) => format!("{answer:?}"),
        };
        plan.keeps.insert(id);
        plan.act(Action::Patch {
            target,
            purpose: Purpose::new("answer"),
            body: json!({"data": {"ask": null, "have": value, "want": value}}),
        });
    }

    fn gadgets(stores: &Stores, key: &Key, plan: &mut Plan) {
        for entry in stores.list::<Gadget>(&key.cluster, &GADGET) {
            let Some(store) = stores.typed::<Gadget>(&key.cluster, &GADGET) else {
                return;
            };
            if entry.meta.namespace == key.namespace && entry.body.seen != Some(entry.body.size) {
                let ready = if entry.body.size % 2 == 0 {
                    "True"
                } else {
                    "False"
                };
                plan.statuses.push(Status {
                    target: Target::seen(store.reference(entry.meta), entry.meta),
                    body: json!({
                        "seen": entry.body.size,
                        "conditions": [{"type": "Even", "status": ready}],
                    }),
                });
            }
        }
    }
}

impl Toy {
    const NAME: &'static str = "toy";
}

impl Controller for Toy {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn interests(&self) -> Vec<Interest> {
        let by_namespace =
            |cluster: &ClusterId, meta: &Meta, _: &Stores| vec![key(cluster, &meta.namespace)];
        let mut all = vec![Interest::of::<Map>(kinds::CONFIG_MAP, by_namespace)];
        if self.gadgets {
            all.push(Interest::of::<Gadget>(GADGET, by_namespace));
        }
        if let Some(need) = self.widgets {
            let widgets = Interest::of::<Anything>(WIDGET, by_namespace);
            all.push(Interest { need, ..widgets });
        }
        all
    }

    fn lease(&self) -> &'static str {
        self.lease
    }

    fn fence(&self) -> Fence {
        self.fence
    }

    fn objects_to_bump(&self, stores: &Stores, key: &Key) -> Vec<Target> {
        let Some(store) = stores.typed::<Map>(&key.cluster, &kinds::CONFIG_MAP) else {
            return Vec::new();
        };
        let all = stores.list::<Map>(&key.cluster, &kinds::CONFIG_MAP);
        all.filter(|entry| !self.careless && entry.meta.namespace == key.namespace)
            .filter(|entry| entry.body.delete || entry.body.want != entry.body.have)
            .map(|entry| Target::seen(store.reference(entry.meta), entry.meta))
            .collect()
    }

    fn keys(&self, _: &Stores) -> Vec<Key> {
        vec![key(&ClusterId::local(), "default")]
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, now: Timestamp) -> Option<Plan> {
        let mut plan = Plan::default();
        self.maps(stores, facts, key, &mut plan);
        if self.gadgets {
            Self::gadgets(stores, key, &mut plan);
            plan.prepares = self.prepares && !plan.statuses.is_empty();
        }
        let empty = stores
            .list::<Map>(&key.cluster, &kinds::CONFIG_MAP)
            .all(|entry| entry.meta.namespace != key.namespace);
        if let Some(every) = self.every {
            plan.wake(now.checked_add(every).unwrap());
        }
        (!empty || self.gadgets || self.every.is_some()).then_some(plan)
    }

    fn gauges(&self, stores: &Stores, _: Timestamp) -> Vec<Gauge> {
        let all = stores.list::<Map>(&ClusterId::local(), &kinds::CONFIG_MAP);
        let wanting = all.filter(|entry| entry.body.want.is_some()).count();
        vec![Gauge {
            name: "toy_wanting",
            help: "Config maps that want something",
            labels: BTreeMap::from([("where", "local".to_owned())]),
            value: f64::from(u32::try_from(wanting).unwrap()),
        }]
    }
}
