//! Finalizers: an object of ours is not gone before what was made for it has been undone.
//!
//! ```text
//! Unguarded ─ add ─► Guarded ─ somebody deletes it ─► Ending ─ undone, remove ─► Released ─► gone
//! ```
//!
//! # Guarantees
//!
//! - Both steps replace the whole list, and only in the version that was seen: no finalizer of somebody else is lost or
//!   brought back.
//! - [`add`] does nothing to an object that is being deleted, and [`remove`] nothing to one that has not got the finalizer: a
//!   plan that is made again after either was done does not do it again.
//! - Whoever makes something for an object only while it is [`Phase::Guarded`] is asked to undo it at least once: the
//!   finalizer is there before, and stays until [`remove`].
//!
//! # Assumptions
//!
//! - To undo is idempotent, and all that it needs is in the object or can be found by it: the process may die in between, and
//!   facts are gone with it.
//! - The finalizer is added in a plan of its own ([`crate::Plan::prepare`]): steps of one plan may be under way at once.
//! - Nobody else uses its name, which has a domain before a slash, as the API asks for.
//!
//! # Caveats
//!
//! - What cannot be undone keeps the object for ever: that belongs into a [`crate::Blocker`] which says who can end it.
//! - Where the operator is taken away, its objects stay until somebody removes the finalizer by hand; then nothing is undone.
//! - The namespace of the object waits with it. In a namespace that is going nothing new can be made, also not to undo.

use serde_json::{Value, json};
use slipway_api::purpose::Purpose;

use crate::action::{Action, Target};
use crate::fields::{list, text};

/// What a projection keeps of an object for this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finalizers {
    all: Vec<String>,
    is_deleting: bool,
}

/// Where an object is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing may be made for it yet.
    Unguarded,
    /// What is needed may be made for it.
    Guarded,
    /// It is being deleted: what was made for it is to be undone.
    Ending,
    /// It is being deleted, and nothing is left to do.
    Released,
}

impl Finalizers {
    /// Reads those of an object.
    pub fn of(object: &Value) -> Self {
        let all = list(object, "/metadata/finalizers");
        Self {
            all: all
                .filter_map(|one| Some(one.as_str()?.to_owned()))
                .collect(),
            is_deleting: text(object, "/metadata/deletionTimestamp").is_some(),
        }
    }

    /// Where the object is on its way, by the finalizer of this name.
    pub fn phase(&self, name: &str) -> Phase {
        match (self.is_deleting, self.has(name)) {
            (false, false) => Phase::Unguarded,
            (false, true) => Phase::Guarded,
            (true, true) => Phase::Ending,
            (true, false) => Phase::Released,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.all.iter().any(|one| one == name)
    }
}

/// Adds the finalizer, unless it is there or too late.
pub fn add(target: Target, seen: &Finalizers, name: &str, purpose: Purpose) -> Option<Action> {
    if seen.phase(name) != Phase::Unguarded {
        return None;
    }
    let mut all: Vec<&str> = seen.all.iter().map(String::as_str).collect();
    all.push(name);
    Some(replace(target, &all, purpose))
}

/// Removes the finalizer, if it is there. What was made for the object must have been undone.
pub fn remove(target: Target, seen: &Finalizers, name: &str, purpose: Purpose) -> Option<Action> {
    if !seen.has(name) {
        return None;
    }
    let others = seen.all.iter().map(String::as_str);
    let others: Vec<&str> = others.filter(|one| *one != name).collect();
    Some(replace(target, &others, purpose))
}

fn replace(target: Target, all: &[&str], purpose: Purpose) -> Action {
    Action::Patch {
        target,
        purpose,
        body: json!({"metadata": {"finalizers": all}}),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use slipway_api::purpose::Purpose;

    use super::{Finalizers, Phase, add, remove};
    use crate::action::{Action, Target};
    use crate::fields::merge;
    use crate::identity::{ObjectRef, kinds};
    use crate::store::Meta;

    const TOY: Purpose = Purpose::new("toy");
    const OURS: &str = "toy.dev/undo";

    fn object(finalizers: &Value, is_deleting: bool) -> Value {
        let mut object = json!({"metadata": {"name": "a", "namespace": "d", "uid": "1",
            "resourceVersion": "7", "finalizers": finalizers}});
        if is_deleting {
            merge(
                &mut object,
                &json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}}),
            );
        }
        object
    }

    fn target(object: &Value) -> Target {
        Target::seen(
            ObjectRef::local(kinds::CONFIG_MAP, "d", "a"),
            &Meta::of(object),
        )
    }

    /// The object after a step, which must be meant for it as it was seen.
    fn after(object: &Value, step: Option<Action>) -> Option<Value> {
        let Some(Action::Patch {
            target: meant,
            body,
            ..
        }) = step
        else {
            return None;
        };
        assert_eq!(meant, target(object));
        let mut object = object.clone();
        merge(&mut object, &body);
        Some(object)
    }

    fn added(object: &Value) -> Option<Value> {
        let step = add(target(object), &Finalizers::of(object), OURS, TOY);
        after(object, step)
    }

    fn removed(object: &Value) -> Option<Value> {
        let step = remove(target(object), &Finalizers::of(object), OURS, TOY);
        after(object, step)
    }

    fn phase(object: &Value) -> Phase {
        Finalizers::of(object).phase(OURS)
    }

    #[test]
    fn it_is_added_once_and_not_too_late() {
        let bare = object(&Value::Null, false);
        assert_eq!(phase(&bare), Phase::Unguarded);
        let guarded = added(&bare);
        assert_eq!(guarded.as_ref().map(phase), Some(Phase::Guarded));
        assert_eq!(guarded.as_ref().and_then(added), None);
        let going = object(&json!(["other/one"]), true);
        assert_eq!(phase(&going), Phase::Released);
        assert_eq!(added(&going), None);
    }

    #[test]
    fn it_is_removed_once() {
        let going = object(&json!([OURS]), true);
        assert_eq!(phase(&going), Phase::Ending);
        let gone = removed(&going);
        assert_eq!(gone.as_ref().map(phase), Some(Phase::Released));
        assert_eq!(gone.as_ref().and_then(removed), None);
    }

    #[test]
    fn those_of_others_stay_in_their_order() {
        let before = object(&json!(["b/x", "a/y"]), false);
        let guarded = added(&before).unwrap_or_default();
        let names = |object: &Value| object.pointer("/metadata/finalizers").cloned();
        assert_eq!(names(&guarded), Some(json!(["b/x", "a/y", OURS])));
        assert_eq!(removed(&guarded), Some(before));
        let twice = object(&json!([OURS, "b/x", OURS]), true);
        let left = removed(&twice).unwrap_or_default();
        assert_eq!(names(&left), Some(json!(["b/x"])));
    }
}
