//! A capability of several clusters that is as small as it can be. At home a config map with the label `herd` means a cluster: the
//! Secret of its name has the credentials, `want` is to be what the config map `herd` over there has. It records which cluster it
//! is (`uid`), how it is (`state`) and, where it can be done without them, whether widgets are listed there (`widgets`). With `sees`, gadgets over there are counted, a kind that nobody knew before. With `asks`, it
//! asks over there what the config map `who` says, and writes that down.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::names::CONFIRM_CLUSTER;
use slipway_kernel::Purpose;
use slipway_kernel::action::{Action, FieldManager, Target};
use slipway_kernel::capability::{Controller, Fence, Gauge, Lane};
use slipway_kernel::event::{Event, EventType};
use slipway_kernel::fact::{Answer, Facts, Question, QuestionId, Request};
use slipway_kernel::identity::{ClusterId, Key, Kind, ObjectRef, kinds};
use slipway_kernel::interest::{Interest, Where};
use slipway_kernel::member::{Attention, Credentials, Member, confirmed};
use slipway_kernel::parts::Parts;
use slipway_kernel::plan::Plan;
use slipway_kernel::store::{Meta, Projection, Store, Stores, Undecodable};

pub(crate) const NAME: &str = "herd";
pub(crate) const NAMESPACE: &str = "default";

/// What means a cluster.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "one for each thing that a test may want of it"
)]
struct Sheep {
    want: String,
    uid: Option<String>,
    confirmed: Option<String>,
    state: String,
    serves: Option<String>,
    widgets: Option<String>,
    sees: bool,
    quiet: bool,
    /// A config map of home that is to be written by the key of a member, which must not be.
    stray: bool,
    /// What is to be told in the member, on its namespace.
    tells: Option<String>,
    asks: bool,
}

impl Projection for Sheep {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let entry = |name: &str| {
            let found = object.pointer("/data").and_then(|data| data.get(name));
            found.and_then(Value::as_str).map(str::to_owned)
        };
        let confirmed = object.pointer("/metadata/annotations");
        let confirmed = confirmed.and_then(|all| all.get(CONFIRM_CLUSTER)?.as_str());
        Ok(Self {
            want: entry("want").unwrap_or_default(),
            uid: entry("uid"),
            confirmed: confirmed.map(str::to_owned),
            state: entry("state").unwrap_or_default(),
            serves: entry("serves"),
            widgets: entry("widgets"),
            sees: entry("sees").is_some(),
            quiet: entry("quiet").is_some(),
            stray: entry("stray").is_some(),
            tells: entry("tells"),
            asks: entry("asks").is_some(),
        })
    }
}

/// A Secret, of which nothing is kept but that there is one.
#[derive(Debug)]
struct Token;

impl Projection for Token {
    const READS: Parts = Parts::NONE;

    fn project(_: &Value) -> Result<Self, Undecodable> {
        Ok(Self)
    }
}

/// What a cluster has.
#[derive(Debug)]
struct Wool {
    have: String,
    gadgets: String,
    told: String,
}

impl Projection for Wool {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let entry = |name: &str| {
            let found = object.pointer("/data").and_then(|data| data.get(name));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Ok(Self {
            have: entry("have"),
            gadgets: entry("gadgets"),
            told: entry("told"),
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Herd {
    pub(crate) fence: Fence,
    /// Whether the kind `Widget` has to be defined in members.
    pub(crate) widgets: bool,
    /// Whether it can be done without all the same.
    pub(crate) optional: bool,
    /// Whether it says of each member if it serves gadgets.
    pub(crate) discovers: bool,
    /// How many config maps more it writes over there, before the one that it looks at.
    pub(crate) lambs: usize,
}

impl Default for Herd {
    fn default() -> Self {
        Self {
            fence: Fence::WaitOut,
            widgets: false,
            optional: false,
            discovers: false,
            lambs: 0,
        }
    }
}

/// A kind that has to be there in members.
pub(crate) const WIDGET: Kind = Kind::namespaced("toy.dev", "v1", "Widget", "widgets");

fn home_key(name: &str) -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: NAME,
        namespace: NAMESPACE.to_owned(),
        name: name.to_owned(),
    }
}

fn member_key(cluster: &ClusterId) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: NAME,
        namespace: String::new(),
        name: String::new(),
    }
}

fn sheep<'a>(stores: &'a Stores, name: &str) -> Option<(&'a Meta, &'a Sheep)> {
    let home = ClusterId::local();
    let entry = stores.get::<Sheep>(&home, &kinds::CONFIG_MAP, NAMESPACE, name)?;
    Some((entry.meta, entry.body))
}

impl Herd {
    fn at_home(&self, stores: &Stores, facts: &Facts, key: &Key) -> Option<Plan> {
        let (meta, sheep) = sheep(stores, &key.name)?;
        let cluster = ClusterId::remote(&key.name);
        let mut plan = Plan::default();
        let member = member(stores, &cluster)?;
        let known = facts.members.get(&cluster);
        let blocker = known.and_then(|known| known.blocker(&member));
        let state = match (known, &blocker) {
            (None, _) => "Unknown",
            (_, Some(blocker)) => blocker.reason,
            (_, None) => "Ready",
        };
        plan.blockers.extend(blocker.clone());
        let mut data = serde_json::Map::new();
        if sheep.state != state {
            data.insert("state".to_owned(), json!(state));
        }
        let kinds_served = known.and_then(|known| known.discovery.as_ref());
        if let Some(kinds_served) = kinds_served.filter(|_| self.discovers) {
            let serves = kinds_served.serves(&gadget()).to_string();
            if sheep.serves.as_ref() != Some(&serves) {
                data.insert("serves".to_owned(), json!(serves));
            }
        }
        if self.optional {
            let store = stores.typed::<Token>(&cluster, &WIDGET);
            let widgets = store.is_some_and(Store::is_synced).to_string();
            if sheep.widgets.as_deref().unwrap_or("false") != widgets {
                data.insert("widgets".to_owned(), json!(widgets));
            }
        }
        let uid = known.and_then(|known| known.uid());
        let is_first = sheep.uid.is_none() && sheep.confirmed.is_none();
        let is_confirmed = uid.is_some() && uid == member.confirmed.as_deref();
        if let Some(uid) = uid.filter(|_| is_first || is_confirmed)
            && sheep.uid.as_deref() != Some(uid)
        {
            data.insert("uid".to_owned(), json!(uid));
        }
        if !data.is_empty() {
            let object = ObjectRef::local(kinds::CONFIG_MAP, NAMESPACE, &key.name);
            plan.act(Action::Patch {
                target: Target::seen(object, meta),
                purpose: Purpose::new("record"),
                body: json!({"data": data}),
            });
        }
        Some(plan)
    }

    fn over_there(&self, stores: &Stores, facts: &Facts, key: &Key) -> Option<Plan> {
        let (meta, sheep) = sheep(stores, key.cluster.as_str())?;
        let wool = stores.get::<Wool>(&key.cluster, &kinds::CONFIG_MAP, NAMESPACE, NAME);
        let gadgets = stores
            .typed::<Token>(&key.cluster, &gadget())
            .filter(|store| store.is_synced())
            .map_or_else(String::new, |store| store.len().to_string());
        let mut plan = Plan::default();
        let told = if sheep.asks {
            told(&mut plan, facts, meta)
        } else {
            String::new()
        };
        let is_same = wool.is_some_and(|wool| {
            let has = wool.body;
            has.have == sheep.want && has.gadgets == gadgets && has.told == told
        });
        let object = |name: &str| ObjectRef {
            cluster: key.cluster.clone(),
            ..ObjectRef::local(kinds::CONFIG_MAP, NAMESPACE, name)
        };
        let body = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "data": {"have": sheep.want, "gadgets": gadgets, "told": told},
            })
        };
        if !is_same {
            let lambs = (0..self.lambs).map(|n| format!("lamb-{n:02}"));
            for name in lambs.chain([NAME.to_owned()]) {
                plan.act(Action::Apply {
                    object: object(&name),
                    purpose: Purpose::new("follow"),
                    body: body(&name),
                    by: FieldManager::named(format!("slipway/{}", key.cluster)),
                });
            }
        }
        if sheep.stray {
            let stray = ObjectRef::local(kinds::CONFIG_MAP, NAMESPACE, "stray");
            plan.act(Action::apply(stray, Purpose::new("stray"), body("stray")));
        }
        if let Some(note) = &sheep.tells {
            let regarding = ObjectRef {
                cluster: key.cluster.clone(),
                ..ObjectRef::local(kinds::NAMESPACE, "", NAMESPACE)
            };
            let what = (EventType::Normal, "Told", "Tell");
            let event = Event::on(regarding, "", what, note.clone(), note);
            plan.events.push(event);
        }
        Some(plan)
    }
}

/// What the config map `who` of a member says, asked for once; nothing while it has not been answered.
fn told(plan: &mut Plan, facts: &Facts, meta: &Meta) -> String {
    let id = QuestionId {
        controller: NAME,
        uid: meta.uid.clone(),
        purpose: Purpose::new("who"),
        attempt: 0,
        due: Timestamp::UNIX_EPOCH,
    };
    let Some((_, answer)) = facts.answers.get(&id) else {
        let request = Request::Api {
            method: "GET",
            path: format!("/api/v1/namespaces/{NAMESPACE}/configmaps/who"),
            body: Value::Null,
        };
        plan.act(Action::Ask(Question::new(
            id,
            request,
            Duration::from_mins(2),
        )));
        return String::new();
    };
    plan.keeps.insert(id);
    let Answer::Said { code: 200, body } = answer else {
        return "nothing".to_owned();
    };
    let map: Value = serde_json::from_str(body).unwrap_or_default();
    let said = map.pointer("/data/who").and_then(Value::as_str);
    said.unwrap_or_default().to_owned()
}

/// A kind that is named by an object only.
pub(crate) fn gadget() -> Kind {
    Kind::owned("toy.dev", "v1", "Gadget", "gadgets", true)
}

fn member(stores: &Stores, cluster: &ClusterId) -> Option<Member> {
    let name = cluster.as_str();
    let (meta, sheep) = sheep(stores, name)?;
    let home = ClusterId::local();
    let token = stores.get::<Token>(&home, &kinds::SECRET, NAMESPACE, name);
    Some(Member {
        cluster: cluster.clone(),
        object: ObjectRef::local(kinds::CONFIG_MAP, NAMESPACE, name),
        uid: meta.uid.clone(),
        credentials: Credentials {
            namespace: NAMESPACE.to_owned(),
            name: name.to_owned(),
            key: "token".to_owned(),
            version: token
                .map(|token| token.meta.version.clone())
                .unwrap_or_default(),
        },
        labels: BTreeMap::new(),
        confirmed: confirmed(sheep.uid.as_deref(), sheep.confirmed.as_deref()),
        attention: if sheep.quiet {
            Attention::Quiet
        } else {
            Attention::Close
        },
    })
}

impl Controller for Herd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interests(&self) -> Vec<Interest> {
        let of_home = |_: &ClusterId, meta: &Meta, _: &Stores| {
            let member = member_key(&ClusterId::remote(&meta.name));
            vec![home_key(&meta.name), member]
        };
        let of_member = |cluster: &ClusterId, _: &Meta, _: &Stores| vec![member_key(cluster)];
        let means = |meta: &Meta, _: &Stores| vec![ClusterId::remote(&meta.name)];
        let mut all = vec![
            Interest::of::<Sheep>(kinds::CONFIG_MAP, of_home)
                .labelled("herd")
                .meaning(means),
            Interest::of::<Token>(kinds::SECRET, of_home)
                .labelled("herd")
                .meaning(means),
            Interest::of::<Wool>(kinds::CONFIG_MAP, of_member)
                .at(Where::Members)
                .named(NAME),
        ];
        if self.widgets {
            let widgets = Interest::of::<Token>(WIDGET, of_member).at(Where::Members);
            all.push(if self.optional {
                widgets.optional()
            } else {
                widgets
            });
        }
        all
    }

    fn interests_in(&self, stores: &Stores, cluster: &ClusterId) -> Vec<Interest> {
        let of_member = |cluster: &ClusterId, _: &Meta, _: &Stores| vec![member_key(cluster)];
        let sees = sheep(stores, cluster.as_str()).is_some_and(|(_, sheep)| sheep.sees);
        let gadgets = || Interest::of::<Token>(gadget(), of_member).where_defined();
        sees.then(gadgets).into_iter().collect()
    }

    fn members(&self, stores: &Stores) -> Vec<Member> {
        let home = ClusterId::local();
        let all = stores.list::<Sheep>(&home, &kinds::CONFIG_MAP);
        all.filter_map(|entry| member(stores, &ClusterId::remote(&entry.meta.name)))
            .collect()
    }

    fn member(&self, stores: &Stores, cluster: &ClusterId) -> Option<Member> {
        member(stores, cluster)
    }

    fn member_keys(&self, _: &Stores, cluster: &ClusterId) -> Vec<Key> {
        vec![home_key(cluster.as_str())]
    }

    fn discovers(&self) -> Option<Where> {
        self.discovers.then_some(Where::Both)
    }

    fn lane(&self, _: &Key) -> Lane {
        Lane::Key
    }

    fn lease(&self) -> &'static str {
        NAME
    }

    fn fence(&self) -> Fence {
        self.fence
    }

    fn objects_to_bump(&self, stores: &Stores, key: &Key) -> Vec<Target> {
        if key.cluster.is_local() {
            let found = sheep(stores, &key.name);
            let object = ObjectRef::local(kinds::CONFIG_MAP, NAMESPACE, &key.name);
            return found
                .map(|(meta, _)| Target::seen(object, meta))
                .into_iter()
                .collect();
        }
        // What a former leader may be about to change: where home wants something else than there is.
        let wanted = sheep(stores, key.cluster.as_str()).map(|(_, sheep)| &sheep.want);
        let wool = stores.get::<Wool>(&key.cluster, &kinds::CONFIG_MAP, NAMESPACE, NAME);
        let wool = wool.filter(|wool| wanted.is_some_and(|want| *want != wool.body.have));
        let object = ObjectRef {
            cluster: key.cluster.clone(),
            ..ObjectRef::local(kinds::CONFIG_MAP, NAMESPACE, NAME)
        };
        let target = wool.map(|wool| Target::seen(object, wool.meta));
        target.into_iter().collect()
    }

    fn keys(&self, stores: &Stores) -> Vec<Key> {
        let home = ClusterId::local();
        let all = stores.list::<Sheep>(&home, &kinds::CONFIG_MAP);
        all.flat_map(|entry| {
            let name = &entry.meta.name;
            [home_key(name), member_key(&ClusterId::remote(name))]
        })
        .collect()
    }

    fn plan(&self, stores: &Stores, facts: &Facts, key: &Key, _: Timestamp) -> Option<Plan> {
        if key.cluster.is_local() {
            self.at_home(stores, facts, key)
        } else {
            self.over_there(stores, facts, key)
        }
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}
