//! SMI: one `TrafficSplit` for each Canary, named after the apex.

use serde_json::{Value, json};
use slipway_api::foreign::smi;
use slipway_kernel::Kind;
use slipway_kernel::fields::{list, text};

use super::parts::{apply, percent};
use super::{Abilities, Builtin, CannotRoute, Objects, Route, Router, Write};
use crate::engine::{Routing, Weights};
use crate::measures::{p99, rate};

pub(crate) static ROUTER: Router = Router {
    names: &[
        ("smi:v1alpha2", "v1alpha2"),
        ("smi", "v1alpha2"),
        ("linkerd", "v1alpha2"),
        ("osm", "v1alpha2"),
        ("smi:v1alpha1", "v1alpha1"),
        ("smi:v1alpha3", "v1alpha3"),
    ],
    can: Abilities {
        shift: true,
        ..Abilities::NONE
    },
    divides: false,
    acknowledges: false,
    kinds: |version| vec![kind(version)],
    seen: |route, objects| Ok(seen(route, objects)),
    writes,
    retreat,
    check_match: |_| Err("a TrafficSplit leads all requests alike".to_owned()),
    borrows: |_, _| false,
    restore: |_, _, _| Vec::new(),
    measures: Builtin {
        success_rate: || rate("response_total", DEPLOYMENT, r#"classification!="failure""#),
        duration: || p99("response_latency_ms_bucket", DEPLOYMENT, 1),
    },
};

/// A side, as the mesh's proxies name it.
const DEPLOYMENT: &str =
    r#"namespace="{{ namespace }}",deployment=~"{{ target }}",direction="inbound""#;

fn kind(version: &'static str) -> Kind {
    Kind::namespaced(smi::GROUP, version, smi::TRAFFIC_SPLIT, smi::TRAFFIC_SPLITS)
}

/// The weights of the split.
fn seen(route: &Route, objects: &Objects) -> Routing {
    let Some(split) = objects.get(smi::TRAFFIC_SPLIT, &route.apex) else {
        return Routing::default();
    };
    let weight = |service: &str| -> i64 {
        let mut backends = list(split, "/spec/backends");
        let backend = backends.find(|one| text(one, "/service") == Some(service));
        backend
            .and_then(|one| quantity(one.get("weight")?))
            .unwrap_or_default()
    };
    let target = percent(weight(&route.target), weight(&route.source));
    Routing {
        weights: target.map(Weights::to_target),
        pending: None,
    }
}

/// A weight: an integer, or a quantity as v1alpha1 has it (`50`, `500m`, `1k`).
fn quantity(weight: &Value) -> Option<i64> {
    if let Some(number) = weight.as_i64() {
        return Some(number);
    }
    let text = weight.as_str()?;
    if let Some(milli) = text.strip_suffix('m') {
        return Some(milli.parse::<i64>().ok()? / 1_000);
    }
    match text.strip_suffix('k') {
        Some(thousands) => thousands.parse::<i64>().ok()?.checked_mul(1_000),
        None => text.parse().ok(),
    }
}

/// Takes all traffic from the target in the split that is there.
fn retreat(version: &'static str, route: &Route, objects: &Objects) -> Vec<Write> {
    if objects.get(smi::TRAFFIC_SPLIT, &route.apex).is_none() {
        return Vec::new();
    }
    writes(version, route, objects, Weights::SOURCE).unwrap_or_default()
}

/// The split as it is to be.
fn writes(
    version: &'static str,
    route: &Route,
    objects: &Objects,
    weights: Weights,
) -> Result<Vec<Write>, CannotRoute> {
    let weight = |share: u8| -> Value {
        if version == "v1alpha1" {
            json!(share.to_string())
        } else {
            json!(share)
        }
    };
    let host = route.service.hosts.first().unwrap_or(&route.apex);
    let spec = json!({
        "service": host,
        "backends": [
            {"service": route.target, "weight": weight(weights.target)},
            {"service": route.source, "weight": weight(weights.source())},
        ],
    });
    let kind = kind(version);
    let called = (&kind, smi::TRAFFIC_SPLIT);
    let write = apply(route, objects, called, &route.apex, &spec)?;
    Ok(write.into_iter().collect())
}
