//! Cron jobs.

use serde_json::{Value, json};

use super::{schedule, spec};
use crate::builtin::apps::workload;
use crate::builtin::pod::{check, condition, labels, printing, warnings};
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value::{at, flag, has, integer, items, put, put_default, slot, text};

const TEMPLATE: &str = "spec.jobTemplate.spec";

/// The rules of cron jobs.
pub(super) const RULES: Rules = Rules {
    status: true,
    default,
    validate,
    validate_update,
    warnings: warn,
    generation: Some(workload::spec_changed),
    columns: &[
        ("Name", "string", 0),
        ("Schedule", "string", 0),
        ("Timezone", "string", 0),
        ("Suspend", "boolean", 0),
        ("Active", "integer", 0),
        ("Last Schedule", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells,
    ..PLAIN
};

fn default(object: &mut Value) {
    if let Some(template) = slot(object, TEMPLATE) {
        if template.is_null() {
            *template = json!({});
        }
        spec::default_template(template);
    }
    if text(object, "spec.concurrencyPolicy").is_empty() {
        put(object, "spec.concurrencyPolicy", "Allow");
    }
    put_default(object, "spec.suspend", false);
    put_default(object, "spec.successfulJobsHistoryLimit", 3);
    put_default(object, "spec.failedJobsHistoryLimit", 1);
}

fn validate(object: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_spec(&mut errors, object, None);
    let name = text(object, "metadata.name");
    if name.len() > 52 {
        let detail = "must be no more than 52 characters";
        errors.push(FieldError::invalid_str("metadata.name", name, detail));
    }
    errors
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if part != Part::Status {
        validate_spec(&mut errors, object, Some(old));
    }
    errors
}

fn warn(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    if old.is_none() {
        out.extend(warnings::name(object, "Pod names and hostnames"));
    }
    if old.is_none_or(|old| workload::spec_changed(object, old))
        && let Some(template) = at(object, "spec.jobTemplate.spec.template")
    {
        out.extend(warnings::about(template, "spec.jobTemplate.spec.template"));
    }
    if old.is_some() && text(object, "spec.schedule").contains("TZ") {
        out.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
    }
    out
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let none = || "<none>".to_owned();
    let zone = at(object, "spec.timeZone").and_then(Value::as_str);
    let last = if has(object, "status.lastScheduleTime") {
        condition::since(object, "status.lastScheduleTime", cx.now)
    } else {
        none()
    };
    let suspend = if flag(object, "spec.suspend") {
        "True"
    } else {
        "False"
    };
    let containers = "spec.jobTemplate.spec.template.spec.containers";
    let [names, images] = printing::container_cells(object, containers);
    vec![
        text(object, "metadata.name").into(),
        text(object, "spec.schedule").into(),
        zone.map_or_else(none, str::to_owned).into(),
        suspend.into(),
        items(object, "status.active").len().into(),
        last.into(),
        condition::age(object, cx.now).into(),
        names,
        images,
        labels::format(at(object, "spec.jobTemplate.spec.selector")).into(),
    ]
}

fn validate_spec(errors: &mut FieldErrors, object: &Value, old: Option<&Value>) {
    const ZONE: &str = "spec.timeZone";
    validate_schedule(errors, object, old);
    if let Some(seconds) = integer(object, "spec.startingDeadlineSeconds") {
        check::non_negative(errors, "spec.startingDeadlineSeconds", seconds);
    }
    if old.is_none_or(|old| !check::same(at(old, ZONE), at(object, ZONE)))
        && let Some(zone) = at(object, ZONE).and_then(Value::as_str)
    {
        schedule::validate_zone(errors, ZONE, zone);
    }
    check::required_one_of(
        errors,
        "spec.concurrencyPolicy",
        text(object, "spec.concurrencyPolicy"),
        &["Allow", "Forbid", "Replace"],
    );
    let nothing = Value::Null;
    let template = at(object, TEMPLATE).unwrap_or(&nothing);
    spec::validate(errors, TEMPLATE, template);
    if let Some(selector) = template.get("selector").filter(|s| !s.is_null()) {
        errors.push(check::shown(
            &format!("{TEMPLATE}.selector"),
            labels::render(Some(selector)),
            "`selector` will be auto-generated",
        ));
    }
    if flag(template, "manualSelector") {
        errors.push(FieldError::not_supported(
            format!("{TEMPLATE}.manualSelector"),
            &Value::Bool(true),
            &["nil", "false"],
        ));
    }
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        let path = format!("spec.{field}");
        check::non_negative(errors, &path, integer(object, &path).unwrap_or(0));
    }
}

fn validate_schedule(errors: &mut FieldErrors, object: &Value, old: Option<&Value>) {
    const PATH: &str = "spec.schedule";
    let schedule = text(object, PATH);
    if schedule.is_empty() {
        errors.push(FieldError::required(PATH, ""));
        return;
    }
    if let Err(why) = schedule::parse(schedule) {
        errors.push(FieldError::invalid_str(PATH, schedule, why));
    }
    if !schedule.contains("TZ") {
        return;
    }
    let tolerated = old.is_some_and(|old| text(old, PATH).contains("TZ"));
    if !tolerated {
        errors.push(FieldError::invalid_str(
            PATH,
            schedule,
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        ));
    } else if has(object, "spec.timeZone") {
        errors.push(FieldError::invalid_str(
            PATH,
            schedule,
            "cannot use both timeZone field and TZ or CRON_TZ in schedule",
        ));
    }
}
