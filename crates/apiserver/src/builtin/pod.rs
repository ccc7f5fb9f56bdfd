//! Pods, and the parts of pod specs and templates that all workloads share.

pub mod admission;
pub(crate) mod amount;
pub(crate) mod check;
pub mod condition;
mod container;
pub mod defaults;
pub mod difference;
pub mod internal;
pub mod labels;
mod mount;
pub(crate) mod printing;
mod probe;
mod projection;
pub mod quality;
pub mod resources;
mod scheduling;
mod security;
pub mod spec;
mod spread;
mod status;
pub mod subresource;
pub mod template;
mod update;
mod variables;
pub mod volume;
pub(crate) mod warnings;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::builtin::describe;
use crate::field::FieldErrors;
use crate::resource::{Context, Part, Resource, Strategy};
use crate::table::Column;
use crate::value::{copy, flag, integer, items, put, text};

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    vec![
        describe::resource("", "v1", "Pod", "pods", Arc::new(Pods))
            .short(&["po"])
            .category("all")
            .status()
            .subresource("binding")
            .subresource("ephemeralcontainers")
            .subresource("eviction")
            .subresource("resize")
            .returns_deleted()
            .build(),
    ]
}

/// The rules of pods.
#[derive(Debug)]
struct Pods;

impl Strategy for Pods {
    fn default(&self, object: &mut Value, _cx: &Context<'_>) {
        defaults::pod(object);
    }

    fn prepare_create(&self, object: &mut Value, cx: &Context<'_>) {
        admission::tolerate(object);
        admission::prioritise(object);
        let class = object.get("spec").map_or("BestEffort", quality::class);
        put(
            object,
            "status",
            json!({"phase": "Pending", "qosClass": class}),
        );
        if !items(object, "spec.schedulingGates").is_empty() {
            let message = "Scheduling is blocked due to non-empty scheduling gates";
            let (kind, reason) = ("PodScheduled", "SchedulingGated");
            condition::set(object, kind, "False", reason, message, cx.now);
        }
        spread::merge_label_keys(object);
    }

    fn validate(&self, object: &Value, _cx: &Context<'_>) -> FieldErrors {
        let mut errors = FieldErrors::new();
        update::validate_create(&mut errors, object);
        errors
    }

    fn prepare_update(&self, part: Part, object: &mut Value, old: &Value, _cx: &Context<'_>) {
        if part == Part::Status {
            copy(object, old, "spec");
            copy(object, old, "metadata.ownerReferences");
            copy(object, old, "metadata.deletionTimestamp");
            if text(object, "status.qosClass").is_empty() {
                copy(object, old, "status.qosClass");
            }
            status::keep_generations(object, old);
        } else {
            copy(object, old, "status");
            admission::tolerate(object);
            admission::keep(object, old);
        }
    }

    fn validate_update(
        &self,
        part: Part,
        object: &Value,
        old: &Value,
        _cx: &Context<'_>,
    ) -> FieldErrors {
        let mut errors = FieldErrors::new();
        if part == Part::Status {
            status::validate(&mut errors, object, old);
        } else {
            update::validate(&mut errors, object, old);
        }
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>, _cx: &Context<'_>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let mut out: Vec<String> = warnings::name(object, "the Pod's hostname")
            .into_iter()
            .collect();
        out.extend(warnings::about(object, ""));
        out
    }

    fn generation_changed(&self, object: &Value, old: &Value) -> bool {
        object.get("spec") != old.get("spec")
    }

    fn reset_fields(&self, part: Part) -> Vec<&'static str> {
        match part {
            Part::Status => vec![
                "spec",
                "metadata.deletionTimestamp",
                "metadata.ownerReferences",
            ],
            _ => vec!["status"],
        }
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        let ip = items(object, "status.podIPs")
            .first()
            .map_or("", |a| text(a, "ip"));
        let plain = |path: &'static str| (path, text(object, path).to_owned());
        vec![
            plain("spec.nodeName"),
            plain("spec.restartPolicy"),
            plain("spec.schedulerName"),
            plain("spec.serviceAccountName"),
            (
                "spec.hostNetwork",
                flag(object, "spec.hostNetwork").to_string(),
            ),
            plain("status.phase"),
            ("status.podIP", ip.to_owned()),
            plain("status.nominatedNodeName"),
        ]
    }

    fn selectable_names(&self) -> Vec<String> {
        self.selectable(&Value::Null)
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    fn is_graceful(&self) -> bool {
        true
    }

    fn grace_seconds(&self, object: &Value, asked: Option<i64>) -> i64 {
        let unscheduled = text(object, "spec.nodeName").is_empty();
        let ended = matches!(text(object, "status.phase"), "Failed" | "Succeeded");
        if unscheduled || ended {
            return 0;
        }
        let own = integer(object, "spec.terminationGracePeriodSeconds").unwrap_or(0);
        let period = asked.unwrap_or(own);
        if period < 0 { 1 } else { period }
    }

    fn columns(&self, _version: &str) -> Vec<Column> {
        printing::pod_columns()
    }

    fn cells(&self, object: &Value, cx: &Context<'_>) -> Vec<Value> {
        printing::pod_cells(object, cx.now)
    }

    fn row_condition(&self, object: &Value) -> Option<Value> {
        let phase = text(object, "status.phase");
        let message = match phase {
            "Succeeded" => "The pod has completed successfully.",
            "Failed" => "The pod failed.",
            _ => return None,
        };
        Some(json!({"type": "Completed", "status": "True", "reason": phase, "message": message}))
    }
}

#[cfg(test)]
mod tests;
