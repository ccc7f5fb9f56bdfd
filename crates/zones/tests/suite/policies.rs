//! Failure policies of webhooks as numbers, and D11.

use serde_json::{Value, json};
use slipway_kernel::Controller;
use slipway_kernel::stage::Stage;
use slipway_zones::observe::interests;
use slipway_zones::{Settings, Zones};

use crate::objects::noon;

const SELECTOR: &str = "grafana.com/namespace=mimir";

fn serving() -> Settings {
    Settings {
        webhooks: Some(SELECTOR.to_owned()),
        ..Settings::default()
    }
}

fn configuration(kind: &str, name: &str, policy: Option<&str>) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": [{"name": format!("{name}.grafana.com"), "failurePolicy": policy}],
    })
}

/// Type, webhook, policy and whether it is that, of each series.
fn shown(stage: &Stage<Zones>) -> Vec<String> {
    let gauges = Controller::gauges(&stage.planner, &stage.stores(), stage.now);
    let policies = gauges
        .iter()
        .filter(|gauge| gauge.name == "kube_validating_webhook_failure_policy");
    policies
        .map(|gauge| {
            let label = |name| gauge.labels[name].as_str();
            let (kind, hook, policy) = (label("type"), label("webhook"), label("policy"));
            format!("{kind} {hook} {policy} {}", gauge.value)
        })
        .collect()
}

#[test]
fn a_policy_has_a_series_for_each_value_and_none_means_fail() {
    let mut stage = Stage::new(Zones::new(serving()), noon());
    let kind = "ValidatingWebhookConfiguration";
    stage.put(configuration(kind, "pod-eviction", None));
    stage.put(configuration(
        "MutatingWebhookConfiguration",
        "prepare-downscale",
        Some("Ignore"),
    ));
    assert_eq!(
        shown(&stage),
        [
            "ValidatingWebhook pod-eviction.grafana.com Fail 1",
            "ValidatingWebhook pod-eviction.grafana.com Ignore 0",
            "MutatingWebhook prepare-downscale.grafana.com Fail 0",
            "MutatingWebhook prepare-downscale.grafana.com Ignore 1",
        ]
    );
    stage.put(configuration(kind, "pod-eviction", Some("Ignore")));
    assert_eq!(
        shown(&stage)[..2],
        [
            "ValidatingWebhook pod-eviction.grafana.com Fail 0",
            "ValidatingWebhook pod-eviction.grafana.com Ignore 1",
        ]
    );
}

/// The original never forgets one.
#[test]
fn defect_11_a_configuration_that_is_gone_has_no_series() {
    let mut stage = Stage::new(Zones::new(serving()), noon());
    let kind = "ValidatingWebhookConfiguration";
    stage.put(configuration(kind, "pod-eviction", None));
    assert_eq!(shown(&stage).len(), 2);
    stage.delete(kind, "", "pod-eviction");
    assert!(shown(&stage).is_empty());
}

/// Those of other namespaces are not even looked at, and none are where no webhooks are served.
#[test]
fn only_configurations_with_the_label_of_the_namespace_are_looked_at() {
    let hooks = |settings: &Settings| {
        let all = interests(settings).into_iter();
        let ours = all.filter(|one| one.kind.kind.ends_with("WebhookConfiguration"));
        ours.map(|one| one.labels).collect::<Vec<String>>()
    };
    assert_eq!(hooks(&serving()), [SELECTOR, SELECTOR]);
    assert!(hooks(&Settings::default()).is_empty());
}
