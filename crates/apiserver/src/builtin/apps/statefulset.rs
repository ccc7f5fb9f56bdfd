//! Stateful sets.

use serde_json::{Value, json};

use super::workload;
use crate::builtin::names;
use crate::builtin::pod::{check, condition, defaults, internal, printing, template, volume};
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value::{at, copy, has, integer, items, items_mut, put, put_default, take, text};

const FORBIDDEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// The rules of stateful sets.
pub(super) const RULES: Rules = Rules {
    status: true,
    default,
    prepare_create,
    validate,
    prepare_update,
    validate_update,
    warnings: warn,
    generation: Some(workload::spec_changed),
    name: names::dns_label,
    columns: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
    ],
    cells,
    ..PLAIN
};

fn default(object: &mut Value) {
    const STRATEGY: &str = "spec.updateStrategy";
    const ROLLING: &str = "spec.updateStrategy.rollingUpdate";
    workload::default_template(object);
    if text(object, "spec.podManagementPolicy").is_empty() {
        put(object, "spec.podManagementPolicy", "OrderedReady");
    }
    if text(object, "spec.updateStrategy.type").is_empty() {
        put(object, "spec.updateStrategy.type", "RollingUpdate");
        put_default(object, ROLLING, json!({}));
    }
    let rolling = at(object, STRATEGY).is_some_and(|s| text(s, "type") == "RollingUpdate");
    if rolling && has(object, ROLLING) {
        put_default(object, &format!("{ROLLING}.partition"), 0);
    }
    for field in ["whenDeleted", "whenScaled"] {
        let path = format!("spec.persistentVolumeClaimRetentionPolicy.{field}");
        if text(object, &path).is_empty() {
            put(object, &path, "Retain");
        }
    }
    put_default(object, "spec.replicas", 1);
    put_default(object, "spec.revisionHistoryLimit", 10);
    for claim in items_mut(object, "spec.volumeClaimTemplates") {
        put(claim, "kind", "PersistentVolumeClaim");
        put(claim, "apiVersion", "v1");
        if text(claim, "status.phase").is_empty() {
            put(claim, "status.phase", "Pending");
        }
        if let Some(spec) = claim.get_mut("spec") {
            defaults::claim_spec(spec);
        }
    }
}

fn prepare_create(object: &mut Value, _cx: &Context<'_>) {
    put(
        object,
        "status",
        json!({"replicas": 0, "availableReplicas": 0}),
    );
    // Rolling several pods at a time is behind a gate that is closed.
    take(object, "spec.updateStrategy.rollingUpdate.maxUnavailable");
}

fn validate(object: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let create = Leniency::default();
    validate_spec(&mut errors, object, create);
    errors
}

fn prepare_update(_part: Part, object: &mut Value, old: &Value, _cx: &Context<'_>) {
    const MOST: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    if !has(old, MOST) {
        take(object, MOST);
    }
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if part == Part::Status {
        validate_status(&mut errors, object, old);
        return errors;
    }
    let mut lenient = Leniency {
        service_name: true,
        claims: true,
        template: false,
    };
    let mut before = FieldErrors::new();
    validate_spec(&mut before, old, lenient);
    lenient.template = !before.is_empty();
    validate_spec(&mut errors, object, lenient);
    let mut allowed = object.get("spec").cloned().unwrap_or_default();
    let old_spec = old.get("spec").cloned().unwrap_or_default();
    for field in [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ] {
        copy(&mut allowed, &old_spec, field);
    }
    if allowed != old_spec {
        errors.push(FieldError::forbidden("spec", FORBIDDEN));
    }
    errors
}

fn warn(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = workload::warn(object, old, false);
    if integer(object, "spec.revisionHistoryLimit").is_some_and(|l| l < 0) {
        out.push(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is \
                 recommended"
                    .to_owned(),
            );
    }
    out
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let number = |path: &str| integer(object, path).unwrap_or(0);
    let [names, images] = printing::container_cells(object, "spec.template.spec.containers");
    let ready = format!(
        "{}/{}",
        number("status.readyReplicas"),
        number("spec.replicas")
    );
    vec![
        text(object, "metadata.name").into(),
        ready.into(),
        condition::age(object, cx.now).into(),
        names,
        images,
    ]
}

/// What an update tolerates because it cannot be changed any more.
#[derive(Debug, Clone, Copy, Default)]
struct Leniency {
    service_name: bool,
    claims: bool,
    template: bool,
}

fn validate_spec(errors: &mut FieldErrors, object: &Value, lenient: Leniency) {
    let nothing = Value::Null;
    let spec = object.get("spec").unwrap_or(&nothing);
    validate_policies(errors, spec);
    if !lenient.claims {
        for (i, claim) in items(spec, "volumeClaimTemplates").iter().enumerate() {
            let path = format!("spec.volumeClaimTemplates[{i}].spec");
            volume::validate_claim_spec(errors, &path, claim.get("spec").unwrap_or(&nothing));
        }
    }
    check::non_negative_fields(
        errors,
        spec,
        "spec",
        &["replicas", "minReadySeconds", "ordinals.start"],
    );
    let service = text(spec, "serviceName");
    if !lenient.service_name && !service.is_empty() {
        check::dns_label(errors, "spec.serviceName", service);
    }
    if workload::validate_selector(errors, spec, "statefulset", "") {
        workload::validate_labels(errors, spec);
        validate_template(errors, spec, lenient);
    }
    let own = spec.get("template").unwrap_or(&nothing);
    workload::validate_endless(errors, own, "StatefulSet");
}

fn validate_policies(errors: &mut FieldErrors, spec: &Value) {
    const PATH: &str = "spec.updateStrategy";
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        errors.push(FieldError::invalid_str(
            "spec.podManagementPolicy",
            policy,
            "must be 'OrderedReady' or 'Parallel'",
        ));
    }
    let nothing = Value::Null;
    let strategy = spec.get("updateStrategy").unwrap_or(&nothing);
    let rolling = strategy.get("rollingUpdate").filter(|r| !r.is_null());
    match (text(strategy, "type"), rolling) {
        ("OnDelete", Some(rolling)) => errors.push(check::shown(
            &format!("{PATH}.rollingUpdate"),
            internal::render("RollingUpdateStatefulSetStrategy", rolling),
            "only allowed for updateStrategy 'RollingUpdate'",
        )),
        ("RollingUpdate", Some(rolling)) => {
            let path = format!("{PATH}.rollingUpdate");
            check::non_negative_fields(errors, rolling, &path, &["partition"]);
            if let Some(most) = rolling.get("maxUnavailable") {
                let path = format!("{path}.maxUnavailable");
                check::positive_int_or_percent(errors, &path, most);
                if check::int_or_percent(most) == 0 {
                    errors.push(FieldError::invalid(&path, most, "cannot be 0"));
                }
                check::at_most_all(errors, &path, most);
            }
        }
        ("OnDelete" | "RollingUpdate", None) => {}
        _ => errors.push(check::shown(
            PATH,
            internal::render("StatefulSetUpdateStrategy", strategy),
            "must be 'RollingUpdate' or 'OnDelete'",
        )),
    }
    for field in ["whenDeleted", "whenScaled"] {
        let path = format!("persistentVolumeClaimRetentionPolicy.{field}");
        let policies = ["Retain", "Delete"];
        check::one_of(
            errors,
            &format!("spec.{path}"),
            text(spec, &path),
            &policies,
        );
    }
}

/// The controller overwrites names, and adds a volume for each claim: the template is judged as it will be.
fn validate_template(errors: &mut FieldErrors, spec: &Value, lenient: Leniency) {
    let mut judged = spec.get("template").cloned().unwrap_or_default();
    take(&mut judged, "spec.subdomain");
    take(&mut judged, "spec.hostname");
    let claims: Vec<&str> = items(spec, "volumeClaimTemplates")
        .iter()
        .map(|c| text(c, "metadata.name"))
        .collect();
    if !claims.is_empty() {
        let mut volumes: Vec<Value> = claims
            .iter()
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
            .collect();
        let own = items(&judged, "spec.volumes").iter();
        volumes.extend(own.filter(|v| !claims.contains(&text(v, "name"))).cloned());
        put(&mut judged, "spec.volumes", volumes);
    }
    if !lenient.template {
        template::validate(errors, "spec.template", &judged);
    }
    // These are judged twice in the real server.
    let labels = at(&judged, "metadata.labels");
    check::labels(errors, "spec.template.labels", labels);
    let annotations = at(&judged, "metadata.annotations");
    check::annotations(errors, "spec.template.annotations", annotations);
}

fn validate_status(errors: &mut FieldErrors, object: &Value, old: &Value) {
    let nothing = Value::Null;
    let status = object.get("status").unwrap_or(&nothing);
    check::non_negative_fields(
        errors,
        status,
        "status",
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
    );
    let fields = [
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    workload::within_replicas(errors, status, &fields);
    workload::available_within_ready(errors, status, "status.readyReplicas");
    workload::collisions(errors, object, old);
}
