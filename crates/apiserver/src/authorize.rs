//! RBAC: who may do what, and which rule said so.
//!
//! Everything here is a pure function of the stored roles and bindings. A [`Policy`] is built from them and rebuilt
//! when one changes; [`Policy::decide`] answers a request, [`Audit`] remembers the answers.

mod aggregate;
mod audit;
mod binding;
mod escalate;
mod review;
mod rule;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::authenticate::{MASTERS, User};
use crate::field::quote;
use crate::status::{Details, Outcome, Status, qualified};
use crate::value;

use binding::{Binding, BindingRef, Bindings};

pub use aggregate::aggregated_rules;
pub use audit::{Audit, Denied, Use};
pub use escalate::{Grant, confirm_no_escalation};
pub use review::{
    local_subject_access_review, self_subject_access_review, self_subject_rules_review,
    subject_access_review,
};
pub use rule::Rule;

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// What someone asks for.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a User,
    /// `get`, `list`, `create`, …; for paths the HTTP method in lower case.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The API version; RBAC does not look at it.
    pub version: &'a str,
    /// The resource in the plural.
    pub resource: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The namespace; empty at the cluster scope.
    pub namespace: &'a str,
    /// The object's name, or empty.
    pub name: &'a str,
    /// The path of a request that is not about a resource; none for resources.
    pub path: Option<&'a str>,
}

impl<'a> Attributes<'a> {
    /// A request about a path, such as `/metrics`.
    pub fn path(user: &'a User, verb: &'a str, path: &'a str) -> Self {
        Self {
            path: Some(path),
            ..Self::resource(user, verb, "", "")
        }
    }

    /// A request about all objects of a resource at the cluster scope; narrow it by setting fields.
    pub fn resource(user: &'a User, verb: &'a str, group: &'a str, resource: &'a str) -> Self {
        Self {
            user,
            verb,
            group,
            version: "",
            resource,
            subresource: "",
            namespace: "",
            name: "",
            path: None,
        }
    }

    /// `pods`, or `pods/eviction`.
    fn combined(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

/// A rule by its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleRef {
    /// `ClusterRoleBinding NAME` or `RoleBinding NAMESPACE/NAME`.
    pub binding: String,
    /// `ClusterRole NAME` or `Role NAMESPACE/NAME`.
    pub role: String,
    /// The index into the role's (aggregated) rules.
    pub index: usize,
}

/// The answer to [`Attributes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may go ahead.
    pub allowed: bool,
    /// Why, or which errors came up; often empty.
    pub reason: String,
    /// The rule that allowed it; none for refusals and for `system:masters`.
    pub rule: Option<RuleRef>,
}

impl Decision {
    /// The 403 for a refusal, or nothing.
    pub fn enforce(&self, asked: &Attributes<'_>) -> Outcome<()> {
        if self.allowed {
            Ok(())
        } else {
            Err(Box::new(forbidden(asked, &self.reason)))
        }
    }
}

/// The 403 answer, with kube-apiserver's text.
pub fn forbidden(asked: &Attributes<'_>, reason: &str) -> Status {
    let user = quote(&asked.user.name);
    let what = if let Some(path) = asked.path {
        format!("User {user} cannot {} path {}", asked.verb, quote(path))
    } else {
        let place = if asked.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {}", quote(asked.namespace))
        };
        format!(
            "User {user} cannot {} resource {} in API group {} {place}",
            asked.verb,
            quote(&asked.combined()),
            quote(asked.group),
        )
    };
    // The real server keeps what it echoes from looking like HTML.
    let what = what
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let why = if reason.is_empty() {
        what
    } else {
        format!("{what}: {reason}")
    };
    if asked.resource.is_empty() && asked.group.is_empty() {
        let mut status = Status::failure(403, "Forbidden", format!("forbidden: {why}"));
        status.details = Some(Details::default());
        status
    } else {
        Status::forbidden(asked.group, asked.resource, asked.name, &why)
    }
}

/// All roles and bindings of a cluster, ready to be asked.
#[derive(Debug, Default)]
pub struct Policy {
    roles: BTreeMap<(String, String), rule::Shared>,
    cluster_roles: BTreeMap<String, rule::Shared>,
    cluster: Bindings,
    namespaced: BTreeMap<String, Bindings>,
}

/// One rule that applies to someone, or why a binding could not be followed.
pub(crate) enum Step<'a> {
    Rule {
        rule: &'a Rule,
        index: usize,
        binding: BindingRef<'a>,
    },
    Missing {
        kind: &'a str,
        name: &'a str,
    },
}

impl Policy {
    /// Reads the stored objects. Cluster roles with an `aggregationRule` get the union of the roles they select.
    pub fn build<'a>(
        roles: impl IntoIterator<Item = &'a Value>,
        role_bindings: impl IntoIterator<Item = &'a Value>,
        cluster_roles: impl IntoIterator<Item = &'a Value>,
        cluster_role_bindings: impl IntoIterator<Item = &'a Value>,
    ) -> Self {
        let cluster_roles: Vec<&Value> = cluster_roles.into_iter().collect();
        let aggregated = aggregated_rules(&cluster_roles);
        let mut policy = Self::default();
        for role in cluster_roles {
            let name = value::text(role, "metadata.name");
            let stored = value::items(role, "rules");
            let read = Rule::read_all(aggregated.get(name).map_or(stored, Vec::as_slice));
            policy.cluster_roles.insert(name.to_owned(), read);
        }
        for role in roles {
            let key = (
                value::text(role, "metadata.namespace").to_owned(),
                value::text(role, "metadata.name").to_owned(),
            );
            let read = Rule::read_all(value::items(role, "rules"));
            policy.roles.insert(key, read);
        }
        policy.cluster = Bindings::read(cluster_role_bindings.into_iter().collect());
        let mut by_namespace: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for binding in role_bindings {
            let namespace = value::text(binding, "metadata.namespace");
            by_namespace.entry(namespace).or_default().push(binding);
        }
        for (namespace, bindings) in by_namespace {
            let read = Bindings::read(bindings);
            policy.namespaced.insert(namespace.to_owned(), read);
        }
        policy
    }

    /// Whether `asked` may go ahead.
    pub fn decide(&self, asked: &Attributes<'_>) -> Decision {
        self.judge(asked, |binding| {
            format!("RBAC: allowed by {}", binding.describe())
        })
    }

    /// The same, where nobody is told why something is allowed, as at every request.
    pub fn decide_silently(&self, asked: &Attributes<'_>) -> Decision {
        self.judge(asked, |_| String::new())
    }

    fn judge(
        &self,
        asked: &Attributes<'_>,
        describe: impl Fn(BindingRef<'_>) -> String,
    ) -> Decision {
        if asked.user.belongs_to(MASTERS) {
            return Decision {
                allowed: true,
                reason: String::new(),
                rule: None,
            };
        }
        let combined = asked.combined();
        let mut missing = Vec::new();
        for step in self.steps(asked.user, asked.namespace) {
            match step {
                Step::Rule {
                    rule,
                    index,
                    binding,
                } if rule.allows(asked, &combined) => {
                    return Decision {
                        allowed: true,
                        reason: describe(binding),
                        rule: Some(binding.rule_ref(index)),
                    };
                }
                Step::Rule { .. } => {}
                Step::Missing { kind, name } => missing.push(missing_role(kind, name)),
            }
        }
        let reason = if missing.is_empty() {
            String::new()
        } else {
            format!("RBAC: {}", aggregate_texts(&missing))
        };
        Decision {
            allowed: false,
            reason,
            rule: None,
        }
    }

    /// [`Policy::decide`], with the 403 as the error.
    pub fn authorize(&self, asked: &Attributes<'_>) -> Outcome<Decision> {
        let decision = self.decide(asked);
        decision.enforce(asked)?;
        Ok(decision)
    }

    /// The rules of a role, or of a cluster role for an empty `namespace` or the kind `ClusterRole`.
    fn role(&self, kind: &str, namespace: &str, name: &str) -> Option<&rule::Shared> {
        match kind {
            "ClusterRole" => self.cluster_roles.get(name),
            "Role" => self.roles.get(&(namespace.to_owned(), name.to_owned())),
            _ => None,
        }
    }

    /// All rules that apply to `user` in `namespace`, cluster-wide ones first.
    pub(crate) fn steps<'a>(
        &'a self,
        user: &User,
        namespace: &str,
    ) -> impl Iterator<Item = Step<'a>> + use<'a> {
        let local = (!namespace.is_empty())
            .then(|| self.namespaced.get(namespace))
            .flatten();
        let applicable = self
            .cluster
            .applicable(user)
            .into_iter()
            .chain(local.map(|l| l.applicable(user)).unwrap_or_default());
        applicable.flat_map(move |at| {
            let Binding {
                namespace,
                role_kind,
                role_name,
                ..
            } = at.binding;
            let rules = self.role(role_kind, namespace, role_name);
            let missing = rules.is_none().then_some(Step::Missing {
                kind: role_kind,
                name: role_name,
            });
            let rules = rules.into_iter().flat_map(|rules| rules.iter());
            let rules = rules.enumerate().map(move |(index, rule)| Step::Rule {
                rule,
                index,
                binding: at,
            });
            missing.into_iter().chain(rules)
        })
    }
}

fn missing_role(kind: &str, name: &str) -> String {
    match kind {
        "Role" | "ClusterRole" => {
            let what = qualified(GROUP, &kind.to_ascii_lowercase());
            format!("{what} {} not found", quote(name))
        }
        other => format!("unsupported role reference kind: {}", quote(other)),
    }
}

/// Several errors as one text, each once.
pub(crate) fn aggregate_texts(texts: &[String]) -> String {
    let mut once: Vec<&str> = Vec::new();
    for text in texts {
        if !once.contains(&text.as_str()) {
            once.push(text);
        }
    }
    match once.as_slice() {
        [single] => (*single).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests;
