#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use serde_json::{Value, json};

use super::*;
use crate::field::FieldErrors;
use crate::resource::{Context, Part, Strategy};

fn cx() -> Context<'static> {
    Context {
        version: "v1",
        now: "2026-01-01T00:10:00Z".parse().unwrap(),
        user: None,
    }
}

fn texts(errors: &FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn made(strategy: &dyn Strategy, spec: impl Into<Value>) -> Value {
    let mut object = json!({"metadata": {"name": "j", "uid": "u1"}, "spec": spec.into()});
    strategy.default(&mut object, &cx());
    strategy.prepare_create(&mut object, &cx());
    object
}

fn spec() -> Value {
    json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}})
}

#[test]
fn a_job_gets_selector_and_labels() {
    let job = made(&job::RULES, spec());
    let labels = json!({"batch.kubernetes.io/controller-uid": "u1", "batch.kubernetes.io/job-name": "j",
        "controller-uid": "u1", "job-name": "j"});
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(job["metadata"]["labels"], labels);
    assert_eq!(
        job["spec"]["selector"],
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}})
    );
    assert_eq!(job["spec"]["completions"], 1);
    assert_eq!(job["spec"]["podReplacementPolicy"], "TerminatingOrFailed");
    assert_eq!(
        texts(&job::RULES.validate(&job, &cx())),
        Vec::<String>::new()
    );
}

#[test]
fn empty_jobs_are_told_what_is_missing() {
    assert_eq!(
        texts(&job::RULES.validate(&made(&job::RULES, json!({})), &cx())),
        [
            "spec.template.spec.containers: Required value",
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ]
    );
    assert_eq!(
        texts(&cronjob::RULES.validate(&made(&cronjob::RULES, json!({"schedule": "x y"})), &cx())),
        [
            "spec.schedule: Invalid value: \"x y\": expected exactly 5 fields, found 2: [x y]",
            "spec.jobTemplate.spec.template.spec.containers: Required value",
            "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ]
    );
}

#[test]
fn templates_of_running_jobs_are_immutable() {
    let old = made(&job::RULES, spec());
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["dnsPolicy"] = json!("Default");
    new["spec"]["completions"] = json!(2);
    let found = texts(&job::RULES.validate_update(Part::Main, &new, &old, &cx()));
    assert_eq!(
        found[0],
        "spec.completions: Invalid value: 2: field is immutable"
    );
    assert!(found[1].starts_with(
        "spec.template: Invalid value: {\"labels\":{\"batch.kubernetes.io/controller-uid\":\"u1\","
    ));
    assert!(found[1].ends_with("\"SchedulingGroup\":null}}: field is immutable"));
    let mut suspended = old.clone();
    suspended["spec"]["suspend"] = json!(true);
    let mut moved = suspended.clone();
    moved["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
    moved["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {}});
    assert_eq!(
        texts(&job::RULES.validate_update(Part::Main, &moved, &suspended, &cx())),
        Vec::<String>::new()
    );
}

#[test]
fn foreign_selectors_are_refused() {
    let mut spec = spec();
    spec["selector"] = json!({"matchLabels": {"x": "y"}});
    spec["template"]["metadata"] = json!({"labels": {"controller-uid": "foo"}});
    assert_eq!(
        texts(&job::RULES.validate(&made(&job::RULES, spec), &cx())),
        [
            "spec.template.metadata.labels[controller-uid]: Invalid value: {\"batch.kubernetes.io/controller-uid\":\"u1\",\
             \"batch.kubernetes.io/job-name\":\"j\",\"controller-uid\":\"foo\",\"job-name\":\"j\"}: must be 'u1'",
            "spec.selector: Invalid value: {\"matchLabels\":{\"batch.kubernetes.io/controller-uid\":\"u1\",\"x\":\"y\"}}: \
             `selector` not auto-generated",
            "spec.template.metadata.labels: Invalid value: {\"batch.kubernetes.io/controller-uid\":\"u1\",\
             \"batch.kubernetes.io/job-name\":\"j\",\"controller-uid\":\"foo\",\"job-name\":\"j\"}: `selector` does not match \
             template `labels`",
        ]
    );
}

#[test]
fn finished_jobs_stay_finished() {
    let mut old = made(&job::RULES, spec());
    old["status"] = json!({"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:30Z", "succeeded": 1,
        "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]});
    let mut new = old.clone();
    new["status"]["conditions"] = json!([]);
    new["status"]["succeeded"] = json!(0);
    assert_eq!(
        texts(&job::RULES.validate_update(Part::Status, &new, &old, &cx())),
        [
            "status.completionTime: Invalid value: \"2026-01-01T00:01:30Z\": cannot set completionTime when there is no \
             Complete=True condition",
            "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
            "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter",
            "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
        ]
    );
    let cells = job::RULES.cells(&old, &cx());
    assert_eq!(cells[1..4], [json!("Complete"), json!("1/1"), json!("90s")]);
}

#[test]
fn cron_jobs() {
    let cron = made(
        &cronjob::RULES,
        json!({"schedule": "TZ=UTC * * * * 8", "timeZone": "Foo/Bar",
        "jobTemplate": {"spec": spec()}}),
    );
    assert_eq!(
        texts(&cronjob::RULES.validate(&cron, &cx())),
        [
            "spec.schedule: Invalid value: \"TZ=UTC * * * * 8\": end of range (8) above maximum (6): 8",
            "spec.schedule: Invalid value: \"TZ=UTC * * * * 8\": cannot use TZ or CRON_TZ in schedule, use timeZone field \
             instead",
            "spec.timeZone: Invalid value: \"Foo/Bar\": unknown time zone Foo/Bar",
        ]
    );
    let cron = made(
        &cronjob::RULES,
        json!({"schedule": "* * * * *", "jobTemplate": {"spec": spec()}}),
    );
    assert_eq!(
        texts(&cronjob::RULES.validate(&cron, &cx())),
        Vec::<String>::new()
    );
    assert_eq!(
        cron["spec"]["jobTemplate"]["spec"]
            .as_object()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        cronjob::RULES.cells(&cron, &cx())[1..6],
        [
            json!("* * * * *"),
            json!("<none>"),
            json!("False"),
            json!(0),
            json!("<none>")
        ]
    );
}
