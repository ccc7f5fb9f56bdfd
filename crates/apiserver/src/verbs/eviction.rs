//! Evicting a pod: a delete that asks the disruption budgets first.

use serde_json::{Value, json};

use super::delete;
use crate::builtin::policy::eviction::{self, Verdict};
use crate::cluster::Cluster;
use crate::exchange::{Exchange, Reply};
use crate::options::DeleteOptions;
use crate::resource::bucket;
use crate::status::{Outcome, Status};
use crate::value;

/// How often an eviction starts over when a budget changed under it.
const ATTEMPTS: usize = 5;

/// Answers POST on `eviction`.
pub(super) async fn evict(ex: &Exchange<'_>) -> Outcome<Reply> {
    let body = ex.decode_as("policy/v1", "Eviction", "io.k8s.api.policy.v1.Eviction")?;
    let named = value::text(&body, "metadata.name");
    if !named.is_empty() && named != ex.target.name {
        return Err(Box::new(Status::bad_request("name in URL does not match name in Eviction object")));
    }
    let mut options = DeleteOptions::parse(&ex.query, Some(body.get("deleteOptions").unwrap_or(&json!({}))))?;
    options.dry_run |= ex.query.get("dryRun") == Some("All");
    for _ in 0..ATTEMPTS {
        let pod = ex.for_object(&ex.target.namespace, &ex.target.name);
        let stored = super::get::find(&pod)?;
        let object = super::render::decode(&pod, &stored);
        let budgets = budgets(ex);
        let verdict = eviction::judge(&object, &budgets, &body, ex.now);
        match verdict {
            Verdict::Refused(status) => return Err(status),
            Verdict::Allowed { budget: None } => {}
            Verdict::Allowed { budget: Some(changed) } => {
                if !options.dry_run && !spend(ex, &changed) {
                    continue;
                }
                // What the budget was asked about must still be what is deleted.
                options.version.get_or_insert_with(|| stored.version.to_string());
            }
        }
        let mut warnings = Vec::new();
        delete::remove(&pod, &options, &mut warnings).await?;
        let mut status = Status::failure(201, "", "");
        status.status = "Success".to_owned();
        return Ok(Reply::status(&status).with_warnings(warnings));
    }
    Err(Box::new(Status::too_many_requests("the disruption budgets changed too often; try again", 1)))
}

fn budgets(ex: &Exchange<'_>) -> Vec<Value> {
    ex.cluster
        .store
        .list(&bucket("policy", "poddisruptionbudgets"), &ex.target.namespace, &|_| true)
        .objects
        .iter()
        .map(|stored| stored.decode())
        .collect()
}

/// Writes the budget's new status; false if the budget changed in between.
fn spend(ex: &Exchange<'_>, budget: &Value) -> bool {
    let registry = ex.cluster.registry();
    let Some(resource) = registry.find("policy", "poddisruptionbudgets") else {
        return false;
    };
    let expected = value::text(budget, "metadata.resourceVersion").parse().unwrap_or(0);
    let (namespace, name) = (value::text(budget, "metadata.namespace"), value::text(budget, "metadata.name"));
    ex.cluster
        .store
        .update(&resource.bucket(), namespace, name, expected, |version| Cluster::encode(resource, budget, version))
        .is_ok()
}
