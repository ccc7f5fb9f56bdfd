//! What is written, whole.

use serde_json::{Value, json};
use slipway_api::fleet::rollout::RolloutSpec;
use slipway_api::fleet::sync::NamedSync;
use slipway_bindings::Known;
use slipway_fleet::observe::kept::Kept;
use slipway_fleet::observe::{Strategy, Wanted};
use slipway_fleet::render::assignment::{Layer, Place, assign, reference, take_away};
use slipway_fleet::render::{Applied, flux, module};
use slipway_fleet::specialise::{Specialised, substitutions};

fn shown(all: &[Applied]) -> Value {
    let one = |applied: &Applied| json!({"by": applied.manager, "force": applied.force, "body": applied.body});
    Value::Array(all.iter().map(one).collect())
}

fn place() -> Place<'static> {
    Place {
        namespace: "fleet",
        cluster: "berlin",
        kubeconfig: "berlin-kubeconfig",
    }
}

fn sync() -> NamedSync {
    serde_json::from_value(json!({
        "name": "web", "revision": "abc-1", "assignedBy": "Rollout/web",
        "bindings": [{"name": "A", "value": "a"}],
        "source": {"git": {"url": "https://example.com/org/web.git", "version": {"tag": "v1", "revision": "bd6ef78"}, "recurseSubmodules": true}},
        "package": {"kustomize": {"path": "deploy", "substitute": {"A": "$(A)"}, "serviceAccountName": "web", "targetNamespace": "shop"}},
    }))
    .unwrap()
}

fn rollout() -> RolloutSpec {
    serde_json::from_value(json!({"template": {
        "metadata": {"labels": {"team": "shop"}},
        "spec": {
            "controlPlaneBindings": [{"name": "A", "value": "a"}],
            "sync": {"source": {"git": {"url": "https://example.com/org/web.git", "version": {"tag": "v1"}}}},
        },
    }}))
    .unwrap()
}

#[test]
fn an_assignment_is_one_entry_and_no_other() {
    let sync = sync();
    let all = [
        assign(Layer::Remote, place(), "Rollout/web", &sync),
        assign(Layer::Bootstrap, place(), "Rollout/web", &sync),
        assign(
            Layer::Remote,
            place(),
            "Rollout/web",
            &reference("web", "Rollout/web", "web-abc", "abc"),
        ),
    ];
    insta::assert_yaml_snapshot!(shown(&all));
}

#[test]
fn an_entry_is_taken_away_and_the_list_stays_a_list() {
    let of = |syncs: Value| json!({"spec": {"assemblage": {"syncs": syncs}}});
    let both = of(json!([{"name": "db", "x": 1}, {"name": "web"}]));
    let left = take_away(Layer::Remote, &Kept::remote(&both), "web");
    assert_eq!(left, of(json!([{"name": "db", "x": 1}])));
    let last = Kept::remote(&of(json!([{"name": "web"}])));
    let none = take_away(Layer::Remote, &last, "web");
    assert_eq!(none, of(json!([])));
    let bootstrap = Kept::assemblage(&json!({"spec": {"syncs": [{"name": "web"}]}}));
    let none = take_away(Layer::Bootstrap, &bootstrap, "web");
    assert_eq!(none, json!({"spec": {"syncs": []}}));
}

#[test]
fn revisions_are_modules() {
    let mut spec = rollout();
    let revision = Wanted::read(&spec).unwrap().target;
    let made = |spec: &RolloutSpec, strategy| {
        let maker = module::Maker {
            namespace: "fleet",
            name: "web",
            uid: "u",
            generation: 3,
            spec,
        };
        shown(&module::revision(maker, strategy, &revision))
    };
    let incremental = made(&spec, Strategy::Incremental);
    let replace = made(&spec, Strategy::Replace);
    spec.target_kind = Some("BootstrapModule".to_owned());
    let bootstrap = made(&spec, Strategy::Incremental);
    insta::assert_yaml_snapshot!(
        json!({"incremental": incremental, "replace": replace, "bootstrap": bootstrap})
    );
}

#[test]
fn a_sync_is_a_source_and_a_kustomization() {
    let sync = sync();
    let source = sync.source.clone().unwrap();
    let Specialised::Done(values) = substitutions(&sync, &Known::new()) else {
        panic!("no values");
    };
    let made = |kubeconfig: Option<&str>, secret: Option<&str>| {
        let maker = flux::Maker {
            namespace: "fleet",
            name: "berlin",
            kubeconfig,
        };
        let spec = flux::kustomization_spec(maker, &sync, &source, &values, secret);
        flux::kustomization(maker, &sync, &spec, ("hash", None))
    };
    let all = [
        flux::source("fleet", &source, None),
        made(None, None),
        made(Some("berlin-kubeconfig"), Some("berlin-web-values-1")),
    ];
    insta::assert_yaml_snapshot!(shown(&all));
}
