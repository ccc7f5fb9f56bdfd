//! Jobs.

use serde_json::{Map, Value, json};

use super::{finish, spec};
use crate::builtin::apps::workload;
use crate::builtin::names;
use crate::builtin::pod::{check, condition, internal, labels, printing, warnings};
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors, show};
use crate::resource::{Context, Part};
use crate::table::age;
use crate::value::{at, copy, flag, has, integer, items, items_mut, map, put, slot, take, text};

/// The labels that tie pods to their job, by uid and by name, in their old and new form.
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// The rules of jobs.
pub(super) const RULES: Rules = Rules {
    status: true,
    default,
    prepare_create,
    validate,
    validate_update,
    warnings: warn,
    generation: Some(workload::spec_changed),
    selectable: &[("status.successful", |object| {
        integer(object, "status.succeeded").unwrap_or(0).to_string()
    })],
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Completions", "string", 0),
        ("Duration", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells,
    ..PLAIN
};

fn default(object: &mut Value) {
    if let Some(spec) = slot(object, "spec") {
        if spec.is_null() {
            *spec = json!({});
        }
        spec::default_spec(spec);
    }
    label_like_template(object);
}

fn prepare_create(object: &mut Value, _cx: &Context<'_>) {
    let same_labels = labels_of(object) == at(object, "spec.template.metadata.labels");
    if !flag(object, "spec.manualSelector") {
        generate_selector(object);
    }
    if same_labels {
        take(object, "metadata.labels");
    }
    label_like_template(object);
}

fn validate(object: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_job(&mut errors, object, true);
    errors
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if part == Part::Status {
        finish::validate(&mut errors, object, old);
        return errors;
    }
    let had = map(old, "spec.template.metadata.labels");
    let prefixed = [UID_LABELS[1], NAME_LABELS[1]]
        .iter()
        .all(|l| had.is_some_and(|h| h.contains_key(*l)));
    validate_job(&mut errors, object, prefixed);
    validate_change(&mut errors, object, old);
    errors
}

fn warn(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    match old {
        None => out.extend(warnings::name(object, "Pod names and hostnames")),
        Some(old) if !workload::spec_changed(object, old) => return out,
        Some(_) => {}
    }
    if let Some(template) = at(object, "spec.template") {
        out.extend(warnings::about(template, "spec.template"));
    }
    out
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let succeeded = integer(object, "status.succeeded").unwrap_or(0);
    let parallelism = integer(object, "spec.parallelism").unwrap_or(0);
    let completions = match integer(object, "spec.completions") {
        Some(all) => format!("{succeeded}/{all}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let duration =
        condition::moment(object, "status.startTime").map_or_else(String::new, |start| {
            let end = condition::moment(object, "status.completionTime").unwrap_or(cx.now);
            age(start, end)
        });
    let [names, images] = printing::container_cells(object, "spec.template.spec.containers");
    vec![
        text(object, "metadata.name").into(),
        state(object).into(),
        completions.into(),
        duration.into(),
        condition::age(object, cx.now).into(),
        names,
        images,
        labels::format(at(object, "spec.selector")).into(),
    ]
}

fn state(job: &Value) -> &'static str {
    // As the real server does, only the first condition of a type counts.
    let is = |kind: &str| {
        items(job, "status.conditions")
            .iter()
            .find(|c| text(c, "type") == kind)
            .is_some_and(|c| text(c, "status") == "True")
    };
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if has(job, "metadata.deletionTimestamp") {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn labels_of(object: &Value) -> Option<&Value> {
    at(object, "metadata.labels")
}

/// A job without labels of its own has those of its template.
fn label_like_template(object: &mut Value) {
    if map(object, "metadata.labels").is_none_or(Map::is_empty)
        && let Some(own) = at(object, "spec.template.metadata.labels").cloned()
        && own.as_object().is_some_and(|o| !o.is_empty())
    {
        put(object, "metadata.labels", own);
    }
}

fn generate_selector(object: &mut Value) {
    let uid = text(object, "metadata.uid").to_owned();
    let name = text(object, "metadata.name").to_owned();
    let pairs = NAME_LABELS
        .map(|l| (l, name.clone()))
        .into_iter()
        .chain(UID_LABELS.map(|l| (l, uid.clone())));
    for (label, value) in pairs {
        add_if_absent(object, "spec.template.metadata.labels", label, &value);
    }
    add_if_absent(object, "spec.selector.matchLabels", UID_LABELS[1], &uid);
}

fn add_if_absent(object: &mut Value, path: &str, key: &str, value: &str) {
    let Some(target) = slot(object, path) else {
        return;
    };
    if target.is_null() {
        *target = json!({});
    }
    if let Some(target) = target.as_object_mut() {
        target.entry(key).or_insert_with(|| value.into());
    }
}

fn validate_job(errors: &mut FieldErrors, object: &Value, prefixed: bool) {
    validate_generated(errors, object, prefixed);
    validate_with_selector(errors, object);
    let completions = integer(object, "spec.completions").unwrap_or(0);
    if text(object, "spec.completionMode") == "Indexed" && completions > 0 {
        let name = text(object, "metadata.name");
        let last = format!("{name}-{}", completions - 1);
        if !names::dns_label(&last, false).is_empty() {
            errors.push(FieldError::invalid_str(
                "metadata.name",
                name,
                format!("will not able to create pod with invalid DNS label: {last}"),
            ));
        }
    }
}

fn validate_with_selector(errors: &mut FieldErrors, object: &Value) {
    let nothing = Value::Null;
    let own = object.get("spec").unwrap_or(&nothing);
    spec::validate(errors, "spec", own);
    let selector = own.get("selector").filter(|s| !s.is_null());
    if selector.is_none() {
        errors.push(FieldError::required("spec.selector", ""));
    }
    labels::validate(errors, "spec.selector", selector, false);
    let matches = labels::matches(selector, map(own, "template.metadata.labels"));
    if labels::is_usable(selector) && !matches {
        errors.push(workload::mismatch(own, "spec.template.metadata.labels"));
    }
}

/// The labels and the selector must be those that the server generates.
fn validate_generated(errors: &mut FieldErrors, object: &Value, prefixed: bool) {
    let selector = at(object, "spec.selector").filter(|s| !s.is_null());
    if flag(object, "spec.manualSelector") || selector.is_none() {
        return;
    }
    let (uid, name) = (text(object, "metadata.uid"), text(object, "metadata.name"));
    if uid.is_empty() {
        errors.push(FieldError::required("metadata.uid", ""));
    }
    let mut expected = Map::new();
    let forms = if prefixed { 2 } else { 1 };
    for form in 0..forms {
        for (all, value) in [(&UID_LABELS, uid), (&NAME_LABELS, name)] {
            let Some(label) = all.get(form) else { continue };
            expected.insert((*label).to_owned(), value.into());
            let own = map(object, "spec.template.metadata.labels");
            let path = format!("spec.template.metadata.labels[{label}]");
            let detail = format!("must be '{value}'");
            match own.and_then(|o| o.get(*label)) {
                None => errors.push(FieldError::required(path, detail)),
                Some(found) if found.as_str() != Some(value) => {
                    let all = at(object, "spec.template.metadata.labels").map(show);
                    errors.push(check::shown(&path, all.unwrap_or_default(), &detail));
                }
                Some(_) => {}
            }
        }
    }
    if labels::is_usable(selector) && !labels::matches(selector, Some(&expected)) {
        errors.push(check::shown(
            "spec.selector",
            labels::render(selector),
            "`selector` not auto-generated",
        ));
    }
}

fn validate_change(errors: &mut FieldErrors, object: &Value, old: &Value) {
    validate_with_selector(errors, object);
    let changed = |path: &str| !check::same(at(object, path), at(old, path));
    if text(object, "spec.completionMode") != "Indexed" {
        let path = "spec.completions";
        check::immutable(errors, path, at(object, path), at(old, path));
    } else if changed("spec.completions")
        && let Some(completions) = integer(object, "spec.completions")
        && Some(completions) != integer(object, "spec.parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.push(check::number("spec.completions", completions, detail));
    }
    if changed("spec.selector") {
        errors.push(check::shown(
            "spec.selector",
            labels::render(at(object, "spec.selector")),
            "field is immutable",
        ));
    }
    validate_template_change(errors, object, old);
    for (field, kind) in [
        ("completionMode", ""),
        ("podFailurePolicy", "PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
        ("successPolicy", "SuccessPolicy"),
    ] {
        let path = format!("spec.{field}");
        if !changed(&path) {
            continue;
        }
        let new = at(object, &path).unwrap_or(&Value::Null);
        let shown = if kind.is_empty() || new.is_null() {
            show(new)
        } else {
            internal::render(kind, new)
        };
        errors.push(check::shown(&path, shown, "field is immutable"));
    }
}

/// The template is fixed; while a job is suspended, where its pods go and what they request may still change.
fn validate_template_change(errors: &mut FieldErrors, object: &Value, old: &Value) {
    let nothing = Value::Null;
    let new = at(object, "spec.template").unwrap_or(&nothing);
    let mut before = at(old, "spec.template").cloned().unwrap_or_default();
    let suspended = flag(old, "spec.suspend");
    let idle = !has(old, "status.startTime") || condition::is_true(old, "Suspended");
    let mutable = suspended && idle && integer(old, "status.active").unwrap_or(0) == 0;
    if !mutable {
        if *new != before {
            let shown = internal::render("PodTemplateSpec", new);
            errors.push(check::shown("spec.template", shown, "field is immutable"));
        }
        return;
    }
    copy(&mut before, new, "spec.affinity.nodeAffinity");
    for field in [
        "spec.nodeSelector",
        "spec.tolerations",
        "spec.schedulingGates",
    ] {
        copy(&mut before, new, field);
    }
    drop_empty_affinity(&mut before, new);
    for list in ["spec.containers", "spec.initContainers"] {
        let asked = items(new, list);
        if asked.len() != items(&before, list).len() {
            continue;
        }
        for (was, asked) in items_mut(&mut before, list).iter_mut().zip(asked) {
            if text(was, "name") == text(asked, "name") {
                copy(was, asked, "resources");
            }
        }
    }
    if new.get("spec") != before.get("spec") {
        let own = internal::pod_spec(new.get("spec").unwrap_or(&nothing));
        let shown = internal::render("PodSpec", &own);
        let path = "spec.template.spec";
        errors.push(check::shown(path, shown, "field is immutable"));
    }
}

fn drop_empty_affinity(before: &mut Value, new: &Value) {
    let empty = at(before, "spec.affinity")
        .and_then(Value::as_object)
        .is_some_and(Map::is_empty);
    if empty && !has(new, "spec.affinity") {
        take(before, "spec.affinity");
    }
}
