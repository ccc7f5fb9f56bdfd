//! Histories of traffic that was divided.

use serde_json::{Value, json};
use slipway_api::purpose::canary as purpose;
use slipway_kernel::Purpose;

use super::made::{Made, merge, object};

const CANARIES: &str = "flagger.app/canaries";
const DEPLOYMENTS: &str = "apps/deployments";
const SPLITS: &str = "split.smi-spec.io/trafficsplits";

/// A request of the operator that changes an object so.
fn patch(made: &mut Made, resource: &str, name: &str, purpose: Option<Purpose>, body: &Value) {
    let plural = resource.rsplit('/').next().unwrap_or_default();
    let end = if purpose.is_some() { "" } else { "/status" };
    let uri = format!("/apis/group/v1/namespaces/shop/{plural}/{name}{end}?fieldManager=slipway");
    let conditions = json!({"metadata": {"resourceVersion": "1", "uid": name}});
    let number = made.request("PATCH", &uri, conditions);
    let purpose = purpose.map_or("status", Purpose::as_str);
    purpose.clone_into(&mut made.last_request().context.purpose);
    let object = object(resource, name);
    let mut value = made.current(&object);
    merge(&mut value, body);
    made.put(object, value, Some(number));
}

fn status(made: &mut Made, phase: &str, weight: i64) {
    let body = json!({"status": {"phase": phase, "canaryWeight": weight, "observedGeneration": 1}});
    patch(made, CANARIES, "web", None, &body);
}

fn split(made: &mut Made, target: i64, source: i64) {
    let backends = json!([{"service": "web-canary", "weight": target}, {"service": "web-primary", "weight": source}]);
    let body = json!({"spec": {"service": "web", "backends": backends}});
    patch(made, SPLITS, "web", Some(purpose::ROUTE), &body);
}

fn size(made: &mut Made, name: &str, replicas: i64) {
    let body = json!({"spec": {"replicas": replicas}});
    patch(made, DEPLOYMENTS, name, Some(purpose::SIZE), &body);
}

fn template(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

/// A Deployment of which so many pods are asked for, and so many are available.
fn deployment(made: &mut Made, name: &str, (asked, available): (i64, i64), image: &str) {
    let mut value = json!({
        "metadata": {"name": name, "uid": name, "generation": 1},
        "spec": {"replicas": asked},
        "status": {"observedGeneration": 1, "replicas": asked, "updatedReplicas": available, "availableReplicas": available},
    });
    merge(&mut value, &template(image));
    made.put(object(DEPLOYMENTS, name), value, None);
}

/// A run at a fifth of the traffic, and all is well.
fn running() -> Made {
    let mut made = Made::new();
    let spec = json!({"targetRef": {"kind": "Deployment", "name": "web"}});
    let value = json!({"metadata": {"name": "web", "generation": 1}, "spec": spec});
    made.put(object(CANARIES, "web"), value, None);
    deployment(&mut made, "web", (3, 3), "web:2");
    deployment(&mut made, "web-primary", (3, 3), "web:1");
    status(&mut made, "Progressing", 0);
    split(&mut made, 0, 100);
    status(&mut made, "Progressing", 20);
    split(&mut made, 20, 80);
    made.pass(10);
    made
}

/// A good run to its end.
pub(super) fn good() -> Made {
    let mut made = running();
    status(&mut made, "Promoting", 20);
    patch(
        &mut made,
        DEPLOYMENTS,
        "web-primary",
        Some(purpose::SERVE),
        &template("web:2"),
    );
    status(&mut made, "Finalising", 0);
    split(&mut made, 0, 100);
    size(&mut made, "web", 0);
    status(&mut made, "Succeeded", 0);
    made.pass(600);
    made
}

/// One bad history for each oracle of canary.
pub(super) fn bad(id: &str) -> Option<Made> {
    let mut made = running();
    match id {
        "C1" => split(&mut made, 40, 80),
        "C2" => {
            deployment(&mut made, "web", (3, 2), "web:2");
            split(&mut made, 40, 60);
        }
        "C3" => {
            patch(
                &mut made,
                DEPLOYMENTS,
                "web-primary",
                Some(purpose::SERVE),
                &template("web:2"),
            );
        }
        "C4" => {
            status(&mut made, "Finalising", 0);
            size(&mut made, "web", 0);
        }
        "C5" => {
            status(&mut made, "Failed", 0);
            made.pass(60);
        }
        "C6" => {
            split(&mut made, 0, 100);
            status(&mut made, "Waiting", 0);
            size(&mut made, "web", 5);
        }
        _ => return None,
    }
    Some(made)
}
