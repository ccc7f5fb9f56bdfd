//! Which changes of a job's status are allowed: a finished job stays finished.

use std::collections::BTreeSet;

use serde_json::Value;

use super::indexes;
use crate::builtin::pod::check;
use crate::builtin::pod::condition::{is_true, moment};
use crate::field::{FieldError, FieldErrors};
use crate::value::{at, flag, has, integer, items, text};

const CONDITIONS: &str = "status.conditions";

fn number(job: &Value, path: &str) -> i64 {
    integer(job, path).unwrap_or(0)
}

fn is_finished(job: &Value) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

/// An error that shows no value.
fn bare(path: &str, detail: &str) -> FieldError {
    check::shown(path, String::new(), detail)
}

/// Judges a change of the status.
pub(super) fn validate(errors: &mut FieldErrors, job: &Value, old: &Value) {
    let status = job.get("status").cloned().unwrap_or_default();
    let counts = ["active", "succeeded", "failed", "ready", "terminating"];
    check::non_negative_fields(errors, &status, "status", &counts);
    validate_uncounted(errors, job);
    validate_outcome(errors, job, old);
    validate_finished(errors, job, old);
    validate_indexes(errors, job, old);
    validate_criteria(errors, job);
    validate_transition(errors, job, old);
}

fn validate_uncounted(errors: &mut FieldErrors, job: &Value) {
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        let path = format!("status.uncountedTerminatedPods.{list}");
        for (i, uid) in items(job, &path).iter().enumerate() {
            let here = format!("{path}[{i}]");
            let uid = uid.as_str().unwrap_or_default();
            if uid.is_empty() {
                errors.push(FieldError::invalid_str(here, uid, "must not be empty"));
            } else if !seen.insert(uid) {
                errors.push(FieldError::duplicate(here, &uid.into()));
            }
        }
    }
}

/// What must hold between conditions and times, judged where one of them changed.
fn validate_outcome(errors: &mut FieldErrors, job: &Value, old: &Value) {
    let turned = |kind: &str| is_true(job, kind) != is_true(old, kind);
    let moved = |path: &str| !check::same(at(job, path), at(old, path));
    let complete = is_true(job, "Complete");
    if (turned("Complete") || turned("Failed")) && complete && is_true(job, "Failed") {
        errors.push(bare(
            CONDITIONS,
            "cannot set Complete=True and Failed=true conditions",
        ));
    }
    if (turned("Complete") || turned("FailureTarget")) && complete && is_true(job, "FailureTarget")
    {
        errors.push(bare(
            CONDITIONS,
            "cannot set Complete=True and FailureTarget=true conditions",
        ));
    }
    validate_times(errors, job, old);
    if (turned("Failed") || moved("status.failedIndexes"))
        && is_true(job, "Failed")
        && !is_true(job, "FailureTarget")
    {
        errors.push(bare(
            CONDITIONS,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ));
    }
    if (turned("Complete") || turned("SuccessCriteriaMet"))
        && complete
        && !is_true(job, "SuccessCriteriaMet")
    {
        errors.push(bare(
            CONDITIONS,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ));
    }
}

fn validate_times(errors: &mut FieldErrors, job: &Value, old: &Value) {
    const COMPLETED: &str = "status.completionTime";
    const STARTED: &str = "status.startTime";
    let moved = |path: &str| !check::same(at(job, path), at(old, path));
    let complete = is_true(job, "Complete");
    if complete != is_true(old, "Complete") || moved(COMPLETED) {
        if has(job, COMPLETED) && !complete {
            errors.push(FieldError::invalid_str(
                COMPLETED,
                text(job, COMPLETED),
                "cannot set completionTime when there is no Complete=True condition",
            ));
        }
        if !has(job, COMPLETED) && complete {
            errors.push(FieldError::required(
                COMPLETED,
                "completionTime is required for Complete jobs",
            ));
        }
    }
    if (moved(STARTED) || moved(COMPLETED))
        && let (Some(start), Some(end)) = (moment(job, STARTED), moment(job, COMPLETED))
        && end < start
    {
        errors.push(FieldError::invalid_str(
            COMPLETED,
            text(job, COMPLETED),
            "must be equal to or after `startTime`",
        ));
    }
}

fn validate_finished(errors: &mut FieldErrors, job: &Value, old: &Value) {
    const UNCOUNTED: &str = "status.uncountedTerminatedPods";
    let finished = is_finished(job);
    let turned = finished != is_finished(old);
    let moved = |path: &str| !check::same(at(job, path), at(old, path));
    let none_needed = flag(job, "spec.suspend") && integer(job, "spec.completions") == Some(0);
    if !finished {
        return;
    }
    let active = number(job, "status.active");
    if (turned || moved("status.active")) && active > 0 {
        let detail = "active>0 is invalid for finished job";
        errors.push(check::number("status.active", active, detail));
    }
    if (turned || moved("status.startTime")) && !none_needed && !has(job, "status.startTime") {
        errors.push(FieldError::required(
            "status.startTime",
            "startTime is required for finished job",
        ));
    }
    let uncounted = ["succeeded", "failed"]
        .iter()
        .any(|l| !items(job, &format!("{UNCOUNTED}.{l}")).is_empty());
    if (turned || moved(UNCOUNTED)) && uncounted {
        let list = |l: &str| {
            at(job, &format!("{UNCOUNTED}.{l}")).map_or("null".to_owned(), crate::field::show)
        };
        let shown = format!(
            "{{\"Succeeded\":{},\"Failed\":{}}}",
            list("succeeded"),
            list("failed")
        );
        errors.push(check::shown(
            UNCOUNTED,
            shown,
            "must be empty for finished job",
        ));
    }
}

fn validate_indexes(errors: &mut FieldErrors, job: &Value, old: &Value) {
    const DONE: &str = "status.completedIndexes";
    const FAILED: &str = "status.failedIndexes";
    let moved = |path: &str| !check::same(at(job, path), at(old, path));
    let done = text(job, DONE);
    let completions = integer(job, "spec.completions");
    validate_format(errors, job, moved(DONE), moved(FAILED));
    if moved(DONE) && !done.is_empty() && text(job, "spec.completionMode") != "Indexed" {
        errors.push(FieldError::invalid_str(
            DONE,
            done,
            "cannot set non-empty completedIndexes when non-indexed completion mode",
        ));
    }
    if moved(FAILED) && has(job, FAILED) && !has(job, "spec.backoffLimitPerIndex") {
        errors.push(FieldError::invalid_str(
            FAILED,
            text(job, FAILED),
            "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
        ));
    }
    if (moved(DONE) || moved(FAILED))
        && let Some(completions) = completions
        && let Some(index) = indexes::overlap(done, text(job, FAILED), completions)
    {
        let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
        errors.push(FieldError::invalid_str(FAILED, text(job, FAILED), detail));
    }
    let finished = is_finished(job);
    let terminating = number(job, "status.terminating");
    if (finished != is_finished(old) || moved("status.terminating")) && finished && terminating > 0
    {
        let detail = "terminating>0 is invalid for finished job";
        errors.push(check::number("status.terminating", terminating, detail));
    }
    let ready = number(job, "status.ready");
    if (moved("status.ready") || moved("status.active")) && ready > number(job, "status.active") {
        let detail = "cannot set more ready pods than active";
        errors.push(check::number("status.ready", ready, detail));
    }
}

/// Sets of indexes must be readable, where they changed.
fn validate_format(errors: &mut FieldErrors, job: &Value, done: bool, failed: bool) {
    let Some(completions) = integer(job, "spec.completions") else {
        return;
    };
    let failed = failed && has(job, "spec.backoffLimitPerIndex");
    for (field, judged) in [("completedIndexes", done), ("failedIndexes", failed)] {
        let path = format!("status.{field}");
        let value = text(job, &path);
        if judged && let Err(why) = indexes::count(value, completions) {
            let detail = format!("error parsing {field}: {why}");
            errors.push(FieldError::invalid_str(path, value, detail));
        }
    }
}

fn validate_criteria(errors: &mut FieldErrors, job: &Value) {
    let met = is_true(job, "SuccessCriteriaMet");
    for kind in ["Failed", "FailureTarget"] {
        if met && is_true(job, kind) {
            let detail = format!("cannot set SuccessCriteriaMet=True and {kind}=true conditions");
            errors.push(bare(CONDITIONS, &detail));
        }
    }
    if has(job, "spec.successPolicy") && !met && is_true(job, "Complete") {
        errors.push(bare(
            CONDITIONS,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        ));
    }
}

fn validate_transition(errors: &mut FieldErrors, job: &Value, old: &Value) {
    const COMPLETED: &str = "status.completionTime";
    const STARTED: &str = "status.startTime";
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is_true(old, kind) && !is_true(job, kind) {
            let detail = format!("cannot disable the terminal {kind}=True condition");
            errors.push(bare(CONDITIONS, &detail));
        }
    }
    let elastic = text(job, "spec.completionMode") == "Indexed"
        && integer(job, "spec.completions") == integer(job, "spec.parallelism");
    for field in ["failed", "succeeded"] {
        let path = format!("status.{field}");
        let now = number(job, &path);
        if now < number(old, &path) && !(field == "succeeded" && elastic) {
            let detail = format!("cannot decrease the {field} counter");
            errors.push(check::number(&path, now, &detail));
        }
    }
    let times = |path: &str| (at(job, path), at(old, path));
    if let (Some(new), Some(before)) = times(COMPLETED)
        && new != before
        && !new.is_null()
        && !before.is_null()
    {
        errors.push(FieldError::invalid(COMPLETED, new, "field is immutable"));
    }
    let suspended = |j: &Value, status: &str| {
        items(j, CONDITIONS)
            .iter()
            .any(|c| text(c, "type") == "Suspended" && text(c, "status") == status)
    };
    let resuming = suspended(old, "True") && suspended(job, "False");
    let (new, before) = times(STARTED);
    if has(old, STARTED) && !check::same(new, before) && !resuming && !flag(job, "spec.suspend") {
        errors.push(FieldError::invalid(
            STARTED,
            new.unwrap_or(&Value::Null),
            "field is immutable for unsuspended job once set",
        ));
    }
    let met = |j: &Value| is_true(j, "SuccessCriteriaMet");
    if met(old) && !met(job) {
        errors.push(bare(
            CONDITIONS,
            "cannot disable the SuccessCriteriaMet=True condition",
        ));
    }
    if is_true(old, "Complete") && !met(old) && met(job) {
        errors.push(bare(
            CONDITIONS,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        ));
    }
}
