//! Long lists of objects as they are kept: each element as its text, and a text that many objects have once.
//!
//! A hundred syncs of an assemblage take half a megabyte as values, and each cluster has them twice: in the control plane and in
//! itself. As text they take a tenth of it; and what a Rollout assigns to a thousand clusters is nearly always the same in all of them.
//! So is what is told of it, but for the time since when it is so, which is kept beside the text. They are read when somebody asks for
//! them. Whether a text is shared with another object nobody can tell.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::{Deserialize, DeserializeOwned};
use serde_json::{Map, Value};
use slipway_api::fleet::assemblage::{SyncState, SyncStatus};
use slipway_api::fleet::sync::NamedSync;
use slipway_bindings::revision;
use slipway_kernel::fields::text;

use super::spelled::Spelled;

/// One element of a list. What is in it may be secret.
pub struct Element {
    name: Option<Box<str>>,
    module: Option<Box<str>>,
    head: Option<Box<Head>>,
    text: Arc<str>,
    hash: OnceLock<Box<str>>,
    spelled: OnceLock<Spelled>,
    /// Where it is on the shelf.
    place: u64,
}

/// What is asked of an assignment each time that somebody plans: it need not be read for that.
struct Head {
    assigned_by: Option<Box<str>>,
    revision: Option<Box<str>>,
    module_revision: Option<Box<str>>,
}

impl Head {
    /// None of what says nothing of it, as what is told of a sync.
    fn of(value: &Value) -> Option<Box<Self>> {
        let part = |path: &str| text(value, path).map(Box::from);
        let head = Self {
            assigned_by: part("/assignedBy"),
            revision: part("/revision"),
            module_revision: part("/module/revision"),
        };
        let says = [&head.assigned_by, &head.revision, &head.module_revision];
        let is_any = says.iter().any(|part| part.is_some());
        is_any.then(|| Box::new(head))
    }
}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {:?}", self.name)
    }
}

impl Element {
    /// The element that some object has already, or another one.
    fn of(value: &Value) -> Arc<Self> {
        let said = value.to_string();
        let mut hasher = DefaultHasher::new();
        said.hash(&mut hasher);
        let place = hasher.finish();
        // Nothing may be let go while the shelf is held: whatever goes takes its place out.
        let known = shelf().get(&place).and_then(Weak::upgrade);
        // Of two texts with one hash each may be kept more than once.
        if let Some(known) = known.filter(|known| *known.text == *said) {
            return known;
        }
        let made = Arc::new(Self {
            name: text(value, "/name").map(Box::from),
            module: text(value, "/module/name").map(Box::from),
            head: Head::of(value),
            text: Arc::from(said),
            hash: OnceLock::new(),
            spelled: OnceLock::new(),
            place,
        });
        shelf().insert(place, Arc::downgrade(&made));
        made
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The module that it names, if it names one.
    pub fn module(&self) -> Option<&str> {
        self.module.as_deref()
    }

    /// The revision of the module that it asks for, if it asks for one.
    pub fn module_revision(&self) -> Option<&str> {
        self.head.as_ref()?.module_revision.as_deref()
    }

    /// Its revision, if it says one.
    pub fn revision(&self) -> Option<&str> {
        self.head.as_ref()?.revision.as_deref()
    }

    /// Who assigned it, if it says so.
    pub fn assigned_by(&self) -> Option<&str> {
        self.head.as_ref()?.assigned_by.as_deref()
    }

    /// It as it is in the API.
    pub fn value(&self) -> Value {
        // It was written out of a value.
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// It as one of these; or what is wrong with it, in the words for values, which name no place in a text.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.text).or_else(|_| serde_json::from_value(self.value()))
    }

    /// It as a sync that we would write; or what is wrong with it.
    pub fn spelled(&self) -> Result<Spelled, serde_json::Error> {
        if let Some(known) = self.spelled.get() {
            return Ok(known.clone());
        }
        let sync = self.read::<NamedSync>()?;
        let spelled = || Spelled::sharing(&sync, Some(&self.text));
        Ok(self.spelled.get_or_init(spelled).clone())
    }

    /// A hash of it as it is in the API.
    pub fn hash(&self) -> &str {
        let hash = || revision::of_template(&self.value()).into_boxed_str();
        self.hash.get_or_init(hash)
    }
}

/// A list of an object.
#[derive(Debug, Clone, Default)]
pub struct Elements(Arc<[Arc<Element>]>);

impl PartialEq for Elements {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.0.iter().zip(other.0.iter());
        self.0.len() == other.0.len() && pairs.all(|(one, other)| one.text == other.text)
    }
}

impl Elements {
    pub(super) fn of(values: &[&Value]) -> Self {
        Self(values.iter().map(|value| Element::of(value)).collect())
    }

    /// All of them, in the order of the object.
    pub fn iter(&self) -> impl Iterator<Item = &Element> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The first one of this name.
    pub fn named(&self, name: &str) -> Option<&Element> {
        self.iter().find(|one| one.name() == Some(name))
    }
}

/// What a status tells of syncs.
#[derive(Debug, Clone, Default)]
pub struct Told(Box<[(Arc<Element>, Option<Time>)]>);

impl Told {
    pub(super) fn of(values: &[&Value]) -> Self {
        Self(values.iter().map(|value| apart(value)).collect())
    }

    /// All of it, in the order of the object, as far as it can be read: of one sync a later version may tell what this one has no
    /// word for, and what it tells of the others is known all the same.
    pub fn all(&self) -> Vec<SyncStatus> {
        self.0.iter().filter_map(readable).collect()
    }

    /// The names of those that [`Told::all`] has: nothing is read for it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|(one, _)| one.name())
    }

    /// What is told of the sync of this name, as far as it can be read.
    pub fn named(&self, sync: &str) -> Option<SyncStatus> {
        let mut all = self.0.iter();
        let found = all.find(|(one, _)| one.name() == Some(sync))?;
        readable(found)
    }
}

/// What is told of a sync. What we have no word for is on its way, whatever it is. None of what has no name.
fn readable(told: &(Arc<Element>, Option<Time>)) -> Option<SyncStatus> {
    if let Ok(read) = status(told) {
        return Some(read);
    }
    let (value, since) = (told.0.value(), told.1.clone());
    let part = |path: &str| text(&value, path).map(str::to_owned);
    Some(SyncStatus {
        name: part("/name")?,
        observed_revision: part("/observedRevision"),
        observed_sync: part("/observedSync"),
        state: SyncState::Updating,
        reason: part("/reason"),
        message: part("/message"),
        since,
    })
}

fn status((told, since): &(Arc<Element>, Option<Time>)) -> Result<SyncStatus, serde_json::Error> {
    let told = told.read::<SyncStatus>()?;
    Ok(SyncStatus {
        since: since.clone().or(told.since),
        ..told
    })
}

/// What is told of a sync, without since when it is so, and that time: no two clusters have the same. What is no time stays where it is.
fn apart(told: &Value) -> (Arc<Element>, Option<Time>) {
    const SINCE: &str = "since";
    let Some(fields) = told.as_object() else {
        return (Element::of(told), None);
    };
    let since = fields.get(SINCE).filter(|since| since.is_string());
    let since = since.and_then(|since| Time::deserialize(since).ok());
    if since.is_none() {
        return (Element::of(told), None);
    }
    let rest = fields.iter().filter(|(field, _)| *field != SINCE);
    let rest: Map<String, Value> = rest.map(|(f, value)| (f.clone(), value.clone())).collect();
    (Element::of(&Value::Object(rest)), since)
}

impl Drop for Element {
    fn drop(&mut self) {
        let mut shelf = shelf();
        let has_place = |own: &Weak<Self>| std::ptr::eq(own.as_ptr(), self);
        if shelf.get(&self.place).is_some_and(has_place) {
            shelf.remove(&self.place);
        }
    }
}

/// The elements that some object has, by a hash of their texts. It keeps none of them: with the last object they go.
type Shelf = BTreeMap<u64, Weak<Element>>;

static SHELF: Mutex<Shelf> = Mutex::new(Shelf::new());

fn shelf() -> MutexGuard<'static, Shelf> {
    SHELF.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "tests"
    )]

    use std::sync::Arc;

    use serde_json::json;
    use slipway_api::fleet::assemblage::SyncStatus;
    use slipway_api::fleet::sync::NamedSync;
    use slipway_bindings::revision;

    use super::{Element, Elements, Told, shelf};

    #[test]
    fn what_two_objects_have_is_kept_once_and_goes_with_the_last() {
        let value = json!({"name": "kept once", "source": {"git": {"url": "https://example.com"}}});
        let (one, other) = (Element::of(&value), Element::of(&value.clone()));
        assert!(Arc::ptr_eq(&one, &other));
        let seen = Arc::downgrade(&one);
        drop(one);
        assert_eq!(Element::of(&value).value(), value);
        drop(other);
        assert!(seen.upgrade().is_none());
    }

    #[test]
    fn the_shelf_is_not_larger_than_what_is_in_use() {
        const MANY: usize = 50_000;
        let of = |number: usize| Element::of(&json!({"name": format!("passing {number}")}));
        let all: Vec<_> = (0..MANY).map(of).collect();
        assert!(shelf().len() >= MANY);
        drop(all);
        // Others test beside this, with some thousands.
        let known = shelf().len();
        assert!(known < MANY / 2, "{known}");
    }

    /// Whoever made the same at the same time has another place than what goes.
    #[test]
    fn what_goes_takes_out_no_other() {
        let value = json!({"name": "made twice"});
        let first = Element::of(&value);
        shelf().remove(&first.place);
        let second = Element::of(&value);
        assert!(!Arc::ptr_eq(&first, &second));
        drop(first);
        assert!(Arc::ptr_eq(&second, &Element::of(&value)));
    }

    #[test]
    fn an_element_says_what_its_value_said() {
        let odd = json!({"name": "a", "revision": 7, "\u{e9}\"": [1.5, -0.0, 1e300, u64::MAX, null, "\u{1f600}"]});
        let elements = Elements::of(&[&odd, &json!("no object"), &json!({"name": "b"})]);
        let values: Vec<_> = elements.iter().map(Element::value).collect();
        assert_eq!(
            values,
            [odd.clone(), json!("no object"), json!({"name": "b"})]
        );
        let first = elements.named("a").unwrap();
        assert_eq!(first.hash(), revision::of_template(&odd));
        let wrong = serde_json::from_value::<NamedSync>(odd).unwrap_err();
        let told = first.read::<NamedSync>().unwrap_err();
        assert_eq!(told.to_string(), wrong.to_string(), "no line and no column");
        assert_eq!(
            elements
                .named("b")
                .unwrap()
                .read::<NamedSync>()
                .unwrap()
                .name,
            "b"
        );
        assert_eq!(elements.iter().filter_map(Element::name).count(), 2);
    }

    #[test]
    fn what_is_asked_of_an_assignment_is_known_without_reading_it() {
        let whole = json!({
            "name": "a", "assignedBy": "Rollout/web", "revision": "1", "module": {"name": "m", "revision": "2"},
        });
        let odd = json!({"name": "b", "assignedBy": 7, "revision": null, "module": "m"});
        let elements = Elements::of(&[&whole, &odd]);
        let said = |name: &str| {
            let one = elements.named(name).unwrap();
            (one.assigned_by(), one.revision(), one.module_revision())
        };
        assert_eq!(said("a"), (Some("Rollout/web"), Some("1"), Some("2")));
        assert_eq!(said("b"), (None, None, None));
    }

    #[test]
    fn a_sync_is_spelled_once_for_all_who_have_it() {
        let value = json!({"name": "spelled once", "revision": "1"});
        let elements = Elements::of(&[&value, &value.clone(), &json!({"name": 7})]);
        let all: Vec<_> = elements.iter().map(Element::spelled).collect();
        let [Ok(one), Ok(same), Err(wrong)] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert!(std::ptr::eq(one.canonical(), same.canonical()));
        let read = serde_json::from_value::<NamedSync>(json!({"name": 7}));
        assert_eq!(wrong.to_string(), read.unwrap_err().to_string());
    }

    #[test]
    fn what_is_told_is_kept_once_whenever_it_was_so_first() {
        let of = |since: &str| json!({"name": "told once", "state": "failed", "message": "no", "since": since});
        let values = ["2026-01-05T00:00:00Z", "2026-03-05T00:00:00.25+01:00"].map(of);
        let told = Told::of(&values.each_ref());
        let read: Vec<SyncStatus> = values
            .iter()
            .map(|value| serde_json::from_value(value.clone()).unwrap())
            .collect();
        assert_eq!(told.all(), read);
        assert_eq!(told.named("told once").unwrap(), read[0]);
        assert!(Arc::ptr_eq(&told.0[0].0, &told.0[1].0));
        for odd in [json!("long ago"), json!(7), json!({"time": 1})] {
            let value = json!({"name": "odd", "since": odd});
            assert!(serde_json::from_value::<SyncStatus>(value.clone()).is_err());
            let odd = Told::of(&[&value]).named("odd").unwrap();
            assert_eq!((odd.name.as_str(), odd.since), ("odd", None));
        }
        let plain = Told::of(&[&json!({"name": "a", "since": null}), &json!({"name": "b"})]);
        assert_eq!(plain.all().len(), 2);
        assert!(plain.names().eq(["a", "b"]));
        assert_eq!(plain.named("none"), None);
        let nameless = Told::of(&[
            &json!({"state": "later"}),
            &json!("no object"),
            &json!({"name": 7}),
        ]);
        assert!(nameless.all().is_empty());
        assert_eq!(nameless.names().next(), None);
    }
}
