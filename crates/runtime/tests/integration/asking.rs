//! A capability that asks one of each kind, through the whole engine: what is sent, what it is told, what is seen of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request as Sent, Response};
use http_body_util::{BodyExt, Full};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use slipway_kernel::address::{Rules, Url, escaped};
use slipway_kernel::fact::{Request, ScaleOf};
use slipway_kernel::question::prometheus::Query;
use slipway_kernel::question::{
    Call, Credential, Failure, Header, OtherNamespaces, SecretRef, Target, Wanted,
};
use slipway_runtime::gather::{Dial, Gatherer, Unreached};
use slipway_runtime::outside::{
    Body, Limits, Manner, NoSecrets, Outside, SystemResolver, Terms, Transport,
};
use slipway_runtime::{Environment, Operator, Settings};

use crate::curious::Curious;
use crate::records::Records;
use crate::stage::{Replica, Stage, alone, epoch, one_of_many, secs, virtually};

/// With a character for each way in which programs escape.
const MARKER: &str = "M&k\"/<+ B=5ecret-0f-the-world";
/// What is in it in every spelling.
const CORE: &str = "5ecret-0f-the-world";

/// What was asked: when, of whom, and with which headers.
type Heard = Arc<Mutex<Vec<(tokio::time::Instant, Sent<Bytes>)>>>;

/// The world: a Prometheus, a webhook, somebody who repeats what he hears, somebody who never answers, nobody.
#[derive(Clone, Default)]
struct World {
    heard: Heard,
}

impl World {
    fn of(&self, host: &str) -> Vec<Sent<Bytes>> {
        let heard = self.heard.lock().unwrap();
        let all = heard.iter().filter(|(_, r)| r.uri().host() == Some(host));
        all.map(|(_, request)| request.clone()).collect()
    }
}

fn said(code: u16, body: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_owned()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = code.try_into().unwrap();
    response
}

/// All that a request says.
fn repeated(request: &Sent<Bytes>) -> String {
    let values = request.headers().values();
    let values: Vec<String> = values
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    format!("{} {}", request.uri(), values.join(" "))
}

/// A text as Go writes it into JSON.
fn as_go_writes(text: &str) -> String {
    let text = Value::from(text).to_string();
    let text = text.replace('&', "\\u0026").replace('<', "\\u003c");
    format!("{{\"error\":{text}}}")
}

impl Transport for World {
    fn send(
        &self,
        request: Sent<Bytes>,
        _: &Manner,
    ) -> BoxFuture<'static, Result<Response<Body>, Failure>> {
        let now = tokio::time::Instant::now();
        self.heard.lock().unwrap().push((now, request.clone()));
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(match request.uri().host().unwrap_or_default() {
                "prometheus.test" => said(
                    200,
                    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[0,"0.25"]}]}}"#,
                ),
                "hook.test" => said(202, r#"{"score": 7}"#),
                "echo.test" => said(400, &repeated(&request)),
                "echo-number.test" => said(500, &as_go_writes(&repeated(&request))),
                "slow.test" => std::future::pending().await,
                host => {
                    let why = format!("{host} is not there");
                    return Err(Failure::Unreachable(why));
                }
            })
        })
    }
}

/// Pods that are prepared since always.
struct Pods;

impl Dial for Pods {
    fn call(&self, _: Sent<Bytes>) -> BoxFuture<'static, Result<Response<Bytes>, Unreached>> {
        Box::pin(async { Ok(Response::new(Bytes::from("prepared"))) })
    }
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn outside(call: Call) -> Request {
    Request::Outside(Box::new(call))
}

fn reading(to: &str, wanted: Wanted) -> Request {
    let mut call = Call::post(url(to), r#"{"phase":"Progressing"}"#.to_owned());
    call.wanted = wanted;
    outside(call)
}

fn secret(key: &str) -> SecretRef {
    SecretRef {
        namespace: "default".to_owned(),
        name: "credentials".to_owned(),
        key: key.to_owned(),
    }
}

fn start(stage: &Stage, world: &World, requests: Vec<(&'static str, Request)>) -> Replica {
    start_with(stage, world, requests, alone())
}

fn start_with(
    stage: &Stage,
    world: &World,
    requests: Vec<(&'static str, Request)>,
    settings: Settings,
) -> Replica {
    let environment = Environment::virtual_from(epoch(), 7);
    let operator = Operator::new(environment, stage.client("one"), settings);
    let terms = Terms {
        rules: Rules::default(),
        other_namespaces: OtherNamespaces::Refused,
        credentials_over_http: true,
        limits: Limits {
            per_target: 4,
            at_once: 8,
            ..Limits::default()
        },
        resolver: Arc::new(SystemResolver),
        secrets: Arc::new(NoSecrets),
        agent: "slipway/test",
    };
    let outside = Outside::over(terms, Arc::new(world.clone()));
    let gatherer = Gatherer::new(operator.client(), Arc::new(Pods)).asking(&outside);
    let operator = operator
        .with(Arc::new(Curious { requests }))
        .gathering(Arc::new(gatherer));
    Replica::run(operator)
}

async fn told(stage: &Stage, name: &str, at_most: u64) -> String {
    for _ in 0..at_most * 10 {
        if let Some(told) = stage.entry(name, "told").await {
            return told;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{name} was not told anything within {at_most} s");
}

async fn credentials(stage: &Stage) {
    let all = ["token", "header", "query", "address"];
    let value = |key: &&str| match *key {
        "address" => format!("https://echo.test/{}", escaped(MARKER)),
        _ => format!("{MARKER}-{key}"),
    };
    let values: serde_json::Map<String, Value> = all
        .iter()
        .map(|key| ((*key).to_owned(), json!(value(key))))
        .collect();
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}, "stringData": values});
    let path = "/api/v1/namespaces/default/secrets";
    stage.create(path, &body).await;
}

async fn deployment(stage: &Stage) {
    let labels = json!({"app": "web"});
    let body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]},
        }},
    });
    let path = "/apis/apps/v1/namespaces/default/deployments";
    stage.create(path, &body).await;
}

/// One of each kind, and of each failure.
fn one_of_each() -> Vec<(&'static str, Request)> {
    let made = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}});
    let api = |method, path: &str, body| Request::Api {
        method,
        path: format!("/api/v1/namespaces/default/configmaps{path}"),
        body,
    };
    let scale = ScaleOf {
        group: "apps".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "default".to_owned(),
        name: "web".to_owned(),
    };
    let pod = Request::Pod {
        method: "POST",
        url: "http://web-0.web/prepare".to_owned(),
    };
    let mut slow = Call::get(url("https://slow.test/"));
    slow.timeout = Duration::from_secs(2);
    let score = Wanted::Number(Some("/score".to_owned()));
    let query = Query::new(url("http://prometheus.test:9090/"), "up");
    let metadata = "http://169.254.169.254/latest";
    vec![
        ("read", api("GET", "/none", Value::Null)),
        ("write", api("POST", "", made)),
        ("scale", Request::Scale(scale)),
        ("pod", pod),
        ("status", reading("https://hook.test/a", Wanted::Status)),
        ("text", reading("https://hook.test/b", Wanted::Text)),
        ("number", reading("https://hook.test/c", score)),
        ("measured", outside(query.call())),
        ("refused", reading("https://echo.test/", Wanted::Measured)),
        (
            "malformed",
            reading("https://hook.test/d", Wanted::Number(None)),
        ),
        ("slow", outside(slow)),
        ("nobody", reading("https://nobody.test/", Wanted::Status)),
        ("forbidden", reading(metadata, Wanted::Text)),
    ]
}

#[test]
fn one_question_of_each_kind_is_asked_and_answered() {
    virtually(async {
        let stage = Stage::new().await;
        deployment(&stage).await;
        stage.map("asks", json!({})).await;
        let world = World::default();
        let replica = start(&stage, &world, one_of_each());
        let told = told(&stage, "asks", 10).await;
        for expected in [
            "read: Said { code: 404,",
            "write: Said { code: 201,",
            r#"\"kind\":\"Deployment\",\"plural\":\"deployments\""#,
            r#"pod: Said { code: 200, body: "prepared" }"#,
            "status: Read(Reply { code: 202, value: Nothing })",
            r#"text: Read(Reply { code: 202, value: Text(Text { text: "{\"score\": 7}", is_cut: false }) })"#,
            "number: Read(Reply { code: 202, value: Number(Finite(7.0)) })",
            "measured: Read(Reply { code: 200, value: Measured(Whole(Vector(Finite(0.25)))) })",
            "refused: refused with code 400: ",
            "malformed: the answer cannot be understood: ",
            "slow: no answer within the time",
            "nobody: cannot be reached: nobody.test is not there",
            "forbidden: must not be asked: 169.254.169.254 is at 169.254.169.254",
        ] {
            assert!(told.contains(expected), "no {expected} in\n{told}");
        }
        // Each was asked once, with its name.
        let hooks = world.of("hook.test");
        assert_eq!(hooks.len(), 4);
        let uid = stage
            .maps()
            .get("asks")
            .await
            .unwrap()
            .metadata
            .uid
            .unwrap();
        let id = hooks[0].headers()["idempotency-key"].to_str().unwrap();
        assert_eq!(id, format!("curious/{uid}/status/0/1970-01-01T00:00:00Z"));
        assert!(world.of("169.254.169.254").is_empty());
        // Seen by people: host and outcome.
        let text = replica.view.metrics();
        for line in [
            r#"slipway_outside_calls_total{host="hook.test",outcome="answered"} 3"#,
            r#"slipway_outside_calls_total{host="hook.test",outcome="malformed"} 1"#,
            r#"slipway_outside_calls_total{host="prometheus.test",outcome="answered"} 1"#,
            r#"slipway_outside_calls_total{host="echo.test",outcome="refused"} 1"#,
            r#"slipway_outside_calls_total{host="slow.test",outcome="timeout"} 1"#,
            r#"slipway_outside_calls_total{host="nobody.test",outcome="unreachable"} 1"#,
            r#"slipway_outside_calls_total{host="<none>",outcome="not_allowed"} 1"#,
        ] {
            assert!(text.contains(&format!("{line}\n")), "no {line} in\n{text}");
        }
        // They live with their key, and are gone when it has no use for them, or is gone.
        secs(60).await;
        assert_eq!(replica.view.answers(), 0);
    });
}

#[test]
fn answers_go_with_their_key() {
    virtually(async {
        let stage = Stage::new().await;
        let world = World::default();
        let mut slow = Call::get(url("https://slow.test/"));
        slow.timeout = Duration::from_secs(30);
        let requests = vec![
            ("quick", reading("https://hook.test/", Wanted::Text)),
            ("slow", outside(slow)),
        ];
        let replica = start(&stage, &world, requests);
        for name in ["asks-a", "asks-b"] {
            stage.map(name, json!({})).await;
        }
        secs(5).await;
        assert_eq!(replica.view.answers(), 2);
        let maps = stage.maps();
        maps.delete("asks-a", &DeleteParams::default())
            .await
            .unwrap();
        secs(1).await;
        assert_eq!(replica.view.answers(), 1);
        // What comes later for a key that is gone is not kept.
        maps.delete("asks-b", &DeleteParams::default())
            .await
            .unwrap();
        secs(60).await;
        assert_eq!(replica.view.answers(), 0);
    });
}

/// A slow target delays nobody else, and who cannot be reached is left alone.
#[test]
fn a_slow_target_delays_nobody_else() {
    virtually(async {
        let stage = Stage::new().await;
        let world = World::default();
        for n in 0..40 {
            stage.map(&format!("asks-{n}"), json!({})).await;
        }
        let mut slow = Call::get(url("https://slow.test/"));
        slow.timeout = Duration::from_secs(10);
        let requests = vec![
            ("slow", outside(slow)),
            ("quick", reading("https://hook.test/", Wanted::Status)),
        ];
        let _replica = start(&stage, &world, requests);
        let began = tokio::time::Instant::now();
        secs(5).await;
        let heard = world.heard.lock().unwrap().clone();
        let of = |host: &str| {
            let all = heard.iter().filter(|(_, r)| r.uri().host() == Some(host));
            all.map(|(at, _)| at.duration_since(began))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("slow.test").len(), 4, "so many at once of one target");
        let quick = of("hook.test");
        assert_eq!(quick.len(), 40);
        // Forty calls of 20 ms each, four at once.
        assert!(quick.iter().all(|at| at.as_millis() < 1_000), "{quick:?}");
        drop(heard);
        // Whoever did not have a turn in time is told that.
        let told = told(&stage, "asks-39", 20).await;
        assert!(told.contains("slow: no answer within the time"), "{told}");
    });
}

/// A marker as token, header, query and address, of who repeats it, who fails and who is not there.
fn with_secrets() -> Vec<(&'static str, Request)> {
    let with = |to: &str, credential: Credential, wanted: Wanted| {
        let mut call = Call::get(url(to));
        call.headers.push(Header::new("X-Scope", "tenant").unwrap());
        (call.credentials, call.wanted) = (vec![credential], wanted);
        outside(call)
    };
    let header = || Credential::Header {
        name: "X-Api-Key".to_owned(),
        value: secret("header"),
    };
    let query = || Credential::Parameter {
        name: "key".to_owned(),
        value: secret("query"),
    };
    let bearer = || Credential::Bearer(secret("token"));
    let mut hidden = Call::get(url("https://unused.test/"));
    (hidden.target, hidden.wanted) = (Target::Secret(secret("address")), Wanted::Text);
    let mut other = Call::get(url("https://echo.test/"));
    other.credentials = vec![Credential::Bearer(SecretRef {
        namespace: "slipway-system".to_owned(),
        ..secret("token")
    })];
    let echo = "https://echo.test/";
    let number = "https://echo-number.test/";
    let nobody = "https://nobody.test/";
    vec![
        ("text-token", with(echo, bearer(), Wanted::Text)),
        ("text-header", with(echo, header(), Wanted::Text)),
        ("text-query", with(echo, query(), Wanted::Text)),
        ("error-token", with(number, bearer(), Wanted::Number(None))),
        ("error-header", with(number, header(), Wanted::Measured)),
        ("error-query", with(number, query(), Wanted::Number(None))),
        ("nobody-token", with(nobody, bearer(), Wanted::Text)),
        ("nobody-query", with(nobody, query(), Wanted::Text)),
        ("hidden", outside(hidden)),
        ("other", outside(other)),
    ]
}

/// A marker used as token, header, query and address is in no log, event, status, blocker, metric or error.
#[test]
fn a_secret_is_nowhere_but_with_whom_it_is_for() {
    let records = Records::default();
    let recording = tracing::subscriber::set_default(records.clone());
    virtually(async {
        let stage = Stage::new().await;
        credentials(&stage).await;
        stage.map("asks", json!({})).await;
        let world = World::default();
        let replica = start(&stage, &world, with_secrets());
        let told = told(&stage, "asks", 20).await;
        secs(5).await;
        // They were sent.
        let sent: Vec<String> = world.of("echo.test").iter().map(repeated).collect();
        for part in ["token", "header", "query"] {
            let marker = format!("{MARKER}-{part}");
            let holds = |text: &&String| text.contains(&marker) || text.contains(&escaped(&marker));
            assert_eq!(sent.iter().filter(holds).count(), 1, "{part}: {sent:#?}");
        }
        assert!(told.matches("[secret]").count() >= 6, "{told}");
        assert!(told.contains("other: must not be asked: the Secret slipway-system/credentials"));
        let events = stage
            .get("/apis/events.k8s.io/v1/namespaces/default/events")
            .await;
        assert!(events.to_string().contains("text-token"), "{events}");
        let mut seen = vec![
            told,
            events.to_string(),
            stage
                .get("/api/v1/namespaces/default/configmaps")
                .await
                .to_string(),
            replica.view.metrics(),
            format!("{:?}", replica.view.blockers()),
            format!("{:?}", replica.view.facts()),
        ];
        seen.extend(records.all());
        let leaks: Vec<&String> = seen.iter().filter(|text| text.contains(CORE)).collect();
        assert!(leaks.is_empty(), "{leaks:#?}");
    });
    assert!(!records.all().is_empty(), "nothing was logged at all");
    drop(recording);
}

/// What waits for its turn when nobody wants to know it any more does not leave.
#[test]
fn what_waits_when_its_object_goes_is_not_asked() {
    virtually(async {
        let stage = Stage::new().await;
        let world = World::default();
        let mut slow = Call::get(url("https://slow.test/"));
        slow.timeout = Duration::from_secs(30);
        for n in 0..5 {
            stage.map(&format!("asks-{n}"), json!({})).await;
        }
        // Four at once of one target.
        let _replica = start(&stage, &world, vec![("slow", outside(slow))]);
        secs(5).await;
        assert_eq!(world.of("slow.test").len(), 4);
        let maps = stage.maps();
        for n in 0..5 {
            let name = format!("asks-{n}");
            maps.delete(&name, &DeleteParams::default()).await.unwrap();
        }
        secs(60).await;
        assert_eq!(world.of("slow.test").len(), 4);
    });
}

/// Whoever is slow outside does not keep a lease that others wait for.
#[test]
fn a_stop_does_not_wait_for_the_world_and_gives_up_the_lease() {
    virtually(async {
        let stage = Stage::new().await;
        let world = World::default();
        let mut slow = Call::get(url("https://slow.test/"));
        slow.timeout = Duration::from_mins(1);
        stage.map("asks", json!({})).await;
        let requests = vec![("slow", outside(slow))];
        let replica = start_with(&stage, &world, requests, one_of_many("one"));
        secs(5).await;
        assert_eq!(world.of("slow.test").len(), 1);
        let began = tokio::time::Instant::now();
        replica.stop().await;
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
        let lease = stage
            .get("/apis/coordination.k8s.io/v1/namespaces/slipway-system/leases/curious")
            .await;
        assert_eq!(lease["spec"]["holderIdentity"], "");
    });
}
