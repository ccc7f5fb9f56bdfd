//! Faults of requests: what the client sees, what is stored, and what the trace says.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{DeleteParams, ListParams, PostParams, ResourceExt};
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::status::Status;
use slipway_apiserver::trace::{Ending, Record};

use super::stage::{ADMIN, client, cluster, map, maps, refused, virtually};

fn creates() -> Match {
    Match {
        verb: "create".to_owned(),
        resource: "/configmaps".to_owned(),
        ..Match::default()
    }
}

fn from(agent: &str) -> Match {
    Match {
        agent: agent.to_owned(),
        ..Match::default()
    }
}

fn failure(code: u16, reason: &str) -> Box<Status> {
    Box::new(Status::failure(code, reason, "on purpose"))
}

fn last(cluster: &Cluster) -> Record {
    cluster.trace().records().pop().unwrap()
}

async fn names(client: &Client) -> Vec<String> {
    let found = maps(client).list(&ListParams::default()).await.unwrap();
    found.iter().map(ResourceExt::name_any).collect()
}

/// Whether the connection broke: no answer of the API came.
fn broke<T>(result: &kube::Result<T>) -> bool {
    matches!(result, Err(kube::Error::Service(_)))
}

#[test]
fn a_refused_request_is_not_carried_out() {
    virtually(async {
        let cluster = cluster();
        let client = client(&cluster, "test");
        let api = maps(&client);
        for (code, reason) in [
            (409, "Conflict"),
            (429, "TooManyRequests"),
            (500, "InternalError"),
            (503, "ServiceUnavailable"),
        ] {
            cluster.faults().add(
                creates(),
                Frequency::once(),
                Fault::Refuse(failure(code, reason)),
            );
            let version = cluster.version();
            let seen = refused(api.create(&PostParams::default(), &map("a", "1")).await);
            assert_eq!(
                (seen.code, &*seen.reason, &*seen.message),
                (code, reason, "on purpose")
            );
            assert_eq!(cluster.version(), version);
            let record = last(&cluster);
            assert_eq!(
                (record.ending, &*record.reason),
                (Ending::Answered(code), reason)
            );
            assert_eq!(record.versions, (version, version));
        }
        assert_eq!(names(&client).await, [""; 0]);
        api.create(&PostParams::default(), &map("a", "1"))
            .await
            .unwrap();
    });
}

#[test]
fn a_lost_answer_was_carried_out() {
    virtually(async {
        let cluster = cluster();
        let client = client(&cluster, "test");
        let api = maps(&client);
        cluster
            .faults()
            .add(creates(), Frequency::once(), Fault::Lose);
        assert!(broke(
            &api.create(&PostParams::default(), &map("a", "1")).await
        ));
        let record = last(&cluster);
        assert_eq!(
            (record.ending, record.versions.1),
            (Ending::Lost(201), record.versions.0 + 1)
        );
        let lost = Fault::LoseAs(failure(504, "Timeout"));
        cluster.faults().add(creates(), Frequency::once(), lost);
        let seen = refused(api.create(&PostParams::default(), &map("b", "1")).await);
        assert_eq!((seen.code, &*seen.reason), (504, "Timeout"));
        assert_eq!(last(&cluster).ending, Ending::Lost(201));
        assert_eq!(names(&client).await, ["a", "b"]);
    });
}

#[test]
fn a_request_that_does_not_arrive_is_not_carried_out() {
    virtually(async {
        let cluster = cluster();
        let client = client(&cluster, "test");
        cluster
            .faults()
            .add(creates(), Frequency::once(), Fault::Unreachable);
        assert!(broke(
            &maps(&client)
                .create(&PostParams::default(), &map("a", "1"))
                .await
        ));
        assert_eq!(last(&cluster).ending, Ending::Unreachable);
        assert_eq!(names(&client).await, [""; 0]);
    });
}

#[test]
fn a_delay_passes_in_virtual_time() {
    virtually(async {
        let cluster = cluster();
        let client = client(&cluster, "test");
        let hour = Duration::from_hours(1);
        cluster
            .faults()
            .add(creates(), Frequency::once(), Fault::Delay(hour));
        let (start, real) = (tokio::time::Instant::now(), std::time::Instant::now());
        let made = maps(&client)
            .create(&PostParams::default(), &map("a", "1"))
            .await
            .unwrap();
        assert_eq!(start.elapsed(), hour);
        assert!(real.elapsed() < hour / 60);
        // It was late on its way in: what it wrote is from after the delay.
        let (asked, made) = (last(&cluster).at, made.creation_timestamp().unwrap().0);
        assert_eq!(made.duration_since(asked).as_secs(), 3600);
    });
}

#[test]
fn a_delayed_request_that_is_given_up_never_happens() {
    virtually(async {
        let cluster = cluster();
        let client = client(&cluster, "test");
        let slow = Fault::Delay(Duration::from_mins(1));
        cluster.faults().add(creates(), Frequency::once(), slow);
        let api = maps(&client);
        let object = map("a", "1");
        let params = PostParams::default();
        let create = api.create(&params, &object);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), create)
                .await
                .is_err()
        );
        assert_eq!(last(&cluster).ending, Ending::GivenUp);
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_eq!(names(&client).await, [""; 0]);
    });
}

#[test]
fn stale_lists_show_the_past() {
    virtually(async {
        let cluster = cluster();
        let client = client(&cluster, "test");
        let api = maps(&client);
        for name in ["a", "b", "c"] {
            api.create(&PostParams::default(), &map(name, "1"))
                .await
                .unwrap();
        }
        let lists = Match {
            verb: "list".to_owned(),
            ..Match::default()
        };
        cluster
            .faults()
            .add(lists, Frequency::once(), Fault::Stale(2));
        let old = api.list(&ListParams::default()).await.unwrap();
        assert_eq!(old.items.len(), 1);
        assert_eq!(
            old.metadata.resource_version.unwrap(),
            (cluster.version() - 2).to_string()
        );
        assert_eq!(names(&client).await, ["a", "b", "c"]);
    });
}

#[test]
fn stale_gets_show_the_past() {
    virtually(async {
        let cluster = cluster();
        let api = maps(&client(&cluster, "test"));
        let mut made = api
            .create(&PostParams::default(), &map("a", "1"))
            .await
            .unwrap();
        made.data = map("a", "2").data;
        api.replace("a", &PostParams::default(), &made)
            .await
            .unwrap();
        let gets = Match {
            verb: "get".to_owned(),
            name: "a".to_owned(),
            ..Match::default()
        };
        cluster
            .faults()
            .add(gets.clone(), Frequency::once(), Fault::Stale(1));
        assert_eq!(api.get("a").await.unwrap().data.unwrap()["k"], "1");
        cluster
            .faults()
            .add(gets, Frequency::once(), Fault::Stale(2));
        assert_eq!(refused(api.get("a").await).code, 404);
        assert_eq!(api.get("a").await.unwrap().data.unwrap()["k"], "2");
    });
}

#[test]
fn one_client_is_cut_off_while_others_work() {
    virtually(async {
        let cluster = cluster();
        let (cut, well) = (
            client(&cluster, "replica-1/v1"),
            client(&cluster, "replica-2/v1"),
        );
        cluster
            .faults()
            .add(from("replica-1"), Frequency::always(), Fault::Unreachable);
        for n in 0..3 {
            let object = map(&format!("a{n}"), "1");
            assert!(broke(
                &maps(&cut).create(&PostParams::default(), &object).await
            ));
            maps(&well)
                .create(&PostParams::default(), &object)
                .await
                .unwrap();
        }
        cluster.faults().clear();
        assert_eq!(names(&cut).await.len(), 3);
    });
}

#[test]
fn rules_hit_as_often_as_they_say() {
    virtually(async {
        let cluster = cluster();
        let api = maps(&client(&cluster, "test"));
        let frequency = Frequency::Count { skip: 2, times: 2 };
        cluster
            .faults()
            .add(from(""), frequency, Fault::Unreachable);
        let mut hit = Vec::new();
        for _ in 0..6 {
            hit.push(broke(&api.list(&ListParams::default()).await));
        }
        assert_eq!(hit, [false, false, true, true, false, false]);
        let fifth = Match {
            index: Some(cluster.trace().len()),
            ..Match::default()
        };
        cluster
            .faults()
            .add(fifth, Frequency::always(), Fault::Unreachable);
        assert!(broke(&api.list(&ListParams::default()).await));
        assert!(!broke(&api.list(&ListParams::default()).await));
        let count = |seed| {
            let cluster = cluster.clone();
            let api = api.clone();
            async move {
                cluster
                    .faults()
                    .add(from(""), Frequency::seeded(300, seed), Fault::Unreachable);
                let mut hit = Vec::new();
                for _ in 0..100 {
                    hit.push(broke(&api.list(&ListParams::default()).await));
                }
                cluster.faults().clear();
                hit
            }
        };
        let (one, again, other) = (count(1).await, count(1).await, count(2).await);
        assert_eq!(one, again);
        assert_ne!(one, other);
        let hits = one.iter().filter(|hit| **hit).count();
        assert!((15..45).contains(&hits), "{hits}");
    });
}

#[test]
fn the_trace_knows_who_asked_with_what_in_which_context() {
    virtually(async {
        let cluster: Arc<Cluster> = cluster();
        let context = http::HeaderName::from_static("x-trace-context");
        let service = cluster
            .service(ADMIN)
            .with_agent("tester/1")
            .with_header(context, "step-7");
        let client = Client::new(service, "default");
        maps(&client)
            .create(&PostParams::default(), &map("a", "1"))
            .await
            .unwrap();
        let record = last(&cluster);
        assert_eq!(
            (&*record.user, &*record.agent, &*record.context),
            ("admin", "tester/1", "step-7")
        );
        assert_eq!(
            (&*record.verb, &*record.resource, &*record.namespace),
            ("create", "/configmaps", "default")
        );
        assert_eq!((record.index, record.ending), (0, Ending::Answered(201)));
        assert!(
            record
                .uri
                .starts_with("/api/v1/namespaces/default/configmaps"),
            "{}",
            record.uri
        );
        let before = cluster.trace().hash();
        let _ = maps(&client).get_opt("b").await;
        assert_ne!(cluster.trace().hash(), before);
        let record = last(&cluster);
        assert_eq!(
            (record.ending, &*record.reason, &*record.name),
            (Ending::Answered(404), "NotFound", "b")
        );
    });
}

#[test]
fn a_restore_takes_back_what_happened_since_and_gives_its_versions_again() {
    virtually(async {
        let cluster = cluster();
        let client = client(&cluster, "test");
        let api = maps(&client);
        let kept = api.create(&PostParams::default(), &map("kept", "1")).await;
        let kept = kept.unwrap();
        let saved = cluster.snapshot();
        let then = cluster.version();
        let lost = api.create(&PostParams::default(), &map("lost", "1")).await;
        let lost = lost.unwrap().resource_version();
        api.delete("kept", &DeleteParams::default()).await.unwrap();
        cluster.restore(&saved);
        assert_eq!(cluster.version(), then);
        assert_eq!(names(&client).await, ["kept"]);
        assert_eq!(
            api.get("kept").await.unwrap().resource_version(),
            kept.resource_version()
        );
        let again = api.create(&PostParams::default(), &map("other", "1")).await;
        assert_eq!(again.unwrap().resource_version(), lost);
    });
}
