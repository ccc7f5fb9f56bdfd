//! How a capability is shown: rows for a tree, with state, progress and blockers, out of the objects of a cluster.
//!
//! A capability's `show` is pure and total: objects that are not as expected show as little as they say. Whoever keeps
//! objects (an embedded server, the stores of a replica, a client) can have them shown, by demo, tree and page alike.

use std::fmt::Display;

use jiff::Timestamp;
use serde_json::Value;

/// The objects of a cluster, whoever keeps them.
pub trait Objects {
    /// All objects of a resource (`group/plural`), by namespace and name.
    fn all<'a>(&'a self, resource: &str) -> Box<dyn Iterator<Item = &'a Value> + 'a>;
}

/// Makes rows of a cluster's objects.
pub type Show = fn(&dyn Objects) -> Vec<Row>;

/// How something is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Good,
    /// Nothing to say.
    #[default]
    Idle,
    /// Held by somebody.
    Paused,
    /// On its way.
    Busy,
    /// Waits for something.
    Waiting,
    /// Somebody should look.
    Warning,
    /// Broken.
    Bad,
}

/// Something of a capability that people look at: a policy, a group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The namespace that it stands in.
    pub namespace: String,
    /// A sign for it, and one in ASCII.
    pub icon: (&'static str, &'static str),
    /// What it is called below its namespace: `Policy/nightly`.
    pub title: String,
    /// What it is called in a sentence: `Policy shop/nightly`.
    pub name: String,
    /// How it is.
    pub state: State,
    /// In a word.
    pub word: String,
    /// What is wrong with it, if something is.
    pub problem: String,
    /// What is done, of all, while that is worth a bar.
    pub progress: Option<(i64, i64)>,
    /// What there is to say, part by part.
    pub info: Vec<String>,
    /// When it acts next.
    pub next: Option<Timestamp>,
    /// The workloads that stand below it: kind and name.
    pub members: Vec<(&'static str, String)>,
    /// Whether these are changed one after the other.
    pub in_turn: bool,
    /// Why it waits.
    pub waiting: Vec<Waiting>,
}

impl Row {
    /// Whether a workload of its namespace stands below it.
    pub fn has(&self, kind: &str, name: &str) -> bool {
        let mut members = self.members.iter();
        members.any(|(of, member)| *of == kind && member == name)
    }
}

/// Why something waits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// Since when.
    pub since: Timestamp,
    /// Who says so: `Policy shop/nightly`.
    pub by: String,
    /// A word that programs match on.
    pub reason: String,
    /// What is waited for: `Deployment shop/web`.
    pub object: String,
    /// A sentence.
    pub message: String,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// Who or what can end it before.
    pub unblock: String,
}

/// What the `status.waitingFor` of an object says.
pub fn waits(by: &str, object: &Value) -> Vec<Waiting> {
    list(object, "/status/waitingFor")
        .iter()
        .filter_map(|one| {
            Some(Waiting {
                since: time(one, "/since")?,
                by: by.to_owned(),
                reason: text(one, "/reason"),
                object: format!("{} {}", text(one, "/object/kind"), place(one, "/object")),
                message: text(one, "/message"),
                until: time(one, "/until"),
                unblock: text(one, "/unblock"),
            })
        })
        .collect()
}

/// A text; empty if it is none.
pub fn text(object: &Value, path: &str) -> String {
    let text = object.pointer(path).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// A number; 0 if it is none.
pub fn number(object: &Value, path: &str) -> i64 {
    let number = object.pointer(path).and_then(Value::as_i64);
    number.unwrap_or_default()
}

/// A time.
pub fn time(object: &Value, path: &str) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

/// A list; empty if it is none.
pub fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    let list = object.pointer(path).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// The condition of this type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut all = list(object, "/status/conditions").iter();
    all.find(|condition| text(condition, "/type") == kind)
}

/// `namespace/name` of what is below `path`.
pub fn place(object: &Value, path: &str) -> String {
    let name = text(object, &format!("{path}/name"));
    match text(object, &format!("{path}/namespace")) {
        namespace if namespace.is_empty() => name,
        namespace => format!("{namespace}/{name}"),
    }
}

/// One thing or several.
pub fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, thing: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {thing}{plural}")
}
