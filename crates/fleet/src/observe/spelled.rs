//! A sync with one text for all that mean the same.
//!
//! A cluster has hundreds of them, and what is asked of each is nearly always whether it is there as it should be. So a sync is spelled
//! once for as long as its text is kept, and compared, counted and written by that; it is read only where it is worked on.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use slipway_api::fleet::sync::NamedSync;
use slipway_bindings::{canonical, revision};

/// A sync, as we write it. A copy costs no more than counting it. What is in it may be secret.
#[derive(Clone)]
pub struct Spelled(Arc<Parts>);

struct Parts {
    name: Box<str>,
    revision: Option<Box<str>>,
    secrets: Box<[Box<str>]>,
    names_module: bool,
    /// It as JSON.
    text: Arc<str>,
    /// It as canonical JSON, where that is another text.
    canonical: Option<Box<str>>,
}

impl Spelled {
    /// A sync that has been read.
    pub fn of(sync: &NamedSync) -> Self {
        Self::sharing(sync, None)
    }

    /// The same; `text` is what it was read from, which is kept once if it is what we would write.
    pub(super) fn sharing(sync: &NamedSync, text: Option<&Arc<str>>) -> Self {
        // What cannot be JSON cannot have come from the API.
        let value = serde_json::to_value(sync).unwrap_or_default();
        let (own, canonical) = (value.to_string(), canonical::json(&value));
        let canonical = (canonical != own).then(|| canonical.into_boxed_str());
        let text = text.filter(|text| ***text == *own).cloned();
        Self(Arc::new(Parts {
            name: Box::from(sync.name.as_str()),
            revision: sync.revision.as_deref().map(Box::from),
            secrets: secrets(sync).map(Box::from).collect(),
            names_module: sync.module.is_some(),
            text: text.unwrap_or_else(|| Arc::from(own)),
            canonical,
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        #[cfg(test)]
        looks::count();
        &self.0.name
    }

    /// Its revision.
    pub fn revision(&self) -> Option<&str> {
        self.0.revision.as_deref()
    }

    /// The Secrets that its bindings refer to.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.secrets.iter().map(AsRef::as_ref)
    }

    /// Whether it names a module, which has what it says.
    pub fn names_module(&self) -> bool {
        self.0.names_module
    }

    /// It as canonical JSON.
    pub fn canonical(&self) -> &str {
        self.0.canonical.as_deref().unwrap_or(&self.0.text)
    }

    /// It as it is written.
    pub fn value(&self) -> Value {
        // It was written out of a value.
        serde_json::from_str(&self.0.text).unwrap_or_default()
    }

    /// It, read.
    pub fn read(&self) -> NamedSync {
        // It was written out of one.
        serde_json::from_str(&self.0.text).unwrap_or_default()
    }

    /// It with a revision: what is told of it has to be about something.
    pub(crate) fn with_revision(&self) -> Cow<'_, Self> {
        if self.revision().is_some() {
            return Cow::Borrowed(self);
        }
        let sync = self.read();
        let revision = Some(revision::of_template(&sync));
        Cow::Owned(Self::of(&NamedSync { revision, ..sync }))
    }
}

impl From<&NamedSync> for Spelled {
    fn from(sync: &NamedSync) -> Self {
        Self::of(sync)
    }
}

impl From<NamedSync> for Spelled {
    fn from(sync: NamedSync) -> Self {
        Self::of(&sync)
    }
}

impl PartialEq for Spelled {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(test)]
        looks::count();
        Arc::ptr_eq(&self.0, &other.0) || self.canonical() == other.canonical()
    }
}

impl Eq for Spelled {}

impl PartialEq<NamedSync> for Spelled {
    fn eq(&self, other: &NamedSync) -> bool {
        *self == Self::of(other)
    }
}

impl fmt::Debug for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sync {:?}", self.name())
    }
}

/// The Secrets that a sync's bindings refer to.
fn secrets(sync: &NamedSync) -> impl Iterator<Item = &str> {
    let fields = sync
        .bindings
        .iter()
        .filter_map(|binding| binding.object_field_ref.as_ref());
    let secrets = fields.filter(|field| field.kind == "Secret");
    secrets.map(|field| field.name.as_str())
}

/// How often this thread has looked at a sync: whoever looks for one among many, one by one, looks at each.
#[cfg(test)]
pub(crate) mod looks {
    use std::cell::Cell;

    thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        LOOKS.with(|looks| looks.set(looks.get() + 1));
    }

    /// How many looks there have been.
    pub(crate) fn all() -> usize {
        LOOKS.with(Cell::get)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;

    use serde_json::{Value, json};
    use slipway_api::fleet::sync::NamedSync;
    use slipway_bindings::{canonical, revision};

    use super::Spelled;

    fn read(value: Value) -> NamedSync {
        serde_json::from_value(value).unwrap()
    }

    fn whole() -> NamedSync {
        read(json!({
            "name": "web", "revision": "r", "assignedBy": "Rollout/web",
            "source": {"git": {"url": "https://example.com/a.git", "version": {"tag": "v\"1"}}},
            "package": {"kustomize": {"substitute": {"B": 1.0, "A": "\u{e9}"}}},
            "bindings": [
                {"name": "P", "objectFieldRef": {"kind": "Secret", "name": "keys", "fieldPath": "/data/P"}},
                {"name": "Q", "objectFieldRef": {"kind": "ConfigMap", "name": "plain", "fieldPath": "/data/Q"}},
            ],
        }))
    }

    #[test]
    fn a_sync_is_spelled_and_read_again() {
        let sync = whole();
        let spelled = Spelled::of(&sync);
        assert_eq!(spelled.read(), sync);
        let value = serde_json::to_value(&sync).unwrap();
        assert_eq!(spelled.value(), value);
        assert_eq!(spelled.canonical(), canonical::json(&value));
        assert_eq!((spelled.name(), spelled.revision()), ("web", Some("r")));
        assert!(spelled.secrets().eq(["keys"]) && !spelled.names_module());
        assert!(!format!("{spelled:?}").contains("keys"));
    }

    #[test]
    fn what_means_the_same_is_the_same() {
        let spelled = Spelled::of(&whole());
        assert_eq!(spelled, whole());
        let mut other = whole();
        other.package = None;
        assert!(spelled != other);
        let with = |number: Value| {
            let package = json!({"kustomize": {"substitute": {"A": number}}});
            Spelled::of(&read(json!({"name": "web", "package": package})))
        };
        assert_eq!(with(json!(1.0)), with(json!(1)));
        assert_ne!(with(json!(1.5)), with(json!(1)));
    }

    #[test]
    fn what_has_no_revision_gets_one() {
        let bare = NamedSync {
            revision: None,
            ..whole()
        };
        let spelled = Spelled::of(&bare).with_revision().into_owned();
        let wanted = NamedSync {
            revision: Some(revision::of_template(&bare)),
            ..bare
        };
        assert_eq!(spelled, wanted);
        assert_eq!(*spelled.with_revision(), spelled);
    }

    #[test]
    fn a_text_is_kept_once_if_it_is_what_we_would_write() {
        let sync = read(json!({"name": "a", "revision": "1"}));
        let same: Arc<str> = Arc::from(r#"{"name":"a","revision":"1"}"#);
        let _spelled = Spelled::sharing(&sync, Some(&same));
        assert_eq!(Arc::strong_count(&same), 2);
        let other: Arc<str> = Arc::from(r#"{"later":2,"name":"a","revision":"1"}"#);
        let spelled = Spelled::sharing(&sync, Some(&other));
        assert_eq!(Arc::strong_count(&other), 1);
        assert_eq!(spelled.value(), json!({"name": "a", "revision": "1"}));
    }
}
