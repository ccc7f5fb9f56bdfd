//! Gateway API: scenarios 101 to 103 and 107, and the shapes of section 5.

use serde_json::{Value, json};
use slipway_canary::engine::Weights;
use slipway_canary::provider::Provider;
use slipway_canary::router::{Affinity, CannotRoute, Ensured, Objects, Write, ensure, seen};

use crate::routes::{give_back, matching, objects, route, shift};

fn gatewayapi() -> Provider {
    crate::routes::named("gatewayapi:v1")
}

fn own() -> Value {
    json!({"gatewayRefs": [{"name": "gw", "namespace": "infra"}], "hosts": ["shop.example.com"]})
}

fn rules(objects: &Objects) -> &Vec<Value> {
    let route = objects.get("HTTPRoute", "web").unwrap();
    route["spec"]["rules"].as_array().unwrap()
}

/// A gateway takes the route as it is now.
fn accept(objects: &mut Objects, is_accepted: bool) {
    for object in objects.0.values_mut() {
        let generation = object["metadata"]["generation"].clone();
        object["status"] = json!({"parents": [{
            "parentRef": {"name": "gw"},
            "conditions": [{"type": "Accepted", "status": if is_accepted {"True"} else {"False"},
                "observedGeneration": generation, "message": "no"}],
        }]});
    }
}

#[test]
fn a_route_of_ours_has_parents_hosts_and_two_weighted_backends() {
    let route = route(own());
    let mut all = Objects::default();
    let writes = shift(gatewayapi(), &route, &mut all, Weights::SOURCE).unwrap();
    let [Write::Apply { kind, body, .. }] = &writes[..] else {
        panic!("{writes:?}");
    };
    assert_eq!(kind.api_version(), "gateway.networking.k8s.io/v1");
    assert_eq!(body["spec"]["parentRefs"][0]["name"], "gw");
    assert_eq!(body["spec"]["hostnames"], json!(["shop.example.com"]));
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "u1");
    let rule = &rules(&all)[0];
    assert_eq!(
        rule["matches"],
        json!([{"path": {"type": "PathPrefix", "value": "/"}}])
    );
    let backends = rule["backendRefs"].as_array().unwrap();
    assert_eq!(
        (&backends[0]["name"], &backends[0]["weight"]),
        (&json!("web-primary"), &json!(100))
    );
    assert_eq!(
        (&backends[1]["name"], &backends[1]["weight"]),
        (&json!("web-canary"), &json!(0))
    );
    for weight in [1, 50, 100, 0] {
        shift(gatewayapi(), &route, &mut all, Weights::to_target(weight)).unwrap();
    }
}

#[test]
fn scenario_101_weights_are_pending_until_every_parent_has_taken_them() {
    let route = route(own());
    let mut all = Objects::default();
    shift(gatewayapi(), &route, &mut all, Weights::to_target(20)).unwrap();
    let pending = |all: &Objects| seen(gatewayapi(), &route, all).unwrap().pending;
    assert!(pending(&all).unwrap().contains("no gateway"));
    accept(&mut all, true);
    assert_eq!(pending(&all), None);
    let converged = ensure(gatewayapi(), &route, &all, Weights::to_target(20));
    assert_eq!(converged, Ok(Ensured::Converged));
    shift(gatewayapi(), &route, &mut all, Weights::to_target(40)).unwrap();
    assert!(pending(&all).unwrap().contains("generation"));
    accept(&mut all, false);
    assert!(pending(&all).unwrap().contains("does not accept"));
    // One of two is not enough, whichever it is.
    accept(&mut all, true);
    let key = ("HTTPRoute".to_owned(), "web".to_owned());
    let object = all.0.get_mut(&key).unwrap();
    let taken = object["status"]["parents"][0].clone();
    let mut other = taken.clone();
    other["parentRef"]["name"] = json!("other");
    other["conditions"][0]["status"] = json!("False");
    for parents in [json!([taken, other]), json!([other, taken])] {
        all.0.get_mut(&key).unwrap()["status"]["parents"] = parents;
        assert!(pending(&all).unwrap().contains("other"));
    }
}

#[test]
fn a_persons_route_comes_back_as_it_was_whatever_the_canary_says_by_now() {
    let rules = json!([{"backendRefs": [{"name": "web", "port": 80, "weight": 1}]}]);
    let theirs = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "theirs"}, "spec": {"rules": rules}});
    let mut all = objects(&[theirs]);
    let mut route = route(json!({}));
    route.route = Some("theirs".to_owned());
    shift(gatewayapi(), &route, &mut all, Weights::to_target(50)).unwrap();
    // Nothing can be written for such a Canary any more; but what was is taken away.
    let route = matching(route, json!([{"headers": {"x": {"exact": "y"}}}]));
    assert!(ensure(gatewayapi(), &route, &all, Weights::SOURCE).is_err());
    give_back(gatewayapi(), &route, &mut all);
    assert_eq!(
        all.get("HTTPRoute", "theirs").unwrap()["spec"]["rules"],
        rules
    );
}

#[test]
fn scenario_102_what_others_put_on_the_route_stays_and_no_weight_is_lost() {
    let route = route(own());
    let mut all = Objects::default();
    shift(gatewayapi(), &route, &mut all, Weights::to_target(30)).unwrap();
    let key = ("HTTPRoute".to_owned(), "web".to_owned());
    let object = all.0.get_mut(&key).unwrap();
    object["metadata"]["annotations"]["other"] = json!("x");
    object["metadata"]["labels"]["other"] = json!("x");
    // The API's defaults are no difference.
    object["spec"]["rules"][0]["backendRefs"][0]["extra"] = json!(1);
    shift(gatewayapi(), &route, &mut all, Weights::to_target(30)).unwrap();
    // Flagger resets the weights when a hostname was edited; here they stay.
    all.0.get_mut(&key).unwrap()["spec"]["hostnames"] = json!(["edited.example.com"]);
    let weights = seen(gatewayapi(), &route, &all).unwrap().weights;
    assert_eq!(weights, Some(Weights::to_target(30)));
    shift(gatewayapi(), &route, &mut all, Weights::to_target(30)).unwrap();
    let object = all.get("HTTPRoute", "web").unwrap();
    assert_eq!(object["spec"]["hostnames"], json!(["shop.example.com"]));
    assert_eq!(object["metadata"]["annotations"]["other"], "x");
    assert_eq!(object["metadata"]["labels"]["other"], "x");
}

#[test]
fn without_gateways_it_says_so() {
    let error = ensure(
        gatewayapi(),
        &route(json!({})),
        &Objects::default(),
        Weights::SOURCE,
    );
    assert!(error.unwrap_err().to_string().contains("gatewayRefs"));
}

#[test]
fn a_route_that_somebody_else_controls_is_not_touched() {
    let theirs = json!({"kind": "HTTPRoute", "metadata": {"name": "web",
        "ownerReferences": [{"uid": "u2", "controller": true}]}, "spec": {"rules": []}});
    let error = ensure(
        gatewayapi(),
        &route(own()),
        &objects(&[theirs]),
        Weights::SOURCE,
    );
    assert!(matches!(error, Err(CannotRoute::NotOurs { .. })));
}

#[test]
fn a_b_has_a_rule_for_those_who_match_before_that_for_all_others() {
    let matches = json!([{"headers": {"x-canary": {"exact": "insider"}}},
        {"headers": {"cookie": {"regex": "^.*beta.*$"}}}]);
    let route = matching(route(own()), matches);
    let mut all = Objects::default();
    shift(gatewayapi(), &route, &mut all, Weights::to_target(100)).unwrap();
    let rules = rules(&all);
    assert_eq!(rules.len(), 2);
    assert_eq!(
        rules[0]["matches"],
        json!([
            {"path": {"type": "PathPrefix", "value": "/"},
             "headers": [{"type": "Exact", "name": "x-canary", "value": "insider"}]},
            {"path": {"type": "PathPrefix", "value": "/"},
             "headers": [{"type": "RegularExpression", "name": "cookie", "value": "^.*beta.*$"}]},
        ])
    );
    assert_eq!(rules[0]["backendRefs"][1]["weight"], 100);
    let rest = rules[1]["backendRefs"].as_array().unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["name"], "web-primary");
    shift(gatewayapi(), &route, &mut all, Weights::SOURCE).unwrap();
}

#[test]
fn mirroring_is_a_filter_that_comes_and_goes() {
    let route = route(own());
    let mut all = Objects::default();
    let mirrored = Weights {
        target: 0,
        mirrored: true,
    };
    shift(gatewayapi(), &route, &mut all, mirrored).unwrap();
    let filter = &rules(&all)[0]["filters"][0];
    assert_eq!(filter["type"], "RequestMirror");
    assert_eq!(filter["requestMirror"]["backendRef"]["name"], "web-canary");
    shift(gatewayapi(), &route, &mut all, Weights::to_target(10)).unwrap();
    assert_eq!(rules(&all)[0]["filters"], Value::Null);
}

#[test]
fn what_is_done_to_requests_is_in_every_rule() {
    let mut service = own();
    service["timeout"] = json!("5s");
    service["backendTimeout"] = json!("1s");
    service["rewrite"] = json!({"uri": "/new", "authority": "other"});
    service["headers"] = json!({"request": {"add": {"a": "b"}, "remove": ["c"]}});
    let mut all = Objects::default();
    let matches = json!([{"headers": {"h": {"exact": "v"}}}]);
    let route = matching(route(service), matches);
    shift(gatewayapi(), &route, &mut all, Weights::SOURCE).unwrap();
    for rule in rules(&all) {
        assert_eq!(
            rule["timeouts"],
            json!({"request": "5s", "backendRequest": "1s"})
        );
        assert_eq!(
            rule["filters"][0]["requestHeaderModifier"],
            json!({"add": [{"name": "a", "value": "b"}], "remove": ["c"]})
        );
        assert_eq!(
            rule["filters"][1]["urlRewrite"],
            json!({"hostname": "other",
                "path": {"type": "ReplaceFullPath", "replaceFullPath": "/new"}})
        );
    }
}

#[test]
fn scenario_103_a_cookie_keeps_clients_at_the_target_and_is_forgotten_afterwards() {
    let mut sticky = route(own());
    let rules_of = serde_json::from_value(json!({"cookieName": "c", "maxAge": 60})).unwrap();
    sticky.affinity = Some(Affinity {
        rules: rules_of,
        cookie: Some("c=abc".to_owned()),
        previous: None,
        primary: None,
    });
    let mut all = Objects::default();
    shift(gatewayapi(), &sticky, &mut all, Weights::to_target(10)).unwrap();
    let during = rules(&all).clone();
    assert_eq!(during.len(), 2);
    assert_eq!(during[0]["matches"][0]["headers"][0]["value"], ".*c=abc.*");
    assert_eq!(during[0]["backendRefs"][0]["name"], "web-canary");
    let added = &during[1]["backendRefs"][1]["filters"][0]["responseHeaderModifier"]["add"][0];
    assert_eq!(
        *added,
        json!({"name": "Set-Cookie", "value": "c=abc; Max-Age=60"})
    );
    let affinity = sticky.affinity.as_mut().unwrap();
    affinity.previous = affinity.cookie.take();
    shift(gatewayapi(), &sticky, &mut all, Weights::SOURCE).unwrap();
    let after = &rules(&all)[0];
    let told = &after["backendRefs"][0]["filters"][0]["responseHeaderModifier"]["add"][0];
    assert_eq!(told["value"], "c=abc; Max-Age=-1");
    assert_eq!(after["backendRefs"][0]["name"], "web-primary");
}

/// A person's route with three rules, of which two send to the apex.
fn theirs() -> Value {
    json!({
        "kind": "HTTPRoute",
        "metadata": {"name": "mine", "labels": {"a": "b"}},
        "spec": {"parentRefs": [{"name": "gw"}], "rules": [
            {"matches": [{"path": {"value": "/"}}],
             "backendRefs": [{"name": "web", "port": 80, "weight": 1}]},
            {"backendRefs": [{"name": "other", "port": 80, "weight": 1}]},
            {"filters": [{"type": "URLRewrite", "urlRewrite": {"hostname": "x"}}],
             "backendRefs": [{"name": "web", "port": 80, "weight": 3},
                             {"name": "legacy", "port": 80, "weight": 7}]},
        ]},
    })
}

#[test]
fn scenario_107_of_a_persons_route_only_what_sends_to_the_apex_changes_and_comes_back_as_it_was() {
    let mut route = route(json!({}));
    route.route = Some("mine".to_owned());
    let mut all = objects(&[theirs()]);
    let spec = |all: &Objects| all.get("HTTPRoute", "mine").unwrap()["spec"].clone();
    let mirrored = Weights {
        target: 0,
        mirrored: true,
    };
    for weights in [
        mirrored,
        Weights::to_target(1),
        Weights::to_target(40),
        Weights::to_target(100),
    ] {
        shift(gatewayapi(), &route, &mut all, weights).unwrap();
        let now = spec(&all);
        assert_eq!(now["rules"][1], theirs()["spec"]["rules"][1]);
        if weights.target == 40 {
            let backends = now["rules"][2]["backendRefs"].as_array().unwrap();
            let shares: Vec<_> = backends
                .iter()
                .map(|one| (&one["name"], &one["weight"]))
                .collect();
            assert_eq!(shares[0], (&json!("web"), &json!(180)));
            assert_eq!(shares[1], (&json!("legacy"), &json!(700)));
            assert_eq!(shares[2], (&json!("web-canary"), &json!(120)));
        }
    }
    shift(gatewayapi(), &route, &mut all, Weights::SOURCE).unwrap();
    assert_eq!(spec(&all), theirs()["spec"]);
    // From the middle as well, and with what the person has changed meanwhile.
    shift(gatewayapi(), &route, &mut all, Weights::to_target(40)).unwrap();
    let key = ("HTTPRoute".to_owned(), "mine".to_owned());
    all.0.get_mut(&key).unwrap()["spec"]["rules"][1]["backendRefs"][0]["port"] = json!(81);
    give_back(gatewayapi(), &route, &mut all);
    let mut expected = theirs()["spec"].clone();
    expected["rules"][1]["backendRefs"][0]["port"] = json!(81);
    assert_eq!(spec(&all), expected);
}

#[test]
fn a_persons_route_that_does_not_send_to_the_apex_is_refused() {
    let mut strange = route(json!({"name": "api"}));
    strange.apex = "api".to_owned();
    strange.route = Some("mine".to_owned());
    let error = ensure(
        gatewayapi(),
        &strange,
        &objects(&[theirs()]),
        Weights::SOURCE,
    );
    assert!(error.unwrap_err().to_string().contains("no backend api"));
    strange.route = Some("gone".to_owned());
    let error = ensure(
        gatewayapi(),
        &strange,
        &objects(&[theirs()]),
        Weights::SOURCE,
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("HTTPRoute gone does not exist")
    );
}

#[test]
fn what_a_server_adds_to_a_mirror_is_no_difference() {
    let mut route = route(json!({}));
    route.route = Some("theirs".to_owned());
    let rules = json!([{"backendRefs": [{"name": "web", "port": 80, "weight": 1}]}]);
    let mut all = objects(
        &[json!({"kind": "HTTPRoute", "metadata": {"name": "theirs"},
        "spec": {"rules": rules}})],
    );
    let mirrored = Weights {
        target: 0,
        mirrored: true,
    };
    shift(gatewayapi(), &route, &mut all, mirrored).unwrap();
    let key = ("HTTPRoute".to_owned(), "theirs".to_owned());
    let object = all.0.get_mut(&key).unwrap();
    let mirror = &mut object["spec"]["rules"][0]["filters"][0]["requestMirror"]["backendRef"];
    mirror["group"] = json!("");
    mirror["kind"] = json!("Service");
    let writes = shift(gatewayapi(), &route, &mut all, mirrored).unwrap();
    assert_eq!(writes, []);
    shift(gatewayapi(), &route, &mut all, Weights::SOURCE).unwrap();
    let after = all.get("HTTPRoute", "theirs").unwrap();
    assert_eq!(after["spec"]["rules"], rules);
}
