//! The reviews of `authentication.k8s.io` and `authorization.k8s.io`: questions that are answered, never stored.
//!
//! The answers are pure functions in [`crate::authenticate`] and [`crate::authorize`]; what is here tells the server
//! which kinds there are. They judge their bodies themselves, because their refusals have texts of their own.

use std::sync::Arc;

use serde_json::Value;

use super::describe;
use crate::field::FieldErrors;
use crate::resource::{Context, Part, Resource, Strategy};
use crate::table::Column;

/// The resources of both groups.
pub fn resources() -> Vec<Resource> {
    let review = |group: &str, kind: &str, plural: &str| {
        describe::resource(group, "v1", kind, plural, Arc::new(Review)).verbs(&["create"])
    };
    let authentication = |kind, plural| review("authentication.k8s.io", kind, plural);
    let authorization = |kind, plural| review("authorization.k8s.io", kind, plural);
    vec![
        authentication("SelfSubjectReview", "selfsubjectreviews")
            .cluster_scoped()
            .build(),
        authentication("TokenReview", "tokenreviews")
            .cluster_scoped()
            .build(),
        authorization("LocalSubjectAccessReview", "localsubjectaccessreviews").build(),
        authorization("SelfSubjectAccessReview", "selfsubjectaccessreviews")
            .cluster_scoped()
            .build(),
        authorization("SelfSubjectRulesReview", "selfsubjectrulesreviews")
            .cluster_scoped()
            .build(),
        authorization("SubjectAccessReview", "subjectaccessreviews")
            .cluster_scoped()
            .build(),
    ]
}

/// Nothing is defaulted, stored or shown as a table.
#[derive(Debug)]
struct Review;

impl Strategy for Review {
    fn default(&self, _object: &mut Value, _cx: &Context<'_>) {}

    fn prepare_create(&self, _object: &mut Value, _cx: &Context<'_>) {}

    fn validate(&self, _object: &Value, _cx: &Context<'_>) -> FieldErrors {
        Vec::new()
    }

    fn prepare_update(&self, _part: Part, _object: &mut Value, _old: &Value, _cx: &Context<'_>) {}

    fn validate_update(
        &self,
        _part: Part,
        _object: &Value,
        _old: &Value,
        _cx: &Context<'_>,
    ) -> FieldErrors {
        Vec::new()
    }

    fn generation_changed(&self, _object: &Value, _old: &Value) -> bool {
        false
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn reset_fields(&self, _part: Part) -> Vec<&'static str> {
        vec!["status"]
    }

    fn columns(&self, _version: &str) -> Vec<Column> {
        Vec::new()
    }

    fn cells(&self, _object: &Value, _cx: &Context<'_>) -> Vec<Value> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_can_only_be_created() {
        let resources = resources();
        assert_eq!(resources.len(), 6);
        assert!(resources.iter().all(|r| r.verbs == ["create"]));
        let namespaced: Vec<_> = resources.iter().filter(|r| r.namespaced).collect();
        assert_eq!(namespaced.len(), 1);
    }
}
