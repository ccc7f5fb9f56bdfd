//! One object.

use std::sync::Arc;

use super::render;
use crate::exchange::{Exchange, Reply};
use crate::status::{Outcome, Status};
use crate::store::Stored;

/// Answers with the object that the path names.
pub(super) fn get(ex: &Exchange<'_>) -> Outcome<Reply> {
    if let Some(text) = ex.query.get("resourceVersion") {
        let version = crate::options::parse_exact_version(text)?;
        let current = ex.cluster.store.version();
        if version > current {
            return Err(Box::new(Status::too_large_version(version, current)));
        }
    }
    let stored = find(ex)?;
    render::object(ex, 200, &stored, Vec::new())
}

/// The object that the path names.
pub(super) fn find(ex: &Exchange<'_>) -> Outcome<Arc<Stored>> {
    let (namespace, name) = (&ex.target.namespace, &ex.target.name);
    if let Some(by) = ex.stale {
        let at = ex.cluster.store.version().saturating_sub(by);
        let named = |o: &Stored| *o.header.name == **name && *o.header.namespace == **namespace;
        let past = ex
            .cluster
            .store
            .page(&ex.bucket(), namespace, Some(at), None, 0, &named);
        if let Ok(snapshot) = past {
            return snapshot
                .objects
                .first()
                .cloned()
                .ok_or_else(|| ex.not_found(name));
        }
    }
    ex.cluster
        .store
        .get(&ex.bucket(), namespace, name)
        .ok_or_else(|| ex.not_found(name))
}
