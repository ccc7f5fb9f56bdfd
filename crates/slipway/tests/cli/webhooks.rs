//! Webhooks tried on the embedded server, as `docs/try-webhooks.md` shows it: their Service leads to the program beside it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use super::install::{apply, objects};
use super::operator::{address, eventually, status};
use super::program::{Place, Running, appears, client, succeeded, wait};

/// A port that is held from the start, for a program that says later where it listens.
struct Door {
    port: u16,
    leads_to: Arc<OnceLock<String>>,
}

impl Door {
    fn open() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let leads_to: Arc<OnceLock<String>> = Arc::default();
        let known = leads_to.clone();
        std::thread::spawn(move || {
            for outside in listener.incoming().map_while(Result::ok) {
                let inside = known.get().and_then(|to| TcpStream::connect(to).ok());
                if let Some(inside) = inside {
                    let (a, b) = (outside.try_clone().unwrap(), inside.try_clone().unwrap());
                    std::thread::spawn(move || pass(outside, inside));
                    std::thread::spawn(move || pass(b, a));
                }
            }
        });
        Self { port, leads_to }
    }
}

/// Everything from one to the other.
fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut piece = [0_u8; 4096];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

async fn make(client: &Client) {
    let set: StatefulSet = serde_json::from_value(json!({
        "metadata": {"name": "ingester-zone-a", "labels": {"grafana.com/no-downscale": "true"}},
        "spec": {
            "replicas": 2, "serviceName": "ingester",
            "selector": {"matchLabels": {"name": "ingester-zone-a"}},
            "template": {
                "metadata": {"labels": {"name": "ingester-zone-a"}},
                "spec": {"containers": [{"name": "a", "image": "a"}]},
            },
        },
    }))
    .unwrap();
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "mimir");
    sets.create(&PostParams::default(), &set).await.unwrap();
}

/// What `kubectl scale --replicas=1` is told; nothing if it is let through.
async fn scale(client: &Client) -> Option<String> {
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "mimir");
    let one = Patch::Merge(json!({"spec": {"replicas": 1}}));
    match sets
        .patch_scale("ingester-zone-a", &PatchParams::default(), &one)
        .await
    {
        Err(kube::Error::Api(refused)) => Some(refused.message.clone()),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    }
}

#[test]
fn a_webhook_is_called_where_its_service_is_said_to_be() {
    let place = Place::new("webhooks");
    let kubeconfig = place.path("kubeconfig");
    let file = kubeconfig.to_str().unwrap();
    let door = Door::open();
    let service = format!("rollout/rollout-operator=localhost:{}", door.port);
    let server = [
        "apiserver",
        "--port",
        "0",
        "--actors",
        "--crds",
        "--kubeconfig-out",
        file,
    ];
    let mut command = place.command(&server);
    let server = Running::start(command.args(["--service", &service]), true);
    appears(&kubeconfig);
    let asked = [
        "manifests",
        "--controllers",
        "zones",
        "--webhooks",
        "--namespace",
        "mimir",
        "--no-crds",
    ];
    let all = objects(&succeeded(&place.run(&asked)));
    wait(async {
        let client = client(&kubeconfig).await;
        apply(
            &client,
            &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mimir"}})],
        )
        .await;
        make(&client).await;
        apply(&client, &all).await;
    });
    let operator = [
        "run",
        "--controllers",
        "zones",
        "--webhooks",
        "--namespace",
        "mimir",
        "--kubeconfig",
        file,
        "--port",
        "0",
        "--webhooks-port",
        "0",
        "--bind",
        "127.0.0.1",
    ];
    let mut operator = Running::start(&mut place.command(&operator), true);
    let probes = address(&operator.line("serving /healthz"));
    door.leads_to
        .set(address(&operator.line("serving webhooks")))
        .unwrap();
    wait(async {
        let client = client(&kubeconfig).await;
        eventually("it is ready", || async {
            status(&probes, "/ready").contains("200").then_some(())
        })
        .await;
        let refused = eventually("the CA is injected", || async {
            scale(&client)
                .await
                .filter(|said| !said.contains("failed calling webhook"))
        })
        .await;
        assert!(
            refused.ends_with(
                "downscale of statefulsets/ingester-zone-a in mimir from 2 to 1 replicas is not allowed because it has \
                 the label 'grafana.com/no-downscale=true'"
            ),
            "{refused}"
        );
    });
    assert_eq!(operator.terminate(), Some(0));
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_service_of_which_nothing_is_said_is_told_of_once() {
    let place = Place::new("webhooks-nowhere");
    let kubeconfig = place.path("kubeconfig");
    let file = kubeconfig.to_str().unwrap();
    let server = [
        "apiserver",
        "--port",
        "0",
        "--crds",
        "--kubeconfig-out",
        file,
    ];
    let mut server = Running::start(&mut place.command(&server), true);
    appears(&kubeconfig);
    let asked = [
        "manifests",
        "--controllers",
        "zones",
        "--webhooks",
        "--namespace",
        "mimir",
        "--no-crds",
    ];
    let all = objects(&succeeded(&place.run(&asked)));
    wait(async {
        let client = client(&kubeconfig).await;
        apply(
            &client,
            &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mimir"}})],
        )
        .await;
        make(&client).await;
        apply(&client, &all).await;
        for _ in 0..3 {
            let refused = scale(&client).await.unwrap();
            assert!(refused.contains("failed calling webhook"), "{refused}");
        }
    });
    let flag = "--service rollout/rollout-operator=HOST:PORT";
    server.line(flag);
    server.catch_up();
    let told = server.seen.iter().filter(|line| line.contains(flag));
    assert_eq!(told.count(), 1, "{:#?}", server.seen);
    assert_eq!(server.terminate(), Some(0));
}
