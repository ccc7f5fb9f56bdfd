//! Nobody grants what they do not have.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::rule::{has, has_or_all, url_covers};
use super::{Attributes, GROUP, Policy, Rule, Step, aggregate_texts};
use crate::authenticate::{MASTERS, User, quoted_list};
use crate::field::quote;
use crate::status::{Outcome, Status, qualified};
use crate::value;

/// A write to a role or a binding.
#[derive(Debug, Clone, Copy)]
pub struct Grant<'a> {
    /// Who writes.
    pub user: &'a User,
    /// `roles`, `clusterroles`, `rolebindings` or `clusterrolebindings`.
    pub resource: &'a str,
    /// The namespace of the request; empty at the cluster scope.
    pub namespace: &'a str,
    /// The name in the path; empty for create.
    pub request_name: &'a str,
    /// The object as it is to be stored.
    pub object: &'a Value,
    /// The object as it is stored, for updates.
    pub old: Option<&'a Value>,
}

/// Refuses a write to a role or binding by which the user would grant more than they have.
pub fn confirm_no_escalation(policy: &Policy, grant: &Grant<'_>) -> Outcome<()> {
    if grant.user.belongs_to(MASTERS) || grant.only_for_garbage_collection() {
        return Ok(());
    }
    match grant.resource {
        "roles" | "clusterroles" => confirm_role(policy, grant),
        "rolebindings" | "clusterrolebindings" => confirm_binding(policy, grant),
        _ => Ok(()),
    }
}

fn confirm_role(policy: &Policy, grant: &Grant<'_>) -> Outcome<()> {
    let mut asked = Attributes::resource(grant.user, "escalate", GROUP, grant.resource);
    asked.namespace = grant.namespace;
    asked.name = grant.request_name;
    if policy.decide(&asked).allowed {
        return Ok(());
    }
    let rules: Vec<Rule> = value::items(grant.object, "rules")
        .iter()
        .map(Rule::read)
        .collect();
    confirm(policy, grant, &rules)?;
    let aggregates = |role: &Value| {
        let selectors = value::items(role, "aggregationRule.clusterRoleSelectors");
        !selectors.is_empty()
    };
    // Whoever sets an aggregation rule may end up with anything.
    if aggregates(grant.object) || grant.old.is_some_and(aggregates) {
        let everything = [
            Rule {
                verbs: vec!["*".to_owned()],
                groups: vec!["*".to_owned()],
                resources: vec!["*".to_owned()],
                ..Rule::default()
            },
            Rule {
                verbs: vec!["*".to_owned()],
                urls: vec!["*".to_owned()],
                ..Rule::default()
            },
        ];
        if confirm(policy, grant, &everything).is_err() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(grant.refuse(why));
        }
    }
    Ok(())
}

fn confirm_binding(policy: &Policy, grant: &Grant<'_>) -> Outcome<()> {
    let kind = value::text(grant.object, "roleRef.kind");
    let name = value::text(grant.object, "roleRef.name");
    let resource = match kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        _ => "",
    };
    if !resource.is_empty() {
        let group = value::text(grant.object, "roleRef.apiGroup");
        let mut asked = Attributes::resource(grant.user, "bind", group, resource);
        asked.namespace = grant.namespace;
        asked.name = name;
        if policy.decide(&asked).allowed {
            return Ok(());
        }
    }
    match policy.role(kind, grant.namespace, name) {
        Some(rules) => confirm(policy, grant, &rules.clone()),
        // The real server looks roles up in the context of the request, so that the text names its resource.
        None => Err(Box::new(Status::not_found(GROUP, grant.resource, name))),
    }
}

fn confirm(policy: &Policy, grant: &Grant<'_>, wanted: &[Rule]) -> Outcome<()> {
    let mut held = Vec::new();
    let mut errors = Vec::new();
    for step in policy.steps(grant.user, grant.namespace) {
        match step {
            Step::Rule { rule, .. } => held.push(rule),
            Step::Missing { name, .. } => {
                let what = qualified(GROUP, grant.resource);
                errors.push(format!("{what} {} not found", quote(name)));
            }
        }
    }
    let missing: Vec<Rule> = wanted
        .iter()
        .flat_map(breakdown)
        .filter(|part| !held.iter().any(|rule| covers(rule, part)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let lines: BTreeSet<String> = merge(missing).iter().map(Rule::compact).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let mut why = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&grant.user.name),
        quoted_list(&grant.user.groups),
        lines.join("\n")
    );
    if !errors.is_empty() {
        why.push_str("; resolution errors: [");
        why.push_str(&aggregate_texts(&errors));
        why.push(']');
    }
    Err(grant.refuse(&why))
}

/// Parts with one group, resource, name and verb each, or one path and verb.
fn breakdown(rule: &Rule) -> Vec<Rule> {
    let mut parts = Vec::new();
    let everyone = vec![None];
    let names: Vec<Option<&String>> = if rule.names.is_empty() {
        everyone
    } else {
        rule.names.iter().map(Some).collect()
    };
    for group in &rule.groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                for name in &names {
                    parts.push(Rule {
                        verbs: vec![verb.clone()],
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        names: name.iter().map(|n| (*n).clone()).collect(),
                        urls: Vec::new(),
                    });
                }
            }
        }
    }
    for url in &rule.urls {
        for verb in &rule.verbs {
            parts.push(Rule {
                verbs: vec![verb.clone()],
                urls: vec![url.clone()],
                ..Rule::default()
            });
        }
    }
    parts
}

/// Whether `held` covers a part.
fn covers(held: &Rule, part: &Rule) -> bool {
    let all = |list: &[String], wanted: &[String]| wanted.iter().all(|w| has_or_all(list, w));
    let resource = part.resources.iter().all(|wanted| {
        let everywhere = wanted
            .split_once('/')
            .map(|(_, subresource)| format!("*/{subresource}"));
        has_or_all(&held.resources, wanted)
            || everywhere.is_some_and(|every| has(&held.resources, &every))
    });
    let name = held.names.is_empty()
        || (!part.names.is_empty() && part.names.iter().all(|n| has(&held.names, n)));
    let url = part
        .urls
        .iter()
        .all(|wanted| held.urls.iter().any(|url| url_covers(url, wanted)));
    all(&held.verbs, &part.verbs) && all(&held.groups, &part.groups) && resource && name && url
}

/// Joins parts that differ only by verb; verbs keep their order.
fn merge(parts: Vec<Rule>) -> Vec<Rule> {
    let mut merged: BTreeMap<Rule, Vec<String>> = BTreeMap::new();
    let mut rest = Vec::new();
    for part in parts {
        if part.urls.is_empty() {
            let key = Rule {
                verbs: Vec::new(),
                ..part.clone()
            };
            merged.entry(key).or_default().extend(part.verbs);
        } else {
            rest.push(part);
        }
    }
    let merged = merged.into_iter().map(|(key, verbs)| Rule { verbs, ..key });
    rest.into_iter().chain(merged).collect()
}

impl Grant<'_> {
    fn refuse(&self, why: &str) -> Box<Status> {
        let name = value::text(self.object, "metadata.name");
        Box::new(Status::forbidden(GROUP, self.resource, name, why))
    }

    /// Whether nothing changes but what the garbage collector writes.
    fn only_for_garbage_collection(&self) -> bool {
        let Some(old) = self.old else { return false };
        let mut same = self.object.clone();
        for path in [
            "metadata.ownerReferences",
            "metadata.finalizers",
            "metadata.managedFields",
        ] {
            value::copy(&mut same, old, path);
        }
        same == *old
    }
}
