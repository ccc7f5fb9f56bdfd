//! Many questions, and large answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use serde_json::json;
use slipway_kernel::fact::{Answer, Question};
use slipway_kernel::identity::Key;
use slipway_runtime::gather::Gather;
use slipway_runtime::{Environment, Operator};

use crate::stage::{Replica, Stage, alone, epoch, secs, virtually};
use crate::toy::Toy;

/// Takes a second for each answer, which is a megabyte, and counts.
#[derive(Clone, Default)]
struct Clerk(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    asked: BTreeMap<String, u32>,
    at_once: u32,
    most_at_once: u32,
}

impl Gather for Clerk {
    fn gather(&self, _: &Key, question: Question) -> BoxFuture<'static, Answer> {
        let counts = self.0.clone();
        Box::pin(async move {
            {
                let mut counts = counts.lock().unwrap();
                *counts
                    .asked
                    .entry(question.address().into_owned())
                    .or_default() += 1;
                counts.at_once += 1;
                counts.most_at_once = counts.most_at_once.max(counts.at_once);
            }
            secs(1).await;
            counts.lock().unwrap().at_once -= 1;
            Answer::Said {
                code: 200,
                body: "é".repeat(4_000),
            }
        })
    }
}

fn start(stage: &Stage, clerk: &Clerk) -> Replica {
    let environment = Environment::virtual_from(epoch(), 7);
    let operator = Operator::new(environment, stage.client("one"), alone());
    let operator = operator.with(Arc::new(Toy::default()));
    Replica::run(operator.gathering(Arc::new(clerk.clone())))
}

/// What a plan needs is kept, however much it is: a plan that needs more answers than were kept asked for ever.
#[test]
fn five_thousand_pods_are_asked_once_each_and_32_at_a_time() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"asks": "5000"})).await;
        let clerk = Clerk::default();
        let replica = start(&stage, &clerk);
        stage.until_have("a", "all", 5_000 / 32 + 10).await;
        secs(600).await;
        let counts = clerk.0.lock().unwrap();
        assert_eq!(counts.asked.len(), 5_000);
        let again: Vec<_> = counts.asked.iter().filter(|(_, n)| **n != 1).collect();
        assert!(again.is_empty(), "asked again: {again:?}");
        assert_eq!(counts.most_at_once, 32);
        // Nobody needs them any more.
        assert_eq!(replica.view.answers(), 0);
    });
}

#[test]
fn what_is_not_wanted_any_more_is_not_asked() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"asks": "320"})).await;
        let clerk = Clerk::default();
        let _replica = start(&stage, &clerk);
        secs(2).await;
        let path = "/api/v1/namespaces/default/configmaps/a";
        let less = json!({"data": {"asks": "40"}});
        stage.send("PATCH", path, &less).await;
        stage.until_have("a", "all", 10).await;
        secs(60).await;
        let counts = clerk.0.lock().unwrap();
        assert!(counts.asked.len() <= 4 * 32, "{}", counts.asked.len());
    });
}

/// Who leads next asks them itself.
#[test]
fn a_replica_that_ends_waits_for_answers_and_asks_no_more_pods() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"asks": "320"})).await;
        let clerk = Clerk::default();
        let replica = start(&stage, &clerk);
        secs(2).await;
        let asked = clerk.0.lock().unwrap().asked.len();
        assert!((1..320).contains(&asked), "{asked}");
        replica.stop().await;
        let counts = clerk.0.lock().unwrap();
        assert_eq!(counts.asked.len(), asked);
        assert_eq!(counts.at_once, 0, "answers are waited for");
    });
}

/// An answer of a pod stays for as long as plans need it, and there are as many as there are pods.
#[test]
fn of_a_long_answer_the_beginning_is_kept() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"ask": "http://pod/prepare"})).await;
        let clerk = Clerk::default();
        let _replica = start(&stage, &clerk);
        secs(5).await;
        let said = stage.entry("a", "have").await.unwrap();
        assert!(said.len() < 4_200, "{}", said.len());
        assert!(said.starts_with("éé") && said.ends_with("(cut)"));
    });
}
