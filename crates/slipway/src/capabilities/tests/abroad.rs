//! Histories with a second cluster that never happened.

use serde_json::{Value, json};
use slipway_kernel::identity::ClusterId;
use slipway_sim::history::{Change, ChangeKind, Image, Object};

use super::made::{Made, object};

/// The uid of the second cluster.
const UID: &str = "11111111-2222";

fn east() -> ClusterId {
    ClusterId::remote("east")
}

/// An object changes in the second cluster.
fn put(made: &mut Made, object: Object, value: Value, by: Option<u64>) {
    let at = made.now();
    let course = made.history.members.entry(east()).or_default();
    let version = course.changes.len() as u64 + 1;
    course.changes.push(Change {
        at,
        version,
        kind: ChangeKind::Added,
        object,
        before: None,
        after: Some(Image::made(value).into()),
        by,
    });
}

/// The operator changes a Deployment in the second cluster.
fn deed(made: &mut Made) {
    let uri = "/apis/apps/v1/namespaces/shop/deployments/app?fieldManager=slipway";
    let body = json!({"metadata": {"resourceVersion": "1", "uid": "app"}});
    let number = made.request("PATCH", uri, body);
    made.last_request().cluster = east();
    put(
        made,
        object("apps/deployments", "app"),
        json!({}),
        Some(number),
    );
}

/// One bad history for each oracle that is about other clusters.
pub(super) fn bad(id: &str) -> Option<Made> {
    let mut made = Made::new();
    let system: Object = ("/namespaces".into(), "".into(), "kube-system".into());
    put(&mut made, system, json!({"metadata": {"uid": UID}}), None);
    let record = json!({"metadata": {"annotations": {"recorded": UID}}});
    match id {
        "M1" => deed(&mut made),
        "M2" => {
            made.put(object("/configmaps", "east"), record, None);
            made.epoch = 2;
            deed(&mut made);
            made.epoch = 1;
            deed(&mut made);
        }
        "M3" => {
            made.put(object("/configmaps", "east"), record, None);
            deed(&mut made);
        }
        _ => return None,
    }
    Some(made)
}
