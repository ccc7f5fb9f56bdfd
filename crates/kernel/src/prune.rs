//! Pruning: children of an object that are no longer wanted are deleted.
//!
//! Children are found by who owns them, and not by what kinds there may be: so a child of a kind that is not made any more is
//! found as well, for as long as that kind is watched.
//!
//! It promises:
//!
//! - Only what says itself that it is of this owner, by uid, is deleted. An object of another owner, of nobody, or of an earlier
//!   owner of the same name stays; so does what is wanted.
//! - Each child is deleted as it was listed, by uid and version: one that somebody has changed since, or has taken over, stays.
//! - Never more than so many go at once, and those that are going already count.
//!
//! The caller has to know all that is wanted. Whoever does not (a source that cannot be read) must not prune: what is not in
//! the set is deleted.

use std::collections::BTreeSet;

use serde_json::Value;
use slipway_api::purpose::Purpose;

use crate::action::{Action, Target};
use crate::fields::{list, text};
use crate::identity::ObjectRef;
use crate::store::Meta;

/// An object that may be somebody's child, as it was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    target: Target,
    owner: Option<String>,
    is_deleting: bool,
}

impl Child {
    /// A child of the object that controls it.
    pub fn controlled(object: ObjectRef, value: &Value) -> Self {
        let controller = list(value, "/metadata/ownerReferences")
            .find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
        let uid = controller.and_then(|owner| text(owner, "/uid"));
        Self::of(object, value, uid)
    }

    /// A child of the object whose uid is in this label: owners do not reach into other clusters and namespaces.
    pub fn labelled(object: ObjectRef, value: &Value, label: &str) -> Self {
        let labels = value.pointer("/metadata/labels");
        let uid = labels.and_then(|labels| labels.get(label)?.as_str());
        Self::of(object, value, uid)
    }

    fn of(object: ObjectRef, value: &Value, owner: Option<&str>) -> Self {
        Self {
            target: Target::seen(object, &Meta::of(value)),
            owner: owner.map(str::to_owned),
            is_deleting: text(value, "/metadata/deletionTimestamp").is_some(),
        }
    }

    /// Whether it is the child of the object with this uid. Nobody's children are those of no uid.
    fn is_of(&self, owner: &str) -> bool {
        !owner.is_empty() && self.owner.as_deref() == Some(owner)
    }
}

/// What pruning found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pruned {
    /// Deletions, in the order of names.
    pub deletions: Vec<Action>,
    /// How many are going already.
    pub going: usize,
    /// How many have to wait for those.
    pub waiting: usize,
}

impl Pruned {
    /// Whether nothing is left that is not wanted.
    pub fn is_clean(&self) -> bool {
        self.deletions.is_empty() && self.going == 0 && self.waiting == 0
    }
}

/// Finds the children of the object with the uid `owner` that are not `wanted`, and deletes so many of them that at most `most`
/// are going at once.
pub fn prune<'a>(
    owner: &str,
    children: impl IntoIterator<Item = &'a Child>,
    wanted: &BTreeSet<ObjectRef>,
    most: usize,
    purpose: Purpose,
) -> Pruned {
    let unwanted = children
        .into_iter()
        .filter(|child| child.is_of(owner) && !wanted.contains(child.target.object()));
    let (going, staying): (Vec<&Child>, Vec<&Child>) =
        unwanted.partition(|child| child.is_deleting);
    let targets: BTreeSet<&Target> = staying.iter().map(|child| &child.target).collect();
    let places = most.saturating_sub(going.len());
    let next = targets.iter().take(places);
    Pruned {
        deletions: next
            .map(|target| Action::Delete {
                target: (*target).clone(),
                purpose,
            })
            .collect(),
        going: going.len(),
        waiting: targets.len().saturating_sub(places),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};
    use slipway_api::purpose::Purpose;

    use super::{Child, Pruned, prune};
    use crate::action::Action;
    use crate::identity::{ClusterId, ObjectRef, kinds};

    const TOY: Purpose = Purpose::new("toy");
    const LABEL: &str = "toy.dev/owner";

    fn reference(name: &str) -> ObjectRef {
        ObjectRef::local(kinds::CONFIG_MAP, "d", name)
    }

    fn value(name: &str, metadata: &Value) -> Value {
        let mut value = json!({"metadata": {"name": name, "namespace": "d",
            "uid": format!("uid of {name}"), "resourceVersion": "7"}});
        crate::fields::merge(&mut value, &json!({"metadata": metadata}));
        value
    }

    fn owned(name: &str, uid: &str) -> Child {
        let owner = json!({"kind": "Toy", "name": "toy", "uid": uid, "controller": true});
        let metadata = json!({"ownerReferences": [owner]});
        Child::controlled(reference(name), &value(name, &metadata))
    }

    fn going(name: &str) -> Child {
        let mut child = owned(name, "1");
        child.is_deleting = true;
        child
    }

    fn swept(children: &[Child], wanted: &[&str], most: usize) -> Pruned {
        let wanted: BTreeSet<ObjectRef> = wanted.iter().map(|name| reference(name)).collect();
        prune("1", children, &wanted, most, TOY)
    }

    fn names(swept: &Pruned) -> Vec<&str> {
        let objects = swept.deletions.iter().filter_map(Action::object);
        objects.map(|object| object.name.as_str()).collect()
    }

    #[test]
    fn what_is_not_wanted_goes_as_it_was_listed() {
        let all = [owned("c", "1"), owned("a", "1"), owned("b", "1")];
        let swept = swept(&all, &["b"], 9);
        assert_eq!(names(&swept), ["a", "c"]);
        assert!(!swept.is_clean());
        for action in &swept.deletions {
            let Action::Delete { target, .. } = action else {
                continue;
            };
            assert_eq!(target.uid(), format!("uid of {}", target.object().name));
            assert_eq!(target.version(), "7");
        }
    }

    #[test]
    fn what_is_not_this_owners_stays() {
        let other = json!({"ownerReferences": [{"uid": "1"}]});
        let all = [
            owned("of an earlier owner of the name", "0"),
            Child::controlled(reference("nobody's"), &value("nobody's", &json!({}))),
            Child::controlled(reference("owned, not controlled"), &value("x", &other)),
        ];
        assert!(swept(&all, &[], 9).is_clean());
        let nobody = prune("", &all, &BTreeSet::new(), 9, TOY);
        assert!(nobody.is_clean());
        let anonymous = [owned("a", "")];
        let nobody = prune("", &anonymous, &BTreeSet::new(), 9, TOY);
        assert!(nobody.is_clean());
    }

    #[test]
    fn few_go_at_once() {
        let all = [
            going("a"),
            owned("b", "1"),
            owned("c", "1"),
            owned("d", "1"),
        ];
        let two = swept(&all, &[], 2);
        assert_eq!((names(&two), two.going, two.waiting), (vec!["b"], 1, 2));
        let one = swept(&all, &[], 1);
        assert_eq!((names(&one), one.going, one.waiting), (vec![], 1, 3));
        let all = swept(&all, &[], 9);
        assert_eq!((all.deletions.len(), all.waiting), (3, 0));
    }

    #[test]
    fn a_label_owns_where_references_do_not_reach() {
        let there = ObjectRef {
            cluster: ClusterId::remote("b"),
            ..reference("a")
        };
        let labels = json!({"labels": {LABEL: "1"}});
        let child = Child::labelled(there.clone(), &value("a", &labels), LABEL);
        let children = [child];
        // The one of this name in the local cluster is another one.
        assert_eq!(names(&swept(&children, &["a"], 9)), ["a"]);
        let wanted = BTreeSet::from([there]);
        assert!(prune("1", &children, &wanted, 9, TOY).is_clean());
    }

    #[test]
    fn an_object_that_is_listed_twice_goes_once() {
        let all = [owned("a", "1"), owned("a", "1")];
        assert_eq!(names(&swept(&all, &[], 9)), ["a"]);
    }
}
