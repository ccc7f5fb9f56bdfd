//! Bindings, found by whom they are for.

use std::collections::BTreeMap;

use serde_json::Value;

use super::RuleRef;
use crate::authenticate::User;
use crate::field::quote;
use crate::value;

/// Who a binding is for. Service accounts are users with a long name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    User(String),
    Group(String),
}

#[derive(Debug)]
pub(super) struct Binding {
    /// Empty for cluster role bindings.
    pub(super) namespace: String,
    name: String,
    pub(super) role_kind: String,
    pub(super) role_name: String,
    /// How each subject is described in reasons.
    subjects: Vec<String>,
}

/// The bindings of one namespace, or of the cluster.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    /// By name.
    list: Vec<Binding>,
    /// Binding and subject by who it is for, so that a decision does not read all bindings.
    by_subject: BTreeMap<Subject, Vec<(usize, usize)>>,
}

#[derive(Clone, Copy)]
pub(crate) struct BindingRef<'a> {
    pub(super) binding: &'a Binding,
    subject: usize,
}

impl BindingRef<'_> {
    pub(super) fn describe(self) -> String {
        let Binding {
            namespace,
            name,
            role_kind,
            role_name,
            subjects,
        } = self.binding;
        let (kind, full) = if namespace.is_empty() {
            ("ClusterRoleBinding", name.clone())
        } else {
            ("RoleBinding", format!("{name}/{namespace}"))
        };
        let subject = subjects.get(self.subject).map_or("", String::as_str);
        format!(
            "{kind} {} of {role_kind} {} to {subject}",
            quote(&full),
            quote(role_name)
        )
    }

    pub(super) fn rule_ref(self, index: usize) -> RuleRef {
        let binding = self.binding;
        let (kind, prefix) = if binding.namespace.is_empty() {
            ("ClusterRoleBinding", String::new())
        } else {
            ("RoleBinding", format!("{}/", binding.namespace))
        };
        let role_prefix = if binding.role_kind == "Role" {
            &*prefix
        } else {
            ""
        };
        RuleRef {
            binding: format!("{kind} {prefix}{}", binding.name),
            role: format!("{} {role_prefix}{}", binding.role_kind, binding.role_name),
            index,
        }
    }
}

impl Bindings {
    pub(super) fn read(mut objects: Vec<&Value>) -> Self {
        objects.sort_by_key(|o| value::text(o, "metadata.name"));
        let mut bindings = Self::default();
        for (at, object) in objects.into_iter().enumerate() {
            let namespace = value::text(object, "metadata.namespace");
            let mut descriptions = Vec::new();
            for (subject, item) in value::items(object, "subjects").iter().enumerate() {
                descriptions.push(describe_subject(item, namespace));
                if let Some(key) = Subject::read(item, namespace) {
                    let places = bindings.by_subject.entry(key).or_default();
                    places.push((at, subject));
                }
            }
            bindings.list.push(Binding {
                namespace: namespace.to_owned(),
                name: value::text(object, "metadata.name").to_owned(),
                role_kind: value::text(object, "roleRef.kind").to_owned(),
                role_name: value::text(object, "roleRef.name").to_owned(),
                subjects: descriptions,
            });
        }
        bindings
    }

    /// The bindings that are for `user`, each with the first subject that is.
    pub(super) fn applicable(&self, user: &User) -> Vec<BindingRef<'_>> {
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        let groups = user.groups.iter().map(|g| Subject::Group(g.clone()));
        for key in std::iter::once(Subject::User(user.name.clone())).chain(groups) {
            for &(at, subject) in self.by_subject.get(&key).into_iter().flatten() {
                let first = places.entry(at).or_insert(subject);
                *first = subject.min(*first);
            }
        }
        places
            .into_iter()
            .filter_map(|(at, subject)| {
                let binding = self.list.get(at)?;
                Some(BindingRef { binding, subject })
            })
            .collect()
    }
}

impl Subject {
    fn read(item: &Value, binding_namespace: &str) -> Option<Self> {
        let name = value::text(item, "name");
        match value::text(item, "kind") {
            "User" => Some(Self::User(name.to_owned())),
            "Group" => Some(Self::Group(name.to_owned())),
            "ServiceAccount" => {
                let namespace = subject_namespace(item, binding_namespace);
                (!namespace.is_empty())
                    .then(|| Self::User(format!("system:serviceaccount:{namespace}:{name}")))
            }
            _ => None,
        }
    }
}

fn subject_namespace<'a>(item: &'a Value, binding_namespace: &'a str) -> &'a str {
    match value::text(item, "namespace") {
        "" => binding_namespace,
        own => own,
    }
}

fn describe_subject(item: &Value, binding_namespace: &str) -> String {
    let (kind, name) = (value::text(item, "kind"), value::text(item, "name"));
    if kind == "ServiceAccount" {
        let namespace = subject_namespace(item, binding_namespace);
        format!("{kind} {}", quote(&format!("{name}/{namespace}")))
    } else {
        format!("{kind} {}", quote(name))
    }
}
