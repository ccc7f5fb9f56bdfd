//! Cluster roles that are the union of others.
//!
//! In a real cluster the controller manager writes the union into `rules`. Here [`super::Policy`] resolves it on its
//! own, and whoever stores roles can write the same rules down.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::selector::LabelSelector;
use crate::value;

/// The `rules` that each cluster role with an `aggregationRule` should have, by name.
pub fn aggregated_rules(cluster_roles: &[&Value]) -> BTreeMap<String, Vec<Value>> {
    let mut all: Vec<&Value> = cluster_roles.to_vec();
    all.sort_by_key(|role| value::text(role, "metadata.name"));
    let aggregating: Vec<&Value> = all
        .iter()
        .copied()
        .filter(|role| value::has(role, "aggregationRule"))
        .collect();
    let mut result: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    // One aggregated role may select another; each round carries rules one step further, as the controller does.
    for _ in 0..=aggregating.len() {
        let mut changed = false;
        for &role in &aggregating {
            let name = value::text(role, "metadata.name");
            let union = union(role, &all, &result);
            if result.get(name) != Some(&union) {
                result.insert(name.to_owned(), union);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    result
}

fn union(role: &Value, all: &[&Value], known: &BTreeMap<String, Vec<Value>>) -> Vec<Value> {
    let own = value::text(role, "metadata.name");
    let mut rules: Vec<Value> = Vec::new();
    for selector in value::items(role, "aggregationRule.clusterRoleSelectors") {
        let Ok(selector) = LabelSelector::from_object(Some(selector)) else {
            continue;
        };
        for other in all {
            let name = value::text(other, "metadata.name");
            if name == own || !selector.matches_object(other) {
                continue;
            }
            let stored = value::items(other, "rules");
            for rule in known.get(name).map_or(stored, Vec::as_slice) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn role(name: &str, label: &str, verb: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {label: "true"}}, "rules": [{"verbs": [verb]}]})
    }

    fn aggregate(name: &str, label: &str, select: &str) -> Value {
        json!({
            "metadata": {"name": name, "labels": {label: "true"}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {select: "true"}}]},
            "rules": [{"verbs": ["stale"]}],
        })
    }

    #[test]
    fn the_union_is_sorted_by_name_and_without_repetition() {
        let all = [
            aggregate("all", "", "part"),
            role("z", "part", "get"),
            role("a", "part", "list"),
            role("b", "part", "get"),
            role("other", "else", "delete"),
        ];
        let rules = aggregated_rules(&all.iter().collect::<Vec<_>>());
        assert_eq!(rules.len(), 1);
        assert_eq!(
            rules["all"],
            [json!({"verbs": ["list"]}), json!({"verbs": ["get"]})]
        );
    }

    #[test]
    fn aggregates_of_aggregates_settle() {
        let all = [
            aggregate("admin", "none", "to-admin"),
            aggregate("edit", "to-admin", "to-edit"),
            aggregate("view", "to-edit", "to-view"),
            role("leaf", "to-view", "get"),
        ];
        let rules = aggregated_rules(&all.iter().collect::<Vec<_>>());
        assert_eq!(rules["admin"], [json!({"verbs": ["get"]})]);
    }

    #[test]
    fn a_circle_ends() {
        let all = [aggregate("a", "x", "x"), aggregate("b", "x", "x")];
        let rules = aggregated_rules(&all.iter().collect::<Vec<_>>());
        assert_eq!(rules.len(), 2);
    }
}
