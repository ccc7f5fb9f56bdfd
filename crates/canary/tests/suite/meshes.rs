//! Istio, SMI, ingress-nginx and plain Services: scenarios 100, 104 and 105, and the shapes of section 5.

use serde_json::{Value, json};
use slipway_canary::engine::Weights;
use slipway_canary::router::{Ensured, Objects, Route, ensure, seen};

use crate::routes::{give_back, matching, named, objects, route, shift};

fn spec<'a>(objects: &'a Objects, kind: &str, name: &str) -> &'a Value {
    &objects.get(kind, name).unwrap()["spec"]
}

#[test]
fn plain_services_need_nothing_and_never_shift() {
    let all = Objects::default();
    let kubernetes = named("kubernetes");
    let ensured = ensure(kubernetes, &route(json!({})), &all, Weights::SOURCE);
    assert_eq!(ensured, Ok(Ensured::Converged));
    assert!(!kubernetes.shifts() && !kubernetes.mirrors() && !kubernetes.matches());
}

#[test]
fn scenario_100_a_traffic_split_is_made_repaired_and_keeps_its_weights() {
    for (version, is_text) in [("v1alpha1", true), ("v1alpha2", false), ("v1alpha3", false)] {
        let smi = named(&format!("smi:{version}"));
        let route = route(json!({}));
        let mut all = Objects::default();
        assert_eq!(seen(smi, &route, &all).unwrap().weights, None);
        shift(smi, &route, &mut all, Weights::to_target(30)).unwrap();
        let split = spec(&all, "TrafficSplit", "web");
        assert_eq!(split["service"], "web");
        let weight = if is_text { json!("30") } else { json!(30) };
        assert_eq!(
            split["backends"][0],
            json!({"service": "web-canary", "weight": weight})
        );
        let key = ("TrafficSplit".to_owned(), "web".to_owned());
        all.0.get_mut(&key).unwrap()["spec"]["backends"] = json!([{"service": "x", "weight": 1}]);
        assert_eq!(seen(smi, &route, &all).unwrap().weights, None);
        shift(smi, &route, &mut all, Weights::to_target(30)).unwrap();
        // Both at zero is no division of anything.
        all.0.get_mut(&key).unwrap()["spec"]["backends"] = json!([
            {"service": "web-canary", "weight": 0}, {"service": "web-primary", "weight": 0}]);
        assert_eq!(seen(smi, &route, &all).unwrap().weights, None);
        shift(smi, &route, &mut all, Weights::SOURCE).unwrap();
    }
}

#[test]
fn a_quantity_is_read_as_kubernetes_writes_it() {
    let split = |weight: Value| {
        objects(&[
            json!({"kind": "TrafficSplit", "metadata": {"name": "web"}, "spec": {"backends": [
            {"service": "web-canary", "weight": weight},
            {"service": "web-primary", "weight": 50}]}}),
        ])
    };
    let smi = named("smi:v1alpha1");
    let target = |weight: Value| {
        let seen = seen(smi, &route(json!({})), &split(weight)).unwrap();
        seen.weights.map(|weights| weights.target)
    };
    assert_eq!(target(json!("50")), Some(50));
    assert_eq!(target(json!("50000m")), Some(50));
    assert_eq!(target(json!("1k")), Some(95));
    assert_eq!(target(json!("lots")), Some(0));
    assert_eq!(target(json!(-1)), None);
}

#[test]
fn istio_has_two_destinations_and_a_rule_for_each() {
    let mut service = json!({"hosts": ["shop.example.com"], "trafficPolicy": {"tls": {"mode": "DISABLE"}},
        "timeout": "5s", "retries": {"attempts": 3}});
    service["gateways"] = json!(["infra/gw"]);
    let route = route(service);
    let mut all = Objects::default();
    shift(named("istio"), &route, &mut all, Weights::to_target(25)).unwrap();
    for name in ["web-primary", "web-canary"] {
        let rule = spec(&all, "DestinationRule", name);
        assert_eq!(rule["host"], name);
        assert_eq!(rule["trafficPolicy"]["tls"]["mode"], "DISABLE");
    }
    let service = spec(&all, "VirtualService", "web");
    assert_eq!(service["hosts"], json!(["shop.example.com", "web"]));
    assert_eq!(service["gateways"], json!(["infra/gw"]));
    let http = service["http"].as_array().unwrap();
    assert_eq!(http.len(), 1);
    assert_eq!(http[0]["timeout"], "5s");
    assert_eq!(
        http[0]["route"],
        json!([{"destination": {"host": "web-primary"}, "weight": 75},
               {"destination": {"host": "web-canary"}, "weight": 25}])
    );
    shift(named("istio"), &route, &mut all, Weights::SOURCE).unwrap();
}

#[test]
fn istio_mirrors_matches_and_speaks_tcp() {
    let mut mirrors = route(json!({}));
    mirrors.mirror_weight = Some(40);
    let mut all = Objects::default();
    let mirrored = Weights {
        target: 0,
        mirrored: true,
    };
    shift(named("istio"), &mirrors, &mut all, mirrored).unwrap();
    let rule = &spec(&all, "VirtualService", "web")["http"][0];
    assert_eq!(rule["mirror"]["host"], "web-canary");
    assert_eq!(rule["mirrorPercentage"]["value"], 40);
    let matches = json!([{"headers": {"x": {"exact": "y"}}, "sourceLabels": {"app": "z"}}]);
    let matching = matching(
        route(json!({"match": [{"uri": {"prefix": "/api"}}]})),
        matches,
    );
    let mut all = Objects::default();
    shift(named("istio"), &matching, &mut all, Weights::to_target(100)).unwrap();
    let http = &spec(&all, "VirtualService", "web")["http"];
    assert_eq!(
        http[0]["match"],
        json!([{"uri": {"prefix": "/api"}, "headers": {"x": {"exact": "y"}}, "sourceLabels": {"app": "z"}}])
    );
    assert_eq!(
        http[1]["route"],
        json!([{"destination": {"host": "web-primary"}, "weight": 100}])
    );
    let tcp = route(json!({"appProtocol": "TCP"}));
    let mut all = Objects::default();
    shift(named("istio"), &tcp, &mut all, Weights::to_target(10)).unwrap();
    assert!(spec(&all, "VirtualService", "web")["tcp"].is_array());
}

#[test]
fn scenario_105_delegation_has_no_hosts() {
    let both = route(json!({"delegation": true, "hosts": ["a"]}));
    let error = ensure(named("istio"), &both, &Objects::default(), Weights::SOURCE);
    assert!(error.unwrap_err().to_string().contains("delegation"));
    let mut all = Objects::default();
    let alone = route(json!({"delegation": true}));
    shift(named("istio"), &alone, &mut all, Weights::SOURCE).unwrap();
    let service = spec(&all, "VirtualService", "web");
    assert_eq!(
        (&service["hosts"], &service["gateways"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn a_persons_virtual_service_is_given_back_as_it_was() {
    let theirs = json!({"kind": "VirtualService", "metadata": {"name": "web", "annotations": {"a": "b"}},
        "spec": {"hosts": ["web"], "exportTo": ["."], "http": [{"route": [{"destination": {"host": "web"}}]}]}});
    let route = route(json!({}));
    let mut all = objects(std::slice::from_ref(&theirs));
    shift(named("istio"), &route, &mut all, Weights::to_target(50)).unwrap();
    let taken = all.get("VirtualService", "web").unwrap();
    assert_eq!(
        taken["metadata"]["ownerReferences"],
        Value::Null,
        "it is not to go with the Canary"
    );
    shift(named("istio"), &route, &mut all, Weights::SOURCE).unwrap();
    give_back(named("istio"), &route, &mut all);
    let after = all.get("VirtualService", "web").unwrap();
    assert_eq!(after["spec"], theirs["spec"]);
}

fn ingress() -> Value {
    json!({"kind": "Ingress", "metadata": {"name": "shop", "labels": {"l": "1"},
    "annotations": {"nginx.ingress.kubernetes.io/rewrite-target": "/",
        "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
    "spec": {"rules": [{"host": "shop.example.com", "http": {"paths": [
        {"path": "/", "backend": {"service": {"name": "web", "port": {"number": 80}}}},
        {"path": "/x", "backend": {"service": {"name": "other", "port": {"number": 80}}}},
    ]}}]}})
}

fn by_ingress() -> Route {
    let mut route = route(json!({}));
    route.ingress = Some("shop".to_owned());
    route
}

#[test]
fn nginx_has_a_second_ingress_with_a_weight() {
    let route = by_ingress();
    let mut all = objects(&[ingress()]);
    shift(named("nginx"), &route, &mut all, Weights::SOURCE).unwrap();
    shift(named("nginx"), &route, &mut all, Weights::to_target(35)).unwrap();
    let canary = all.get("Ingress", "shop-canary").unwrap();
    let annotations = &canary["metadata"]["annotations"];
    assert_eq!(annotations["nginx.ingress.kubernetes.io/canary"], "true");
    assert_eq!(
        annotations["nginx.ingress.kubernetes.io/canary-weight"],
        "35"
    );
    assert_eq!(
        annotations["nginx.ingress.kubernetes.io/rewrite-target"],
        "/"
    );
    assert_eq!(
        annotations["kubectl.kubernetes.io/last-applied-configuration"],
        Value::Null
    );
    let paths = &canary["spec"]["rules"][0]["http"]["paths"];
    assert_eq!(paths[0]["backend"]["service"]["name"], "web-canary");
    assert_eq!(paths[1]["backend"]["service"]["name"], "other");
    assert_eq!(
        all.get("Ingress", "shop"),
        Some(&ingress()),
        "the person's own is as it was"
    );
}

#[test]
fn nginx_matches_by_header_and_cookie_and_forgets_that_at_the_end() {
    let matches = json!([{"headers": {"x-canary": {"regex": "^in.*"}}}, {"headers": {"cookie": {"exact": "beta"}}}]);
    let mut route = matching(by_ingress(), matches);
    route.prefix = "custom.ingress".to_owned();
    let mut all = objects(&[ingress()]);
    shift(named("nginx"), &route, &mut all, Weights::to_target(100)).unwrap();
    let annotation = |all: &Objects, name: &str| {
        let ingress = all.get("Ingress", "shop-canary").unwrap();
        ingress["metadata"]["annotations"][format!("custom.ingress/{name}")].clone()
    };
    assert_eq!(annotation(&all, "canary-by-header"), "x-canary");
    assert_eq!(annotation(&all, "canary-by-header-pattern"), "^in.*");
    assert_eq!(annotation(&all, "canary-by-cookie"), "beta");
    shift(named("nginx"), &route, &mut all, Weights::SOURCE).unwrap();
    assert_eq!(annotation(&all, "canary-by-header"), Value::Null);
    assert_eq!(annotation(&all, "canary-weight"), "0");
}

#[test]
fn the_weights_of_another_canarys_ingress_are_not_ones_own() {
    let route = by_ingress();
    let mut all = objects(&[ingress()]);
    shift(named("nginx"), &route, &mut all, Weights::to_target(35)).unwrap();
    let mut second = by_ingress();
    second.uid = "another".to_owned();
    let found = seen(named("nginx"), &second, &all);
    let text = found.unwrap_err().to_string();
    assert!(text.contains("Ingress shop-canary"), "{text}");
    let found = seen(named("nginx"), &route, &all).unwrap();
    assert_eq!(found.weights, Some(Weights::to_target(35)));
}

#[test]
fn scenario_104_an_ingress_without_the_apex_is_named() {
    let mut route = by_ingress();
    route.apex = "api".to_owned();
    let error = ensure(
        named("nginx"),
        &route,
        &objects(&[ingress()]),
        Weights::SOURCE,
    );
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("Ingress shop") && text.contains("backend api"),
        "{text}"
    );
    route.ingress = None;
    let error = ensure(named("nginx"), &route, &objects(&[]), Weights::SOURCE);
    assert!(error.unwrap_err().to_string().contains("ingressRef"));
}

#[test]
fn weights_sum_to_a_hundred_in_every_router() {
    for provider in [
        named("gatewayapi:v1"),
        named("istio"),
        named("smi:v1alpha2"),
        named("nginx"),
    ] {
        let mut route = by_ingress();
        route.service.gateway_refs = vec![json!({"name": "gw"})];
        let mut all = objects(&[ingress()]);
        for weight in 0..=100 {
            let weights = Weights::to_target(weight);
            shift(provider, &route, &mut all, weights).unwrap();
            let written = written(provider.name(), &all);
            assert_eq!(
                written,
                (i64::from(weight), 100 - i64::from(weight)),
                "{provider:?}"
            );
        }
    }
}

/// The weights of target and source that the objects of a provider have, as they are written.
fn written(provider: &str, all: &Objects) -> (i64, i64) {
    let number = |value: &Value| {
        let text = value.as_str().map(|text| text.parse().unwrap());
        text.or(value.as_i64()).unwrap()
    };
    let named = |backends: &Value, path: &str, name: &str| {
        let mut found = backends.as_array().unwrap().iter();
        let one = found.find(|one| one.pointer(path) == Some(&json!(name)));
        one.map_or(0, |one| number(&one["weight"]))
    };
    let both = |backends: &Value, path: &str| {
        let [target, source] =
            ["web-canary", "web-primary"].map(|name| named(backends, path, name));
        (target, source)
    };
    match provider {
        "istio" => {
            let rule = &spec(all, "VirtualService", "web")["http"][0]["route"];
            both(rule, "/destination/host")
        }
        "nginx" => {
            let mut ingresses = all.0.iter();
            let canary =
                ingresses.find(|((kind, name), _)| kind == "Ingress" && name.ends_with("-canary"));
            let annotations = canary.map(|(_, one)| one["metadata"]["annotations"].clone());
            let weight =
                annotations.map(|all| all["nginx.ingress.kubernetes.io/canary-weight"].clone());
            let weight = weight
                .filter(|one| !one.is_null())
                .map_or(0, |one| number(&one));
            (weight, 100 - weight)
        }
        name if name.starts_with("smi") => {
            both(&spec(all, "TrafficSplit", "web")["backends"], "/service")
        }
        _ => both(
            &spec(all, "HTTPRoute", "web")["rules"][0]["backendRefs"],
            "/name",
        ),
    }
}
