//! Deleting all objects of a collection that match.

use serde_json::{Value, json};

use super::delete::{self, Deleted};
use super::{list, render};
use crate::exchange::{Exchange, Reply};
use crate::status::{Outcome, Status};

/// Answers DELETE on a collection: each object is deleted as if by itself.
pub(super) async fn delete_collection(ex: &Exchange<'_>) -> Outcome<Reply> {
    let options = delete::options(ex)?;
    let selection = list::options(ex)?;
    let snapshot = ex
        .cluster
        .store
        .list(&ex.bucket(), &ex.target.namespace, &|o| {
            list::matches(&selection, o)
        });
    let mut warnings = Vec::new();
    // The answer lists what was found, as it was before.
    let mut items: Vec<Value> = Vec::new();
    for stored in &snapshot.objects {
        let single = ex.for_object(&stored.header.namespace, &stored.header.name);
        match Box::pin(delete::remove(&single, &options, &mut warnings)).await {
            Ok(Deleted::Gone(_) | Deleted::Marked(_)) => items.push(render::decode(ex, stored)),
            Err(status) if is_gone(&status) => {}
            Err(status) => return Err(status),
        }
    }
    if !ex.resource.custom {
        for item in &mut items {
            crate::value::take(item, "apiVersion");
            crate::value::take(item, "kind");
        }
    }
    let mut metadata = json!({"resourceVersion": snapshot.version.to_string()});
    if ex.resource.custom {
        metadata["continue"] = json!("");
    }
    Ok(Reply::value(
        200,
        json!({
            "apiVersion": ex.api_version(),
            "kind": ex.resource.names.list_kind,
            "metadata": metadata,
            "items": items,
        }),
    )
    .with_warnings(warnings))
}

fn is_gone(status: &Status) -> bool {
    status.code == 404
}
