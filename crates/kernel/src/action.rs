//! What a plan asks to be done. A closed set: the executor knows every one.
//!
//! An action on an existing object names it as it was seen ([`Target`]: uid and resourceVersion), and there is no way
//! to make one without: so no action hits an object that has changed since.

use std::borrow::Cow;

use serde_json::Value;
use slipway_api::names::FIELD_MANAGER;
use slipway_api::purpose::Purpose;

use crate::fact::Question;
use crate::identity::ObjectRef;
use crate::store::Meta;

/// An object as it was when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    object: ObjectRef,
    uid: String,
    version: String,
}

impl Target {
    /// The object with this metadata.
    pub fn seen(object: ObjectRef, meta: &Meta) -> Self {
        Self {
            object,
            uid: meta.uid.clone(),
            version: meta.version.clone(),
        }
    }

    /// Which object.
    pub fn object(&self) -> &ObjectRef {
        &self.object
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Its resourceVersion.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// By whom fields are applied, as managed fields show it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldManager {
    /// Its name; the API takes 128 characters.
    pub name: Cow<'static, str>,
    /// Whether it takes fields over that others manage. Where it does not and another manager has one of them, the write is
    /// refused, which is a fact of the next world.
    pub force: bool,
}

impl Default for FieldManager {
    fn default() -> Self {
        Self::named(FIELD_MANAGER)
    }
}

impl FieldManager {
    /// A manager that takes over what it applies, such as one for each owner of fields.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            force: true,
        }
    }

    /// The same, who leaves to others what they manage.
    #[must_use]
    pub fn without_force(self) -> Self {
        Self {
            force: false,
            ..self
        }
    }
}

/// What is sent to make a copy, or to change the one that is there: what we say of it, and these fields of the object that is
/// copied, whole.
pub fn copied(mut body: Value, from: &Value, over: Option<&Value>, fields: &[&str]) -> Value {
    let Some(copy) = body.as_object_mut() else {
        return body;
    };
    for field in fields {
        let known = over.and_then(|over| over.get(*field));
        let value = from.get(*field).filter(|value| !value.is_null());
        let Some(value) = value else {
            if known.is_some() {
                copy.insert((*field).to_owned(), Value::Null);
            }
            continue;
        };
        let mut value = value.clone();
        if let (Some(entries), Some(Value::Object(known))) = (value.as_object_mut(), known) {
            for name in known.keys() {
                entries.entry(name.clone()).or_insert(Value::Null);
            }
        }
        copy.insert((*field).to_owned(), value);
    }
    body
}

/// A copy of an object. The values are read and written by whoever carries it out: none of them comes into a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyOf {
    /// What is copied, as seen: if it has changed meanwhile, nothing is.
    pub from: Target,
    /// The copy, in the same namespace.
    pub object: ObjectRef,
    /// The copy as it was seen, which is changed unless it has changed meanwhile; none where there is none yet.
    pub over: Option<Target>,
    /// What for.
    pub purpose: Purpose,
    /// What else we say about the copy, with apiVersion, kind and metadata.
    pub body: Value,
    /// The fields that are copied, of those that are there.
    pub fields: &'static [&'static str],
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Change fields of an object, unless it has changed meanwhile.
    Patch {
        /// Which object, as seen.
        target: Target,
        /// What for: `restart`, `stamp`, `scale`, …; it appears in metrics, logs and the trace.
        purpose: Purpose,
        /// A JSON merge patch; the executor adds uid and resourceVersion.
        body: Value,
    },
    /// Delete an object, unless it has changed meanwhile.
    Delete {
        /// Which object, as seen.
        target: Target,
        /// What for.
        purpose: Purpose,
    },
    /// Bring an object of our own into being, or up to date (server-side apply).
    Apply {
        /// Which object.
        object: ObjectRef,
        /// What for.
        purpose: Purpose,
        /// All that we say about it, with apiVersion, kind and metadata.
        body: Value,
        /// Who says it.
        by: FieldManager,
    },
    /// Have an object of our own hold what another one of its kind holds.
    Copy(Box<CopyOf>),
    /// Ask something outside of the API; the answer is a fact of the next world.
    Ask(Question),
}

impl Action {
    /// Brings an object of our own into being, or up to date, by the usual field manager.
    pub fn apply(object: ObjectRef, purpose: Purpose, body: Value) -> Self {
        Self::Apply {
            object,
            purpose,
            body,
            by: FieldManager::default(),
        }
    }

    /// What it is for.
    pub fn purpose(&self) -> Purpose {
        match self {
            Self::Patch { purpose, .. }
            | Self::Delete { purpose, .. }
            | Self::Apply { purpose, .. } => *purpose,
            Self::Copy(copy) => copy.purpose,
            Self::Ask(question) => question.id.purpose,
        }
    }

    /// The object it is about.
    pub fn object(&self) -> Option<&ObjectRef> {
        match self {
            Self::Patch { target, .. } | Self::Delete { target, .. } => Some(target.object()),
            Self::Apply { object, .. } => Some(object),
            Self::Copy(copy) => Some(&copy.object),
            Self::Ask(_) => None,
        }
    }

    /// Under which name the API is told that it is written.
    pub fn manager(&self) -> &str {
        match self {
            Self::Apply { by, .. } => &by.name,
            Self::Patch { .. } | Self::Delete { .. } | Self::Copy(_) | Self::Ask(_) => {
                FIELD_MANAGER
            }
        }
    }

    /// The verb, as roles and metrics spell it.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Patch { .. } | Self::Apply { .. } | Self::Copy(_) => "patch",
            Self::Delete { .. } => "delete",
            Self::Ask(_) => "ask",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::copied;

    #[test]
    fn a_copy_has_what_the_original_has_and_nothing_else() {
        let from =
            json!({"data": {"a": "1", "b": "2"}, "type": "Opaque", "metadata": {"name": "x"}});
        let body = json!({"metadata": {"name": "y"}});
        let fields = ["data", "binaryData", "type"];
        let new = copied(body.clone(), &from, None, &fields);
        let expected =
            json!({"metadata": {"name": "y"}, "data": {"a": "1", "b": "2"}, "type": "Opaque"});
        assert_eq!(new, expected);
        let over =
            json!({"data": {"a": "0", "c": "3"}, "binaryData": {"d": "AA=="}, "type": "Opaque"});
        let patch = copied(body, &from, Some(&over), &fields);
        let mut after = over;
        crate::fields::merge(&mut after, &patch);
        assert_eq!(after, expected);
    }
}
