//! Long lists of objects as they are kept: each element as its text, and a text that many objects have once.
//!
//! A hundred syncs of an assemblage take half a megabyte as values, and each cluster has them twice: in the control plane and in
//! itself. As text they take a tenth of it; and what a Rollout assigns to a thousand clusters is nearly always the same in all of them.
//! They are read when somebody asks for them. Whether a text is shared with another object nobody can tell.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use serde::de::DeserializeOwned;
use serde_json::Value;
use slipway_bindings::revision;
use slipway_kernel::fields::text;

/// One element of a list. What is in it may be secret.
pub struct Element {
    name: Option<Box<str>>,
    module: Option<Box<str>>,
    text: Box<str>,
    hash: OnceLock<Box<str>>,
}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {:?}", self.name)
    }
}

impl Element {
    fn of(value: &Value) -> Arc<Self> {
        let mut shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.element(value)
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The module that it names, if it names one.
    pub fn module(&self) -> Option<&str> {
        self.module.as_deref()
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

    /// A hash of it as it is in the API.
    pub fn hash(&self) -> &str {
        let hash = || revision::of_template(&self.value()).into_boxed_str();
        self.hash.get_or_init(hash)
    }
}

/// A list of an object.
#[derive(Debug, Clone, Default)]
pub struct Elements(Box<[Arc<Element>]>);

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

/// The elements that some object has, by a hash of their texts. It keeps none of them: with the last object they go.
struct Shelf {
    known: BTreeMap<u64, Weak<Element>>,
    /// With how many it is looked again which of them are still there.
    swept_at: usize,
}

/// With fewer than these nobody looks which of them are still there.
const FEW: usize = 1_024;

static SHELF: Mutex<Shelf> = Mutex::new(Shelf {
    known: BTreeMap::new(),
    swept_at: FEW,
});

impl Shelf {
    fn element(&mut self, value: &Value) -> Arc<Element> {
        let said = value.to_string();
        let mut hasher = DefaultHasher::new();
        said.hash(&mut hasher);
        let hash = hasher.finish();
        let known = self.known.get(&hash).and_then(Weak::upgrade);
        // Of two texts with one hash each may be kept more than once.
        if let Some(known) = known.filter(|known| *known.text == *said) {
            return known;
        }
        let made = Arc::new(Element {
            name: text(value, "/name").map(Box::from),
            module: text(value, "/module/name").map(Box::from),
            text: said.into_boxed_str(),
            hash: OnceLock::new(),
        });
        self.known.insert(hash, Arc::downgrade(&made));
        if self.known.len() > self.swept_at {
            self.known.retain(|_, one| one.strong_count() > 0);
            self.swept_at = self.known.len().saturating_mul(2).max(FEW);
        }
        made
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;

    use serde_json::json;
    use slipway_api::fleet::sync::NamedSync;
    use slipway_bindings::revision;

    use super::{Element, Elements, FEW, SHELF};

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
        for number in 0..FEW * 8 {
            drop(Element::of(&json!({"name": format!("passing {number}")})));
        }
        let known = SHELF.lock().unwrap().known.len();
        assert!(known <= FEW * 2, "{known}");
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
}
