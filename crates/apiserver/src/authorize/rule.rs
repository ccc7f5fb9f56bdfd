//! One `PolicyRule`, and what it allows.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Attributes;
use crate::authenticate::quoted_list;
use crate::shelf::{Kept, Shelf};
use crate::value;

/// The rules of all roles that are in use, by their JSON.
static RULES: Shelf<Box<str>, Box<[Rule]>> = Shelf::new();

/// The rules of a role.
pub(super) type Shared = Arc<Kept<Box<str>, Box<[Rule]>>>;

/// A `PolicyRule`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups, or `*`.
    pub groups: Vec<String>,
    /// Resources: `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// Names; none means all.
    pub names: Vec<String>,
    /// Paths, or prefixes that end in `*`.
    pub urls: Vec<String>,
}

impl Rule {
    /// Reads the stored form.
    pub fn read(rule: &Value) -> Self {
        let list = |path: &str| -> Vec<String> {
            value::items(rule, path)
                .iter()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect()
        };
        Self {
            verbs: list("verbs"),
            groups: list("apiGroups"),
            resources: list("resources"),
            names: list("resourceNames"),
            urls: list("nonResourceURLs"),
        }
    }

    /// Those of a role. Most roles are the same in all clusters, and so are their rules.
    pub(super) fn read_all(rules: &[Value]) -> Shared {
        let text = serde_json::to_string(rules).unwrap_or_default();
        RULES.get(&*text, || {
            let read = rules.iter().map(Self::read).collect();
            (text.as_str().into(), read)
        })
    }

    /// Whether the rule allows this. `combined` is resource and subresource.
    pub(super) fn allows(&self, asked: &Attributes<'_>, combined: &str) -> bool {
        if !has_or_all(&self.verbs, asked.verb) {
            return false;
        }
        match asked.path {
            Some(path) => self.urls.iter().any(|url| url_covers(url, path)),
            None => {
                has_or_all(&self.groups, asked.group)
                    && self.allows_resource(combined, asked.subresource)
                    && (self.names.is_empty() || has(&self.names, asked.name))
            }
        }
    }

    fn allows_resource(&self, combined: &str, subresource: &str) -> bool {
        self.resources.iter().any(|resource| {
            resource == "*"
                || resource == combined
                || (!subresource.is_empty() && resource.strip_prefix("*/") == Some(subresource))
        })
    }

    /// As a `SelfSubjectRulesReview` shows the part about resources; none if there is none.
    pub(super) fn resource_rule(&self) -> Option<Value> {
        if self.resources.is_empty() {
            return None;
        }
        let mut shown = Map::new();
        shown.insert("verbs".to_owned(), json!(self.verbs));
        for (field, list) in [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
        ] {
            if !list.is_empty() {
                shown.insert(field.to_owned(), json!(list));
            }
        }
        Some(Value::Object(shown))
    }

    /// As a `SelfSubjectRulesReview` shows the part about paths; none if there is none.
    pub(super) fn path_rule(&self) -> Option<Value> {
        (!self.urls.is_empty()).then(|| json!({"verbs": self.verbs, "nonResourceURLs": self.urls}))
    }

    /// The form in which a refused grant lists it.
    pub(super) fn compact(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ]
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(title, list)| format!("{title}:{}", quoted_list(list)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

pub(super) fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == wanted)
}

pub(super) fn has_or_all(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

/// Whether the path or prefix `url` covers `path`.
pub(super) fn url_covers(url: &str, path: &str) -> bool {
    url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}
