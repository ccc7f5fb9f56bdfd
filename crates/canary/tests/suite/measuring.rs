//! Scenarios 64, 68 to 72, 74, 75 and 112: what is asked of whom to measure something, and what the answer is.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use slipway_api::purpose::canary as purpose;
use slipway_canary::engine::Answer;
use slipway_canary::measures::{builtin, number};
use slipway_canary::provider::Provider;
use slipway_canary::stage::Stage;
use slipway_canary::standalone::readiness::Workload;
use slipway_canary::{Canaries, Settings};
use slipway_kernel::fact::{Answer as Told, Question, Request};
use slipway_kernel::fields::merge;
use slipway_kernel::question::prometheus::{Measured, Reading};
use slipway_kernel::question::template::{Names, Place, Template};
use slipway_kernel::question::{
    Call, Credential, Failure, Method, Number, Reply, Target, Text, Value as Read,
};

use crate::planner::{controllers, phase, push, questions, settle, stage, status, until};

fn call(question: &Question) -> &Call {
    let Request::Outside(call) = &question.request else {
        panic!("{question:?}");
    };
    call
}

fn address(question: &Question) -> String {
    let Target::Url(url) = &call(question).target else {
        panic!("{question:?}");
    };
    url.to_string()
}

fn template(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "MetricTemplate",
        "metadata": {"name": name, "namespace": "shop"}, "spec": spec,
    })
}

/// A run that measures this, up to its first questions about that.
fn measuring(metrics: &Value, more: &[Value]) -> (Stage, Vec<Question>) {
    let mut stage = stage(&json!({"analysis": {"metrics": metrics}}));
    for object in more {
        stage.put(object.clone());
    }
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    for _ in 0..50 {
        let plan = stage.step();
        controllers(&mut stage);
        let asked = questions(&plan);
        if !asked.is_empty() || phase(&stage) == "Failed" || status(&stage)["failedChecks"] == 1 {
            return (stage, asked);
        }
        if plan.steps.is_empty() && plan.statuses.is_empty() {
            stage.now = plan.wake_at.unwrap();
        }
    }
    panic!("nothing is measured: {:#}", status(&stage));
}

#[test]
fn scenario_74_d9_a_template_without_an_interval_measures_a_minute() {
    let provider = json!({"type": "prometheus", "address": "http://prometheus.test:9090/base"});
    let query = "sum(rate(errors{app=\"{{ target }}\",ns=\"{{ namespace }}\"}[{{ interval }}]))";
    let metrics = json!([{"name": "errors", "templateRef": {"name": "errors"}, "thresholdRange": {"max": 1}}]);
    let spec = json!({"provider": provider, "query": query});
    let (_, asked) = measuring(&metrics, &[template("errors", &spec)]);
    let [question] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(question.id.purpose, purpose::MEASURE);
    let address = address(question);
    assert!(
        address.starts_with("http://prometheus.test:9090/base/api/v1/query?query="),
        "{address}"
    );
    for part in ["web", "shop", "1m"] {
        assert!(address.contains(part), "{part}: {address}");
    }
}

#[test]
fn scenario_69_headers_and_credentials_go_by_reference() {
    let metrics = json!([{"name": "errors", "templateRef": {"name": "errors"}}]);
    let spec = json!({
        "provider": {"type": "prometheus", "address": "http://prometheus.test", "headers": {"X-Scope-OrgID": ["a"]},
            "secretRef": {"name": "login"}},
        "query": "errors",
    });
    let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}, "data": data});
    let (_, asked) = measuring(
        &metrics,
        &[template("errors", &spec), secret(json!({"token": "dA=="}))],
    );
    let sent = call(&asked[0]);
    assert_eq!(
        (sent.headers[0].name(), sent.headers[0].value()),
        ("x-scope-orgid", "a")
    );
    assert!(matches!(&sent.credentials[..], [Credential::Bearer(token)] if token.key == "token"));
    let both = secret(json!({"username": "dQ==", "password": "cA=="}));
    let (_, asked) = measuring(&metrics, &[template("errors", &spec), both]);
    assert!(matches!(
        &call(&asked[0]).credentials[..],
        [Credential::Basic { .. }]
    ));
    assert!(
        !format!("{asked:?}").contains("cA=="),
        "no value of a Secret is in a question"
    );
}

#[test]
fn scenarios_70_and_71_what_cannot_be_asked_fails_the_check_and_says_why() {
    let variable = json!({"provider": {"type": "prometheus", "address": "http://prometheus.test"},
        "query": "errors{x=\"{{ variables.x }}\"}"});
    let cases = [
        (json!([{"name": "a", "templateRef": {"name": "t"}}]), "x"),
        (json!([{"name": "unheard-of"}]), "builtin"),
        (
            json!([{"name": "a", "templateRef": {"name": "nowhere"}}]),
            "nowhere",
        ),
        (
            json!([{"name": "a", "query": "{{ nonsense }}"}]),
            "nonsense",
        ),
    ];
    for (metrics, why) in cases {
        let (stage, asked) = measuring(&metrics, &[template("t", &variable)]);
        assert!(asked.is_empty(), "{asked:?}");
        let check = &status(&stage)["checks"][0];
        assert_eq!(check["verdict"], "Failed", "{metrics}");
        assert!(check["message"].as_str().unwrap().contains(why), "{check}");
    }
}

#[test]
fn scenario_72_a_metric_with_two_sources_is_measured_by_both() {
    let metrics =
        json!([{"name": "request-success-rate", "query": "own", "thresholdRange": {"min": 99}}]);
    let (_, asked) = measuring(&metrics, &[]);
    assert_eq!(asked.len(), 2);
    assert!(address(&asked[0]).contains("http_request_duration_seconds_count"));
    assert!(address(&asked[1]).ends_with("query=own"));
    assert!(
        address(&asked[0]).starts_with("http://prometheus:9090/"),
        "where Flagger asks"
    );
}

#[test]
fn a_comparison_and_a_count_are_asked_beside_the_measure() {
    let metrics = json!([{"name": "errors", "query": "errors{app=\"{{ target }}\"}",
        "thresholdRange": {"max": 100}, "baseline": {"maxIncreasePercent": 5}, "minimumSamples": {"count": 10, "query": "requests"}}]);
    let (mut stage, asked) = measuring(&metrics, &[]);
    let purposes: Vec<_> = asked.iter().map(|one| one.id.purpose).collect();
    assert_eq!(
        purposes,
        [purpose::MEASURE, purpose::COMPARE, purpose::COUNT]
    );
    assert!(address(&asked[1]).contains("web-primary"));
    for (question, value) in asked.into_iter().zip([12.0, 10.0, 100.0]) {
        let measured = Measured::Whole(Reading::Vector(Number::Finite(value)));
        let reply = Reply {
            code: 200,
            value: Read::Measured(measured),
        };
        let told = (stage.now, Told::Read(reply));
        stage.facts.answers.insert(question.id, told);
    }
    stage.step();
    let check = &status(&stage)["checks"][0];
    assert_eq!(check["verdict"], "Failed");
    assert!(
        check["message"]
            .as_str()
            .unwrap()
            .contains("more than 5% above the serving 10"),
        "{check}"
    );
}

#[test]
fn scenarios_67_68_and_75_d10_one_number_or_why_there_is_none() {
    let whole = |reading| number(&Read::Measured(Measured::Whole(reading)));
    assert_eq!(whole(Reading::Scalar(Number::Finite(2.0))), Ok(2.0));
    assert_eq!(whole(Reading::Vector(Number::Finite(2.0))), Ok(2.0));
    assert_eq!(whole(Reading::NoData), Err(Answer::NoValues));
    assert_eq!(
        whole(Reading::Vector(Number::NotANumber)),
        Err(Answer::NoValues)
    );
    assert_eq!(whole(Reading::Vector(Number::Infinite)), Ok(f64::INFINITY));
    let Err(Answer::Error(why)) = whole(Reading::Several(3)) else {
        panic!("three are not one");
    };
    assert!(why.contains("3 series"));
    let partial = Measured::Partial {
        reading: Reading::Vector(Number::Finite(0.0)),
        warnings: vec!["a store is away".to_owned()],
    };
    let Err(Answer::Error(why)) = number(&Read::Measured(partial)) else {
        panic!("a part is not all");
    };
    assert!(why.contains("a store is away"));
    let text = Text {
        text: String::new(),
        is_cut: false,
    };
    assert!(matches!(number(&Read::Text(text)), Err(Answer::Error(_))));
}

/// Webhooks of every kind are signed by a reference to the key.
#[test]
fn a_webhook_is_signed_with_a_key_that_no_plan_has() {
    let signing = json!({"name": "hmac"});
    let hook = |kind: &str, signing: &Value| json!({"name": kind, "type": kind, "url": "http://gate.test/", "signing": signing});
    let hooks = json!([
        hook("pre-rollout", &signing),
        hook("event", &json!({"name": "other", "namespace": "shop"}))
    ]);
    let mut held = stage(&json!({"analysis": {"webhooks": hooks}}));
    held.put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hmac", "namespace": "shop"},
        "data": {"key": "c2VjcmV0LXNlY3JldC1zZWNyZXQ="}}));
    let mut plans = until(&mut held, "Initialized");
    push(&mut held, "web:2");
    plans.extend(until(&mut held, "Succeeded"));
    let mut signed = BTreeSet::new();
    for question in plans.iter().flat_map(questions) {
        let Request::Outside(call) = &question.request else {
            panic!("{question:?}");
        };
        let key = call.signed_with.as_ref().unwrap();
        signed.insert((question.id.purpose, key.to_string()));
    }
    let expected = [
        (purpose::ASK, "key of the Secret shop/hmac".to_owned()),
        (purpose::TELL, "key of the Secret shop/other".to_owned()),
    ];
    assert_eq!(signed, expected.into());
    let told = format!("{plans:?}{}", status(&held));
    assert!(!told.contains("c2VjcmV0") && !told.contains("secret-secret"));
}

#[test]
fn a_key_of_another_namespace_is_refused_and_another_key_is_another_question() {
    let hook = |signing: Value| json!([{"name": "gate", "type": "pre-rollout", "url": "http://gate.test/", "signing": signing}]);
    let foreign = hook(json!({"name": "hmac", "namespace": "infra"}));
    // No administrator can allow it: whoever writes a Canary says where its calls go.
    for cross_namespace in [false, true] {
        let mut held = stage(&json!({"analysis": {"webhooks": foreign}}));
        held.planner = Canaries::new(Settings {
            cross_namespace,
            ..Settings::default()
        });
        let plan = held.step();
        assert_eq!(plan.blockers[0].reason, "InvalidSpec");
        let message = &plan.blockers[0].message;
        assert!(message.contains("infra/hmac"), "{message}");
        assert!(plan.steps.is_empty());
    }
    // Nor does a run go on with it.
    let mut running = stage(&json!({"analysis": {"webhooks": hook(json!({"name": "hmac"}))}}));
    until(&mut running, "Initialized");
    push(&mut running, "web:2");
    let patch = json!({"spec": {"analysis": {"webhooks": foreign}}});
    for _ in 0..10 {
        if phase(&running) != "Progressing" {
            running.step();
            controllers(&mut running);
        }
    }
    assert_eq!(phase(&running), "Progressing");
    running.patch("Canary", "shop", "web", &patch);
    for plan in settle(&mut running, 200) {
        assert!(questions(&plan).is_empty(), "{plan:?}");
    }
    assert_eq!(status(&running)["waitingFor"][0]["reason"], "InvalidSpec");
    let asked = |signing: Value| {
        let mut held = stage(&json!({"analysis": {"webhooks": hook(signing)}}));
        until(&mut held, "Initialized");
        push(&mut held, "web:2");
        loop {
            let plan = held.step();
            controllers(&mut held);
            if let [question] = questions(&plan).as_slice() {
                return question.id.clone();
            }
        }
    };
    let (one, other) = (asked(json!({"name": "one"})), asked(json!({"name": "two"})));
    assert_eq!(one.due, other.due);
    assert_ne!(one, other);
}

#[test]
fn scenario_112_what_is_in_another_namespace_may_be_refused() {
    let settings = Settings {
        cross_namespace: false,
        ..Settings::default()
    };
    let metrics = json!([{"name": "a", "templateRef": {"name": "t", "namespace": "infra"}}]);
    let mut held = stage(&json!({"analysis": {"metrics": metrics}}));
    held.planner = Canaries::new(settings);
    let plan = held.step();
    assert_eq!(plan.blockers[0].reason, "MetricNotFound");
    assert!(plan.blockers[0].message.contains("infra/t"));
    assert!(plan.steps.is_empty());
    held.planner = Canaries::new(Settings::default());
    until(&mut held, "Initialized");
    // Who is told as well.
    let alerts = json!([{"name": "a", "severity": "info",
        "providerRef": {"name": "p", "namespace": "infra"}}]);
    let mut held = stage(&json!({"analysis": {"alerts": alerts}}));
    held.planner = Canaries::new(Settings {
        cross_namespace: false,
        ..Settings::default()
    });
    let plan = held.step();
    assert!(
        plan.blockers[0].message.contains("infra/p"),
        "{:?}",
        plan.blockers
    );
    assert!(plan.steps.is_empty());
}

#[test]
fn a_provider_of_metrics_that_is_not_built_is_refused_at_once() {
    let metrics = json!([{"name": "a", "templateRef": {"name": "t"}}]);
    let mut held = stage(&json!({"analysis": {"metrics": metrics}}));
    held.put(template(
        "t",
        &json!({"provider": {"type": "datadog"}, "query": "q"}),
    ));
    let plan = held.step();
    assert_eq!(plan.blockers[0].reason, "Unsupported");
    assert!(
        plan.blockers[0].message.contains("datadog"),
        "{:?}",
        plan.blockers
    );
    assert!(plan.steps.is_empty());
}

/// A run that asks a webhook with these fields, and what it asks.
fn gated(fields: &Value) -> (Stage, Question) {
    let mut hook = json!({"name": "gate", "type": "pre-rollout", "url": "http://gate.test/a"});
    merge(&mut hook, fields);
    let mut stage = stage(&json!({"analysis": {"webhooks": [hook]}}));
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    for _ in 0..10 {
        let plan = stage.step();
        controllers(&mut stage);
        if let [question] = questions(&plan).as_slice() {
            return (stage, question.clone());
        }
    }
    panic!("nobody is asked");
}

#[test]
fn scenario_64_a_webhook_may_be_asked_by_get() {
    let (_, question) = gated(&json!({"method": "GET"}));
    assert_eq!(call(&question).method, Method::Get);
}

/// Whoever was away for a moment is asked again, and whoever has said what is expected is not.
#[test]
fn scenario_64_who_cannot_be_reached_is_asked_again() {
    let asked_then = |fields: Value, told: Told| {
        let (mut stage, question) = gated(&fields);
        let told = (stage.now, told);
        stage.facts.answers.insert(question.id, told);
        questions(&stage.step())
    };
    let away = || Told::Failed(Failure::Unreachable("connection refused".to_owned()));
    let again = asked_then(json!({"retries": 1}), away());
    let [question] = again.as_slice() else {
        panic!("{again:?}");
    };
    assert_eq!(question.pause, Duration::from_secs(1));
    assert_eq!(asked_then(json!({}), away()), []);
    let text = Text {
        text: String::new(),
        is_cut: false,
    };
    let reply = Reply {
        code: 503,
        value: Read::Text(text),
    };
    let expected = json!({"retries": 1, "expectedStatus": [503]});
    assert_eq!(asked_then(expected, Told::Read(reply)), []);
}

/// Pods of a `DaemonSet` are called `web-x`, those of its copy `web-primary-x`.
#[test]
fn builtin_queries_find_the_pods_of_each_kind_of_workload() {
    let kubernetes = Provider::of("kubernetes").unwrap();
    for metric in ["request-success-rate", "request-duration"] {
        let of = |kind| builtin(kubernetes, metric, kind);
        let deployment = of(Workload::Deployment);
        assert!(deployment.contains(r#"{{ target }}-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)""#));
        let daemon_set = of(Workload::DaemonSet);
        assert!(daemon_set.contains(r#"{{ target }}-[0-9a-zA-Z]+""#));
        assert!(!daemon_set.contains("(-"), "{daemon_set}");
    }
}

#[test]
fn builtin_queries_can_be_filled_in_for_every_provider() {
    let names = Names {
        name: "web".to_owned(),
        namespace: "shop".to_owned(),
        target: "web".to_owned(),
        service: "web".to_owned(),
        ingress: "shop".to_owned(),
        route: String::new(),
        interval: "1m".to_owned(),
        variables: std::collections::BTreeMap::new(),
    };
    for (name, provider) in Provider::all() {
        for metric in ["request-success-rate", "request-duration"] {
            let text = builtin(provider, metric, Workload::Deployment);
            let template = Template::parse(&text, Place::Query).unwrap();
            let query = template.render(&names).unwrap();
            assert!(
                query.contains("[1m]") && query.contains("shop"),
                "{name}: {query}"
            );
            let signs = |sign: char| query.matches(sign).count();
            assert_eq!(signs('('), signs(')'), "{name}: {query}");
            assert_eq!(signs('{'), signs('}'), "{name}: {query}");
        }
    }
}
