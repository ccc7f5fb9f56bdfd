//! Events, which are one stored thing served in two groups.
//!
//! They are stored as core `v1`. A request to `events.k8s.io` is decoded by that group's schema, turned into the
//! stored form with [`convert::to_core`], and answered through [`convert::to_events`]; both functions leave alone
//! what has the right form already, and the strategies of both resources take either form.

pub mod convert;

use std::sync::Arc;

use serde_json::Value;

use super::cells;
use super::checks::{immutable, invalid_texts};
use super::describe::resource;
use super::names;
use super::rules::{PLAIN, Rules, Selectable};
use crate::field::{Fault, FieldError, FieldErrors, quote};
use crate::resource::{Context, Resource, StoredIn};
use crate::value;

const CORE: Rules = Rules {
    validate: |object, _| validate_core(&convert::to_core(object), true),
    validate_update: |_, object, _, _| validate_core(&convert::to_core(object), true),
    selectable: CORE_FIELDS,
    also_selectable: EVENTS_FIELDS,
    create_on_update: true,
    columns: &[
        ("Last Seen", "string", 0),
        ("Type", "string", 0),
        ("Reason", "string", 0),
        ("Object", "string", 0),
        ("Subobject", "string", 1),
        ("Source", "string", 1),
        ("Message", "string", 0),
        ("First Seen", "string", 1),
        ("Count", "string", 1),
        ("Name", "string", 1),
    ],
    cells,
    ..PLAIN
};

const EVENTS: Rules = Rules {
    validate: |object, _| validate_new(&convert::to_core(object)),
    validate_update: |_, object, old, _| {
        validate_new_update(&convert::to_core(object), &convert::to_core(old))
    },
    selectable: EVENTS_FIELDS,
    also_selectable: CORE_FIELDS,
    ..CORE
};

fn core_text(object: &Value, path: &str) -> String {
    value::text(&convert::to_core(object), path).to_owned()
}

const CORE_FIELDS: &[Selectable] = &[
    ("involvedObject.kind", |o| {
        core_text(o, "involvedObject.kind")
    }),
    ("involvedObject.namespace", |o| {
        core_text(o, "involvedObject.namespace")
    }),
    ("involvedObject.name", |o| {
        core_text(o, "involvedObject.name")
    }),
    ("involvedObject.uid", |o| core_text(o, "involvedObject.uid")),
    ("involvedObject.apiVersion", |o| {
        core_text(o, "involvedObject.apiVersion")
    }),
    ("involvedObject.resourceVersion", |o| {
        core_text(o, "involvedObject.resourceVersion")
    }),
    ("involvedObject.fieldPath", |o| {
        core_text(o, "involvedObject.fieldPath")
    }),
    ("reason", |o| core_text(o, "reason")),
    ("reportingComponent", |o| core_text(o, "reportingComponent")),
    ("source", |o| {
        let component = core_text(o, "source.component");
        if component.is_empty() {
            core_text(o, "reportingComponent")
        } else {
            component
        }
    }),
    ("type", |o| core_text(o, "type")),
];

const EVENTS_FIELDS: &[Selectable] = &[
    ("regarding.kind", |o| core_text(o, "involvedObject.kind")),
    ("regarding.namespace", |o| {
        core_text(o, "involvedObject.namespace")
    }),
    ("regarding.name", |o| core_text(o, "involvedObject.name")),
    ("regarding.uid", |o| core_text(o, "involvedObject.uid")),
    ("regarding.apiVersion", |o| {
        core_text(o, "involvedObject.apiVersion")
    }),
    ("regarding.resourceVersion", |o| {
        core_text(o, "involvedObject.resourceVersion")
    }),
    ("regarding.fieldPath", |o| {
        core_text(o, "involvedObject.fieldPath")
    }),
    ("reason", |o| core_text(o, "reason")),
    ("reportingController", |o| {
        core_text(o, "reportingComponent")
    }),
    ("type", |o| core_text(o, "type")),
];

/// The longest reporting instance, action and reason, in bytes.
const SHORT: usize = 128;
/// The longest message.
const LONG: usize = 1024;

/// The rules that hold in both groups. `core` says how the reporting controller is called.
fn validate_core(event: &Value, core: bool) -> FieldErrors {
    let mut errors = Vec::new();
    let namespace = value::text(event, "metadata.namespace");
    let about = value::text(event, "involvedObject.namespace");
    let modern = value::has(event, "eventTime");
    let fits = match (modern, about) {
        (false, "") => ["", "default"].contains(&namespace),
        (false, about) => about == namespace,
        (true, "") => ["default", "kube-system"].contains(&namespace),
        (true, _) => true,
    };
    if !fits {
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid_str(
            "involvedObject.namespace",
            about,
            detail,
        ));
    }
    if modern {
        errors.extend(reporter(event, core));
        let mut limit = |path: &str, required: bool, longest: usize| {
            let text = value::text(event, path);
            if required && text.is_empty() {
                errors.push(FieldError::required(path, ""));
            }
            if text.len() > longest {
                let detail = format!("can have at most {longest} characters");
                errors.push(FieldError::invalid_str(path, "", detail));
            }
        };
        limit("reportingInstance", true, SHORT);
        limit("action", true, SHORT);
        limit("reason", true, SHORT);
        limit("message", false, LONG);
    }
    let wrong = names::subdomain(namespace);
    errors.extend(invalid_texts("namespace", namespace, wrong));
    errors
}

fn reporter(event: &Value, core: bool) -> FieldErrors {
    let path = if core {
        "reportingComponent"
    } else {
        "reportingController"
    };
    let name = value::text(event, "reportingComponent");
    let mut errors = Vec::new();
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    errors.extend(invalid_texts(path, name, names::label_key(name)));
    errors
}

fn series(event: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    if !value::has(event, "series") {
        return errors;
    }
    if value::integer(event, "series.count").unwrap_or_default() < 2 {
        let detail = "should be at least 2";
        errors.push(FieldError::invalid_str("series.count", "", detail));
    }
    if !value::has(event, "series.lastObservedTime") {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
    errors
}

/// What `events.k8s.io` asks of a new event.
fn validate_new(event: &Value) -> FieldErrors {
    let mut errors = validate_core(event, false);
    errors.extend(series(event));
    if !value::has(event, "eventTime") {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = value::text(event, "type");
    if !["Normal", "Warning"].contains(&kind) {
        let detail = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid_str("type", "", detail));
    }
    let source = |field: &str| !value::text(event, field).is_empty();
    for (path, set) in [
        ("firstTimestamp", value::has(event, "firstTimestamp")),
        ("lastTimestamp", value::has(event, "lastTimestamp")),
        (
            "count",
            value::integer(event, "count").is_some_and(|c| c != 0),
        ),
        (
            "source",
            source("source.component") || source("source.host"),
        ),
    ] {
        if set {
            errors.push(FieldError::invalid_str(path, "", "needs to be unset"));
        }
    }
    errors
}

/// `events.k8s.io` lets only the series change.
fn validate_new_update(event: &Value, old: &Value) -> FieldErrors {
    let mut errors = validate_core(event, false);
    if value::at(event, "series") != value::at(old, "series") {
        errors.extend(series(event));
    }
    errors.extend(same_reference(event, old, "involvedObject"));
    for path in [
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
    ] {
        errors.extend(immutable(event, old, path));
    }
    errors.extend(same_reference(event, old, "related"));
    for (path, shown) in [
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        for mut error in immutable(event, old, path) {
            shown.clone_into(&mut error.path);
            errors.push(error);
        }
    }
    errors
}

/// An object reference stays; it is shown as the server's own struct.
fn same_reference(event: &Value, old: &Value, path: &str) -> FieldErrors {
    let Some(reference) = value::at(event, path).filter(|r| value::at(old, path) != Some(r)) else {
        return Vec::new();
    };
    let parts: Vec<String> = [
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ]
    .iter()
    .map(|(shown, field)| format!("\"{shown}\":{}", quote(value::text(reference, field))))
    .collect();
    vec![FieldError {
        fault: Fault::Invalid,
        path: path.to_owned(),
        shown: format!("{{{}}}", parts.join(",")),
        detail: super::checks::IMMUTABLE.to_owned(),
    }]
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let event = convert::to_core(object);
    let age = |path: &str| cells::since(&event, path, cx);
    let first = if value::has(&event, "firstTimestamp") {
        age("firstTimestamp")
    } else {
        age("eventTime")
    };
    let mut last = if value::has(&event, "lastTimestamp") {
        age("lastTimestamp")
    } else {
        first.clone()
    };
    let mut count = value::integer(&event, "count").unwrap_or_default();
    if value::has(&event, "series") {
        last = age("series.lastObservedTime");
        count = value::integer(&event, "series.count").unwrap_or_default();
    } else if count == 0 {
        count = 1;
    }
    let kind = value::text(&event, "involvedObject.kind").to_lowercase();
    let target = match value::text(&event, "involvedObject.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last.into(),
        value::text(&event, "type").into(),
        value::text(&event, "reason").into(),
        target.into(),
        value::text(&event, "involvedObject.fieldPath").into(),
        source_cell(&event).into(),
        value::text(&event, "message").trim().into(),
        first.into(),
        count.into(),
        cells::name(&event),
    ]
}

fn source_cell(event: &Value) -> String {
    let either = |a: &str, b: &str| {
        let first = value::text(event, a);
        if first.is_empty() {
            value::text(event, b).to_owned()
        } else {
            first.to_owned()
        }
    };
    let component = either("source.component", "reportingComponent");
    let instance = either("source.host", "reportingInstance");
    if instance.is_empty() {
        component
    } else {
        format!("{component}, {instance}")
    }
}

/// The resources of both groups. The second shares the storage of the first.
pub fn resources() -> Vec<Resource> {
    let kind = |group: &str, rules: Rules| {
        resource(group, "v1", "Event", "events", Arc::new(rules))
            .short(&["ev"])
            .build()
    };
    let mut modern = kind("events.k8s.io", EVENTS);
    modern.stored_in = Some(StoredIn {
        group: "",
        to_storage: convert::to_core,
        from_storage: convert::to_events,
    });
    vec![kind("", CORE), modern]
}

#[cfg(test)]
mod tests;
